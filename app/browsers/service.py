"""Use cases of known browsers.

The cookie `service_device` proves nothing by itself. It names a browser beside a first factor, so
that a new one can be told from one that the account has had, and so that one whose owner wanted
that is not asked for the second step. A value that this service did not issue is never adopted, and
every grant replaces the value: another site of the same domain can set this cookie, and whoever
chose its value could otherwise skip the step that the browser's owner remembered.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.browsers import queries
from app.browsers.errors import BrowserNotFound, NotRemembered
from app.browsers.models import Browser, Grant
from app.browsers.names import name_of
from app.core.access import Principal
from app.core.client import Client, SignInWish
from app.core.clock import SKEW
from app.core.runtime import Runtime
from app.crypto.tokens import digest, random_token
from app.mail import notices
from app.mail import queries as mail_queries
from app.mail import service as mail
from app.mail.templates import Template
from app.mail.words import WORDS, Words
from app.settings import keys, page_keys
from app.store import bulk, locks
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account
from app.web import site

MOST = 20  # of an account
UNUSED = timedelta(days=400)
MOST_NOTICES = 10
NOTICES_WITHIN = timedelta(hours=24)
SECURITY_PAGE = "/settings/security"


@dataclass(frozen=True)
class SignIn:
    """A sign-in that is about to be completed, by the browser that gets its cookies.

    `methods` are the kinds of its step or steps. `skips_second`: it relies on the browser being
    remembered. `grants`: the browser is remembered from now on.
    """

    client: Client
    wish: SignInWish
    methods: tuple[str, ...]
    skips_second: bool = False
    grants: bool = False


@dataclass(frozen=True)
class KnownBrowser:
    """A browser of an account, as its owner sees it; `remembered_until` is None if it is not."""

    id: int
    name: str
    is_current: bool
    ip_address: str | None
    first_seen_at: datetime
    last_seen_at: datetime
    remembered_at: datetime | None
    remembered_until: datetime | None


def lasts_for(rt: Runtime) -> int:
    """Return for how many seconds a browser can be remembered; 0 if it cannot."""
    return rt.settings.get(keys.TRUSTED_DEVICE_SECONDS)


def is_remembered(rt: Runtime, user_id: int, device: str | None) -> bool:
    """Return whether a browser need not take the second step of an account's sign-in.

    A sign-in that relies on it finds out once more, in its transaction: see `note`.
    """
    if device is None or not lasts_for(rt):
        return False
    with rt.reading() as session:
        grant = queries.find_grant(session, user_id, digest(device))
    return grant is not None and _until(rt, grant) is not None


def note(rt: Runtime, session: Session, account: Account, sign_in: SignIn) -> str | None:
    """Note in the transaction of a sign-in, which has locked the account, from where it comes.

    Mails the owner if the account has had other browsers, but not this one. Return what the browser
    is known by from now on; None leaves its cookie alone.
    Raises: NotRemembered, if it was to skip the second step and no longer may.
    """
    now, wish = rt.clock.now(), sign_in.wish
    seen = {"name": name_of(sign_in.client.user_agent), "last_seen_at": now}
    if sign_in.grants:
        life = timedelta(seconds=lasts_for(rt))
        seen |= {"remembered_at": now, "remembered_until": now + life}
    device = _renewed(session, wish.device) if sign_in.grants else wish.device
    address = sign_in.client.address
    if device is not None:
        grant = queries.see(session, account.id, digest(device), address=address, **seen)
        if sign_in.skips_second and not (grant and _until(rt, grant)):
            raise NotRemembered
        if grant is not None:
            return None if wish.is_short else device
    return _add(rt, session, account, sign_in, device, seen)


def _renewed(session: Session, device: str | None) -> str:
    """Return a new value for a browser, which all of its accounts have from now on.

    Locked, so that of two grants in one browser each finds whole what the other has done.
    """
    new = random_token()
    if device is not None:
        locks.hold_text(session, f"browser:{digest(device)}")
        queries.replace_digest(session, digest(device), digest(new))
    return new


def _add(
    rt: Runtime,
    session: Session,
    account: Account,
    sign_in: SignIn,
    device: str | None,
    seen: dict[str, Any],
) -> str:
    now = seen["last_seen_at"]
    others = queries.count_others(session, account.id, device and digest(device))
    if device is None or not (others.is_issued or sign_in.grants):
        device = random_token()
    if others.number >= MOST:
        queries.drop_oldest(session, account.id, others.number - MOST + 1, now)
    queries.add(
        session,
        user_id=account.id,
        digest=digest(device),
        ip_address=sign_in.client.address,
        first_seen_at=now,
        **seen,
    )
    if others.seen_since_reset:
        _tell(rt, session, account, sign_in)
    return device


def _tell(rt: Runtime, session: Session, account: Account, sign_in: SignIn) -> None:
    """Mail the owner about a new browser, at most ten times in 24 hours, and then that more came.

    The account is locked: no two sign-ins count the same mails.
    """
    if account.email_verified_at is None or not rt.settings.get(keys.NEW_BROWSER_NOTICE):
        return
    now, topic, url = rt.clock.now(), f"sign-in:{account.id}", _security_url(rt)
    since, until = now - NOTICES_WITHIN, now + SKEW
    if mail_queries.count_sign_ins(session, topic, since, until) >= MOST_NOTICES:
        _tell_of_more(rt, session, account, topic, url)
        return
    template = Template.NEW_SIGN_IN
    language = mail.language_of(rt, template, account.language)
    words = WORDS[language]
    mail.queue(
        rt,
        session,
        template,
        account.email,
        topic=topic,
        language=language,
        username=account.username,
        signed_in_at=words.moment.format(now),
        browser=name_of(sign_in.client.user_agent, words),
        ip_address=sign_in.client.address or words.unknown_address,
        method=_in_words(sign_in.methods, words),
        security_url=url,
    )


def _in_words(methods: tuple[str, ...], words: Words) -> str:
    names = [words.methods[method] for method in methods]
    return words.both.format(*names) if len(names) > 1 else names[0]


def _tell_of_more(rt: Runtime, session: Session, account: Account, topic: str, url: str) -> None:
    now = rt.clock.now()
    since, until = now - NOTICES_WITHIN, now + SKEW
    if mail_queries.find_notice(session, account.email, topic, since, until) is not None:
        return
    language = mail.language_of(rt, Template.SECURITY_NOTICE, account.language)
    notices.queue_notice(
        rt,
        session,
        account.email,
        topic=topic,
        language=language,
        username=account.username,
        event=WORDS[language].more_sign_ins.format(MOST_NOTICES, url),
    )


def _security_url(rt: Runtime) -> str:
    has_page = "account" in rt.settings.get(page_keys.PAGES_SECTIONS)
    return site.link(rt, SECURITY_PAGE if has_page else "/")


def list_browsers(rt: Runtime, user_id: int, device: str | None = None) -> list[KnownBrowser]:
    """Return the browsers of an account, the last seen first; `device` is the caller's cookie."""
    current = device and digest(device)
    with rt.reading() as session:
        return [_known(rt, row, current) for row in queries.list_all(session, user_id)]


