"""Who may call what: every route, without knowing what it does."""

import ipaddress

import pytest

from app.web.operation import operation_of
from tests.contract.routes import DURING_PASSWORD_CHANGE, PUBLIC, routes
from tests.support.api import SAFE_METHODS
from tests.support.factories import bearer_of, change_user, make_user

DESCRIBED = tuple(f"/api/v1/{area}" for area in ("auth", "admin", "teams", "webdav-accounts"))
REFRESH = ("POST", "/api/v1/auth/refresh")


def guarded(app):
    return [route for route in routes(app) if not route.is_public and route.name != REFRESH]


def test_every_route_of_the_api_declares_its_access(app):
    silent = [
        route.name
        for route in routes(app)
        if route.rule.startswith(DESCRIBED)
        and operation_of(app.view_functions[route.endpoint]).access is None
    ]
    assert silent == []


def test_every_route_that_is_an_exception_exists(app):
    there = {route.name for route in routes(app)}
    assert {*PUBLIC, *DURING_PASSWORD_CHANGE, REFRESH} - there == set()


def test_routes_that_need_a_login_refuse_strangers(app, api):
    for route in guarded(app):
        api.call(route.method, route.path(), {}).fails(401, "auth.token_missing")


def test_refresh_without_its_cookie_is_refused(api):
    api.refresh().fails(401, "auth.token_missing")


def test_public_routes_ask_nobody_for_a_token(app, api):
    for route in routes(app):
        if route.is_public:
            answer = api.call(route.method, route.path(), {})
            assert answer.status != 401, answer


def test_a_broken_token_opens_nothing(app, api):
    bearer = api.bearer("not.a.token")
    for route in guarded(app):
        bearer.call(route.method, route.path(), {}).fails(401, "auth.token_invalid")


def test_a_refresh_token_is_no_access_token(app, signed_in):
    bearer = signed_in.bearer(signed_in.refresh_token)
    for route in guarded(app):
        bearer.call(route.method, route.path(), {}).fails(401, "auth.token_invalid")


def test_a_forced_password_change_leaves_only_three_routes_open(app, rt, api, user):
    change_user(rt, user, must_change_password=True)
    assert api.login(user).ok()["status"] == "password_change_required"
    for route in guarded(app):
        if route.name not in DURING_PASSWORD_CHANGE:
            answer = api.call(route.method, route.path(), {})
            answer.fails(403, "auth.password_change_required")
    api.refresh().fails(403, "auth.password_change_required")
    assert api.me().ok()["must_change_password"] is True


def test_a_disabled_account_is_told_so_everywhere(app, rt, api, user):
    api.login(user).ok()
    change_user(rt, user, status="disabled")
    for route in guarded(app):
        api.call(route.method, route.path(), {}).fails(403, "auth.account_disabled")


def test_a_page_that_means_another_account_changes_nothing(app, rt, signed_in, user):
    """Its cookies are another account's by now: what somebody types is not saved for that one."""
    other = {"X-Session-User": str(make_user(rt).id)}
    for route in guarded(app):
        if route.method not in SAFE_METHODS:
            answer = signed_in.call(route.method, route.path(), {}, headers=other)
            answer.fails(403, "auth.session_user_mismatch")
    signed_in.me(headers=other).ok()


def test_what_a_session_is_limited_to_is_told_only_to_who_means_its_account(rt, api, user):
    change_user(rt, user, must_change_password=True)
    api.login(user).ok()
    for meant, code in (
        (user, "password_change_required"),
        (make_user(rt), "session_user_mismatch"),
    ):
        headers = {"X-Session-User": str(meant.id)}
        api.patch("/auth/profile", {}, headers=headers).fails(403, f"auth.{code}")


@pytest.mark.parametrize("spelling", ["{}", " {} ", None])
def test_whoever_means_its_own_account_or_says_nothing_is_let_in(signed_in, user, spelling):
    headers = {"X-Session-User": spelling and spelling.format(user.id)}
    signed_in.patch("/auth/profile", {"display_name": "Ada"}, headers=headers).ok()


@pytest.mark.parametrize(
    "spelling", ["", "  ", "0{}", "{}.0", "+{}", "{}, {}", "null", "undefined"]
)
def test_what_is_not_the_id_as_it_is_told_means_another_account(signed_in, user, spelling):
    headers = {"X-Session-User": spelling.format(user.id, user.id)}
    answer = signed_in.patch("/auth/profile", {"display_name": "Ada"}, headers=headers)
    answer.fails(403, "auth.session_user_mismatch")


# --- administration: what each kind of caller is told, whatever is asked -------------------------


@pytest.fixture
def boss(browser, admin):
    browser.login(admin).ok()
    return browser


def of_administrators(app):
    """Yield the routes of administrators."""
    for route in guarded(app):
        if operation_of(app.view_functions[route.endpoint]).access == "admin":
            yield route


def all_fail(app, client, status, code):
    for route in of_administrators(app):
        # An id that nobody has, and no body: who may not ask is told nothing of either.
        client.call(route.method, route.path(id="4711")).fails(status, code)


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"role": "user"}, "auth.admin_required"),
        ({"status": "disabled"}, "auth.account_disabled"),
    ],
)
def test_a_former_administrator(app, rt, boss, admin, columns, code):
    make_user(rt, role="admin")
    change_user(rt, admin, **columns)
    for client in (boss, boss.bearer()):
        all_fail(app, client, 403, code)


def test_an_administrator_who_must_change_the_password(app, rt, browser, admin):
    change_user(rt, admin, must_change_password=True)
    browser.login(admin).ok()
    all_fail(app, browser, 403, "auth.password_change_required")


def test_an_ordinary_user_and_a_stranger(app, api, browser, user):
    all_fail(app, api, 401, "auth.token_missing")
    browser.login(user).ok()
    all_fail(app, browser, 403, "auth.admin_required")


def test_a_bearer_needs_neither_source_nor_token(app, boss):
    bearer = boss.bearer()
    foreign = {"Origin": "https://evil.example"}
    for route in of_administrators(app):
        if "<row:id>" in route.rule:
            answer = bearer.call(route.method, route.path(id="4711"), headers=foreign)
            assert answer.code in {"not_found", "bad_request"}, answer


def test_administration_is_open_to_named_networks_only(make_app, rt, admin):
    app = make_app(admin_networks=(ipaddress.ip_network("192.0.2.0/24"),))
    outside = bearer_of(rt, app, admin)
    all_fail(app, outside, 403, "forbidden")
    outside.get("/admin/users", address="192.0.2.7").ok()


def test_the_bearer_prefix_is_exact(signed_in):
    stranger = signed_in.stranger()
    for prefix in ("bearer ", "BEARER ", "Bearer", "Token ", "Basic "):
        header = {"Authorization": prefix + signed_in.access_token}
        assert stranger.me(headers=header).code == "auth.token_missing", prefix


def test_the_cookie_wins_over_the_bearer(rt, signed_in, user):
    other = make_user(rt)
    theirs = signed_in.stranger()
    theirs.login(other).ok()
    header = {"Authorization": f"Bearer {theirs.access_token}"}
    assert signed_in.me(headers=header).ok()["id"] == user.id
    signed_in.set_cookie("service_access", "nonsense")
    signed_in.me(headers=header).fails(401, "auth.token_invalid")


def test_an_empty_access_cookie_is_no_token(signed_in):
    header = {"Authorization": f"Bearer {signed_in.access_token}"}
    signed_in.set_cookie("service_access", "")
    signed_in.me(headers=header).fails(401, "auth.token_missing")
