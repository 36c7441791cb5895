"""POST /auth/setup."""

import ipaddress
import json
from functools import partial

import pytest
import sqlalchemy as sa
from werkzeug.test import EnvironBuilder, run_wsgi_app

from app.crypto.passwords import is_acceptable
from app.settings.models import SystemConfig
from app.users.models import User
from app.web import site
from tests.support.api import ApiClient
from tests.support.factories import (
    audit_rows,
    configure,
    count,
    delete_all_users,
    fresh_account,
    make_user,
    moment,
)
from tests.support.races import run_concurrently

PASSWORD = "correct horse battery"
ADMIN = {"username": "admin", "email": "admin@example.com", "password": PASSWORD}


def state(api):
    return api.post("/auth/check").ok()["setup_state"]


def start_over(rt):
    """Make the installation one before its set-up."""
    delete_all_users(rt)
    with rt.transaction() as session:
        session.execute(sa.delete(SystemConfig))
    rt.settings.forget()


def learnt(rt):
    """Return what set-up stored about the site."""
    rt.settings.forget()
    return rt.settings.get(site.PUBLIC_SITE_URL), rt.settings.get(site.COOKIE_SECURE)


@pytest.mark.both_databases
def test_the_first_administrator_is_answered_as_an_account_and_may_sign_in(rt, api, clock):
    configure(rt, default_storage_quota=5_000_000_000_000)
    answer = api.sign_up_admin("Admin.One", "Admin@Example.COM")
    account = answer.ok(201)
    assert answer.set_cookies == {}
    assert moment(account["created_at"]) == clock.now()
    assert account == fresh_account(
        account,
        username="Admin.One",
        email="admin@example.com",
        email_verified=True,
        role="admin",
        storage_quota=5_000_000_000_000,
    )
    assert isinstance(account["policy_group_id"], int)
    api.login("admin.one", PASSWORD).ok()
    assert api.me().ok()["role"] == "admin"


@pytest.mark.both_databases
def test_set_up_works_once(rt, api):
    api.sign_up_admin().ok(201)
    again = api.sign_up_admin("second", "second@example.com")
    again.fails(400, "validation.system_already_initialized")
    assert count(rt, User) == 1


def test_a_closed_set_up_says_so_before_it_looks_at_the_body(rt, api):
    make_user(rt)
    answer = api.sign_up_admin("x", "no address", "short")
    answer.fails(400, "validation.system_already_initialized")


def test_an_invalid_attempt_leaves_the_installation_untouched(rt, api):
    for changes in (
        {"username": "a"},
        {"username": "  "},
        {"email": "nobody"},
        {"email": ""},
        {"password": "1234567"},
        {"password": "x" * 129},
    ):
        answer = api.post("/auth/setup", ADMIN | changes)
        assert (answer.status, answer.code) == (400, "bad_request"), changes
        assert state(api) == "needs_admin"
    assert count(rt, User) == 0
    assert learnt(rt)[0] == ()
    api.sign_up_admin().ok(201)


def test_passwords_have_8_to_128_characters():
    for password in ("x" * 8, "x" * 128, "  8 signs", "ünïcödé!", "😀" * 8):
        assert is_acceptable(password), password
    for password in ("", "1234567", "x" * 129):
        assert not is_acceptable(password), password


def test_what_was_typed_is_kept(api):
    account = api.sign_up_admin("  A.b-c_d ", " Taro..Y@Docomo.ne.jp ", "  8 signs").ok(201)
    assert (account["username"], account["email"]) == ("A.b-c_d", "taro..y@docomo.ne.jp")
    api.login("A.b-c_d", "  8 signs").ok()
    api.login("A.b-c_d", "8 signs").fails(401, "auth.credentials_failed")


def test_set_up_ignores_switches_and_address_policy(rt, api):
    configure(
        rt,
        auth_allow_user_registration=False,
        auth_password_login_enabled=False,
        auth_local_email_blocklist=["example.com"],
        auth_local_email_allowlist=["elsewhere.example"],
    )
    api.sign_up_admin().ok(201)


