"""What a request with an access token is told, and in which order."""

import ipaddress
import json
import logging
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from prometheus_client import REGISTRY
from redis.exceptions import ConnectionError as RedisConnectionError

from app.access_tokens import form, queries
from app.access_tokens import service as tokens
from app.core.access import Scope
from app.core.config import Bucket
from app.core.errors import DatabaseUnavailable, RateLimited
from app.core.logs import request_fields
from app.store.redis import Breaker
from app.web import runtime as web_runtime
from tests.support.external import add_provider
from tests.support.factories import (
    audit_rows,
    bearer_of,
    change_user,
    configure,
    delete_user,
    make_user,
)
from tests.support.programs import add_token, program, program_of, row_of

HERE = "192.0.2.7"


@pytest.fixture
def statements(rt):
    """Return the statements that are made within a block."""

    @contextmanager
    def noted():
        made = []
        note = lambda *arguments: made.append(arguments[2])  # noqa: E731
        sa.event.listen(rt.database.engine, "before_cursor_execute", note)
        yield made
        sa.event.remove(rt.database.engine, "before_cursor_execute", note)

    return noted


def requests(scope, outcome):
    labels = {"scope": scope, "outcome": outcome}
    return REGISTRY.get_sample_value("gatehouse_token_requests_total", labels) or 0


# --- who it is -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", list(Scope))
def test_every_token_opens_who_am_i(app, rt, user, scope, clock):
    text, token_id = add_token(rt, user, scope, name="It", expires_at=clock.now())
    program(app, text).me().fails(401, "auth.token_expired")
    text, token_id = add_token(rt, user, scope, name="It")
    me = program(app, text).me().ok()
    assert me["id"] == user.id
    assert me["access_token_expires_at"] is None
    assert me["token"] == {"id": token_id, "name": "It", "scopes": [scope.value]}


def test_it_tells_when_the_token_ends_and_only_if_asked(app, rt, signed_in):
    body = {"name": "It", "scopes": ["files"], "expires_in_days": 1}
    made = signed_in.post("/auth/tokens", body).ok(201)
    me = program(app, made["token"]).get("/auth/me?fields=session").ok()
    assert me["access_token_expires_at"] == int(rt.clock.now().timestamp()) + 86_400
    assert {"token", "access_token_expires_at"} < me.keys()
    me = program(app, made["token"]).get("/auth/me?fields=profile").ok()
    assert not {"token", "access_token_expires_at"} & me.keys()
    assert "token" not in signed_in.me().ok()


def test_a_request_is_one_read_and_a_mistyped_token_none(app, rt, user, statements):
    client = program_of(app, user, "files", last_used_at=rt.clock.now())
    client.me().ok()
    with statements() as made:
        client.me().ok()
    assert len(made) == 1
    text = form.new_token()
    with statements() as made:
        for wrong in (text[:-1], text[:-1] + ("a" if text[-1] != "a" else "b"), "gth_"):
            program(app, wrong).me().fails(401, "auth.token_invalid")
    assert made == []


# --- what is refused, in which order -------------------------------------------------------------


def test_unknown_mistyped_and_removed_ones_are_alike(app, rt, user):
    text, token_id = add_token(rt, user, "files")
    unknown = form.new_token()
    with rt.transaction() as session:
        queries.remove(session, [token_id])
    told = {
        (answer.status, answer.body, answer.headers["WWW-Authenticate"])
        for answer in (program(app, t).me() for t in (text, unknown, unknown[:-1], "gth_"))
    }
    assert len(told) == 1


def test_there_is_no_leeway_at_its_end(app, rt, user, clock):
    body = {"name": "It", "scopes": ["files"], "expires_in_days": 1}
    text = bearer_of(rt, app, user).post("/auth/tokens", body).ok(201)["token"]
    client = program(app, text)
    clock.advance(hours=23, minutes=59, seconds=59)
    client.me().ok()
    clock.advance(seconds=1)
    client.me().fails(401, "auth.token_expired")


