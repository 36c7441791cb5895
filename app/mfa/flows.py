"""The flows in Redis that wait for a code, and how to discard those of an account."""

import logging

from redis.exceptions import RedisError

from app.core.flow_store import FlowStore
from app.core.runtime import Runtime
from app.mfa import email_codes

LOGIN = "mfa-login"
TOTP_SETUP = "totp-setup"

log = logging.getLogger(__name__)


def logins(rt: Runtime) -> FlowStore:
    """Return the store of logins waiting for their second factor."""
    return FlowStore(rt.redis.breaker, rt.clock, LOGIN)


def totp_setups(rt: Runtime) -> FlowStore:
    """Return the store of setups waiting for the first code of the new authenticator app."""
    return FlowStore(rt.redis.breaker, rt.clock, TOTP_SETUP)


def discard_all(rt: Runtime, user_id: int) -> None:
    """Discard an account's flows and e-mail code, after its factors were removed.

    If Redis is down, they remain until they expire; the factors and recovery codes are gone anyway.
    """
    try:
        logins(rt).discard_all(user_id)
        totp_setups(rt).discard_all(user_id)
        email_codes.delete_for_account(rt, user_id)
    except RedisError as error:
        log.warning("open flows of a changed account stay until they expire: %s", error)
