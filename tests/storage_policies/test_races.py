"""Migrations at the same moment, and one that is killed."""

import itertools
import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
import sqlalchemy as sa

from app.core.access import COMMAND_LINE, Operator, Principal
from app.core.client import Client
from app.core.errors import AppError
from app.crypto.tokens import random_fraction
from app.sessions import service as sessions
from app.storage_policies import groups, migration
from app.storage_policies import queries as storage_queries
from app.storage_policies import service as storage
from app.storage_policies.errors import GroupAssigned
from app.team_admin import service as teams
from app.teams.models import Team
from app.user_admin import service as accounts
from app.users import queries as users_queries
from app.users.models import User
from tests.support.factories import audit_rows, change_user, make_user
from tests.support.live import eventually
from tests.support.races import run_concurrently

pytestmark = pytest.mark.both_databases

PARALLEL = 16
MANY = 20_000


def make_groups(rt, number):
    [first, *_] = storage.list_groups(rt)
    made = [
        groups.create(rt, COMMAND_LINE, f"G{n}", groups.in_order(["Local storage"]))
        for n in range(number - 1)
    ]
    return [first.id, *(one.id for one in made)]


def distribution(rt, model):
    """Return how many rows each group has."""
    statement = sa.select(model.policy_group_id, sa.func.count()).group_by(model.policy_group_id)
    with rt.reading() as connection:
        return dict(connection.execute(statement).all())


def assign_in_turn(rt, model, group_ids):
    with rt.transaction() as session:
        ids = session.scalars(sa.select(model.id).order_by(model.id)).all()
        for row_id, group_id in zip(ids, itertools.cycle(group_ids), strict=False):
            session.execute(
                sa.update(model).where(model.id == row_id).values(policy_group_id=group_id)
            )


def moved(rt, by, source, target):
    return migration.migrate_assignments(rt, by, source, target)


@pytest.fixture
def by(rt, people):
    """One of them, an administrator, as the access check found them."""
    change_user(rt, people[0], role="admin")
    with rt.reading() as connection:
        account = users_queries.find_account(connection, people[0].id)
    principal = Principal(account, "", 0, False, rt.clock.now())
    check = sessions.require_still_admin
    return Operator(principal, Client(), lambda session: check(rt, session, principal))


@pytest.fixture
def people(rt):
    """Thirty accounts and ten teams."""
    users = [make_user(rt) for _ in range(30)]
    with rt.transaction() as session:
        for number, owner in enumerate(users[:10]):
            now = rt.clock.now()
            session.add(
                Team(
                    name=f"Team {number}",
                    description="",
                    created_by=owner.id,
                    storage_used=0,
                    storage_quota=0,
                    policy_group_id=1,
                    created_at=now,
                    updated_at=now,
                    archived_at=now if number % 2 else None,
                )
            )
    return users


def test_of_the_same_migration_at_once_one_moves_everything(rt, by):
    source, target = make_groups(rt, 2)
    done = run_concurrently([lambda: moved(rt, by, source, target) for _ in range(PARALLEL)])
    assert sorted(one.migrated_assignments for one in done) == [0] * (PARALLEL - 1) + [40]
    assert distribution(rt, User) == {target: 30}
    assert distribution(rt, Team) == {target: 10}


def test_crossing_migrations_keep_every_assignment_exactly_once(rt, by):
    """What the audit log tells, replayed in its order, leads to what is stored."""
    ids = make_groups(rt, 3)
    assign_in_turn(rt, User, ids)
    assign_in_turn(rt, Team, ids)
    expected = {model: Counter(distribution(rt, model)) for model in (User, Team)}
    pairs = list(itertools.permutations(ids, 2)) * 3
    done = run_concurrently(
        [
            lambda pair=pair: moved(rt, by, *pair)
            for pair in sorted(pairs, key=lambda _: random_fraction())[:PARALLEL]
        ]
    )
    told = [json.loads(e.details) for e in audit_rows(rt, "admin_migrate_policy_group_users")]
    assert len(told) == len(done) == PARALLEL
    for one in told:
        for model, affected in ((User, one["affected_users"]), (Team, one["affected_teams"])):
            assert affected == expected[model][one["source_group_id"]]
            expected[model][one["target_group_id"]] += affected
            expected[model][one["source_group_id"]] = 0
    assert distribution(rt, User) == dict(+expected[User])
    assert distribution(rt, Team) == dict(+expected[Team])


def test_a_group_is_deleted_or_moved_into_but_not_both(rt, by):
    source, target = make_groups(rt, 2)

    def attempt(action):
        try:
            return action()
        except Exception as error:
            return error

    into, deleted = run_concurrently(
        [
            lambda: attempt(lambda: moved(rt, by, source, target)),
            lambda: attempt(lambda: groups.delete(rt, COMMAND_LINE, str(target))),
        ]
    )
    assert isinstance(into, Exception) != isinstance(deleted, Exception)
    assert distribution(rt, User) == {source if isinstance(into, Exception) else target: 30}