@pytest.mark.own_application
def test_each_check_comes_before_those_after_it(app, rt, monkeypatch, clock):
    """All is wrong with it at first; what is named is mended, and the next is named."""
    boss = make_user(rt, role="user", status="disabled", must_change_password=True)
    change_user(rt, boss, activated_at=None)
    text, _ = add_token(rt, boss, "files", expires_at=clock.now())
    wrong = {"Authorization": f"Bearer {text}"}
    body = {"role": 5}

    def asked(path="/admin/users/1", method="PATCH"):
        return program(app, text).call(method, path, body, headers=wrong)

    asked().fails(401, "auth.token_expired")
    text, _ = add_token(rt, boss, "files")
    wrong["Authorization"] = f"Bearer {text}"
    with monkeypatch.context() as patch:
        patch.setattr(rt.limits.rates, "take", limited("access_token"))
        asked().fails(429, "rate_limited")
        patch.setattr(rt.limits.rates, "take", limited("session"))
        program(app, form.new_token()).me().fails(429, "rate_limited")
    asked().fails(403, "auth.account_disabled")
    change_user(rt, boss, status="active")
    asked().fails(403, "auth.pending_activation")
    change_user(rt, boss, activated_at=rt.clock.now())
    asked().fails(403, "auth.password_change_required")
    change_user(rt, boss, must_change_password=False)
    answer = asked("/admin/users/1", "DELETE").fails(403, "forbidden")
    assert answer.json["msg"] == "A token cannot do this."
    assert "the scope admin." in asked().fails(403, "forbidden").json["msg"]
    text, _ = add_token(rt, boss, "admin")
    wrong["Authorization"] = f"Bearer {text}"
    asked().fails(403, "auth.admin_required")
    change_user(rt, boss, role="admin")
    asked().fails(400, "bad_request")
    body = {}
    asked("/admin/users/999999").fails(404, "not_found")


def limited(name):
    """Return what takes from all buckets but one, which is empty."""

    def take(bucket, *_, **__):
        if bucket == name:
            raise RateLimited(retry_after=1)

    return take


@pytest.mark.own_application
def test_programs_stay_within_the_networks_of_administrators(make_app):
    app = make_app(admin_networks=(ipaddress.ip_network("192.0.2.0/24"),))
    boss = make_user(web_runtime.of(app), role="admin")
    client = program_of(app, boss, "admin:read")
    client.get("/admin/users", address=HERE).ok()
    client.get("/admin/users", address="198.51.100.1").fails(403, "forbidden")
    client.me(address="198.51.100.1").ok()


def test_so_many_requests_for_each_token(app, rt, user, monkeypatch):
    assert (tokens.REQUESTS.per_second, tokens.REQUESTS.burst) == (60, 60)
    monkeypatch.setattr(tokens, "REQUESTS", Bucket(per_second=1, burst=3))
    client, other = program_of(app, user, "files"), program_of(app, user, "files")
    for _ in range(3):
        client.me().ok()
    assert client.me().fails(429, "rate_limited").retry_after == 1
    other.me().ok()


def test_without_redis_no_request_is_refused(app, rt, user, monkeypatch):
    def away(*_, **__):
        raise RedisConnectionError

    client = program_of(app, user, "files")
    monkeypatch.setattr(tokens, "REQUESTS", Bucket(per_second=1, burst=3))
    monkeypatch.setattr(Breaker, "run_script", away)
    for _ in range(4):
        client.me().ok()


def test_a_forced_change_closes_it_only_while_passwords_are_in_use(app, rt, user):
    client = program_of(app, user, *Scope)
    change_user(rt, user, must_change_password=True)
    for path in ("/auth/me", "/teams", "/auth/activity"):
        client.get(path).fails(403, "auth.password_change_required")
    configure(rt, auth_passkey_login_enabled=True, auth_password_login_enabled=False)
    client.me().ok()
    configure(rt, auth_password_login_enabled=True)
    client.me().fails(403, "auth.password_change_required")
    change_user(rt, user, must_change_password=False)
    client.me().ok()