def list_remembered(rt: Runtime, user_id: int, device: str | None) -> list[KnownBrowser]:
    """Return those that are not asked for the second step."""
    return [one for one in list_browsers(rt, user_id, device) if one.remembered_until]


def forget(rt: Runtime, principal: Principal, browser_id: int, client: Client) -> None:
    """Ask one browser for the second step again.

    Raises: BrowserNotFound, if the account remembers none with this id; TokenInvalid,
    AccountDisabled if the account or its sessions ended meanwhile.
    """
    with rt.transaction() as session:
        users_queries.lock(session, principal.user_id)
        account = users.require_still_active(session, principal)
        rows = queries.list_all(session, account.id)
        found = [row for row in rows if row.id == browser_id and _until(rt, _grant(row))]
        if not found:
            raise BrowserNotFound
        queries.void_one(session, account.id, browser_id)
        _record(rt, session, account, client, {"removed_browsers": 1}, found[0])


def forget_all(rt: Runtime, principal: Principal, client: Client) -> int:
    """Ask every browser for the second step again; return how many were not asked for it.

    Raises: TokenInvalid, AccountDisabled if the account or its sessions ended meanwhile.
    """
    with rt.transaction() as session:
        users_queries.lock(session, principal.user_id)
        account = users.require_still_active(session, principal)
        rows = queries.list_all(session, account.id)
        removed = sum(_until(rt, _grant(row)) is not None for row in rows)
        queries.void(session, account.id)
        if removed:
            _record(rt, session, account, client, {"removed_browsers": removed})
    return removed


def void_if_switched_off(rt: Runtime, session: Session, changed: Collection[str]) -> None:
    """Remember no browser of anybody any more once a change of settings says so."""
    if keys.TRUSTED_DEVICE_SECONDS.name in changed and not lasts_for(rt):
        queries.void_everywhere(session)


def delete_unused(rt: Runtime) -> int:
    """Delete browsers that have not signed in for long, but not the last one of an account."""
    before = rt.clock.now() - UNUSED
    return bulk.delete_found(rt, queries.find_unused, queries.delete_unused, before)


def _known(rt: Runtime, row: Browser, current: str | None) -> KnownBrowser:
    until = _until(rt, _grant(row))
    return KnownBrowser(
        id=row.id,
        name=row.name,
        is_current=row.digest == current,
        ip_address=row.ip_address,
        first_seen_at=row.first_seen_at,
        last_seen_at=row.last_seen_at,
        remembered_at=row.remembered_at if until else None,
        remembered_until=until,
    )


def _grant(row: Browser) -> Grant:
    return Grant(row.remembered_at, row.remembered_until)


def _until(rt: Runtime, grant: Grant) -> datetime | None:
    """Return until when a browser is remembered, as the settings are now; None if it is not."""
    if grant.remembered_at is None or grant.remembered_until is None:
        return None
    if rt.clock.is_ahead(grant.remembered_at):
        return None
    until = min(grant.remembered_until, grant.remembered_at + timedelta(seconds=lasts_for(rt)))
    return until if until > rt.clock.now() else None


def _record(
    rt: Runtime,
    session: Session,
    account: Account,
    client: Client,
    details: dict[str, Any],
    browser: Browser | None = None,
) -> None:
    event = Event(
        Action.USER_MFA_DEVICE_REMOVE,
        EntityType.BROWSER,
        client,
        user_id=account.id,
        entity_id=browser.id if browser else None,
        entity_name=browser.name if browser else None,
        details=details,
    )
    audit.record(rt, session, event)