def test_set_up_is_audited(rt, api):
    api.sign_up_admin(headers={"User-Agent": "curl/8"}).ok(201)
    [entry] = audit_rows(rt, "system_setup")
    assert (entry.entity_type, entry.entity_name) == ("user", "admin")
    assert entry.entity_id == entry.user_id
    assert (entry.ip_address, entry.user_agent) == ("127.0.0.1", "curl/8")


def test_set_up_takes_its_time(api, clock):
    api.sign_up_admin().ok(201)
    assert 0.35 <= clock.slept[-1] <= 0.475


# --- what set-up learns about the site ------------------------------------------


def test_the_sites_address_is_learnt_from_origin(rt, api):
    api.sign_up_admin(headers={"Origin": "https://Files.Example.com:8443"}).ok(201)
    assert learnt(rt)[0] == ("https://files.example.com:8443",)


@pytest.mark.parametrize(
    ("origin", "stored"),
    [
        ("https://Files.Example.com", "https://files.example.com"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://127.0.0.1:8000", "http://localhost:8000"),
        ("http://127.9.9.9:8000", "http://localhost:8000"),
        ("http://[::1]:5173", "http://localhost:5173"),
        ("http://127.0.0.1", "http://localhost"),
        ("http://192.168.1.5:8000", "http://192.168.1.5:8000"),
    ],
)
def test_loopback_is_learnt_as_localhost(origin, stored):
    """Passkeys belong to a domain."""
    assert site.storable_origin(origin) == stored


def test_without_a_usable_origin_the_requests_own_address_counts(rt, api):
    for origin in (None, "null", "nonsense", "https://a/b", "ftp://files"):
        headers = {"Origin": origin, "Host": "files.example.com:8080"}
        api.sign_up_admin(headers=headers).ok(201)
        assert learnt(rt)[0] == ("http://files.example.com:8080",), origin
        start_over(rt)


BAD_AUTHORITIES = [
    "files.example:1234567890",
    "files.example:65536",
    "files.example:0",
    "files.example:\u0663",
    "[:::]",
    "[:::]:80",
    "[::1",
    "[]",
    "a b",
    "a,b",
]


def post(app, path, body, **environ):
    """Send what Werkzeug's client cannot, whose cookie jar parses the Host; return status, code."""
    environ = {name: value.encode().decode("latin-1") for name, value in environ.items()}
    request = EnvironBuilder(path, method="POST", json=body).get_environ() | environ
    chunks, status, _ = run_wsgi_app(app, request, buffered=True)
    return int(status[:3]), json.loads(b"".join(chunks))["code"]


def test_an_unusable_host_does_not_keep_the_administrator_out(rt, app, api):
    """The address stays unknown; nothing else is wrong."""
    for host in (*BAD_AUTHORITIES, f"{'x' * 600}.example"):
        outcome = post(app, "/api/v1/auth/setup", ADMIN, HTTP_HOST=host)
        assert (*outcome, learnt(rt)[0]) == (201, "success", ()), host
        assert state(api) == "ready"
        start_over(rt)


def test_without_a_host_the_servers_own_address_is_learnt(rt, app):
    assert post(app, "/api/v1/auth/setup", ADMIN, HTTP_HOST="") == (201, "success")
    assert learnt(rt)[0] == ("http://localhost:80",)


def test_an_unusable_origin_leaves_the_requests_own_address(rt, app):
    for host in BAD_AUTHORITIES:
        headers = {"HTTP_HOST": "files.example.com:8080", "HTTP_ORIGIN": f"https://{host}"}
        assert post(app, "/api/v1/auth/setup", ADMIN, **headers) == (201, "success"), host
        assert learnt(rt)[0] == ("http://files.example.com:8080",), host
        start_over(rt)


def test_an_unusable_host_or_origin_never_fails_a_later_request(app, user):
    body = {"identifier": user.username, "password": user.password}
    for host in BAD_AUTHORITIES:
        for headers, code in (
            ({"HTTP_HOST": host, "HTTP_ORIGIN": "http://localhost"}, "request_host_invalid"),
            ({"HTTP_ORIGIN": f"https://{host}"}, "request_origin_invalid"),
            ({"HTTP_REFERER": f"https://{host}/page"}, "request_referer_invalid"),
        ):
            answer = post(app, "/api/v1/auth/login", body, **headers)
            assert answer == (400, f"validation.{code}"), headers


def test_a_host_that_no_name_server_knows_is_judged_as_any_other(app, user):
    body = {"identifier": user.username, "password": user.password}
    for host, refusal in (
        ("x" * 600, (400, "validation.request_host_invalid")),
        ("x" * 64, (403, "auth.request_origin_untrusted")),
        ("a..b", (403, "auth.request_origin_untrusted")),
    ):
        headers = {"HTTP_HOST": host, "HTTP_ORIGIN": "http://x.y"}
        assert post(app, "/api/v1/auth/login", body, **headers) == refusal
        assert post(app, "/api/v1/auth/login", body, HTTP_HOST=host) == (200, "success")


def test_the_requests_own_loopback_address_is_stored_as_localhost(rt, api):
    api.sign_up_admin(headers={"Host": "127.0.0.1:8000"}).ok(201)
    assert learnt(rt)[0] == ("http://localhost:8000",)


def test_behind_a_trusted_proxy_the_forwarded_address_counts(make_app):
    app = make_app(trusted_proxies=(ipaddress.ip_network("127.0.0.1"),))
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "files.example.com"}
    ApiClient(app).sign_up_admin(headers=headers).ok(201)
    assert learnt(app.extensions["gatehouse"]) == (("https://files.example.com",), True)


