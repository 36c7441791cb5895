"""The same four kinds of work at each peer, as jobs of the load generator.

What a peer cannot do has no entry: Flask-Security-Too lists no sessions, better-auth has one
session that slides and no refresh, django-allauth refreshes JSON Web Tokens only.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from bench.accounts import ORDINARY, username
from bench.api import PASSWORD, Answer, Unexpected, cookie_header, email
from bench.load import Request, render
from bench.servers import Running

ALLAUTH = "/_allauth/app/v1"
BETTER_AUTH = "/api/auth"
SESSIONS_LISTED = 5

# The fields of a job for so many clients.
Fields = dict[str, Any]
MakeFields = Callable[[Running, int], Fields]


def _credentials(number: int) -> dict[str, str]:
    return {"email": email(username(number)), "password": PASSWORD}


def _signed_in(running: Running, path: str, number: int, **headers: str) -> Answer:
    return running.api.call("POST", path, _credentials(number), **headers).require(200)


def _origin(running: Running) -> dict[str, str]:
    return {"Origin": f"http://127.0.0.1:{running.port}"}


def _logins(running: Running, _: int, *, path: str, expect: str) -> Fields:
    origin = _origin(running)
    raws = [render("POST", path, _credentials(n), **origin) for n in ORDINARY]
    return {"requests": [Request(raw, 200, expect) for raw in raws]}


def _refreshes(
    running: Running, clients: int, *, path: str, expect: str, token: Callable[[Running, int], str]
) -> Fields:
    """Return chains of refreshes, one session per client, one account per session."""
    raw = render("POST", path, {"refresh_token": "@@TOKEN@@"})
    return {
        "template": Request(raw, 200, expect),
        "chains": [{"refresh_token": token(running, 100 + n)} for n in range(clients)],
        "chained_by": "body",
    }


def sign_in_until_listed(sign_in: Callable[[], object], listed: Callable[[], int]) -> None:
    """Sign in until five sessions are listed: a repeated run finds some already."""
    while (found := listed()) < SESSIONS_LISTED:
        sign_in()
    if found != SESSIONS_LISTED:
        raise Unexpected(f"{found} sessions instead of {SESSIONS_LISTED}")


def _allauth_token(running: Running, number: int, name: str = "session_token") -> str:
    token: str = _signed_in(running, f"{ALLAUTH}/auth/login", number).body["meta"][name]
    return token


def _allauth_me(running: Running, _: int) -> Fields:
    token = _allauth_token(running, 1)
    raw = render("GET", f"{ALLAUTH}/auth/session", X_Session_Token=token)
    return {"requests": [Request(raw, 200, email(username(1)))]}


@cache  # every further sign-in would be one more to list
def _allauth_sessions(running: Running, _: int) -> Fields:
    path, token = f"{ALLAUTH}/auth/sessions", _allauth_token(running, 2)
    sign_in_until_listed(
        lambda: _allauth_token(running, 2),
        lambda: len(running.api.call("GET", path, X_Session_Token=token).body["data"]),
    )
    return {"requests": [Request(render("GET", path, X_Session_Token=token), 200, '"is_current"')]}


def _flask_security_token(running: Running, number: int, name: str) -> str:
    response = _signed_in(running, "/login?include_auth_token", number).body["response"]
    token: str = (response["user"] | response)[name]
    return token


def _flask_security_me(running: Running, _: int) -> Fields:
    token = _flask_security_token(running, 1, "authentication_token")
    raw = render("GET", "/me", Authentication_Token=token, Accept="application/json")
    return {"requests": [Request(raw, 200, email(username(1)))]}


def _better_auth_cookie(running: Running, number: int) -> str:
    path = f"{BETTER_AUTH}/sign-in/email"
    return cookie_header(_signed_in(running, path, number, **_origin(running)).cookies)


def _better_auth_me(running: Running, _: int) -> Fields:
    cookie = _better_auth_cookie(running, 1)
    raw = render("GET", f"{BETTER_AUTH}/get-session", Cookie=cookie)
    return {"requests": [Request(raw, 200, email(username(1)))]}


@cache
def _better_auth_sessions(running: Running, _: int) -> Fields:
    path, cookie = f"{BETTER_AUTH}/list-sessions", _better_auth_cookie(running, 2)
    sign_in_until_listed(
        lambda: _better_auth_cookie(running, 2),
        lambda: len(running.api.call("GET", path, Cookie=cookie).body),
    )
    return {"requests": [Request(render("GET", path, Cookie=cookie), 200, '"userAgent"')]}


# By kind of work: the peer's name, its server in `servers.PEERS`, and the job's fields.
JOBS: Mapping[str, Mapping[str, tuple[str, MakeFields]]] = {
    "me": {
        "django-allauth": ("allauth", _allauth_me),
        "Flask-Security-Too": ("flask_security", _flask_security_me),
        "better-auth": ("better_auth", _better_auth_me),
    },
    "sessions": {
        "django-allauth": ("allauth", _allauth_sessions),
        "better-auth": ("better_auth", _better_auth_sessions),
    },
    "refresh": {
        "django-allauth": (
            "allauth_jwt",
            partial(
                _refreshes,
                path=f"{ALLAUTH}/tokens/refresh",
                expect='"access_token"',
                token=partial(_allauth_token, name="refresh_token"),
            ),
        ),
        "Flask-Security-Too": (
            "flask_security",
            partial(
                _refreshes,
                path="/refresh-token",
                expect='"authentication_token"',
                token=partial(_flask_security_token, name="refresh_token"),
            ),
        ),
    },
    "login": {
        "django-allauth": (
            "allauth",
            partial(_logins, path=f"{ALLAUTH}/auth/login", expect='"session_token"'),
        ),
        "Flask-Security-Too": (
            "flask_security",
            partial(_logins, path="/login?include_auth_token", expect='"authentication_token"'),
        ),
        "better-auth": (
            "better_auth",
            partial(_logins, path=f"{BETTER_AUTH}/sign-in/email", expect='"token"'),
        ),
    },
}
