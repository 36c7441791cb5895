"""Source check and double-submit token."""

import ipaddress

import pytest

from app.web import origin
from tests.contract.routes import routes
from tests.support.api import ORIGIN, SAFE_METHODS, ApiClient, BrowserClient
from tests.support.factories import configure, make_user
from tests.support.stores import everything_in

OURS = ORIGIN
ELSEWHERE = "https://elsewhere.example"
LISTED = "https://files.example.com"
REFUSALS = {error.code.value for error in (*origin.SOURCE_ERRORS, *origin.CSRF_ERRORS)}


def login(api, headers, **options):
    """Log in as nobody: a request whose source passes gets 401."""
    return api.login("nobody", "some password", headers=headers, **options)


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
        assert len({(answer.status, answer.code) for answer in answers}) == 1, answers
        assert answers[0].code not in REFUSALS, answers


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


def test_a_request_scheme_over_16_bytes_is_invalid(make_app):
    """Reachable only through a trusted proxy, since nothing else may name the scheme."""
    api = ApiClient(make_app(trusted_proxies=(ipaddress.ip_network("127.0.0.1"),)))
    headers = {"Origin": OURS, "X-Forwarded-Proto": "x" * 17}
    login(api, headers).fails(400, "validation.request_scheme_invalid")
    headers = {"Origin": OURS, "X-Forwarded-Proto": "x" * 16}
    login(api, headers).fails(400, "validation.request_host_invalid")


@pytest.mark.parametrize("host", ["x" * 513, "two words", "user@host", "a/b", "a:b:c", "h:99999"])
def test_an_unusable_host_is_invalid(make_app, host):
    api = ApiClient(make_app(trusted_proxies=(ipaddress.ip_network("127.0.0.1"),)))
    answer = login(api, {"Origin": OURS, "X-Forwarded-Host": host})
    answer.fails(400, "validation.request_host_invalid")


def test_a_host_of_512_bytes_is_usable(make_app):
    api = ApiClient(make_app(trusted_proxies=(ipaddress.ip_network("127.0.0.1"),)))
    host = "a" * 512
    passes(login(api, {"Origin": f"http://{host}", "X-Forwarded-Host": host}))


def test_sec_fetch_site_has_64_bytes_at_most(api):
    answer = login(api, {"Sec-Fetch-Site": "x" * 65})
    answer.fails(400, "validation.request_header_value_invalid")
    passes(login(api, {"Sec-Fetch-Site": "x" * 64}))


@pytest.mark.parametrize("value", ["cross-site", "CROSS-SITE", " Cross-Site ", "none", "None"])
def test_cross_site_and_none_are_refused_whatever_origin_says(api, value):
    answer = login(api, {"Sec-Fetch-Site": value, "Origin": OURS})
    answer.fails(403, "auth.request_source_untrusted")


@pytest.mark.parametrize(
    "origin",
    [
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
    ],
    ids=lambda origin: origin[:30],
)
def test_a_malformed_origin_is_invalid(api, origin):
    login(api, {"Origin": origin}).fails(400, "validation.request_origin_invalid")


def test_an_origin_of_2048_bytes_is_only_untrusted(api):
    origin = "http://" + "a" * 2041
    assert len(origin) == 2048
    login(api, {"Origin": origin}).fails(403, "auth.request_origin_untrusted")


@pytest.mark.parametrize(
    "origin",
    [OURS, "HTTP://LocalHost", f"{OURS}/", f"  {OURS}  ", LISTED, f"{LISTED}/", LISTED.upper()],
)
def test_own_and_listed_origins_are_trusted(rt, api, origin):
    configure(rt, public_site_url=[LISTED])
    passes(login(api, {"Origin": origin}))


@pytest.mark.parametrize(
    "origin",
    [
        "https://localhost",
        "http://localhost:80",
        "http://localhost:8000",
        "http://sub.localhost",
        "http://localhost.example",
        "https://files.example.com:443",
        "http://files.example.com",
        "https://files.example.com.evil.example",
        "https://evilfiles.example.com",
    ],
)
def test_every_other_origin_is_untrusted(rt, api, origin):
    """Default ports are not filled in, neighbours are not us."""
    configure(rt, public_site_url=[LISTED])
    login(api, {"Origin": origin}).fails(403, "auth.request_origin_untrusted")


