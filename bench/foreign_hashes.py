"""Hashes as other services store them, with the password of each.

Most were made by those services' own code: Werkzeug 3.1.9, Django 5.2.19, Flask-Security-Too 5.9.2,
passlib 1.7.4, AuthEncoding 6.1 (LDAP, as Zope writes it), OpenSSL 3 (`openssl passwd`). Where that
needs a platform that is not here, they are published: of Ory Kratos in its hash/hasher_test.go, of
Firebase in the README of firebase/scrypt, of .NET 7 and WordPress 6.8 in databases of examples.
Those of phpass, Drupal 7, .NET Core and one of Firebase were made by ports of them to Node:
wordpress-hash-node 1.0.0, drupal-hash 1.0.4, aspnetcore-identity-password-hasher 1.0.1,
firebase-scrypt 2.2.0. Nextcloud's is libargon2's, as PHP calls it; Devise's is bcrypt's of
password and pepper, as Devise::Encryptor says.
"""

from typing import Any, NamedTuple

PASSWORD = "correct horse battery"


class Vector(NamedTuple):
    """What a line of an import has besides the account, the kind it is counted as, its password."""

    kind: str
    line: dict[str, Any]
    password: str = PASSWORD


def _vector(kind: str, hashed: str, password: str = PASSWORD) -> Vector:
    return Vector(kind, {"hash": hashed}, password)


def _firebase(hashed: str, salt: str, signer_key: str, mem_cost: int, password: str) -> Vector:
    project = {
        "salt": salt,
        "signer_key": signer_key,
        "salt_separator": "Bw==",
        "rounds": 8,
        "mem_cost": mem_cost,
    }
    return Vector("Firebase", {"hash": hashed, "firebase": project}, password)


