"""Pages of other origins may read answers only where they are listed."""

import pytest

from tests.support.api import ORIGIN
from tests.support.factories import configure
from tests.support.images import plain, upload

PAGE = "https://app.example"
PREFLIGHT = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}


def cors_headers(answer):
    return {name for name, _ in answer.headers if name.startswith("Access-Control-")}


@pytest.fixture
def listed(rt):
    configure(rt, cors_enabled=True, cors_allowed_origins=[PAGE])


def test_by_default_there_are_no_cors_headers(api):
    assert cors_headers(api.post("/auth/check", headers={"Origin": PAGE})) == set()
    assert cors_headers(api.call("OPTIONS", "/auth/check", headers=PREFLIGHT)) == set()


def test_enabled_with_an_empty_list_changes_nothing(rt, api):
    configure(rt, cors_enabled=True)
    answer = api.post("/auth/check", headers={"Origin": PAGE})
    answer.ok()
    assert cors_headers(answer) == set()


@pytest.mark.usefixtures("listed")
def test_a_listed_page_may_read_the_answer(api):
    answer = api.post("/auth/check", headers={"Origin": PAGE})
    answer.ok()
    assert answer.headers["Access-Control-Allow-Origin"] == PAGE
    assert "Origin" in answer.headers["Vary"]
    assert "Access-Control-Allow-Credentials" not in answer.headers


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("headers", [{}, {"Origin": PAGE}, {"Origin": ORIGIN}], ids=str)
def test_what_a_cache_may_keep_is_kept_per_origin(api, headers):
    """Else a cache would hand one page the answer marked for another, or for none."""
    answer = api.get("/public/frontend-config", headers=headers)
    answer.ok()
    assert "public" in answer.headers["Cache-Control"]
    assert {"Authorization", "Cookie", "Origin"} <= set(answer.headers["Vary"].split(", "))


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("headers", [{}, {"Origin": PAGE}], ids=str)
def test_a_browser_keeps_an_avatar_per_origin(signed_in, headers):
    """An `<img>` asks without an origin; what is kept of that is no use to a page's `fetch`."""
    upload(signed_in, plain()).ok()
    answer = signed_in.get("/auth/profile/avatar/512", headers=headers)
    assert answer.status == 200
    assert {"Authorization", "Cookie", "Origin"} == set(answer.headers["Vary"].split(", "))


def test_while_cors_is_off_a_cache_need_not_tell_origins_apart(api):
    answer = api.get("/public/frontend-config", headers={"Origin": PAGE})
    assert answer.headers["Vary"] == "Authorization, Cookie"


@pytest.mark.usefixtures("listed")
def test_refusals_can_be_read_too(api):
    answer = api.me(headers={"Origin": PAGE}).fails(401, "auth.token_missing")
    assert answer.headers["Access-Control-Allow-Origin"] == PAGE


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("headers", [{}, {"Origin": ORIGIN}], ids=["no origin", "own origin"])
def test_requests_of_this_site_pass_through(api, headers):
    answer = api.post("/auth/check", headers=headers)
    answer.ok()
    assert cors_headers(answer) == set()


@pytest.mark.parametrize("origins", [["*"], [PAGE, ORIGIN]], ids=["star", "listed as well"])
@pytest.mark.parametrize("path", ["/auth/check", "/auth/nowhere"])
def test_requests_of_this_site_pass_through_whatever_is_listed(rt, api, origins, path):
    configure(rt, cors_enabled=True, cors_allowed_origins=origins)
    answer = api.post(path, headers={"Origin": ORIGIN}, described=False)
    assert cors_headers(answer) == set()
    assert "Vary" not in answer.headers


@pytest.mark.usefixtures("listed")
def test_a_listed_page_can_read_when_to_come_back(api):
    """Of the headers that docs/integration.md tells pages to read."""
    answer = api.post("/auth/check", headers={"Origin": PAGE})
    exposed = answer.headers["Access-Control-Expose-Headers"].split(", ")
    assert {"Accept-Ranges", "Content-Length", "Content-Range", "ETag"} <= set(exposed)
    assert {"Retry-After", "X-Request-ID"} <= set(exposed)


@pytest.mark.usefixtures("listed")
def test_an_unlisted_origin_gets_403_with_an_empty_body(app):
    answer = app.test_client().post(
        "/api/v1/auth/check", headers={"Origin": "https://elsewhere.example"}
    )
    assert (answer.status_code, answer.data) == (403, b"")
    assert answer.headers["Vary"] == (
        "Access-Control-Request-Headers, Access-Control-Request-Method, Origin"
    )


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("origin", ["null", "nonsense", "https://a/b"])
def test_a_malformed_origin_is_a_bad_request(api, origin):
    answer = api.post("/auth/check", headers={"Origin": origin}, described=False)
    answer.fails(400, "bad_request")


@pytest.mark.usefixtures("listed")
def test_a_preflight_is_answered_without_the_view(api):
    headers = PREFLIGHT | {
        "Access-Control-Request-Headers": "content-type, X-CSRF-Token, X-Session-User"
    }
    answer = api.call("OPTIONS", "/auth/login", headers=headers, described=False)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["Access-Control-Allow-Origin"] == PAGE
    assert "POST" in answer.headers["Access-Control-Allow-Methods"]
    assert "x-csrf-token" in answer.headers["Access-Control-Allow-Headers"].lower()
    assert answer.headers["Access-Control-Max-Age"] == "3600"


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"Access-Control-Request-Method": "BREW"}, 403),
        ({"Access-Control-Request-Headers": "x-unheard-of"}, 403),
        ({"Access-Control-Request-Headers": "two words"}, 400),
    ],
)
def test_a_preflight_for_more_than_is_allowed_is_refused(app, asked, status):
    answer = app.test_client().options("/api/v1/auth/login", headers=PREFLIGHT | asked)
    assert answer.status_code == status


def test_credentials_are_allowed_when_the_operator_says_so(rt, api):
    configure(rt, cors_enabled=True, cors_allowed_origins=[PAGE], cors_allow_credentials=True)
    answer = api.post("/auth/check", headers={"Origin": PAGE})
    assert answer.headers["Access-Control-Allow-Credentials"] == "true"


def test_a_star_allows_every_page(rt, api):
    configure(rt, cors_enabled=True, cors_allowed_origins=["*"])
    answer = api.post("/auth/check", headers={"Origin": "https://any.example"})
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.usefixtures("listed")
def test_a_listed_page_is_no_trusted_source_of_changes(api, user):
    api.login(user, headers={"Origin": PAGE}).fails(403, "auth.request_origin_untrusted")


def test_a_public_site_url_is_not_on_the_list(rt, app, listed):
    configure(rt, public_site_url=["https://files.example.com"])
    answer = app.test_client().post(
        "/api/v1/auth/check", headers={"Origin": "https://files.example.com"}
    )
    assert answer.status_code == 403


@pytest.mark.usefixtures("listed")
def test_the_refusal_of_an_unlisted_origin_carries_the_security_headers(app):
    answer = app.test_client().get("/api/v1/auth/me", headers={"Origin": "https://b.example"})
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Request-ID"]