def test_a_trusted_origin_makes_the_referer_irrelevant(api):
    passes(login(api, {"Origin": OURS, "Referer": f"{ELSEWHERE}/page"}))
    passes(login(api, {"Origin": OURS, "Referer": "nonsense"}))
    passes(login(api, {"Origin": OURS, "Sec-Fetch-Site": "same-site"}))


def test_an_untrusted_origin_is_not_saved_by_the_referer(api):
    answer = login(api, {"Origin": ELSEWHERE, "Referer": f"{OURS}/page"})
    answer.fails(403, "auth.request_origin_untrusted")


def test_a_blank_origin_counts_as_none(api):
    answer = login(api, {"Origin": "  ", "Referer": f"{ELSEWHERE}/"})
    answer.fails(403, "auth.request_referer_untrusted")
    passes(login(api, {"Origin": "  "}))


@pytest.mark.parametrize(
    "referer", ["localhost", "localhost/page", "about:blank", "/page", "x" * 17 + "://localhost"]
)
def test_a_referer_without_a_scheme_is_invalid(api, referer):
    login(api, {"Referer": referer}).fails(400, "validation.request_scheme_invalid")


@pytest.mark.parametrize(
    "referer",
    ["http://", "http:///page", "http://" + "a" * 529 + "/", "http://two words/", "http://[::1/"],
    ids=lambda referer: referer[:20],
)
def test_a_referer_without_a_usable_host_is_invalid(api, referer):
    login(api, {"Referer": referer}).fails(400, "validation.request_referer_invalid")


@pytest.mark.parametrize(
    "referer",
    [
        OURS,
        f"{OURS}/",
        f"{OURS}/deep/path?query=1#part",
        f"{OURS}?query",
        f"{OURS}#part",
        "HTTP://LOCALHOST/Page",
        f"{OURS}/" + "p" * 10_000,
        f"{OURS}/" + f"?next={ELSEWHERE}",
        f"{LISTED}/settings",
    ],
    ids=lambda referer: referer[:40],
)
def test_a_referer_of_this_site_is_trusted(rt, api, referer):
    configure(rt, public_site_url=[LISTED])
    passes(login(api, {"Referer": referer}))


@pytest.mark.parametrize(
    "referer",
    [
        f"{ELSEWHERE}/{OURS}",
        "http://localhost:80/",
        "http://localhost.evil.example/",
        "https://localhost/",
        "http://" + "a" * 528 + "/",
    ],
    ids=lambda referer: referer[:40],
)
def test_every_other_referer_is_untrusted(api, referer):
    login(api, {"Referer": referer}).fails(403, "auth.request_referer_untrusted")


def test_same_site_is_saved_by_a_referer_of_this_site(api):
    passes(login(api, {"Sec-Fetch-Site": "same-site", "Referer": f"{OURS}/"}))


@pytest.mark.parametrize("value", ["same-origin", "SAME-ORIGIN", "something-new", ""])
def test_other_values_of_sec_fetch_site_decide_nothing(api, value):
    passes(login(api, {"Sec-Fetch-Site": value}))


def test_a_host_name_of_ones_own_choice_is_trusted_only_as_own_origin(api):
    passes(login(api, {"Host": "files.test:8000", "Origin": "http://files.test:8000"}))
    answer = login(api, {"Host": "files.test:8000", "Origin": "http://files.test"})
    answer.fails(403, "auth.request_origin_untrusted")


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
def test_in_strict_mode_a_request_must_tell_its_source(api, user):
    api.login(user).fails(403, "auth.request_source_missing")
    api.refresh().fails(403, "auth.request_source_missing")
    api.login(user, headers={"Sec-Fetch-Site": "same-origin"}).ok()
    api.delete("/auth/sessions/others").fails(403, "auth.request_source_missing")
    api.post("/auth/logout").fails(403, "auth.request_source_missing")
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
