"""Everything a provider can do wrong after the user has signed in there, by name.

Each fault is a function that breaks a FakeProvider. Whatever it breaks, nobody may be signed in.
"""

import gzip
import hashlib
import hmac
import itertools
import json
from collections.abc import Callable

import jwt
from cryptography.hazmat.primitives import serialization

from tests.support.fake_provider import (
    REMOVED,
    FakeProvider,
    ec_key,
    encoded,
    public_jwk,
    rsa_key,
    signed,
    unpadded,
)

Fault = Callable[[FakeProvider], object]

OTHER = "https://other.example.com"
LARGE = 1024 * 1024 + 1


def claims(**wrong: object) -> Fault:
    return lambda provider: provider.claims.update(wrong)


def header(**wrong: object) -> Fault:
    return lambda provider: provider.header.update(wrong)


def keys(*jwks: dict[str, object]) -> Fault:
    return lambda provider: setattr(provider, "keys", list(jwks))


def token(**wrong: object) -> Fault:
    return lambda provider: provider.token_answer.update(wrong)


def token_reply(body: object = None, **members: object) -> Fault:
    return lambda provider: provider.reply("/token", body, **members)


def expires(seconds: int) -> Fault:
    """Make the token expire `seconds` from now."""
    return lambda provider: provider.claims.update(
        exp=int(provider.clock.now().timestamp()) + seconds
    )


def issued_for_no_key(provider: FakeProvider) -> None:
    """Issue an unsigned token, with `alg` none (RFC 8725 §2.1)."""
    provider.metadata["id_token_signing_alg_values_supported"] = ["RS256", "none"]
    provider.sign = lambda header, claims: f"{encoded(header | {'alg': 'none'})}.{encoded(claims)}."


def public_key_as_secret(provider: FakeProvider) -> None:
    """Sign with the public key as an HMAC secret: algorithm confusion (RFC 8725 §2.1)."""
    pem = (
        rsa_key()
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )

    def sign(header: dict[str, object], claims: dict[str, object]) -> str:
        head = f"{encoded(header | {'alg': 'HS256'})}.{encoded(claims)}"
        return f"{head}.{unpadded(hmac.new(pem, head.encode(), hashlib.sha256).digest())}"

    provider.sign = sign


def signed_with(algorithm: str, key: object, **header: object) -> Fault:
    """Sign with this algorithm and key, whatever the key set says."""

    def fault(provider: FakeProvider) -> None:
        provider.sign = lambda _header, claims: signed(
            {"alg": algorithm, "kid": "1", **header}, claims, key
        )

    return fault


def unannounced(provider: FakeProvider) -> None:
    """Sign correctly, but with an algorithm that the metadata does not announce."""
    provider.metadata["id_token_signing_alg_values_supported"] = ["ES256"]


def changed_after_signing(provider: FakeProvider) -> None:
    def sign(header: dict[str, object], claims: dict[str, object]) -> str:
        genuine = signed(header, claims, rsa_key()).split(".")
        genuine[1] = encoded({**claims, "sub": "somebody else"})
        return ".".join(genuine)

    provider.sign = sign


def raw(text: str) -> Fault:
    return lambda provider: provider.token_answer.update(id_token=text)


def truncated(provider: FakeProvider) -> None:
    provider.reply("/token", {"access_token": "x"}, length=4000)


def compressed_bomb(provider: FakeProvider) -> None:
    body = gzip.compress(b'{"access_token": "' + b"x" * 64 * LARGE + b'"}')
    provider.reply("/token", body, headers={"Content-Encoding": "gzip"})


def redirected(provider: FakeProvider) -> None:
    provider.reply("/token", b"", status=307, headers={"Location": f"{provider.issuer}/token2"})
    provider.reply("/token2", {"access_token": "x", "id_token": provider.id_token("n")})


