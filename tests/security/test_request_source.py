"""Source check and double-submit token."""

import ipaddress

import pytest

from app.core.access import COMMAND_LINE
from app.team_admin import service as teams
from app.web import origin
from tests.contract.routes import routes
from tests.support.api import ORIGIN, SAFE_METHODS, ApiClient, BrowserClient
from tests.support.factories import configure, make_user
from tests.support.stores import everything_in

OURS = ORIGIN
ELSEWHERE = "https://elsewhere.example"
LISTED = "https://files.example.com"
REFUSALS = {error.code.value for error in (*origin.SOURCE_ERRORS, *origin.CSRF_ERRORS)}


def login(api, headers, name="nobody"):
    """Log in as nobody: a request whose source passes gets 401."""
    return api.login(name, "some password", headers=headers)


def passes(answer):
    answer.fails(401, "auth.credentials_failed")


REFRESH = ("POST", "/api/v1/auth/refresh")
LOGOUT = ("POST", "/api/v1/auth/logout")
# After it the account has to choose a new password.
LOCK = ("POST", "/api/v1/auth/lock")
# What these do is done to nobody who is signed in.
UNCHECKED = {
    ("POST", "/api/v1/auth/check"): "changes nothing, and tells everybody the same",
    ("POST", "/api/v1/auth/setup"): "learns the site's origin from the headers in question",
}
# These look at the body first; this one they find nothing wrong with.
BODY_FIRST = {
    ("POST", "/api/v1/auth/external-auth/<kind>/<provider>/start"): {"return_path": "/"},
    ("POST", "/api/v1/auth/external-auth/email-verification/start"): {
        "flow_token": "unknown",
        "email": "ada@example.com",
    },
}


def unsafe(app):
    return [route for route in routes(app) if route.method not in SAFE_METHODS]


def checked(app):
    """Return the unsafe routes that another site's request must not get into."""
    return [route for route in unsafe(app) if route.name not in UNCHECKED]


def is_of_a_session(route):
    """Tell whether cookies may authenticate it: then it needs the double-submit token, too."""
    return not route.is_public or route.name == LOGOUT


def of_sessions(app):
    return [route for route in unsafe(app) if is_of_a_session(route)]


def call(client, route, **options):
    """Send a body that is no JSON, so that whatever looks at it first says so."""
    body = BODY_FIRST.get(route.name, b"{")
    return client.call(route.method, route.path(), body, **options)


def outcome_of(answer):
    return answer.headers.get("Location") or answer.code


def test_every_exception_is_an_unsafe_route(app):
    there = {route.name for route in unsafe(app)}
    assert {*UNCHECKED, *BODY_FIRST, REFRESH, LOGOUT} - there == set()
    assert len(of_sessions(app)) > 15
    assert len(checked(app)) > 30


# --- who must pass -----------------------------------------------------------------------------


def test_a_script_without_any_of_a_browsers_headers_passes(signed_in):
    signed_in.post("/auth/refresh").ok()
    signed_in.delete("/auth/sessions/others").ok()
    signed_in.post("/auth/logout").ok()


def test_a_page_of_this_site_passes(app, browser, user):
    browser.login(user).ok()
    browser.refresh().ok()
    browser.delete("/auth/sessions/others").ok()
    body = {"current_password": user.password, "new_password": "another good one"}
    browser.put("/auth/password", body).ok()
    browser.post("/auth/logout").ok()


@pytest.mark.parametrize("signs_in", [True, False])
def test_a_page_of_this_site_is_answered_as_a_script_is(app, rt, user, signs_in):
    """Its visitor may have no cookies yet: then neither has it a token to send."""
    for route in unsafe(app):
        if route.name == REFRESH and not signs_in:
            continue  # the token is missed first, see below
        answers = []
        for client in (ApiClient(app), BrowserClient(app)):
            if signs_in:
                client.login(make_user(rt) if route.name == LOCK else user).ok()
            answers.append(call(client, route))
        assert len({(answer.status, outcome_of(answer)) for answer in answers}) == 1, answers
        assert outcome_of(answers[0]) not in REFUSALS, answers


FOREIGN = [
    ({"Origin": ELSEWHERE}, "auth.request_origin_untrusted"),
    ({"Referer": f"{ELSEWHERE}/page"}, "auth.request_referer_untrusted"),
    ({"Sec-Fetch-Site": "cross-site"}, "auth.request_source_untrusted"),
    ({"Sec-Fetch-Site": "none"}, "auth.request_source_untrusted"),
    ({"Sec-Fetch-Site": "same-site"}, "auth.request_source_untrusted"),
]


