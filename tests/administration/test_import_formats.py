"""`flask users import` of the hashes that other services made, and of what they mixed in."""

import json

import pytest
import sqlalchemy as sa

from app.crypto.foreign_hashes import KNOWN, MAX_LENGTH, Way, checked, head_of, sample_of
from app.users.models import PasswordHashKind, PasswordSecret, User
from bench.foreign_hashes import (
    DEVISE,
    DEVISE_PEPPER,
    FLASK_SECURITY,
    FLASK_SECURITY_DECOMPOSED,
    FLASK_SECURITY_PEPPER,
    FLASK_SECURITY_TYPED,
    PASSWORD,
    VECTORS,
)
from tests.support.api import ApiClient
from tests.support.commands import CommandLine
from tests.support.factories import count
from tests.support.servers import TEST_KEYS

ANNS = {"name": "Ann", "address": "ann@example.com", "verified": True}
B64 = "c2FsdHNhbHRzYWx0c2FsdA"
FIREBASE = VECTORS["Firebase"]
NEW_KEY = ("new", b"a key that opens nothing of before")
ARGON2 = ("Nextcloud", "Nextcloud Argon2i")  # of any length


@pytest.fixture
def run(line, admin, tmp_path):
    """Import lines, with a pepper or without; return what the command printed, as JSON."""

    def import_lines(*lines, pepper=None, options=()):
        path = tmp_path / "accounts.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)))
        if pepper is not None:
            (tmp_path / "pepper").write_text(pepper + "\n")
            options = (*options, "--pepper-file", str(tmp_path / "pepper"))
        result = line("users", "import", str(path), *options, "--json")
        return json.loads(result.stdout)

    return import_lines


@pytest.fixture
def stored(rt):
    """Return the stored hash of an account."""

    def read(name="ann"):
        with rt.reading() as session:
            return session.scalar(sa.select(User.password_hash).where(User.username_key == name))

    return read


def signs_in(api, stored, password):
    """Require that a wrong password is refused, the right one works, and its hash is then ours."""
    api.login("Ann", f"{password}!").fails(401, "auth.credentials_failed")
    api.login("Ann", password).ok()
    assert stored().startswith("$argon2id$v=19$m=")
    api.login("Ann", password).ok()


@pytest.mark.parametrize("name", VECTORS)
def test_a_password_of_another_service_goes_on_working(run, api, stored, name):
    kind, members, password = VECTORS[name]
    report = run({**ANNS, **members})
    assert (report["created"], report["refused"]) == (1, [])
    assert report["formats"] == {kind: 1}
    assert len(stored()) <= MAX_LENGTH
    signs_in(api, stored, password)


@pytest.mark.parametrize("name", VECTORS)
def test_its_sample_is_read_like_it_and_nobodys(rt, run, stored, name):
    _, members, password = VECTORS[name]
    run({**ANNS, **members})
    sample = sample_of(stored())
    assert len(sample) == len(stored())
    assert stored().startswith(head_of(sample))
    bare = sample.rpartition(":")[2]
    assert not rt.passwords._context.verify(password, bare)
    with rt.reading() as session:
        assert sample in session.scalars(sa.select(PasswordHashKind.sample)).all()


def test_every_named_kind_is_taken():
    for kind, _, _ in VECTORS.values():
        assert kind in KNOWN


@pytest.mark.parametrize("name", [name for name in VECTORS if name not in ARGON2])
def test_one_that_has_lost_some_characters_is_refused(run, name):
    _, members, _ = VECTORS[name]
    hashed = members["hash"].rstrip("=")
    report = run({**ANNS, **members, "hash": hashed[:-9] + hashed[-1]})
    [refused] = report["refused"]
    assert refused["msg"].startswith("hash is ")
    assert hashed[10:20] not in refused["msg"]


@pytest.mark.parametrize(
    "costly",
    [
        f"scrypt:1048576:8:1$salt${'00' * 64}",
        f"pbkdf2:sha512:99999999$salt${'00' * 64}",
        f"scrypt$1048576$salt$8$1${'A' * 86}==",
        f"scrypt$1024$salt$8$99${'A' * 86}==",
        f"$pbkdf2-sha256$i=99999999,l=32${B64}${'A' * 43}",
        f"$scrypt$ln=1048576,r=8,p=1${B64}==${'A' * 43}=",
        f"$bcrypt-sha256$v=2,t=2b,r=18${'.' * 22}${'.' * 31}",
        f"$wp$2y$18${'.' * 53}",
        f"$P$P{'A' * 30}",
        f"$S$P{'A' * 51}",
        f"$5$rounds=9999999$salt${'A' * 43}",
        f"{{CRYPT}}$6$rounds=9999999$salt${'A' * 86}",
        "AQAAAAL/////AAAAENoVftXbReMcFkOwzlfLFgFkx1tZ2PVoFwKaz/7UP6r5rlrymlHMFjMgowJCZl+6YA==",
        f"3|$argon2id$v=19$m=65536,t=1000000,p=1${B64}${B64}",
    ],
)
def test_one_that_takes_too_long_is_refused(costly):
    with pytest.raises(ValueError, match="costs too much"):
        checked(costly)


