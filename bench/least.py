"""The least that requests can cost, whoever writes them: a Flask application by hand.

Each route asks the stores what the service has to ask, keeps what it has to keep, and computes what
it has to compute, with the drivers alone and the service's client of Redis, which is leaner than
redis-py's own. None has what makes that a service: schemas, settings, guards, limits, log lines,
metrics, patience with a database in trouble. What lies between these figures and those of the bare
route no design can save; what lies between the service's and these is the service's own.

- `GET /me`: a signed token, a read of session and account.
- `GET /sessions`: the same, and a read of five sessions.
- `POST /refresh`: a signed token, a write of one row, two new tokens.
- `POST /second-step`: two scripts in Redis (an attempt is taken before the code is looked at, the
  login is used up before the session is written), a read of account and factor, a sealed secret,
  three time steps, three rows in one transaction (session, used step, audit entry), two tokens.
- `POST /passkey-start`: a challenge, kept in Redis.
- `POST /passkey-finish`: that challenge, a read of passkey and account, an ES256 signature checked,
  three rows in one transaction (session, the passkey's count, audit entry), two tokens.
"""

import base64
import hmac
import json
import os
import time
import uuid
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Any

import pyotp
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from flask import Flask, Response, jsonify, request

from app.core.redis import connect
from bench.least_database import (
    FIND_ACCESS,
    FIND_FACTOR,
    FIND_PASSKEY,
    LIST_SESSIONS,
    OPEN_BY_PASSKEY,
    OPEN_SESSION,
    RECORD,
    ROTATE,
    USE_PASSKEY,
    USE_STEP,
    Database,
    Postgres,
    Sqlite,
)

WAITING = "waiting"
STEP_SECONDS = 30
SIGNED_BYTES = 200
KEY = sha256(b"the benchmark's").digest()
NONCE = b"\0" * 12
ORIGIN, RP_ID = "http://localhost", "localhost"
CHALLENGE = base64.urlsafe_b64encode(bytes(32)).decode().rstrip("=")
PRESENT_AND_VERIFIED = 0x05
CHALLENGE_SECONDS = 300

FLOW = {"data": json.dumps({"user_id": 1, "agent": "bench"}), "state": "open", "attempts": 0}
TAKE = """
redis.call('ZADD', KEYS[2], ARGV[1], ARGV[2])
redis.call('HINCRBY', KEYS[1], 'attempts', 1)
return redis.call('HMGET', KEYS[1], 'data', 'state', 'attempts')
"""
# It leaves a login that can be used again, or the load would need a new one each time.
USE_UP = """
if redis.call('HGET', KEYS[1], 'state') ~= 'open' then return 0 end
redis.call('HSET', KEYS[1], 'state', 'open', 'used_by', ARGV[1])
redis.call('DEL', KEYS[2])
return 1
"""


def signature(text: str) -> str:
    """Return what makes a token of this text."""
    return hmac.digest(KEY, text.encode(), "sha256").hex()