@pytest.mark.parametrize(("headers", "code"), FOREIGN, ids=str)
def test_another_sites_request_is_refused_before_anything_else_happens(
    app, rt, signed_in, headers, code
):
    csrf = {"X-CSRF-Token": signed_in.cookies["service_csrf"]}
    before = list(everything_in(rt.database.engine))

    def refuses(client, route):
        answer = call(client, route, headers=headers | csrf).fails(403, code)
        assert answer.set_cookies == {}
        assert list(everything_in(rt.database.engine)) == before, answer

    for route in checked(app):
        refuses(signed_in, route)
        if not is_of_a_session(route) or route.name == REFRESH:
            refuses(signed_in.stranger(), route)
    signed_in.set_cookie("service_access", "nonsense")
    for route in checked(app):
        refuses(signed_in, route)


@pytest.mark.parametrize(("headers", "code"), FOREIGN, ids=str)
def test_bearer_requests_need_no_source(signed_in, headers, code):
    bearer = signed_in.bearer()
    bearer.delete("/auth/sessions/others", headers=headers).fails(401, "auth.token_missing")
    bearer.post("/auth/logout", headers=headers).ok()


@pytest.mark.parametrize(("headers", "code"), FOREIGN, ids=str)
def test_safe_methods_need_no_source(signed_in, headers, code):
    signed_in.get("/auth/me", headers=headers).ok()
    signed_in.get("/auth/sessions", headers=headers).ok()


def test_an_access_cookie_beside_a_bearer_is_still_checked(signed_in):
    headers = {"Authorization": f"Bearer {signed_in.access_token}", "Origin": ELSEWHERE}
    answer = signed_in.delete("/auth/sessions/others", headers=headers)
    answer.fails(403, "auth.request_origin_untrusted")


# --- the double-submit token -------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        {"Origin": OURS},
        {"Referer": f"{OURS}/page"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Dest": "empty"},
    ],
    ids=str,
)
def test_a_browsers_request_needs_the_token(app, rt, signed_in, source):
    token = signed_in.cookies["service_csrf"]
    before = list(everything_in(rt.database.engine))
    for route in of_sessions(app):
        client = signed_in.twin()

        def refuses(code, client=client, route=route, **headers):
            call(client, route, headers=source | headers).fails(403, code)

        refuses("auth.csrf_header_missing")
        refuses("auth.csrf_header_missing", **{"X-CSRF-Token": "   "})
        refuses("auth.csrf_token_invalid", **{"X-CSRF-Token": "wrong"})
        refuses("auth.csrf_token_invalid", **{"X-CSRF-Token": token[:-1]})
        refuses("auth.csrf_token_invalid", **{"X-CSRF-Token": token.swapcase()})
        client.drop_cookie("service_csrf")
        refuses("auth.csrf_cookie_missing", **{"X-CSRF-Token": token})
        refuses("auth.csrf_cookie_missing")
    assert list(everything_in(rt.database.engine)) == before


def test_the_token_is_trimmed(signed_in):
    token = signed_in.cookies["service_csrf"]
    signed_in.refresh(headers={"Origin": OURS, "X-CSRF-Token": f"  {token} "}).ok()


def test_any_equal_pair_passes(signed_in):
    signed_in.set_cookie("service_csrf", "made-up")
    signed_in.refresh(headers={"Origin": OURS, "X-CSRF-Token": "made-up"}).ok()


def test_a_failed_csrf_check_changes_nothing(signed_in):
    signed_in.refresh(headers={"Origin": OURS}).fails(403, "auth.csrf_header_missing")
    answer = signed_in.post("/auth/logout", headers={"Origin": OURS})
    assert answer.fails(403, "auth.csrf_header_missing").set_cookies == {}
    signed_in.me().ok()
    signed_in.refresh().ok()


def test_the_csrf_check_comes_before_the_refresh_cookie_is_missed(api):
    api.refresh(headers={"Origin": OURS}).fails(403, "auth.csrf_cookie_missing")


def test_logout_without_session_cookies_needs_no_token(api):
    api.set_cookie("service_csrf", "left over")
    api.post("/auth/logout", headers={"Origin": OURS}).ok()


# --- the source check, condition by condition --------------------------------------------------


# What makes a request's own scheme or host unusable; only a trusted proxy may name them.
UNUSABLE = [
    ("scheme", {"X-Forwarded-Proto": "x" * 17}),
    ("host", {"X-Forwarded-Proto": "x" * 16}),
    *[
        ("host", {"X-Forwarded-Host": host})
        for host in ("x" * 513, "two words", "user@host", "a/b", "a:b:c", "h:99999")
    ],
]


