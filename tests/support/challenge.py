"""Logins with a second factor, step by step."""

from typing import Any, cast

from app.core.clock import Clock
from app.core.runtime import Runtime
from app.mfa import queries, recovery_codes, totp
from app.mfa.service import secret_row_name
from tests.support.api import Answer
from tests.support.authenticator import Authenticator, EnabledTotp
from tests.support.factories import KnownUser
from tests.support.stores import everything_kept_by


def give_totp(rt: Runtime, user: KnownUser, clock: Clock | None = None) -> EnabledTotp:
    """Enable TOTP for an account directly in the database."""
    secret, codes = totp.new_secret(), recovery_codes.new_codes()
    box = rt.secret_box
    with rt.transaction() as session:
        factor = queries.add_totp(
            session,
            user.id,
            name="Pixel",
            secret=box.seal(secret, secret_row_name(user.id)),
            now=rt.clock.now(),
        )
        hashes = [recovery_codes.hash_code(box, user.id, code) for code in codes]
        queries.replace_codes(session, user.id, hashes)
    return EnabledTotp(factor.id, Authenticator(secret, clock or rt.clock), codes)


def start_login(client: Any, user: KnownUser, **options: Any) -> str:
    """Do the first step; return the flow token for the second."""
    data = client.login(user, **options).ok()
    assert data["status"] == "mfa_required", data
    return cast("str", data["flow_token"])


def verify(client: Any, flow_token: str, code: str, method: str = "totp", **options: Any) -> Answer:
    """Do the second step."""
    body = {"flow_token": flow_token, "method": method, "code": code}
    return cast("Answer", client.post("/auth/mfa/challenge/verify", body, **options))


def send_code(client: Any, flow_token: str, **options: Any) -> Answer:
    """Have a code sent by e-mail."""
    body = {"flow_token": flow_token}
    return cast("Answer", client.post("/auth/mfa/challenge/email-code/send", body, **options))


def wrong(code: str) -> str:
    """Return another code of the same shape."""
    return code[:-1] + str((int(code[-1]) + 1) % 10)


def everything_in_redis(rt: Runtime) -> str:
    """Return every key and value in Redis, as one text."""
    return "\n".join(everything_kept_by(rt.redis.client))
