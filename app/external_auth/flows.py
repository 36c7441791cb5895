"""Sign-ins under way at a provider: kept in Redis from `start` until the browser is back.

A sign-in belongs to the browser that began it. It is stored under the digests of `state` and of the
secret in that browser's cookie together, so one GETDEL consumes it for whoever has both, once, and
for nobody else not even the key can be named (spec 03 §5, step 4; RFC 9700 §4.7). The nonce and the
PKCE verifier are sealed for that key.

A code is good for one provider. A provider can send its visitors on to another one, and so be sent
their codes by us (mix-up, RFC 9700 §4.4); where the other one does not name itself in the callback,
this keeps such a code from signing anybody in here.
"""

import re
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from app.core import one_shot
from app.core.runtime import Runtime
from app.core.secret_box import SecretUnreadable
from app.core.tokens import digest, random_token

# Longer than any code is good for: ten minutes at most, says RFC 6749 §4.1.2.
CODE_REMEMBERED = timedelta(hours=1)

# What is shorter can come from two providers by chance; nobody's secret is so short.
SHORTEST_REMEMBERED = 16

# RFC 6749, appendix A.11.
_CODE = re.compile(r"[\x20-\x7e]+")


@dataclass(frozen=True)
class SignIn:
    """What is remembered while the browser is away.

    `provider_created_at` tells a provider from a later one that was given its id.
    """

    provider_id: int
    provider_created_at: str
    redirect_uri: str
    return_path: str
    nonce: str | None = field(repr=False)
    pkce_verifier: str = field(repr=False)


def open_sign_in(rt: Runtime, state: str, sign_in: SignIn, life: timedelta) -> str:
    """Remember a sign-in; return the secret for the browser's cookie.

    Raises: RedisError.
    """
    binding = random_token()
    key = _key(state, binding)
    one_shot.put(rt, key, vars(sign_in), life, seal=partial(rt.secret_box.seal, row=key))
    return binding


def consume(rt: Runtime, state: str, binding: str) -> SignIn | None:
    """Return the sign-in of this state and browser, and forget it; None if there is none.

    Of simultaneous calls exactly one gets it. Raises: RedisError.
    """
    key = _key(state, binding)
    try:
        stored = one_shot.take(rt, key, unseal=partial(rt.secret_box.open, row=key))
    except SecretUnreadable:
        return None  # its key was taken out of the keyring meanwhile
    return None if stored is None else SignIn(**stored)


def take_code(rt: Runtime, code: str, provider_id: int) -> bool:
    """Tell whether this can be a code, and none that came back for another provider.

    Of simultaneous calls those for one provider are told True. Raises: RedisError.
    """
    if not _CODE.fullmatch(code):
        return False
    if len(code) < SHORTEST_REMEMBERED:
        return True
    # A provider whose database ignores case and trailing space would take each spelling.
    key = f"gatehouse:external-code:{digest(code.strip().lower())}"
    mine = str(provider_id)
    is_new = rt.breaker.call(lambda redis: redis.set(key, mine, nx=True, ex=CODE_REMEMBERED))
    return bool(is_new) or rt.breaker.call(lambda redis: redis.get(key)) == mine


def _key(state: str, binding: str) -> str:
    return f"gatehouse:external-sign-in:{digest(state)}:{digest(binding)}"