def test_a_request_of_an_unusable_scheme_or_host_is_invalid(make_app):
    api = ApiClient(make_app(trusted_proxies=(ipaddress.ip_network("127.0.0.1"),)))
    for part, headers in UNUSABLE:
        answer = login(api, {"Origin": OURS, **headers})
        answer.fails(400, f"validation.request_{part}_invalid")
    host = "a" * 512
    passes(login(api, {"Origin": f"http://{host}", "X-Forwarded-Host": host}))


# The headers that get each answer, where LISTED is listed.
JUDGED = {
    (400, "validation.request_header_value_invalid"): [{"Sec-Fetch-Site": "x" * 65}],
    # Whatever Origin says.
    (403, "auth.request_source_untrusted"): [
        {"Sec-Fetch-Site": value, "Origin": OURS}
        for value in ("cross-site", "CROSS-SITE", " Cross-Site ", "none", "None")
    ],
    (400, "validation.request_origin_invalid"): [
        {"Origin": origin}
        for origin in (
            "null",
            "localhost",
            "http://",
            "http://localhost/path",
            "http://localhost?query",
            "http://localhost#part",
            "http://user@localhost",
            "http://user:word@localhost",
            "ftp://localhost",
            "chrome-extension://abc",
            "http://local host",
            "http://[::1",
            "http://localhost:port",
            "http://localhost:0",
            "http://localhost:65536",
            "http://" + "a" * 2042,
            "http://a, http://b",
        )
    ],
    # Default ports are not filled in, neighbours are not us, and the Referer saves nobody.
    (403, "auth.request_origin_untrusted"): [
        *[
            {"Origin": origin}
            for origin in (
                "https://localhost",
                "http://localhost:80",
                "http://localhost:8000",
                "http://sub.localhost",
                "http://localhost.example",
                "https://files.example.com:443",
                "http://files.example.com",
                "https://files.example.com.evil.example",
                "https://evilfiles.example.com",
                "http://" + "a" * 2041,
            )
        ],
        {"Origin": ELSEWHERE, "Referer": f"{OURS}/page"},
        {"Host": "files.test:8000", "Origin": "http://files.test"},
    ],
    (400, "validation.request_scheme_invalid"): [
        {"Referer": referer}
        for referer in (
            "localhost",
            "localhost/page",
            "about:blank",
            "/page",
            "x" * 17 + "://localhost",
        )
    ],
    (400, "validation.request_referer_invalid"): [
        {"Referer": referer}
        for referer in (
            "http://",
            "http:///page",
            "http://" + "a" * 529 + "/",
            "http://two words/",
            "http://[::1/",
        )
    ],
    (403, "auth.request_referer_untrusted"): [
        *[
            {"Referer": referer}
            for referer in (
                f"{ELSEWHERE}/{OURS}",
                "http://localhost:80/",
                "http://localhost.evil.example/",
                "https://localhost/",
                "http://" + "a" * 528 + "/",
            )
        ],
        {"Origin": "  ", "Referer": f"{ELSEWHERE}/"},
    ],
    (401, "auth.credentials_failed"): [
        *[
            {"Origin": origin}
            for origin in (
                OURS,
                "HTTP://LocalHost",
                f"{OURS}/",
                f"  {OURS}  ",
                LISTED,
                f"{LISTED}/",
                LISTED.upper(),
                "  ",
            )
        ],
        # A trusted Origin makes the rest irrelevant.
        {"Origin": OURS, "Referer": f"{ELSEWHERE}/page"},
        {"Origin": OURS, "Referer": "nonsense"},
        {"Origin": OURS, "Sec-Fetch-Site": "same-site"},
        {"Host": "files.test:8000", "Origin": "http://files.test:8000"},
        *[
            {"Referer": referer}
            for referer in (
                OURS,
                f"{OURS}/",
                f"{OURS}/deep/path?query=1#part",
                f"{OURS}?query",
                f"{OURS}#part",
                "HTTP://LOCALHOST/Page",
                f"{OURS}/" + "p" * 10_000,
                f"{OURS}/" + f"?next={ELSEWHERE}",
                f"{LISTED}/settings",
            )
        ],
        {"Sec-Fetch-Site": "same-site", "Referer": f"{OURS}/"},
        *[
            {"Sec-Fetch-Site": value}
            for value in ("same-origin", "SAME-ORIGIN", "something-new", "", "x" * 64)
        ],
    ],
}


@pytest.mark.parametrize("answer", JUDGED, ids=lambda answer: answer[1])
def test_a_source_is_judged_by_its_headers(rt, api, answer):
    configure(rt, public_site_url=[LISTED])
    for number, headers in enumerate(JUDGED[answer]):
        login(api, headers, f"nobody{number}").fails(*answer)


