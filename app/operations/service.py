"""Readiness and the frontend's bootstrap configuration."""

import logging
from typing import Any

from redis.exceptions import RedisError

from app.audit import service as audit
from app.audit.models import Action
from app.core import redis as redis_client
from app.core.database.database import DATABASE_ERRORS
from app.core.database.failures import reason_of
from app.core.database.revisions import TablesOutdated
from app.core.logs import Outage
from app.core.runtime import Runtime
from app.operations.errors import CacheUnavailable, DatabaseUnreachable
from app.settings import keys
from app.setup import service as setup
from app.setup.queries import SetupState
from app.web import site

log = logging.getLogger(__name__)

FRONTEND_CONFIG_VERSION = 3


def readiness(rt: Runtime, unready: Outage) -> SetupState:
    """Return the set-up state if database and Redis answer and accept writes.

    The tables must be those of this version or a newer one, beside which this version still works.
    `unready` logs when this process stops being ready, and when it is again.
    Raises: DatabaseUnreachable, CacheUnavailable.
    """
    try:
        with rt.reading() as connection:
            rt.database.schema.require_current(connection)
            state = setup.state_if_writable(rt, connection)
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
        with rt.reading() as connection:
            rt.database.schema.require_current(connection)
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
            "title": get(keys.BRANDING_TITLE) or keys.BRANDING_TITLE.default,
            "description": get(keys.BRANDING_DESCRIPTION),
            "favicon_url": get(keys.BRANDING_FAVICON_URL),
            "wordmark_dark_url": get(keys.BRANDING_WORDMARK_DARK_URL),
            "wordmark_light_url": get(keys.BRANDING_WORDMARK_LIGHT_URL),
            "site_urls": list(site_urls),
            "allow_user_registration": passwords and get(keys.ALLOW_USER_REGISTRATION),
            "passkey_login_enabled": get(keys.PASSKEY_LOGIN_ENABLED),
            "password_login_enabled": passwords,
        },
        "downloads": {
            "archive_download_user_enabled": get(keys.ARCHIVE_DOWNLOAD_USER),
            "archive_download_share_enabled": get(keys.ARCHIVE_DOWNLOAD_SHARE),
        },
        "media": {"image_preview_preference": get(keys.IMAGE_PREVIEW_PREFERENCE)},
    }