FAULTS: dict[str, Fault] = {
    # the issuer
    "iss of another issuer": claims(iss=OTHER),
    "iss missing": claims(iss=REMOVED),
    "iss with a slash": lambda p: p.claims.update(iss=f"{p.issuer}/"),
    "iss as a list": lambda p: p.claims.update(iss=[p.issuer]),
    "iss in other letters": lambda p: p.claims.update(iss=p.issuer.upper()),
    # the audience
    "aud of another client": claims(aud="other"),
    "aud missing": claims(aud=REMOVED),
    "aud empty": claims(aud=[]),
    "aud null": claims(aud=None),
    "aud with another client": lambda p: p.claims.update(aud=[p.client_id, "other"]),
    "aud with another client, whose azp it is": lambda p: p.claims.update(
        aud=[p.client_id, "other"], azp="other"
    ),
    "aud of others, and our azp": lambda p: p.claims.update(aud=["a", "other"], azp=p.client_id),
    "aud of another client, and our azp": lambda p: p.claims.update(aud="other", azp=p.client_id),
    "aud as an object": lambda p: p.claims.update(aud={p.client_id: True}),
    "azp of another client": claims(azp="other"),
    "azp null": claims(azp=None),
    # the times
    "exp now": expires(0),
    "exp a second ago": expires(-1),
    "exp missing": claims(exp=REMOVED),
    "exp null": claims(exp=None),
    "exp true": claims(exp=True),
    "exp as a text": claims(exp="9999999999"),
    "exp as infinity": lambda p: setattr(
        p, "sign", lambda h, c: signed_text(h, json.dumps(c).replace(str(c["exp"]), "Infinity"))
    ),
    "exp beyond all numbers": lambda p: setattr(
        p, "sign", lambda h, c: signed_text(h, json.dumps(c).replace(str(c["exp"]), "1e999"))
    ),
    "iat missing": claims(iat=REMOVED),
    "iat as a text": claims(iat="1"),
    # the nonce
    "nonce of another sign-in": claims(nonce="another"),
    "nonce missing": claims(nonce=REMOVED),
    "nonce null": claims(nonce=None),
    "nonce empty": claims(nonce=""),
    "nonce as a list": lambda p: setattr(
        p, "sign", lambda h, c: signed(h, {**c, "nonce": [c["nonce"]]}, rsa_key())
    ),
    "nonce with half a surrogate": claims(nonce="\ud800"),
    # the user
    "sub missing": claims(sub=REMOVED),
    "sub empty": claims(sub=""),
    "sub null": claims(sub=None),
    "sub as a number": claims(sub=5),
    "sub with a control character": claims(sub="a\x00b"),
    "sub with half a surrogate": claims(sub="a\ud800"),
    "sub of 256 bytes": claims(sub="x" * 256),
    "email_verified as another text": claims(email_verified="yes"),
    "email_verified as 1": claims(email_verified=1),
    "email as a number": claims(email=5),
    "email without at": claims(email="jane.example.com"),
    "email with two at": claims(email="jane@evil@example.com"),
    "email without a dot": claims(email="jane@localhost"),
    "email with an empty label": claims(email="jane@example..com"),
    "email without a local part": claims(email="@example.com"),
    "email with a line break": claims(email="jane\nx@example.com"),
    "email with a space": claims(email="jane doe@example.com"),
    "email with half a surrogate": claims(email="jane\ud800@example.com"),
    "email of 255 bytes": claims(email=f"{'x' * 243}@example.com"),
    # the signature
    "alg none": issued_for_no_key,
    "alg None": lambda p: setattr(
        p, "sign", lambda h, c: f"{encoded(h | {'alg': 'None'})}.{encoded(c)}."
    ),
    "HS256 with the public key": public_key_as_secret,
    "HS256 with another secret": signed_with("HS256", b"another secret of thirty-two bytes, too"),
    "an algorithm that was not announced": unannounced,
    "another key": signed_with("RS256", rsa_key(1)),
    "another hash": signed_with("RS512", rsa_key()),
    "a key of another type": signed_with("ES256", ec_key()),
    "changed after it was signed": changed_after_signing,
    "an unknown kid": header(kid="unknown"),
    "kid as a number": header(kid=1),
    "no kid and two keys": lambda p: (
        header(kid=REMOVED)(p),
        keys(public_jwk(rsa_key()), public_jwk(rsa_key(1), kid="2"))(p),
    ),
    "two keys of one kid": keys(public_jwk(rsa_key()), public_jwk(rsa_key(1))),
    "a key for encryption": keys(public_jwk(rsa_key(), use="enc")),
    "a key for signing only": keys(public_jwk(rsa_key(), key_ops=["sign"])),
    "a key for another algorithm": keys(public_jwk(rsa_key(), alg="RS512")),
    "a key that says it is another type": keys(public_jwk(rsa_key(), kty="EC")),
    "a key without a modulus": keys(public_jwk(rsa_key(), n=REMOVED)),
    "a key whose modulus is a number": keys(public_jwk(rsa_key(), n=5)),
    "a secret among the keys": keys({"kty": "oct", "kid": "1", "k": "c2VjcmV0"}),
    "no keys": keys(),
    "typ of an access token": header(typ="at+jwt"),
    "typ as a number": header(typ=5),
    "crit": header(crit=["exp"]),
    "cty": header(cty="JWT"),
    "a token without signature": raw("e30.e30"),
    "an encrypted token": raw("a.b.c.d.e"),
    "no token at all": token(id_token=REMOVED),
    "an empty token": raw(""),
    "a token that is a number": token(id_token=5),
    "a token nested too deeply": raw(
        f"{unpadded(b'[' * 100_000)}.{unpadded(b'{}')}.{unpadded(b'x')}"
    ),
    "claims that are a list": lambda p: setattr(p, "sign", lambda h, c: signed_text(h, "[]")),
    "claims nested too deeply": lambda p: setattr(
        p, "sign", lambda h, c: signed_text(h, "[" * 10_000)
    ),
    # the token endpoint
    "access token missing": token(access_token=REMOVED),
    "access token empty": token(access_token=""),
    "access token blank": token(access_token="  "),
    "access token as a number": token(access_token=5),
    "access token with a line break": token(access_token="a\r\nX: y"),
    "access token outside ASCII": token(access_token="é"),
    "token type mac": token(token_type="mac"),
    "token type as a number": token(token_type=5),
    "refused": token_reply({"error": "invalid_grant"}, status=400),
    "refused with status 200": token_reply({"error": "bad_verification_code"}),
    "status 500": token_reply({"access_token": "x"}, status=500),
    "a redirect": redirected,
    "not JSON": token_reply(b"<html>"),
    "a form": token_reply(
        b"access_token=x&token_type=bearer", content_type="application/x-www-form-urlencoded"
    ),
    "a list": token_reply(["access_token"]),
    "an empty answer": token_reply(b""),
    "invalid UTF-8": token_reply(b'{"access_token": "\xff"}'),
    "JSON nested too deeply": token_reply(b"[" * 100_000),
    "NaN": token_reply(b'{"access_token": "x", "expires_in": NaN}'),
    "too large": token_reply(b'{"access_token": "x"}' + b" " * LARGE),
    "too large, without a length": token_reply(
        pieces=itertools.repeat(b" " * 65536, 64), length=None
    ),
    "too large once decompressed": compressed_bomb,
    "broken compression": token_reply(b"not gzip", headers={"Content-Encoding": "gzip"}),
    "truncated": truncated,
    "hung up": lambda p: p.reply("/token", lambda _request: 1 / 0),
}

