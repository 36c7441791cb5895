"""An OpenID provider on loopback that signs everybody in: `python -m bench.identity_provider`.

It prints its issuer and serves until Ctrl-C. For trying out external sign-in (docs/tour.md), so it
asks nobody anything.
"""

import argparse
import base64
import hashlib
import logging
import secrets
import time
from contextlib import suppress
from typing import Any
from urllib.parse import unquote_plus, urlencode

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from flask import Flask, redirect, request
from flask.typing import ResponseReturnValue
from jwt.algorithms import RSAAlgorithm
from werkzeug.serving import make_server

CLIENT = ("client", "a secret of more than thirty-two bytes: +/%")
LIFE_SECONDS = 600
JANE = {
    "sub": "248289761001",
    "email": "jane@example.com",
    "email_verified": True,
    "name": "Jane Doe",
    "preferred_username": "jane",
}

app = Flask(__name__)
key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
# By authorization code, the parameters that it was asked for with.
granted: dict[str, dict[str, str]] = {}


@app.get("/.well-known/openid-configuration")
def metadata() -> dict[str, Any]:
    issuer = request.host_url.rstrip("/")
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "userinfo_endpoint": f"{issuer}/userinfo",
        "jwks_uri": f"{issuer}/jwks",
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }


@app.get("/jwks")
def keys() -> dict[str, Any]:
    public = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {"keys": [public | {"kid": "1", "use": "sig"}]}


@app.get("/authorize")
def authorize() -> ResponseReturnValue:
    code = secrets.token_urlsafe(16)
    granted[code] = request.args.to_dict()
    back = urlencode({"code": code, "state": request.args["state"]})
    return redirect(f"{request.args['redirect_uri']}?{back}")


@app.post("/token")
def token() -> ResponseReturnValue:
    form = request.form
    asked = granted.pop(form.get("code", ""), None)
    digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    if _client() != CLIENT:
        return {"error": "invalid_client"}, 401
    if (
        asked is None
        or asked["redirect_uri"] != form.get("redirect_uri")
        or asked["code_challenge"] != challenge
    ):
        return {"error": "invalid_grant"}, 400
    now = int(time.time())
    claims: dict[str, Any] = {
        "iss": request.host_url.rstrip("/"),
        "aud": CLIENT[0],
        "nonce": asked.get("nonce"),
    }
    claims |= {"iat": now, "exp": now + LIFE_SECONDS, **JANE}
    id_token = jwt.encode(claims, key, "RS256", {"kid": "1"})
    about = {"token_type": "Bearer", "expires_in": LIFE_SECONDS}
    return {"access_token": "an-access-token", "id_token": id_token, **about}


@app.get("/userinfo")
def userinfo() -> dict[str, Any]:
    return JANE


def _client() -> tuple[str | None, str | None]:
    if (given := request.authorization) is not None and given.type == "basic":
        return unquote_plus(given.username or ""), unquote_plus(given.password or "")
    return request.form.get("client_id"), request.form.get("client_secret")


def main() -> None:
    """Serve sign-ins until interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.identity_provider", description=(__doc__ or "").partition(":")[0]
    )
    parser.add_argument("--port", type=int, default=8090, help="0 takes a free one (default: 8090)")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", parser.parse_args().port, app, threaded=True)
    print(f"http://127.0.0.1:{server.port}", flush=True)
    with suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
