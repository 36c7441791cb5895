"""What access tokens open: every route and every scope, without knowing what it does.

A route that is not listed here must be closed to all of them.
"""

import inspect

import pytest

from app.access_tokens import service as tokens
from app.core.access import ADMIN_SCOPES, ConfirmationRequired, Scope
from app.core.config import Bucket
from app.web.operation import operation_of
from tests.contract.routes import routes
from tests.support.api import SAFE_METHODS
from tests.support.factories import change_user, configure, make_user
from tests.support.openapi import description
from tests.support.programs import program_of

ANY = frozenset(Scope)
READ = frozenset({Scope.PROFILE_READ, Scope.PROFILE})
WRITE = frozenset({Scope.PROFILE})
ADMIN = "/api/v1/admin"
# Of everything that is not below /admin.
OPEN = {
    ("GET", "/api/v1/auth/me"): ANY,
    ("GET", "/api/v1/teams"): READ,
    ("GET", "/api/v1/auth/activity"): READ,
    ("GET", "/api/v1/auth/profile/avatar/<picture_size:size>"): READ,
    ("PATCH", "/api/v1/auth/profile"): WRITE,
    ("PATCH", "/api/v1/auth/preferences"): WRITE,
    ("POST", "/api/v1/auth/profile/avatar/upload"): WRITE,
    ("PUT", "/api/v1/auth/profile/avatar/source"): WRITE,
    ("GET", "/api/v1/auth/events/storage"): frozenset({Scope.EVENTS}),
}
# What an administrator's program changes; it reads whatever is below /admin.
CHANGES = {
    ("POST", f"{ADMIN}/mail/outbox/<id>/retry"),
    ("POST", f"{ADMIN}/mail/outbox/flush"),
    ("POST", f"{ADMIN}/mail/templates/<template>/preview"),
    ("POST", f"{ADMIN}/maintenance/cleanup"),
    ("POST", f"{ADMIN}/policies"),
    ("POST", f"{ADMIN}/policy-groups"),
    ("PATCH", f"{ADMIN}/policy-groups/<row:id>"),
    ("DELETE", f"{ADMIN}/policy-groups/<row:id>"),
    ("POST", f"{ADMIN}/policy-groups/<row:id>/migrate-assignments"),
    ("POST", f"{ADMIN}/storage/bootstrap"),
    ("POST", f"{ADMIN}/teams"),
    ("PATCH", f"{ADMIN}/teams/<row:id>"),
    ("DELETE", f"{ADMIN}/teams/<row:id>"),
    ("POST", f"{ADMIN}/teams/<row:id>/members"),
    ("PATCH", f"{ADMIN}/teams/<row:id>/members/<row:user_id>"),
    ("DELETE", f"{ADMIN}/teams/<row:id>/members/<row:user_id>"),
    ("POST", f"{ADMIN}/teams/<row:id>/restore"),
    ("POST", f"{ADMIN}/users"),
    ("PATCH", f"{ADMIN}/users/<row:id>"),
    ("POST", f"{ADMIN}/users/<row:id>/password-reset-mail"),
    ("DELETE", f"{ADMIN}/users/<row:id>/sessions/<session_id>"),
    ("POST", f"{ADMIN}/users/<row:id>/sessions/revoke"),
    ("POST", f"{ADMIN}/users/<row:id>/unlock"),
    ("POST", f"{ADMIN}/users/bulk"),
    ("POST", f"{ADMIN}/users/invitations"),
    ("POST", f"{ADMIN}/users/invitations/<row:id>/resend"),
    ("POST", f"{ADMIN}/users/invitations/<row:id>/revoke"),
}
# Where people are asked to confirm who they are and programs are not: what is dangerous is a part
# of what the first does, and the others are recorded.
UNCONFIRMED = {
    ("POST", f"{ADMIN}/users"),
    ("GET", f"{ADMIN}/audit-logs/export"),
    ("GET", f"{ADMIN}/teams/<row:id>/audit-logs/export"),
}
CLOSED_FOR_GOOD = (f"{ADMIN}/config", f"{ADMIN}/external-auth", f"{ADMIN}/keys")
STREAM = ("GET", "/api/v1/auth/events/storage")


def opening(route):
    """Return the scopes each of which opens a route, as it is written here."""
    if route.name in OPEN:
        return OPEN[route.name]
    if not route.rule.startswith(f"{ADMIN}/"):
        return frozenset()
    if route.method in SAFE_METHODS:
        return ADMIN_SCOPES
    return frozenset({Scope.ADMIN}) if route.name in CHANGES else frozenset()