# --- anonymous routes --------------------------------------------------------------------------


@pytest.mark.parametrize("name", BODY_FIRST)
def test_a_body_that_is_looked_at_first_is_refused_first(app, api, name):
    [route] = [route for route in unsafe(app) if route.name == name]
    for headers, _ in FOREIGN:
        answer = api.call(route.method, route.path(), b"{", headers=headers)
        answer.fails(400, "bad_request")


@pytest.mark.parametrize("headers", [headers for headers, _ in FOREIGN], ids=str)
def test_check_and_set_up_ask_for_no_source(api, headers):
    api.post("/auth/check", headers=headers).ok()
    api.sign_up_admin(headers=headers).ok(201)


# --- strict mode -------------------------------------------------------------------------------


@pytest.fixture
def strict(rt, user):
    configure(rt, auth_strict_request_source=True)


@pytest.mark.usefixtures("strict")
def test_in_strict_mode_a_request_must_tell_its_source(app, api, user):
    api.refresh().fails(403, "auth.request_source_missing")
    api.login(user, headers={"Sec-Fetch-Site": "same-origin"}).ok()
    for route in checked(app):
        call(api, route).fails(403, "auth.request_source_missing")
    api.me().ok()


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize(
    "headers", [{"Sec-Fetch-Mode": "cors"}, {"Sec-Fetch-Site": "other"}, {"Origin": " "}], ids=str
)
def test_in_strict_mode_headers_that_name_no_source_do_not(api, headers):
    login(api, headers).fails(403, "auth.request_source_missing")


@pytest.mark.usefixtures("strict")
def test_in_strict_mode_the_csrf_token_is_mandatory(api, user):
    api.login(user, headers={"Origin": OURS}).ok()
    headers = {"Origin": OURS}
    api.refresh(headers=headers).fails(403, "auth.csrf_header_missing")
    headers["X-CSRF-Token"] = api.cookies["service_csrf"]
    api.refresh(headers=headers).ok()


@pytest.mark.usefixtures("strict")
def test_in_strict_mode_pages_work_as_ever(browser, user):
    browser.login(user).ok()
    browser.refresh().ok()
    browser.post("/auth/logout").ok()


@pytest.mark.usefixtures("strict")
def test_in_strict_mode_bearers_and_safe_methods_stay_exempt(api, user):
    api.login(user, headers={"Origin": OURS}).ok()
    bearer = api.bearer()
    bearer.me().ok()
    bearer.delete("/auth/sessions/others").fails(401, "auth.token_missing")
    bearer.post("/auth/logout").ok()


@pytest.mark.usefixtures("strict")
def test_in_strict_mode_logout_without_cookies_stays_open(api):
    api.post("/auth/logout").ok()


@pytest.mark.usefixtures("strict")
def test_in_strict_mode_another_sites_request_stays_refused(api):
    for headers, code in FOREIGN:
        login(api, headers).fails(403, code)


# What a GET of an export says of itself, and whether it is answered.
SOURCES = [
    ({}, True),
    ({"Sec-Fetch-Site": "same-origin"}, True),
    ({"Sec-Fetch-Site": "none"}, True),  # an address that was typed, or a bookmark
    ({"Sec-Fetch-Site": " None "}, True),
    ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, True),
    ({"Sec-Fetch-Site": "cross-site"}, False),
    ({"Sec-Fetch-Site": "same-site"}, False),
    ({"Sec-Fetch-Site": "none", "Origin": ELSEWHERE}, False),
    ({"Sec-Fetch-Site": "none", "Referer": f"{ELSEWHERE}/"}, False),
]


@pytest.mark.parametrize("is_strict", [False, True])
def test_an_export_is_asked_for_by_a_page_of_this_site_or_by_a_person(app, rt, is_strict):
    client = ApiClient(app)
    client.login(make_user(rt, role="admin")).ok()
    team = teams.create(rt, COMMAND_LINE, "Crew", make_user(rt).username)
    configure(rt, auth_strict_request_source=is_strict)
    exports = (
        "/auth/export",
        "/admin/audit-logs/export",
        f"/admin/teams/{team.id}/audit-logs/export",
    )
    for path in exports:
        for headers, is_answered in SOURCES:
            answer = client.call("HEAD", f"/api/v1{path}", headers=headers)
            expected = 200 if is_answered and (headers or not is_strict) else 403
            assert answer.status == expected, (path, headers)
    client.headers = {"Sec-Fetch-Site": "none"}
    assert client.post("/auth/lock").status == 403
