"""External sign-ins in progress, stored in Redis from `start` until the browser returns.

A sign-in is bound to the browser that began it. Its Redis key combines the digests of `state` and
of the secret in that browser's cookie, so a single GETDEL consumes it, once, for whoever presents
both, and nobody else can even name the key (RFC 9700 §4.7). The stored value,
with the nonce and the PKCE verifier in it, is encrypted and bound to that key.

An authorization code is accepted for one provider only. A malicious provider can redirect its users
to an honest one and so obtain the honest one's codes from this service (mix-up attack, RFC 9700
§4.4). Where the honest one's callback names no issuer, this check makes such codes unusable here.
"""

import re
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from app.core import flow_store
from app.core.runtime import Runtime
from app.core.secret_box import SecretUnreadable
from app.core.tokens import digest, random_token

# Longer than any code is valid; RFC 6749 §4.1.2 recommends ten minutes at most.
CODE_TRACKING_TTL = timedelta(hours=1)

# Shorter codes may collide between providers by chance; none so short is meant to be secret.
MIN_TRACKED_CODE_LENGTH = 16

# RFC 6749, appendix A.11.
_CODE = re.compile(r"[\x20-\x7e]+")


@dataclass(frozen=True)
class SignIn:
    """The state of a sign-in while the browser is at the provider.

    `provider_created_at` distinguishes the provider from a later one that reuses its id.
    """

    provider_id: int
    provider_created_at: str
    redirect_uri: str
    return_path: str
    nonce: str | None = field(repr=False)
    pkce_verifier: str = field(repr=False)


def open_sign_in(rt: Runtime, state: str, sign_in: SignIn, life: timedelta) -> str:
    """Store a sign-in; return the secret for the browser's cookie.

    Raises: RedisError.
    """
    binding = random_token()
    key = _key(state, binding)
    flow_store.put_once(rt, key, vars(sign_in), life, seal=partial(rt.secret_box.seal, row=key))
    return binding


def consume(rt: Runtime, state: str, binding: str) -> SignIn | None:
    """Return and delete the sign-in with this state and browser secret; None if there is none.

    Of concurrent calls exactly one gets it. Raises: RedisError.
    """
    key = _key(state, binding)
    try:
        stored = flow_store.take_once(rt, key, unseal=partial(rt.secret_box.open, row=key))
    except SecretUnreadable:
        return None  # its encryption key was removed from the keyring meanwhile
    return None if stored is None else SignIn(**stored)


def claim_code(rt: Runtime, code: str, provider_id: int) -> bool:
    """Return whether the code is well-formed and was not presented for another provider before.

    Of concurrent calls only those for one and the same provider get True. Raises: RedisError.
    """
    if not _CODE.fullmatch(code):
        return False
    if len(code) < MIN_TRACKED_CODE_LENGTH:
        return True
    # A provider whose database ignores case and trailing space would accept every spelling.
    key = f"gatehouse:external-code:{digest(code.strip().lower())}"
    mine = str(provider_id)
    is_new = rt.redis.breaker.call(
        lambda redis: redis.set(key, mine, nx=True, ex=CODE_TRACKING_TTL)
    )
    return bool(is_new) or rt.redis.breaker.call(lambda redis: redis.get(key)) == mine


def _key(state: str, binding: str) -> str:
    return f"gatehouse:external-sign-in:{digest(state)}:{digest(binding)}"