@pytest.mark.parametrize(
    "unusable",
    [
        "pbkdf2:md5:1000$salt$00",
        f"scrypt:1000:8:1$salt${'00' * 64}",  # no power of two
        f"scrypt:1024:8:1$salt${'00' * 16}",
        f"pbkdf2:sha256:1000$salt${'00' * 15}",
        f"pbkdf2:sha256:0$salt${'00' * 32}",
        "U$S$9c47LGZuhR6TvhRQXzymkJIQ3mXthUCc6KDEGTt4B7eOL/H9Ykuy",
        "{SSHA}tooshort",
        "{CRYPT}$1$salt$abc",
        "{MD5}XUFAKrxLKna5cZ2REBfFkg==",
        "1|0beec7b5ea3f0fdbc95d0dd47f3c5bc275da8a33",
        "AAAAAAEAACcQAAAAEBEydACQDIM19l+qHm4VZRkyOiYvOKV5ekf2/EZURdbJUajNab2VK24AfFXcY3f5UQ==",
        "AQAAAAkAACcQAAAAEBEydACQDIM19l+qHm4VZRkyOiYvOKV5ekf2/EZURdbJUajNab2VK24AfFXcY3f5UQ==",
        f"$firescrypt$ln=14,r=8,p=1${B64}${'A' * 86}",
        f"hmac:00:{FLASK_SECURITY['bcrypt']}",
        "argon2$argon2$argon2",
        f"$pbkdf2-sha256-cut$1000${B64}$eA",
        f"$argon2id$v=19$m=64,t=1,p=2${B64}$eHh4eA",
        f"$argon2id$v=19$m=64,t=1,p=1,keyid=AAAA${B64}${B64}",
    ],
)
def test_what_is_none_of_these_is_refused(unusable):
    with pytest.raises(ValueError, match=r"^is (of no kind|no complete hash)"):
        checked(unusable)


def test_the_refusal_names_what_works(run):
    [refused] = run({**ANNS, "hash": "5f4dcc3b5aa765d61d8327deb882cf99"})["refused"]
    assert refused["msg"] == f"hash is of no kind that can be verified; known are {KNOWN}."


def test_a_dry_run_says_how_many_there_are_of_each(rt, line, admin, run, tmp_path):
    vectors = [VECTORS[name] for name in ("Drupal", "WordPress", "WordPress 6.8", "Firebase")]
    lines = [
        {"name": f"user-{n}", "address": f"u{n}@example.com", **vector.line}
        for n, vector in enumerate(vectors)
    ]
    lines += [lines[0], ANNS]
    dry = run(*lines, options=["--dry-run"])
    assert dry["formats"] == {"Drupal": 1, "Firebase": 1, "WordPress": 2}
    assert (dry["created"], dry["existing"]) == (5, 1)
    assert (count(rt, User), count(rt, PasswordSecret)) == (1, 0)
    text = line("users", "import", str(tmp_path / "accounts.jsonl"), "--dry-run").text
    assert "WordPress  2" in text
    assert FIREBASE.line["firebase"]["signer_key"] not in text
    assert run(*lines) == dry


# --- what the other service mixed in -------------------------------------------------------------


@pytest.mark.both_databases
@pytest.mark.parametrize("kind", FLASK_SECURITY)
def test_a_pepper_of_flask_security(run, api, stored, kind):
    run({**ANNS, "hash": FLASK_SECURITY[kind]}, pepper=FLASK_SECURITY_PEPPER)
    assert stored().startswith(f"{Way.HMAC}:")
    signs_in(api, stored, PASSWORD)


def test_letters_that_flask_security_takes_apart(run, api, stored):
    run({**ANNS, "hash": FLASK_SECURITY_DECOMPOSED}, pepper=FLASK_SECURITY_PEPPER)
    signs_in(api, stored, FLASK_SECURITY_TYPED)


def test_a_pepper_of_devise(run, api, stored):
    run({**ANNS, "hash": DEVISE}, pepper=DEVISE_PEPPER, options=["--pepper-appended"])
    signs_in(api, stored, PASSWORD)


