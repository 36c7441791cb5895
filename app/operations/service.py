"""Readiness, metrics of what the service depends on, and the frontend's bootstrap configuration."""

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from app.audit import service as audit
from app.audit.models import Action
from app.core.errors import ErrorCode, Unavailable
from app.core.logs import Outage
from app.core.runtime import Runtime
from app.mail import service as mail
from app.mail.service import Outbox
from app.settings import frontend_keys, keys, page_keys
from app.settings import service as settings
from app.setup import service as setup
from app.setup.queries import SetupState
from app.store import redis as redis_client
from app.store.database import DATABASE_ERRORS, reason_of
from app.store.revisions import TablesOutdated
from app.web import site
from app.web.errors import EndpointNotFound

T = TypeVar("T")

log = logging.getLogger(__name__)

FRONTEND_CONFIG_VERSION = 3
ACCOUNT_SECTION, SECURITY_PAGE = "account", "/settings/security"


class CacheUnavailable(Unavailable):
    """Redis does not answer, or accepts no writes."""

    code = ErrorCode.CONFIG_ERROR
    message = "Cache unavailable"


class DatabaseUnreachable(Unavailable):
    """The database does not answer, accepts no writes, or lacks migrations."""

    code = ErrorCode.DATABASE_ERROR
    message = "Database unavailable"


def readiness(rt: Runtime, unready: Outage) -> SetupState:
    """Return the set-up state if database and Redis answer and accept writes.

    The tables must be those of this version or a newer one, beside which this version still works.
    `unready` logs when this process stops being ready, and when it is again.
    Raises: DatabaseUnreachable, CacheUnavailable.
    """
    try:
        with rt.reading() as session:
            rt.database.schema.require_current(session)
            rt.database.require_writable(session)
            state = setup.current_state(session)
    except DATABASE_ERRORS as error:
        unready.record_failure(reason_of(error))
        raise DatabaseUnreachable from error
    try:
        redis_client.require_writable(rt.redis.client)
    except RedisError as error:
        unready.record_failure(reason_of(error))
        raise CacheUnavailable from error
    unready.record_success()
    return state


def record_start(rt: Runtime) -> None:
    """Record a server start in the audit log, and log what keeps the service from being ready.

    If the database does not answer, nothing is recorded: the start waits for it only once.
    """
    if check_tables(rt):
        audit.record_server_event(rt, Action.SERVER_START)


def record_stop(rt: Runtime) -> None:
    """Record a server stop in the audit log."""
    audit.record_server_event(rt, Action.SERVER_SHUTDOWN)


def check_tables(rt: Runtime) -> bool:
    """Log what keeps the database from being ready at start; False if it does not answer."""
    try:
        with rt.reading() as session:
            rt.database.schema.require_current(session)
    except TablesOutdated as error:
        log.error("not ready: %s", reason_of(error))  # noqa: TRY400 - the reason says it all
    except DATABASE_ERRORS as error:
        reason = reason_of(error)
        log.error("not ready, and the start is not recorded: %s", reason)  # noqa: TRY400
        return False
    return True


def frontend_config(rt: Runtime) -> dict[str, Any]:
    """Return the branding, the enabled sign-in methods, and the defaults of the file side."""
    get = rt.settings.get
    site_urls: tuple[str, ...] = rt.settings.get(site.PUBLIC_SITE_URL)
    passwords = get(keys.PASSWORD_LOGIN_ENABLED)
    return {
        "version": FRONTEND_CONFIG_VERSION,
        "branding": {
            "title": get(frontend_keys.BRANDING_TITLE) or frontend_keys.BRANDING_TITLE.default,
            "description": get(frontend_keys.BRANDING_DESCRIPTION),
            "favicon_url": get(frontend_keys.BRANDING_FAVICON_URL),
            "wordmark_dark_url": get(frontend_keys.BRANDING_WORDMARK_DARK_URL),
            "wordmark_light_url": get(frontend_keys.BRANDING_WORDMARK_LIGHT_URL),
            "site_urls": list(site_urls),
            "allow_user_registration": passwords and get(keys.ALLOW_USER_REGISTRATION),
            "passkey_login_enabled": get(keys.PASSKEY_LOGIN_ENABLED),
            "password_login_enabled": passwords,
            "email_code_sign_in_enabled": settings.is_email_code_sign_in_open(rt),
        },
        "downloads": {
            "archive_download_user_enabled": get(frontend_keys.ARCHIVE_DOWNLOAD_USER),
            "archive_download_share_enabled": get(frontend_keys.ARCHIVE_DOWNLOAD_SHARE),
        },
        "media": {"image_preview_preference": get(frontend_keys.IMAGE_PREVIEW_PREFERENCE)},
    }