def test_a_deleted_owner_leaves_no_token(app, rt, user):
    text, token_id = add_token(rt, user, "files")
    delete_user(rt, user)
    program(app, text).me().fails(401, "auth.token_invalid")
    assert row_of(rt, token_id) is None


# --- where it counts -----------------------------------------------------------------------------


@pytest.mark.parametrize("cookie", ["", "dead", "gth_x"])
def test_with_an_access_cookie_the_cookie_alone_counts(app, rt, user, cookie):
    """Be it empty or dead; a change asks for what a page must send."""
    text, token_id = add_token(rt, user, "profile")
    client = program(app, text)
    client.set_cookie("service_access", cookie)
    client.me().fails(401, "auth.token_invalid" if cookie else "auth.token_missing")
    page = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    client.patch("/auth/profile", {}, headers=page).fails(403, "auth.csrf_cookie_missing")
    assert row_of(rt, token_id).last_used_at is None
    client.drop_cookie("service_access")
    client.me().ok()


def test_beside_a_session_no_token_is_used(app, rt, user, signed_in):
    text, token_id = add_token(rt, make_user(rt), "profile")
    bearer = {"Authorization": f"Bearer {text}"}
    me = signed_in.me(headers=bearer).ok()
    assert (me["id"], "token" in me) == (user.id, False)
    assert row_of(rt, token_id).last_used_at is None


def test_a_program_needs_neither_source_nor_csrf_token(app, rt, user):
    client = program_of(app, user, "profile")
    configure(rt, auth_strict_request_source=True)
    body = {"display_name": "Ada"}
    client.patch("/auth/profile", body, headers={"Origin": "https://evil.example"}).ok()
    client.patch("/auth/profile", body).ok()


@pytest.mark.parametrize("place", ["cookie", "query", "Basic", "Token"])
def test_it_counts_nowhere_but_as_a_bearer(app, rt, user, api, place):
    text, token_id = add_token(rt, user, "files")
    if place == "cookie":
        api.set_cookie("service_access", text)
        api.me().fails(401, "auth.token_invalid")
    elif place == "query":
        path = f"/auth/me?access_token={text}&token={text}"
        api.get(path, described=False).fails(401, "auth.token_missing")
    else:
        header = {"Authorization": f"{place} {text}"}
        api.me(headers=header).fails(401, "auth.token_missing")
    assert row_of(rt, token_id).last_used_at is None


def test_where_no_session_is_needed_it_is_not_looked_at(app, rt, user):
    text, token_id = add_token(rt, user, *Scope)
    client = program(app, text)
    client.post("/auth/logout").ok()
    assert audit_rows(rt, "user_logout") == []
    client.get("/public/frontend-config").ok()
    client.post("/auth/refresh").fails(401, "auth.token_missing")
    assert row_of(rt, token_id).last_used_at is None
    client.me().ok()


def test_it_is_no_refresh_token(api, rt, user):
    text, _ = add_token(rt, user, *Scope)
    api.set_cookie("service_refresh", text)
    api.refresh().fails(401, "auth.token_invalid")


@pytest.mark.parametrize("intent", ["link", "confirm"])
def test_nothing_is_linked_or_confirmed_by_a_program(app, rt, user, intent):
    add_provider(rt)
    client = program_of(app, user, *Scope)
    path = "/auth/external-auth/oidc/corp/start"
    answer = client.post(path, {"return_path": "/", "intent": intent}, described=False)
    assert (answer.status, answer.json["msg"]) == (403, "A token cannot do this."), answer


# --- what it leaves ------------------------------------------------------------------------------


def test_use_is_noted_at_most_every_ten_minutes(app, rt, user, clock):
    text, token_id = add_token(rt, user, "profile:read")
    client = program(app, text)
    client.me(address=HERE).ok()
    first = row_of(rt, token_id)
    assert (first.last_used_at, first.last_used_ip) == (rt.clock.now(), HERE)
    clock.advance(minutes=10)
    client.me(address="192.0.2.8").ok()
    assert row_of(rt, token_id) == first
    clock.advance(seconds=1)
    client.me(address="192.0.2.8").ok()
    assert row_of(rt, token_id).last_used_ip == "192.0.2.8"