VECTORS = {
    "Werkzeug scrypt": _vector(
        "Werkzeug",
        "scrypt:1024:8:1$mucsRYcJFPGrdWJH$e94cd8d08413c6cd58d5f1840e9ffe9a2aea0edd88a6f06c02af39288e"
        "753a045760417557cb49201db48fa0064105d8c43332892d915fcffc83e69ac7cad763",
    ),
    "Werkzeug PBKDF2": _vector(
        "Werkzeug",
        "pbkdf2:sha256:1000$rD6GnWazW6XUphCF$"
        "2345b538570f17a0104deef4dd13bf83519a40f8b63db2f6835413595311a0cb",
    ),
    "Werkzeug PBKDF2 SHA-1": _vector(
        "Werkzeug",
        "pbkdf2:sha1:1000$viNCa29f0l7YHaHl$b3dbae347f4d3229a827546a137989307dcbea5d",
    ),
    "Werkzeug PBKDF2 SHA-512": _vector(
        "Werkzeug",
        "pbkdf2:sha512:1000$igOjOCD9bICoLgPn$e16736936a0c04b59fbda0711c511351b27df9a65e11057d87d0c3"
        "b57b39355d17a89f80d773324ff208904a70b876279555d186ffb3399694730d60066fb57c",
    ),
    "Django scrypt": _vector(
        "Django",
        "scrypt$1024$kne54V1xkW1wUzXEk43E4o$8$5$u3gTdOqSeJaEt6SM8t8giT3HKxkT/PLBCLoxjWmnttyRgBOBdHJ"
        "avYD+SERrxVnn25kFVOlYO6pcDiQOelKwxQ==",
    ),
    "Kratos PBKDF2": _vector(
        "Kratos",
        "$pbkdf2-sha256$i=100000,l=32$1jP+5Zxpxgtee/iPxGgOz0RfE9/KJuDElP1ley4VxXc"
        "$QJxzfvdbHYBpydCbHoFg3GJEqMFULwskiuqiJctoYpI",
        "test",
    ),
    "Kratos PBKDF2, cut": _vector(
        "Kratos",
        "$pbkdf2-sha512$i=100000,l=32$bdHBpn7OWOivJMVJypy2UqR0UnaD5prQXRZevj/05YU"
        "$+wArTfv1a+bNGO1iZrmEdVjhA+lL11wF4/IxpgYfPwc",
        "test",
    ),
    "Kratos scrypt": _vector(
        "Kratos",
        "$scrypt$ln=16384,r=8,p=1$2npRo7P03Mt8keSoMbyD/tKFWyUzjiQf2svUaNDSrhA="
        "$MiCzNcIplSMqSBrm4HckjYqYhaVPPjTARTzwB1cVNYE=",
        "test",
    ),
    "Kratos sha512-crypt": _vector(
        "Kratos",
        "$sha512-crypt$rounds=1000$M2TE9.mbvhPogxie$hYoPilIy2wV4WfBlND/SR5zTMFePShEHUtnO0A5waVo7SsIo"
        "Usji0R9kxuFfpgf/CGGk3oGX.sUtBMetzPP2H0",
    ),
    "bcrypt_sha256": _vector(
        "bcrypt_sha256",
        "$bcrypt-sha256$v=2,t=2b,r=4$HSp5T8jctbdcwR1r/fGAC.$FBMigYJcK2aP0n34A0FXkiuowPArVau",
    ),
    "bcrypt_sha256 of old": _vector(
        "bcrypt_sha256",
        "$bcrypt-sha256$2b,4$Hg7DgOZDWM9ud4mFqmR0Se$Cv2ZdIns.GO5oJ26V0GCHH7W3V/JAby",
    ),
    "WordPress": _vector("WordPress", "$P$BfJbKkZoJf1PgLfY.IEdVIt6dBnBNP1"),
    "WordPress 6.8": _vector(
        "WordPress", "$wp$2y$10$v719Zyb/5DiglXjaGmtVoO.58ZfZLBkfIyjXnYyIbWYYFsofeucua", "test123"
    ),
    "Drupal": _vector("Drupal", "$S$DH8uwMy2x5M.O.6eMri3v20NBf4IK.tzKBT2SjJKEtUs7cv.eFEh"),
    "Nextcloud": _vector(
        "Nextcloud",
        "3|$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$QOKF1iG70GOhZX71bkTGoINw9zqSjKFirULQQtMxBVI",
    ),
    "Nextcloud Argon2i": _vector(
        "Nextcloud",
        "2|$argon2i$v=19$m=64,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$Lb5cID2k+yPXhfrrKW/kiSaE1/CHnf+BU+n1GvTC5Wo",
    ),
    "Nextcloud bcrypt": _vector(
        "Nextcloud", "1|$2y$04$k/X5Cj5vvWU/Q7guWwGNJeLxUuDO7unOSWlK1W0XgHyz4kN1h5gom"
    ),
    "Firebase": _firebase(
        "lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==",
        "42xEC+ixf3L2lw==",
        "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==",
        14,
        "user1password",
    ),
    "Firebase, another project": _firebase(
        "DYQs9RkQzU4Wz6bhwt8kPBSSdM6pCy9sZQ2LKgNaSpjfr6ewaKLtus1Tc+2nu1CT5tXFNUdSNuW7QaMRHqJh+Q==",
        "cToNfBuWvFdtBw==",
        "KvDMADYgnzqQQc30Z1RoZLjM9iHrdzZ3wLxlTbf/fMxfAx4STqnLsTQdpbS4bmMAMvAHezTSPP8GCKHBIXyUPQ==",
        10,
        PASSWORD,
    ),
    "LDAP SSHA": _vector("LDAP", "{SSHA}VMhONi3BTN/qkeJSeKkhuNPfVkG+Cf7dLumV"),
    "LDAP SSHA256": _vector(
        "LDAP", "{SSHA256}czO44OTV17PcF1cRxWrLZLy9xHd7CWyVYplr1rOhuMlx/7IK", "test123"
    ),
    "LDAP SSHA512": _vector(
        "LDAP",
        "{SSHA512}aa0tqtzHs+3dvLgzULlw0NcebmMSqtJktGbi9pCZfno0MhRjIk3sDE8l+kja6XyEyt6KBRLRPA5emk4AP+"
        "GLggCAsDYGAAAA",
    ),
    "LDAP CRYPT": _vector(
        "LDAP",
        "{CRYPT}$6$rounds=1000$6ifmqYs.kpe0Cl7K$F5C3l81JSlEwgzCY6ahdZ7a7Kn..sqGvyqBZZ0C9j0mAL67o/sZW"
        "e5Q9rExI3ws9f.6Ba2WePGgpGhiZDe/uv.",
    ),
    "sha256-crypt": _vector(
        "sha256-crypt", "$5$abcdefgh$sYjQ4vynYsNAnM.JMipLH1IMXSipuA8cURgfc3GsHo."
    ),
    "sha512-crypt": _vector(
        "sha512-crypt",
        "$6$abcdefgh$dTmIYmW/LpvGK/iiDSK9zlcKIRJ33.7YE9DETLAR1zX9/2./Fv6/8dFZ1tCs/Kfp//7QeoJfyRWP7XdD"
        "zP87j1",
    ),
    "ASP.NET Identity": _vector(
        "ASP.NET Identity",
        "AQAAAAEAACcQAAAAEBEydACQDIM19l+qHm4VZRkyOiYvOKV5ekf2/EZURdbJUajNab2VK24AfFXcY3f5UQ==",
    ),
    "ASP.NET Identity of .NET 7": _vector(
        "ASP.NET Identity",
        "AQAAAAIAAYagAAAAENoVftXbReMcFkOwzlfLFgFkx1tZ2PVoFwKaz/7UP6r5rlrymlHMFjMgowJCZl+6YA==",
        "Test123$",
    ),
}
# By its `hash_password`, with this SECURITY_PASSWORD_SALT.
FLASK_SECURITY_PEPPER = "a pepper of Flask-Security"
FLASK_SECURITY = {
    "bcrypt": "$2b$04$xLbldvGYtQbskVVM0fjLm./dbBJJXYR7I70gAGWDFnT5bAEGB5YyC",
    "PBKDF2": (
        "$pbkdf2-sha512$1000$h1Dq/T8HgPBeS0nJGQMghA$yJ0TEx7WSl5LpAmowH.vZsdA1dMc6/X0vzxBiJIpbaGkrawY"
        "HLDBRd9JVYgYijRW8Wl.3ZuXzj7TpIm5aO/Ozw"
    ),
}
# Of the password that its form made of FLASK_SECURITY_TYPED.
FLASK_SECURITY_TYPED = "fünf große Pferde"
FLASK_SECURITY_DECOMPOSED = "$2b$04$DR.HCKWCIwznkJqmSL.6d.y8N8UIeFzsIY9Gfj/BHibWRddt8jEgS"
DEVISE_PEPPER = "0f1e2d3c4b5a69788796a5b4c3d2e1f0" * 4
DEVISE = "$2a$04$QciCsaeaEGId5P4uVrFinOqfRbuNcJKI.f5Q6QqtmyUnXvNfbsluq"