# These last until the client times out.
SLOW_FAULTS: dict[str, Fault] = {
    "silent": lambda p: p.reply("/token", {"access_token": "x"}, pause=60),
    "one byte at a time": lambda p: p.reply(
        "/token", pieces=itertools.repeat(b" "), pause=0.05, length=None
    ),
}

# These are detected as soon as a sign-in starts.
DISCOVERY_FAULTS: dict[str, Fault] = {
    "another issuer": lambda p: p.metadata.update(issuer=OTHER),
    "issuer with a path": lambda p: p.metadata.update(issuer=f"{p.issuer}/other"),
    "issuer missing": lambda p: p.metadata.update(issuer=REMOVED),
    "issuer as a list": lambda p: p.metadata.update(issuer=[p.issuer]),
    "no authorization endpoint": lambda p: p.metadata.update(authorization_endpoint=REMOVED),
    "no jwks_uri": lambda p: p.metadata.update(jwks_uri=REMOVED),
    "no response types": lambda p: p.metadata.update(response_types_supported=REMOVED),
    "no response type code": lambda p: p.metadata.update(response_types_supported=["id_token"]),
    "no subject types": lambda p: p.metadata.update(subject_types_supported=REMOVED),
    "no algorithms": lambda p: p.metadata.update(id_token_signing_alg_values_supported=REMOVED),
    "algorithms as a text": lambda p: p.metadata.update(
        id_token_signing_alg_values_supported="RS256"
    ),
    "plain http elsewhere": lambda p: p.metadata.update(token_endpoint="http://example.com/token"),
    "an endpoint with a password": lambda p: p.metadata.update(
        authorization_endpoint="https://user:secret@example.com/"
    ),
    "an endpoint with a fragment": lambda p: p.metadata.update(
        authorization_endpoint="https://example.com/#here"
    ),
    "an endpoint of another scheme": lambda p: p.metadata.update(
        authorization_endpoint="javascript:alert(1)"
    ),
    "an endpoint as a number": lambda p: p.metadata.update(token_endpoint=5),
    "keys at an internal address": lambda p: p.metadata.update(jwks_uri="https://10.0.0.1/jwks"),
    "document not JSON": lambda p: p.reply("/.well-known/openid-configuration", b"<html>"),
    "document a list": lambda p: p.reply("/.well-known/openid-configuration", []),
    "document too large": lambda p: p.reply("/.well-known/openid-configuration", b" " * LARGE),
    "document not found": lambda p: p.reply("/.well-known/openid-configuration", {}, status=404),
    "document elsewhere": lambda p: p.reply(
        "/.well-known/openid-configuration",
        b"",
        status=302,
        headers={"Location": f"{p.issuer}/jwks"},
    ),
    "keys not JSON": lambda p: p.reply("/jwks", b"-----BEGIN PUBLIC KEY-----"),
    "keys not a list": lambda p: p.reply("/jwks", {"keys": {}}),
    "keys missing": lambda p: p.reply("/jwks", {}),
    "keys not found": lambda p: p.reply("/jwks", {"keys": []}, status=404),
}


def signed_text(header: dict[str, object], payload: str) -> str:
    """Return a correctly signed token with this text as its payload."""
    head = f"{encoded(header)}.{unpadded(payload.encode())}"
    signature = jwt.get_algorithm_by_name("RS256").sign(head.encode(), rsa_key())
    return f"{head}.{unpadded(signature)}"