@pytest.fixture
def while_made(rt, monkeypatch):
    """Run something else in the middle of what makes an account or a team; return what it got.

    That is right after the default group was found: what else waits for the end, or must not do
    harm.
    """
    real = storage_queries.find_default_group_id

    def run(make, meanwhile):
        def attempt():
            try:
                return meanwhile()
            except AppError as error:
                return error

        def found(reader):
            group_id = real(reader)
            tasks.append(pool.submit(attempt))
            wait(tasks, timeout=0.5)
            return group_id

        tasks = []
        with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patch:
            patch.setattr(storage_queries, "find_default_group_id", found)
            make()
            [task] = tasks
            return task.result()

    return run


def new_team(rt, owner):
    return lambda: teams.create(rt, COMMAND_LINE, "Crew", owner.username)


def new_account(rt, _):
    return lambda: accounts.create(
        rt, COMMAND_LINE, username="new", email="new@example.com", password="chosen by an operator"
    )


@pytest.mark.parametrize("make", [new_team, new_account])
def test_nobody_new_lands_in_a_group_that_is_just_disabled(rt, user, while_made, make):
    old, other = make_groups(rt, 2)
    move_everybody(rt, other)

    def disable():
        groups.update(rt, COMMAND_LINE, str(other), is_default=True)
        return groups.update(rt, COMMAND_LINE, str(old), is_enabled=False)

    assert isinstance(while_made(make(rt, user), disable), GroupAssigned)


@pytest.mark.parametrize("make", [new_team, new_account])
def test_nobody_new_lands_in_a_group_that_is_just_deleted(rt, user, while_made, make):
    old, other = make_groups(rt, 2)
    move_everybody(rt, other)

    def delete():
        groups.update(rt, COMMAND_LINE, str(other), is_default=True)
        return groups.delete(rt, COMMAND_LINE, str(old))

    assert isinstance(while_made(make(rt, user), delete), GroupAssigned)


def move_everybody(rt, group_id):
    with rt.transaction() as session:
        session.execute(sa.update(User).values(policy_group_id=group_id))


# --- killed in the middle, on the running service ------------------------------------------------


@pytest.fixture
def groups_of_live(live):
    """Two groups, which the next test does not find any more."""
    ids = make_groups(live.rt, 2)
    yield ids
    with live.rt.transaction() as session:
        session.execute(sa.update(User).values(policy_group_id=ids[0]))
    groups.delete(live.rt, COMMAND_LINE, str(ids[1]))


@pytest.fixture
def crowd(live, groups_of_live):
    """An administrator who may migrate, and many accounts to be moved."""
    root = make_user(live.rt, username="root", role="admin")
    columns = [column.name for column in User.__table__.columns if column.name != "id"]
    numbers = sa.text(
        "INSERT INTO users ({names})"
        " WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {many})"
        " SELECT {values} FROM users, n WHERE username_key = 'root'".format(
            names=", ".join(columns),
            many=MANY,
            values=", ".join(
                f"'crowd' || i || '{name}'"
                if name in {"username", "username_key", "email"}
                else name
                for name in columns
            ),
        )
    )
    with live.rt.transaction() as session:
        session.execute(numbers)
    return root


def begin_migration(live, root, pair):
    """Send the request and return; nobody waits for the answer."""
    client = live.client()
    client.login(root).ok()
    source, target = pair
    body = {"target_group_id": target}
    client.send("POST", f"/admin/policy-groups/{source}/migrate-assignments", body)
    return client


def insist_on_all_or_nothing(live, root, pair):
    source, target = pair
    left = distribution(live.rt, User)
    assert left in ({source: MANY + 1}, {target: MANY + 1})
    entries = audit_rows(live.rt, "admin_migrate_policy_group_users")
    assert len(entries) == (1 if target in left else 0)
    live.restart()
    with live.client() as client:
        client.login(root).ok()
        body = {"target_group_id": target}
        answer = client.post(f"/admin/policy-groups/{source}/migrate-assignments", body).ok()
    assert answer["affected_users"] == left.get(source, 0)
    assert distribution(live.rt, User) == {target: MANY + 1}


@pytest.mark.parametrize("milliseconds", [5, 40])
def test_a_killed_migration_changes_nothing_or_all(live, crowd, groups_of_live, milliseconds):
    client = begin_migration(live, crowd, groups_of_live)
    threading.Event().wait(milliseconds / 1000)
    live.kill()
    client.close()
    insist_on_all_or_nothing(live, crowd, groups_of_live)


@pytest.mark.postgres
def test_one_killed_between_its_first_row_and_its_last_changes_nothing(live, crowd, groups_of_live):
    source, _ = groups_of_live
    with live.rt.transaction() as session:
        # The last row of the table: all others are updated when the migration meets it.
        last = session.scalar(sa.select(sa.func.max(User.id)))
        session.execute(sa.select(User.id).where(User.id == last).with_for_update()).all()
        client = begin_migration(live, crowd, groups_of_live)

        def is_stuck():
            with live.rt.reading() as reader:
                waiting = (
                    "SELECT count(*) FROM pg_stat_activity"
                    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
                )
                return reader.scalar(sa.text(waiting))

        eventually(is_stuck, "the migration to wait for the row")
        live.kill()
        client.close()
    eventually(lambda: not is_stuck(), "PostgreSQL to notice")
    assert distribution(live.rt, User) == {source: MANY + 1}
    insist_on_all_or_nothing(live, crowd, groups_of_live)
