"""Whether an administrator would be shut out by a change of settings made with this very request.

Somebody at a shell can undo such a change; somebody with just a browser cannot.
"""

from collections.abc import Callable

from sqlalchemy.orm import Session

from app.core.access import Operator
from app.core.errors import Conflict
from app.core.runtime import Runtime
from app.store.live_settings import LiveSettings
from app.web import cookies, cors, origin, peer, site
from app.web.runtime import runtime

FORCE = "Repeat it with ?force=true if it is meant."


class WouldLockOut(Conflict):
    """After the change, this session or origin of the administrator would be refused."""

    message = f"After this change you could not go on here. {FORCE}"


def require_way_back(by: Operator, session: Session, after: Runtime) -> None:
    """Refuse settings under which the caller of this request could not carry on.

    `after` is the runtime with these settings. Raises: WouldLockOut.
    """
    now = runtime()
    for is_lost, what in LOSSES.items():
        if is_lost(now.settings, after.settings):
            raise WouldLockOut(f"{what} {FORCE}")
    user_id = by.user_id or 0
    if not _may_sign_in(after, session, user_id) and _may_sign_in(now, session, user_id):
        raise WouldLockOut(f"After this change you could not sign in any more. {FORCE}")


def _loses_address(now: LiveSettings, after: LiveSettings) -> bool:
    """Return whether the page that sent this would no longer be at an address of the site."""
    caller, key = origin.calling_origin(), site.PUBLIC_SITE_URL
    return caller in now.get(key) and caller not in after.get(key)


def _fails_source_check(_: LiveSettings, after: LiveSettings) -> bool:
    if cookies.access_cookie() is None:
        return False
    try:
        origin.check_source_and_token(after)
    except (*origin.SOURCE_ERRORS, *origin.CSRF_ERRORS):
        return True
    return False


def _loses_cookies(now: LiveSettings, after: LiveSettings) -> bool:
    """Return whether the browser would drop the cookies, since it does not use https."""
    if cookies.access_cookie() is None or now.get(site.COOKIE_SECURE):
        return False
    address = origin.calling_origin() or f"{peer.own_scheme()}:"
    return after.get(site.COOKIE_SECURE) and not address.startswith("https:")


def _loses_cors(now: LiveSettings, after: LiveSettings) -> bool:
    return cors.is_refused(after) or (cors.may_read(now) and not cors.may_read(after))


LOSSES: dict[Callable[[LiveSettings, LiveSettings], bool], str] = {
    _loses_address: "The page that you use is at an address that would no longer be the site's.",
    _fails_source_check: "After this change, requests like this one would be refused.",
    _loses_cookies: "You use the site over http: your browser would drop the cookies.",
    _loses_cors: "The page that you use could no longer call this service.",
}


def _may_sign_in(rt: Runtime, session: Session, user_id: int) -> bool:
    return any(method(rt)(session, user_id) for method in rt.hooks.sign_in_methods)