def make_app() -> Flask:
    """Return the application; LEAST_DATABASE_URL and LEAST_REDIS_URL say where its stores are."""
    app = Flask(__name__)
    database = _database()
    redis = connect(os.environ["LEAST_REDIS_URL"])
    take, use_up = redis.register_script(TAKE), redis.register_script(USE_UP)
    box = AESGCM(KEY)
    sealed = box.encrypt(NONCE, pyotp.random_base32().encode(), b"factor")

    @app.get("/me")
    def me() -> Response:
        return _ok(_account(database))

    @app.get("/sessions")
    def sessions() -> Response:
        account = _account(database)
        names = ("id", "ip_address", "user_agent", "created_at", "expires_at")
        rows = database.read(LIST_SESSIONS, account["id"])
        return _ok([dict(zip(names, row, strict=True)) for row in rows])

    @app.post("/refresh")
    def refresh() -> Response:
        presented, token = _presented(), token_urlsafe(32)
        stored = sha256(token.encode()).hexdigest()
        database.write((ROTATE, (stored, str(time.time()), presented, "later")))
        return _with_cookies(_ok({"expires_in": 900}), token)

    @app.post("/second-step")
    def second_step() -> Response:
        body = request.get_json()
        attempt, user_id = token_hex(16), int(body["user_id"])
        keys = [f"flow:{sha256(body['flow_token'].encode()).hexdigest()}", f"slots:{user_id}"]
        flow = json.loads(take(keys, [time.time(), attempt])[0])
        ((_, _, created_at, last_step),) = database.read(FIND_FACTOR, user_id)
        totp = pyotp.TOTP(box.decrypt(NONCE, sealed, b"factor").decode())
        now = int(time.time() / STEP_SECONDS)
        codes = [totp.generate_otp(step) for step in (now - 1, now, now + 1)]
        is_right = [hmac.compare_digest(code, body["code"]) for code in codes]
        use_up(keys, [attempt])
        session_id, token = token_hex(16), token_urlsafe(32)
        stored, details = sha256(token.encode()).hexdigest(), json.dumps({"is_right": is_right})
        known = ("127.0.0.1", flow["agent"], created_at, "later")
        database.write(
            (OPEN_SESSION, (session_id, session_id, stored, *known, user_id, last_step + 1)),
            (USE_STEP, (last_step, user_id)),
            (RECORD, (user_id, "second_step", details, created_at)),
        )
        return _with_cookies(_ok({"status": "authenticated"}), token)

    @app.post("/passkey-start")
    def passkey_start() -> Response:
        flow_id, challenge = str(uuid.uuid4()), token_urlsafe(32)
        waiting = json.dumps({"challenge": challenge, **request.get_json()})
        redis.setex(_passkey_flow(flow_id), CHALLENGE_SECONDS, waiting)
        options = {"challenge": challenge, "rpId": RP_ID, "timeout": CHALLENGE_SECONDS * 1000}
        return _ok({"flow_id": flow_id, "public_key": {"publicKey": options}})

    @app.post("/passkey-finish")
    def passkey_finish() -> Response:
        body = request.get_json()
        # Not deleted by reading it, or the load would need a new one each time.
        flow = json.loads(redis.get(_passkey_flow(body["flow_id"])))
        credential = body["credential"]
        ((user_id, _, _, created_at, passkey_id, key, count),) = database.read(
            FIND_PASSKEY, credential["id"]
        )
        new_count = _verified(credential["response"], flow["challenge"], key)
        session_id, token = token_hex(16), token_urlsafe(32)
        stored, details = sha256(token.encode()).hexdigest(), json.dumps({"passkey_id": passkey_id})
        known = ("127.0.0.1", "bench", created_at, "later")
        database.write(
            (OPEN_BY_PASSKEY, (session_id, session_id, stored, *known, passkey_id, count)),
            (USE_PASSKEY, (new_count, str(time.time()), passkey_id)),
            (RECORD, (user_id, "passkey", details, created_at)),
        )
        return _with_cookies(_ok({"status": "authenticated"}), token)

    return app


def _passkey_flow(flow_id: str) -> str:
    return f"passkey:{sha256(flow_id.encode()).hexdigest()}"


def _verified(response: dict[str, str], challenge: str, key: str) -> int:
    """Return the count of signatures, once everything else holds (WebAuthn Level 3 §7.2)."""
    client_data, data, signature = (
        base64.urlsafe_b64decode(response[name] + "==")
        for name in ("clientDataJSON", "authenticatorData", "signature")
    )
    said = json.loads(client_data)
    answered = said["type"], said["origin"], said["challenge"]
    is_ours = (data[:32], data[32]) == (sha256(RP_ID.encode()).digest(), PRESENT_AND_VERIFIED)
    if answered != ("webauthn.get", ORIGIN, challenge) or not is_ours:
        raise ValueError("an answer to somebody else")
    public_key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), bytes.fromhex(key))
    signed = data + sha256(client_data).digest()
    public_key.verify(signature, signed, ec.ECDSA(hashes.SHA256()))
    return int.from_bytes(data[33:37], "big")


def _database() -> Sqlite | Postgres:
    url = os.environ["LEAST_DATABASE_URL"]
    return Sqlite(url) if url.startswith("sqlite") else Postgres(url)


def _presented() -> str:
    """Return the text of the cookie's token, whose signature is checked."""
    text, _, signed = request.environ["HTTP_COOKIE"].removeprefix("token=").partition(".")
    if not hmac.compare_digest(signature(text), signed):
        raise ValueError("a token of somebody else's")
    return text


def _account(database: Database) -> dict[str, Any]:
    ((_, _, user_id, name, version, created_at),) = database.read(FIND_ACCESS, _presented())
    return {"id": user_id, "username": name, "version": version, "created_at": created_at}


def _ok(data: Any) -> Response:
    return jsonify(code="success", msg="", data=data, error=None)


def _with_cookies(answer: Response, token: str) -> Response:
    signed = signature("x" * SIGNED_BYTES)
    for name, value in (("access", signed), ("refresh", token), ("csrf", token_urlsafe(32))):
        answer.headers.add("Set-Cookie", f"{name}={value}; Path=/; HttpOnly; SameSite=Lax")
    return answer


def main() -> None:
    """Create the tables, and logins that wait."""
    _database().create()
    with connect(os.environ["LEAST_REDIS_URL"]) as redis:
        redis.hset(f"flow:{sha256(WAITING.encode()).hexdigest()}", mapping=FLOW)
        redis.set(_passkey_flow(WAITING), json.dumps({"challenge": CHALLENGE}))


if __name__ == "__main__":
    main()