def test_a_known_address_is_never_overwritten(rt, api):
    configure(rt, public_site_url=["https://known.example"])
    api.sign_up_admin(headers={"Origin": "https://other.example"}).ok(201)
    assert learnt(rt)[0] == ("https://known.example",)


@pytest.mark.both_databases
def test_a_list_that_was_stored_empty_is_filled(rt, api):
    configure(rt, public_site_url=[])
    api.sign_up_admin(headers={"Origin": "https://files.example.com"}).ok(201)
    assert learnt(rt)[0] == ("https://files.example.com",)


def test_https_makes_cookies_secure(rt, api):
    configure(rt, auth_cookie_secure=False)
    api.sign_up_admin(headers={"Origin": "https://files.example.com"}).ok(201)
    cookies = api.login("admin", PASSWORD).set_cookies
    assert all(cookie.attributes.get("secure") is True for cookie in cookies.values())


def test_http_leaves_cookies_usable_over_http(rt, api):
    api.sign_up_admin(headers={"Origin": "http://files.example.com"}).ok(201)
    cookies = api.login("admin", PASSWORD).set_cookies
    assert not any("secure" in cookie.attributes for cookie in cookies.values())


def test_what_was_learnt_is_in_force_for_the_next_request(api):
    api.sign_up_admin(headers={"Origin": "https://files.example.com"}).ok(201)
    headers = {"Origin": "https://files.example.com"}
    api.login("admin", PASSWORD, headers=headers).ok()
    frontend = api.get("/public/frontend-config").ok()
    assert frontend["branding"]["site_urls"] == ["https://files.example.com"]


def test_a_page_of_another_site_may_not_be_asked_but_set_up_needs_no_source(rt, api):
    headers = {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
    api.post("/auth/check", headers=headers).ok()
    api.sign_up_admin(headers=headers).ok(201)


# --- races -------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_of_sixteen_set_ups_at_once_exactly_one_succeeds(app, rt):
    def attempt(number):
        return ApiClient(app).sign_up_admin(f"admin{number}", f"admin{number}@example.com")

    answers = run_concurrently([partial(attempt, number) for number in range(16)])
    winners = [answer for answer in answers if answer.status == 201]
    assert len(winners) == 1
    for answer in answers:
        if answer is not winners[0]:
            answer.fails(400, "validation.system_already_initialized")
    assert count(rt, User) == 1
    assert len(audit_rows(rt, "system_setup")) == 1
