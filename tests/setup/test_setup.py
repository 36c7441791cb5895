"""POST /auth/setup."""

import ipaddress
import json
from functools import partial

import pytest
from werkzeug.test import EnvironBuilder, run_wsgi_app

from app.users.models import User
from app.web import site
from tests.support.api import ApiClient
from tests.support.factories import (
    audit_rows,
    configure,
    count,
    fresh_account,
    make_user,
    moment,
)
from tests.support.races import run_concurrently

PASSWORD = "correct horse battery"


def state(api):
    return api.post("/auth/check").ok()["setup_state"]


def learnt(rt):
    """Return what set-up stored about the site."""
    rt.settings.forget()
    return rt.settings.get(site.PUBLIC_SITE_URL), rt.settings.get(site.COOKIE_SECURE)


def test_the_first_administrator_is_answered_as_an_account(api, clock):
    account = api.sign_up_admin("Admin.One", "Admin@Example.COM").ok(201)
    assert moment(account["created_at"]) == clock.now()
    assert account == fresh_account(
        account,
        username="Admin.One",
        email="admin@example.com",
        email_verified=True,
        role="admin",
    )
    assert isinstance(account["policy_group_id"], int)


def test_set_up_signs_nobody_in(api):
    answer = api.sign_up_admin()
    assert answer.status == 201
    assert answer.set_cookies == {}


def test_the_administrator_can_sign_in_at_once(api):
    api.sign_up_admin().ok(201)
    assert api.login("admin", PASSWORD).ok()["status"] == "authenticated"
    assert api.me().ok()["role"] == "admin"


def test_set_up_works_once(rt, api):
    api.sign_up_admin().ok(201)
    again = api.sign_up_admin("second", "second@example.com")
    again.fails(400, "validation.system_already_initialized")
    assert count(rt, User) == 1


def test_set_up_is_closed_by_any_account(rt, api):
    make_user(rt)
    api.sign_up_admin().fails(400, "validation.system_already_initialized")


def test_a_closed_set_up_says_so_before_it_looks_at_the_body(rt, api):
    make_user(rt)
    answer = api.sign_up_admin("x", "no address", "short")
    answer.fails(400, "validation.system_already_initialized")


@pytest.mark.parametrize(
    "changes",
    [
        {"username": "a"},
        {"username": "a" * 65},
        {"username": "with space"},
        {"username": "at@sign"},
        {"username": "ümlaut"},
        {"username": "\u212aelvin"},  # the Kelvin sign, which lower-cases to an ASCII k
        {"username": ""},
        {"username": "  "},
        {"username": "line\nbreak"},
        {"email": ""},
        {"email": "nobody"},
        {"email": "@example.com"},
        {"email": "a@"},
        {"email": "a@nodot"},
        {"email": "a@b@example.com"},
        {"email": "two words@example.com"},
        {"email": "straße@example.com"},
        {"email": '"two words"@example.com'},
        {"email": '"open@example.com'},
        {"email": "a@ example.com"},
        {"email": "a@b@"},
        {"email": "a@b_c.example"},
        {"email": "a@-b.example"},
        {"email": "a@b.example."},
        {"email": "a@[192.0.2.1]"},
        {"email": "a@i❤.ws"},
        {"email": f"{'a' * 65}@example.com"},
        {"email": f"a@{'b.' * 126}example"},
        {"email": "a@example.com\nbcc: b@example.com"},
        {"password": ""},
        {"password": "1234567"},
        {"password": "x" * 129},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_an_invalid_attempt_leaves_the_installation_untouched(rt, api, changes):
    body = {"username": "admin", "email": "admin@example.com", "password": PASSWORD} | changes
    api.post("/auth/setup", body).fails(400, "bad_request")
    assert state(api) == "needs_admin"
    assert count(rt, User) == 0
    assert learnt(rt)[0] == ()
    api.sign_up_admin().ok(201)


@pytest.mark.parametrize(
    "username", ["ab", "a" * 64, "A.b-c_d", "...", "-_", "123", "  trimmed  "], ids=str
)
def test_usernames_within_the_rule_are_kept_as_typed(api, username):
    assert api.sign_up_admin(username).ok(201)["username"] == username.strip()


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("Name@Example.COM", "name@example.com"),
        ("  padded@example.com ", "padded@example.com"),
        ("first.last+tag@sub.example.com", "first.last+tag@sub.example.com"),
        ("a@bücher.example", "a@xn--bcher-kva.example"),
        ("a@XN--I-7IQ.ws", "a@xn--i-7iq.ws"),
        ("a@ab--cd.example", "a@ab--cd.example"),
        ("Taro..Yamada@docomo.ne.jp", "taro..yamada@docomo.ne.jp"),
        ('"taro..yamada"@docomo.ne.jp', "taro..yamada@docomo.ne.jp"),
        (".taro.@ezweb.ne.jp", ".taro.@ezweb.ne.jp"),
        ("o'brien+x/y=z!#$%&*?^_`{|}~-@example.com", "o'brien+x/y=z!#$%&*?^_`{|}~-@example.com"),
        (f"{'a' * 64}@example.com", f"{'a' * 64}@example.com"),
        ("admin@files.test", "admin@files.test"),
        ("admin@nas.local", "admin@nas.local"),
        ("admin@box.home.arpa", "admin@box.home.arpa"),
    ],
)
def test_addresses_are_kept_in_one_spelling(api, typed, stored):
    assert api.sign_up_admin(email=typed).ok(201)["email"] == stored