def test_a_clock_that_was_ahead_hides_no_use(app, rt, user, clock):
    text, token_id = add_token(rt, user, "files", last_used_at=clock.now())
    clock.advance(days=-1)
    program(app, text).me().ok()
    assert row_of(rt, token_id).last_used_at == clock.now()


def test_only_accepted_requests_are_use(app, rt, user, admin):
    text, token_id = add_token(rt, user, "files", "admin")
    client = program(app, text)
    client.get("/teams").fails(403, "forbidden")
    client.get("/auth/tokens").fails(403, "forbidden")
    client.get("/admin/users").fails(403, "auth.admin_required")
    assert row_of(rt, token_id).last_used_at is None
    client.me().ok()
    assert row_of(rt, token_id).last_used_at is not None


def test_it_is_noted_after_the_answer_and_fails_no_request(app, rt, user, monkeypatch, caplog):
    text, token_id = add_token(rt, user, "files")
    caplog.set_level(logging.WARNING)

    def broken(*_, **__):
        raise DatabaseUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(queries, "note_use", broken)
        program(app, text).me().ok()
    assert "the use of a token could not be noted" in caplog.text
    assert row_of(rt, token_id).last_used_at is None


def test_what_a_program_does_is_recorded_with_its_token(app, rt, user):
    text, token_id = add_token(rt, user, "profile")
    program(app, text).patch("/auth/profile", {"display_name": "Ada"}).ok()
    program(app, text).patch("/auth/preferences", {"language": "de"}).ok()
    for action in ("user_update_profile", "user_update_preferences"):
        [row] = audit_rows(rt, action)
        assert json.loads(row.details)["token_id"] == token_id
    [shown] = (
        bearer_of(rt, app, user).get("/auth/activity?action=user_update_profile").ok()["items"]
    )
    assert shown["details"]["token_id"] == token_id


def test_what_people_do_is_recorded_without(rt, signed_in):
    signed_in.patch("/auth/profile", {"display_name": "Ada"}).ok()
    [row] = audit_rows(rt, "user_update_profile")
    assert json.loads(row.details) == {"display_name": "Ada"}


def test_log_lines_name_the_token_and_no_session(app, rt, user, caplog):
    text, token_id = add_token(rt, user, "files")
    with caplog.at_level(logging.INFO):
        program(app, text).me().ok()
    assert text not in caplog.text
    fields = request_fields.get({})
    assert (fields["user_id"], fields["token_id"]) == (user.id, token_id)
    assert "session_id" not in fields


def test_requests_are_counted_by_scope_and_outcome(app, rt, user, admin):
    clients = {
        "accepted": ("profile:read", program_of(app, user, "profile"), "/teams"),
        "scope_missing": ("profile:read", program_of(app, user, "files"), "/teams"),
        "closed": ("none", program_of(app, user, "files"), "/auth/tokens"),
        "invalid": ("any", program(app, form.new_token()), "/auth/me"),
        "expired": ("any", program_of(app, user, "files", expires_at=rt.clock.now()), "/auth/me"),
        "not_admin": ("admin:read", program_of(app, user, "admin"), "/admin/users"),
    }
    for outcome, (scope, client, path) in clients.items():
        before = requests(scope, outcome)
        client.get(path)
        assert requests(scope, outcome) == before + 1, outcome


def test_no_metric_knows_a_token(app, rt, user, api):
    text, _ = add_token(rt, user, "files")
    program(app, text).me().ok()
    program(app, text).get("/teams").fails(403, "forbidden")
    program(app, text[:-1]).me().fails(401, "auth.token_invalid")
    assert text[4:20] not in api.get("/health/metrics").text


def test_a_page_is_not_told_of_it_in_what_is_wrong(app, rt, user):
    text, _ = add_token(rt, user, "files")
    for path in ("/auth/tokens", "/teams", "/admin/users", "/nowhere"):
        assert text not in program(app, text).get(path, described=False).text
