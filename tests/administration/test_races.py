"""What operators do at the same moment, some of them over HTTP."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from app.audit.models import AuditEntry
from app.core.access import COMMAND_LINE
from app.external_auth.models import Identity
from app.invitations.models import Invitation
from app.mail.models import OutboxMail
from app.passkeys.models import Passkey
from app.store import locks
from app.user_admin import importing as user_import
from app.user_admin import service as accounts
from app.user_admin.errors import AdministratorUndeletable, LastAdministrator
from app.user_admin.schemas import read_imported
from app.users import service as users
from app.users.models import Role, Status, User
from tests.support.external import add_provider, link
from tests.support.factories import (
    account_of,
    add_passkeys,
    audit_rows,
    bearer_of,
    count,
    make_user,
)
from tests.support.races import run_concurrently

pytestmark = pytest.mark.both_databases


def outcome(action, rt, *arguments, **named):
    """Return what it returns or raises."""
    try:
        return action(rt, *arguments, **named)
    except Exception as error:
        return error


@pytest.mark.parametrize("attempt", range(5))
def test_two_administrators_cannot_put_each_other_out(rt, attempt):
    one, other = (make_user(rt, role="admin") for _ in range(2))
    results = run_concurrently(
        [
            lambda: outcome(
                accounts.update, rt, COMMAND_LINE, one.username, status=Status.DISABLED
            ),
            lambda: outcome(accounts.update, rt, COMMAND_LINE, other.username, role=Role.USER),
        ]
    )
    assert sum(isinstance(result, LastAdministrator) for result in results) == 1


@pytest.mark.parametrize("attempt", range(5))
def test_an_account_is_promoted_or_deleted_but_not_both(rt, admin, attempt):
    user = make_user(rt)
    promoted, deleted = run_concurrently(
        [
            lambda: outcome(accounts.update, rt, COMMAND_LINE, user.username, role=Role.ADMIN),
            lambda: outcome(accounts.delete, rt, COMMAND_LINE, user.username),
        ]
    )
    if isinstance(deleted, AdministratorUndeletable):
        with rt.reading() as connection:
            assert users.get(connection, user.id).role == Role.ADMIN
    else:
        assert isinstance(promoted, users.UserNotFound)


# --- over HTTP ---------------------------------------------------------------------------------

INVITED = "guest@example.com"


def path(user, *rest):
    return "/".join([f"/admin/users/{user.id}", *map(str, rest)])


def changes(rt, user):
    """What an administrator may do to an account, by name."""
    [passkey] = add_passkeys(rt, user, 1)
    linked = link(rt, user, add_provider(rt))
    new = {"username": "bob", "email": "bob@example.com", "password": "a password of his"}
    return {
        "create": ("POST", "/admin/users", new),
        "change": ("PATCH", path(user), {"status": "disabled", "role": "admin"}),
        "address": ("PUT", path(user, "email"), {"email": "new@example.com"}),
        "password": ("PUT", path(user, "password"), {"password": "a planted password"}),
        "reset": ("POST", path(user, "password-reset-mail"), None),
        "mfa": ("DELETE", path(user, "mfa"), None),
        "sessions": ("POST", path(user, "sessions/revoke"), None),
        "passkey": ("DELETE", path(user, "passkeys", passkey), None),
        "link": ("DELETE", path(user, "external-links", linked), None),
        "unlock": ("POST", path(user, "unlock"), None),
        "many": ("POST", "/admin/users/bulk", {"ids": [user.id], "action": "delete"}),
        "delete": ("DELETE", path(user), None),
        "invite": ("POST", "/admin/users/invitations", {"email": INVITED}),
    }


NAMES = ["create", "change", "address", "password", "reset", "mfa", "sessions", "passkey", "link"]
NAMES += ["unlock", "many", "delete", "invite"]


@pytest.fixture
def victim(rt):
    return make_user(rt)


@pytest.fixture
def boss(app, rt, admin):
    return bearer_of(rt, app, admin)


@pytest.fixture
def once_authenticated(rt):
    """Set when the access check of a request has read its session."""
    done = Event()

    def seen(_connection, _cursor, statement, *_):
        if "FROM login_sessions" in statement:
            done.set()

    event.listen(rt.database.engine, "after_cursor_execute", seen)
    yield done
    event.remove(rt.database.engine, "after_cursor_execute", seen)


@pytest.mark.parametrize("name", NAMES)
def test_a_role_taken_away_while_a_change_waits_changes_nothing(
    rt, boss, admin, victim, name, once_authenticated
):
    make_user(rt, role="admin")
    method, where, body = changes(rt, victim)[name]
    tables = (User, Passkey, Identity, Invitation, OutboxMail, AuditEntry)
    before = account_of(rt, victim), [count(rt, table) for table in tables]
    with ThreadPoolExecutor(1) as pool:
        with rt.transaction() as session:
            locks.hold(session, locks.SETUP)
            users.lock_address(session, INVITED)
            users.lock_named(session, victim.id)
            session.execute(sa.update(User).where(User.id == admin.id).values(role="user"))
            waiting = pool.submit(boss.call, method, where, body)
            assert once_authenticated.wait(10)
        answer = waiting.result()
    answer.fails(403, "auth.admin_required")
    assert (account_of(rt, victim), [count(rt, table) for table in tables]) == before


@pytest.mark.parametrize("attempt", range(3))
def test_two_who_demote_each_other_leave_one(app, rt, admin, boss, attempt):
    other = make_user(rt, role="admin")
    clients = {admin: bearer_of(rt, app, other), other: boss}
    answers = run_concurrently(
        [
            lambda client=client, target=target: client.patch(path(target), {"role": "user"})
            for target, client in clients.items()
        ]
    )
    assert sorted(answer.status for answer in answers)[0] == 200
    assert sorted(answer.status for answer in answers)[1] in {403, 409}
    assert count(rt, User, User.role == "admin") == 1


def test_of_parallel_creations_and_deletions_one_succeeds(app, rt, admin, boss, victim):
    body = {"username": "bob", "email": "bob@example.com", "password": "a password of his"}
    made = run_concurrently([lambda: boss.post("/admin/users", body)] * 4)
    assert sorted(answer.status for answer in made) == [201, 400, 400, 400]
    assert {answer.code[:5] for answer in made if answer.status == 400} == {"auth."}
    gone = run_concurrently([lambda: boss.delete(path(victim))] * 4)
    assert sorted(answer.status for answer in gone) == [200, 404, 404, 404]
    assert len(audit_rows(rt, "admin_force_delete_user")) == 1


def test_the_same_change_at_once_is_one_entry(rt, boss, victim):
    same = [lambda: boss.patch(path(victim), {"status": "disabled"})] * 4
    assert {answer.status for answer in run_concurrently(same)} == {200}
    assert len(audit_rows(rt, "admin_update_user")) == 1
    for where in ("sessions/revoke", "unlock"):
        answers = run_concurrently([lambda where=where: boss.post(path(victim, where))] * 4)
        assert {answer.status for answer in answers} == {200}


def test_of_parallel_removals_one_way_in_stays(rt, boss):
    user = make_user(rt, password=None)
    ids = add_passkeys(rt, user, 1)
    linked = link(rt, user, add_provider(rt))
    answers = run_concurrently(
        [
            lambda: boss.delete(path(user, "passkeys", ids[0])),
            lambda: boss.delete(path(user, "external-links", linked)),
        ]
    )
    assert sorted(answer.status for answer in answers) == [200, 409]
    assert count(rt, Passkey) + count(rt, Identity) == 1


def test_of_parallel_invitations_one_is_open_and_sent_anew_once(rt, boss, clock):
    body = {"email": INVITED}
    made = run_concurrently([lambda: boss.post("/admin/users/invitations", body)] * 4)
    assert {answer.status for answer in made} == {201}
    assert count(rt, Invitation, Invitation.status == "pending") == 1
    clock.advance(seconds=60)
    again = f"/admin/users/invitations/{made[0].data['id']}/resend"
    answers = run_concurrently([lambda: boss.post(again)] * 4)
    assert sorted(answer.status for answer in answers) == [201, 429, 429, 429]
    assert count(rt, Invitation, Invitation.status == "pending") == 1


def test_two_imports_at_the_same_moment_create_each_account_once(rt, admin):
    lines = [
        (n, json.dumps({"name": f"user-{n}", "address": f"u{n}@example.com"}).encode())
        for n in range(1, 20)
    ]

    def run(order):
        return user_import.import_accounts(rt, COMMAND_LINE, order, read_imported)

    reports = run_concurrently([lambda o=o: run(o) for o in (lines, lines[::-1], lines)])
    assert sum(report.created for report in reports) == 19
    assert count(rt, User) == 20
    assert sum(report.existing + len(report.refused) for report in reports) == 2 * 19