@pytest.mark.parametrize(
    "password", ["x" * 8, "x" * 128, "  8 signs", "ünïcödé!", "😀" * 8], ids=lambda p: p[:10]
)
def test_passwords_within_the_rule_are_accepted_and_not_trimmed(api, password):
    api.sign_up_admin(password=password).ok(201)
    api.login("admin", password).ok()
    if password != password.strip():
        api.login("admin", password.strip()).fails(401, "auth.credentials_failed")


def test_set_up_ignores_switches_and_address_policy(rt, api):
    configure(
        rt,
        auth_allow_user_registration=False,
        auth_password_login_enabled=False,
        auth_local_email_blocklist=["example.com"],
        auth_local_email_allowlist=["elsewhere.example"],
    )
    api.sign_up_admin().ok(201)


def test_the_administrator_gets_the_default_quota(rt, api):
    configure(rt, default_storage_quota=5_000_000_000_000)
    assert api.sign_up_admin().ok(201)["storage_quota"] == 5_000_000_000_000


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


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("https://Files.Example.com", "https://files.example.com"),
        ("https://files.example.com:8443", "https://files.example.com:8443"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://127.0.0.1:8000", "http://localhost:8000"),
        ("http://127.9.9.9:8000", "http://localhost:8000"),
        ("http://[::1]:5173", "http://localhost:5173"),
        ("http://127.0.0.1", "http://localhost"),
        ("http://192.168.1.5:8000", "http://192.168.1.5:8000"),
    ],
)
def test_the_sites_address_is_learnt_from_origin(rt, api, sent, stored):
    api.sign_up_admin(headers={"Origin": sent}).ok(201)
    assert learnt(rt)[0] == (stored,)


@pytest.mark.parametrize("origin", [None, "null", "nonsense", "https://a/b", "ftp://files"])
def test_without_a_usable_origin_the_requests_own_address_counts(rt, api, origin):
    headers = {"Origin": origin, "Host": "files.example.com:8080"}
    api.sign_up_admin(headers=headers).ok(201)
    assert learnt(rt)[0] == ("http://files.example.com:8080",)


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
ADMIN = {"username": "admin", "email": "admin@example.com", "password": PASSWORD}


def post(app, path, body, **environ):
    """Send what Werkzeug's client cannot, whose cookie jar parses the Host; return status, code."""
    environ = {name: value.encode().decode("latin-1") for name, value in environ.items()}
    request = EnvironBuilder(path, method="POST", json=body).get_environ() | environ
    chunks, status, _ = run_wsgi_app(app, request, buffered=True)
    return int(status[:3]), json.loads(b"".join(chunks))["code"]


@pytest.mark.parametrize("host", BAD_AUTHORITIES, ids=ascii)
def test_an_unusable_host_does_not_keep_the_administrator_out(rt, app, api, host):
    """The address stays unknown; nothing else is wrong."""
    assert post(app, "/api/v1/auth/setup", ADMIN, HTTP_HOST=host) == (201, "success")
    assert learnt(rt)[0] == ()
    assert state(api) == "ready"


@pytest.mark.parametrize("host", BAD_AUTHORITIES, ids=ascii)
def test_an_unusable_origin_leaves_the_requests_own_address(rt, app, host):
    headers = {"HTTP_HOST": "files.example.com:8080", "HTTP_ORIGIN": f"https://{host}"}
    assert post(app, "/api/v1/auth/setup", ADMIN, **headers) == (201, "success")
    assert learnt(rt)[0] == ("http://files.example.com:8080",)


@pytest.mark.parametrize("host", BAD_AUTHORITIES, ids=ascii)
def test_an_unusable_host_or_origin_never_fails_a_later_request(app, user, host):
    body = {"identifier": user.username, "password": user.password}
    for headers, code in (
        ({"HTTP_HOST": host, "HTTP_ORIGIN": "http://localhost"}, "request_host_invalid"),
        ({"HTTP_ORIGIN": f"https://{host}"}, "request_origin_invalid"),
        ({"HTTP_REFERER": f"https://{host}/page"}, "request_referer_invalid"),
    ):
        assert post(app, "/api/v1/auth/login", body, **headers) == (400, f"validation.{code}")


def test_a_host_over_512_bytes_does_not_keep_the_administrator_out_either(rt, app, api):
    host = f"{'x' * 600}.example"
    assert post(app, "/api/v1/auth/setup", ADMIN, HTTP_HOST=host) == (201, "success")
    assert learnt(rt)[0] == ()


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("x" * 600, "validation.request_host_invalid"),
        ("x" * 64, "auth.request_origin_untrusted"),
        ("a..b", "auth.request_origin_untrusted"),
    ],
)
def test_a_host_that_no_name_server_knows_is_judged_as_any_other(app, user, host, code):
    body = {"identifier": user.username, "password": user.password}
    path = "/api/v1/auth/login"
    headers = {"HTTP_HOST": host, "HTTP_ORIGIN": "http://x.y"}
    assert post(app, path, body, **headers) == (400 if "host" in code else 403, code)
    assert post(app, path, body, HTTP_HOST=host) == (200, "success")


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