def test_without_its_pepper_no_password_works(run, api, stored):
    run({**ANNS, "hash": FLASK_SECURITY["bcrypt"]}, pepper="another")
    api.login("Ann", PASSWORD).fails(401, "auth.credentials_failed")


def test_secrets_are_kept_once_and_sealed(rt, run, stored):
    """Neither the pepper nor the signer key is in a hash or readable in the database."""
    hashed, signer_key = FLASK_SECURITY["bcrypt"], FIREBASE.line["firebase"]["signer_key"]
    for name in ("ann", "bob"):
        account = {"name": name, "address": f"{name}@example.com", "hash": hashed}
        run(account, pepper=FLASK_SECURITY_PEPPER)
    assert stored("ann") == stored("bob")
    for name in ("cid", "dan"):
        run({"name": name, "address": f"{name}@example.com", **FIREBASE.line})
    with rt.reading() as session:
        kept = [row.sealed for row in session.scalars(sa.select(PasswordSecret))]
    assert len(kept) == 2
    everything = [*kept, *map(stored, ("ann", "cid"))]
    for secret in (FLASK_SECURITY_PEPPER, FLASK_SECURITY_PEPPER.encode().hex(), signer_key):
        assert not any(secret in text for text in everything)


def test_the_doctor_counts_what_is_left_and_cleaning_up_drops_what_nobody_needs(
    rt, run, api, line, clock, stored
):
    def said():
        checks = json.loads(line("doctor", "--json").stdout)["checks"]
        [finding] = [one for one in checks if one["check"] == "imported passwords"]
        return finding["message"]

    assert said() == "None needs the pepper or signer key of an import."
    run({**ANNS, "hash": FLASK_SECURITY["bcrypt"]}, pepper=FLASK_SECURITY_PEPPER)
    run({"name": "bob", "address": "bob@example.com", **FIREBASE.line})
    assert said().startswith("2 ")
    api.login("Ann", PASSWORD).ok()
    assert said().startswith("1 ")
    line.json("cleanup")
    assert count(rt, PasswordSecret) == 2  # the import may go on
    clock.advance(hours=25)
    line.json("cleanup")
    assert count(rt, PasswordSecret) == 1
    api.login("bob", FIREBASE.password).ok()
    line.json("cleanup")
    assert count(rt, PasswordSecret) == 0


def test_another_key_opens_them_after_a_rotation(run, make_app):
    run({**ANNS, "hash": FLASK_SECURITY["bcrypt"]}, pepper=FLASK_SECURITY_PEPPER)
    both = CommandLine(make_app(secret_keys=(NEW_KEY, *TEST_KEYS)))
    assert both.json("keys", "rotate")["resealed"] == 1
    ApiClient(make_app(secret_keys=(NEW_KEY,))).login("Ann", PASSWORD).ok()


def test_without_its_secret_a_password_is_refused(rt, run, api, stored):
    run({**ANNS, "hash": FLASK_SECURITY["bcrypt"]}, pepper=FLASK_SECURITY_PEPPER)
    with rt.transaction() as session:
        session.execute(sa.delete(PasswordSecret))
    api.login("Ann", PASSWORD).fails(401, "auth.credentials_failed")


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"signer_key": "c2hvcnQ="}, "needs a signer_key of 64 bytes"),
        ({"salt": "?"}, "must be Base64"),
        ({"mem_cost": 30}, "costs too much"),
        ({"rounds": 900}, "costs too much"),
        ({"mem_cost": 99}, "mem_cost"),
        ({"salt_separator": None}, "salt_separator"),
        ({"pepper": "x"}, "Unknown field"),
    ],
)
def test_parameters_of_firebase_that_do_not_fit_are_refused(run, members, said):
    project = FIREBASE.line["firebase"] | members
    [refused] = run({**ANNS, **FIREBASE.line, "firebase": project})["refused"]
    assert said in refused["msg"]


def test_firebase_may_be_written_in_the_alphabet_of_urls(run, api, stored):
    urls = str.maketrans("+/", "-_")
    project = FIREBASE.line["firebase"]
    project = project | {name: project[name].translate(urls) for name in ("salt", "signer_key")}
    hashed = FIREBASE.line["hash"].translate(urls)
    assert run({**ANNS, "hash": hashed, "firebase": project})["created"] == 1
    signs_in(api, stored, FIREBASE.password)


def test_firebase_takes_no_pepper(run):
    [refused] = run({**ANNS, **FIREBASE.line}, pepper="x")["refused"]
    assert refused["msg"] == "hash of Firebase takes no pepper."


def test_an_empty_pepper_is_refused(run):
    assert run(ANNS, pepper="")["code"] == "bad_request"