def guarded(app):
    """Yield what asks for a session, with how it describes itself."""
    for route in routes(app):
        operation = operation_of(app.view_functions[route.endpoint])
        if operation.access in {"session", "admin"}:
            yield route, operation


@pytest.fixture(autouse=True)
def unlimited(monkeypatch):
    """Programs ask for every route here, at the same moment."""
    monkeypatch.setattr(tokens, "REQUESTS", Bucket(per_second=1e6, burst=10**6))


@pytest.fixture
def programs(app, rt):
    """A program for each scope, all of one administrator."""
    boss = make_user(rt, role="admin")
    configure(rt, audit_log_enabled=False)
    return {scope: program_of(app, boss, scope) for scope in Scope}


def asked(client, route, method=None):
    """Ask for something that is not there, with a body that has nothing in it."""
    path = route.path(id="4711", size="4711")
    return client.call(method or route.method, path, {"": 1}, described=False)


def test_each_scope_opens_what_it_names_and_nothing_else(app, programs):
    """A closed route says so, whatever is asked of it; of another the missing scope is named."""
    for route, _ in guarded(app):
        scopes = opening(route)
        needed = next((scope for scope in Scope if scope in scopes), None)
        refusal = f"This needs a token with the scope {needed}."
        for scope, client in programs.items():
            if scope in scopes:
                is_endless = route.name == STREAM
                answer = asked(client, route, "HEAD" if is_endless else None)
                assert answer.status not in {401, 403, 412, 429}, (scope, answer)
            else:
                message = asked(client, route).fails(403, "forbidden").json["msg"]
                assert message == (refusal if needed else "A token cannot do this.")


def test_all_scopes_together_open_no_closed_route_and_are_never_asked_to_confirm(app, rt):
    configure(rt, auth_confirmation_max_age_secs=60)
    everything = program_of(app, make_user(rt, role="admin"), *Scope)
    for route, operation in guarded(app):
        if operation.opened_by is None:
            answer = asked(everything, route).fails(403, "forbidden")
            assert answer.json["msg"] == "A token cannot do this."
        elif route.name != STREAM:
            assert asked(everything, route).status not in {401, 403, 412}


def test_without_the_role_the_scopes_of_administration_sleep(app, rt):
    boss = make_user(rt, role="admin")
    clients = [program_of(app, boss, scope) for scope in ADMIN_SCOPES]
    change_user(rt, boss, role="user")
    for route, operation in guarded(app):
        for client in clients:
            if operation.access == "admin":
                answer = asked(client, route)
                assert answer.status == 403
                if opening(route) == ADMIN_SCOPES:
                    answer.fails(403, "auth.admin_required")
    change_user(rt, boss, role="admin")
    for client in clients:
        client.get("/admin/users").ok()


def test_what_is_listed_here_exists(app):
    there = {route.name for route, _ in guarded(app)}
    assert {*OPEN, *CHANGES, *UNCONFIRMED} - there == set()


def test_whoever_only_reads_changes_nothing(app):
    for route, operation in guarded(app):
        if route.method not in SAFE_METHODS:
            assert not str(operation.opened_by).endswith(":read"), route.name
            if route.rule.startswith(CLOSED_FOR_GOOD):
                assert operation.opened_by is None, route.name


def test_what_asks_for_a_confirmation_is_closed_but_for_three(app):
    asks = {
        route.name
        for route, operation in guarded(app)
        if operation.opened_by and ConfirmationRequired in operation.errors
    }
    # These two ask for it only where a program is refused anyway.
    partly = {("PATCH", f"{ADMIN}/users/<row:id>"), ("POST", f"{ADMIN}/users/bulk")}
    assert asks == UNCONFIRMED | partly


def test_a_view_takes_programs_only_where_its_route_is_open_to_them(app):
    for route, operation in guarded(app):
        view = inspect.unwrap(app.view_functions[route.endpoint])
        taken = inspect.get_annotations(view).get("principal")
        if taken is not None:
            is_open = "Program" in str(taken)
            assert is_open == (operation.opened_by is not None), route.name


def test_the_description_says_of_each_route_which_scope_opens_it(app):
    for route, operation in guarded(app):
        described = operation_in(app, route)
        ways = [way["accessToken"] for way in described["security"] if "accessToken" in way]
        scopes = opening(route)
        if not scopes:
            assert ways == []
            assert "Closed to access tokens." in described["description"]
        elif scopes == ANY:
            assert ways == [[]]
            assert "Also for every access token." in described["description"]
        else:
            assert ways == [[operation.opened_by.value]]
            assert f"the scope `{operation.opened_by}`" in described["description"]


def operation_in(app, route):
    return description(app).document["paths"][route.template][route.method.lower()]
