"""What an operator does with external sign-in as a whole: keys, waste, what is wrong with it."""

from datetime import timedelta

from sqlalchemy.orm import Session

from app.core import bulk
from app.core.runtime import Runtime
from app.core.secret_box import SecretUnreadable
from app.external_auth import provider_queries, queries
from app.external_auth.drivers.errors import ProviderMisconfigured
from app.external_auth.providers import config_of, list_all, sealed_for

# So long a late click is told that the link has expired, instead of that it is unknown.
KEPT = timedelta(days=7)


def delete_expired(rt: Runtime) -> int:
    """Delete identities that stopped waiting for an account a week ago; return how many."""
    before = rt.clock.now() - KEPT
    return bulk.delete_in_batches(
        rt, lambda session, most: queries.delete_expired(session, before, most)
    )


def reseal(rt: Runtime, session: Session) -> int:
    """Encrypt the client secrets under the newest key; return how many changed.

    What cannot be decrypted is left alone: a key that comes back may still open it.
    """
    changed = 0
    for provider in provider_queries.list_all(session):
        sealed = provider.client_secret
        if not sealed or rt.secret_box.is_current(sealed):
            continue
        row = sealed_for(provider.provider_kind, provider.key)
        try:
            clear = rt.secret_box.open(sealed, row)
        except SecretUnreadable:
            continue
        fresh = rt.secret_box.seal(clear, row)
        changed += provider_queries.replace_secret(session, provider.id, sealed, fresh)
    return changed


def enabled_names(rt: Runtime) -> list[str]:
    """Return what people may sign in with, as it is called."""
    return [provider.display_name for provider in list_all(rt) if provider.enabled]


def unreadable_keys(rt: Runtime) -> list[str]:
    """Return the keys of providers whose client secret no key of this installation opens."""
    unreadable = []
    for provider in list_all(rt):
        try:
            config_of(rt, provider)
        except ProviderMisconfigured:
            unreadable.append(provider.key)
    return unreadable