class Dependencies(Collector):
    """Metrics of database, Redis and outbox, as this worker sees them at each scrape.

    Each dependency answers or times out within seconds; the exposition is complete without it.
    """

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt

    def collect(self) -> Iterable[Metric]:
        """Probe database and Redis; one that does not answer has no response time."""
        up = GaugeMetricFamily(
            "dependency_up", "1 when it answered and takes changes, else 0.", labels=["dependency"]
        )
        seconds = GaugeMetricFamily(
            "dependency_response_seconds", "How long its answer took.", labels=["dependency"]
        )
        outbox = self._asked("database", self._outbox, DATABASE_ERRORS, up, seconds)
        self._asked("redis", self._redis, RedisError, up, seconds)
        yield up
        yield seconds
        if outbox is not None:
            yield from _outbox_metrics(outbox)

    def _outbox(self) -> Outbox:
        with self._rt.reading() as session:
            self._rt.database.require_writable(session)
            return mail.outbox(self._rt, session)

    def _redis(self) -> None:
        redis_client.require_writable(self._rt.redis.fail_fast.client)

    def _asked(
        self,
        name: str,
        ask: Callable[[], T],
        failure: type[Exception] | tuple[type[Exception], ...],
        up: GaugeMetricFamily,
        seconds: GaugeMetricFamily,
    ) -> T | None:
        began = self._rt.clock.monotonic()
        try:
            answer = ask()
        except failure:
            up.add_metric([name], 0)
            return None
        up.add_metric([name], 1)
        seconds.add_metric([name], self._rt.clock.monotonic() - began)
        return answer


def _outbox_metrics(outbox: Outbox) -> Iterable[Metric]:
    mails = GaugeMetricFamily(
        "mail_outbox_mails", "Mails that have yet to leave or were given up.", labels=["status"]
    )
    for status, count in outbox.counts.items():
        mails.add_metric([status], count)
    yield mails
    yield GaugeMetricFamily(
        "mail_outbox_due_seconds",
        "For how long a mail has been due that nobody sends.",
        value=outbox.longest_due_seconds,
    )
    yield GaugeMetricFamily(
        "mail_outbox_oldest_seconds",
        "How old the oldest mail is that has yet to leave, however often it was tried.",
        value=outbox.oldest_seconds,
    )


def security_address(rt: Runtime) -> str:
    """Return where a password is changed: on our own page, or else somewhere on the site.

    Raises: EndpointNotFound, if there is neither.
    """
    has_page = ACCOUNT_SECTION in rt.settings.get(page_keys.PAGES_SECTIONS)
    return SECURITY_PAGE if has_page else public_security_address(rt)


def public_security_address(rt: Runtime) -> str:
    """Return the same as an absolute address, which no header of the request decides.

    Raises: EndpointNotFound, while the site's own is unknown.
    """
    origins = rt.settings.get(site.PUBLIC_SITE_URL)
    if not origins:
        raise EndpointNotFound
    has_page = ACCOUNT_SECTION in rt.settings.get(page_keys.PAGES_SECTIONS)
    return f"{origins[0]}{SECURITY_PAGE}" if has_page else origins[0]
