"""Moving all assignments of a policy group beside the bare UPDATE of the same rows."""

from collections.abc import Iterator
from time import perf_counter
from typing import Any

from bench import accounts
from bench.api import Unexpected
from bench.lab import Lab, Scenario, log_progress
from bench.report import Row, Target
from bench.servers import Service

USERS = 1_000_000
PATH = "/api/v1/admin/policy-groups/{}/migrate-assignments"
BARE = "UPDATE users SET policy_group_id = %s, updated_at = now() WHERE policy_group_id = %s"
# A table in the same state before each run, and no checkpoint or autovacuum within one.
TIDY = ("VACUUM FULL users", "ANALYZE users", "CHECKPOINT")


def _assignments(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    with lab.fresh(database) as service:
        users = lab.options.count(USERS)
        log_progress(f"filling {users:,} users")
        accounts.fill(service, range(1, users + 1))
        with accounts.database(service) as (cursor, _):
            cursor.execute("ALTER TABLE users SET (autovacuum_enabled = false)")
            source, target = _groups(cursor)
            cookies = service.api.login(Service.ADMIN)
            cursor.execute("UPDATE users SET policy_group_id = %s", (source,))
            bare, migrated = [], []
            for _ in range(lab.options.repeats):
                bare.append(_bare(cursor, source, target))
                moved, seconds = _migrated(service, cursor, cookies, target, source)
                if moved != users + 1:
                    raise Unexpected(f"{moved} accounts were moved instead of {users + 1}")
                migrated.append(seconds)
    yield Row(
        scenario.name,
        database,
        figures=[
            scenario.ratio("of the bare UPDATE", migrated, bare),
            scenario.figure("bare UPDATE", sorted(bare)[len(bare) // 2], "s"),
            scenario.figure("migration", sorted(migrated)[len(migrated) // 2], "s"),
        ],
    )


def _groups(cursor: Any) -> tuple[int, int]:
    """Return the default group and a second one that is like it."""
    cursor.execute(
        "INSERT INTO storage_policy_groups"
        " (name, description, is_enabled, is_default, created_at, updated_at)"
        " SELECT 'Bench', '', true, false, created_at, updated_at FROM storage_policy_groups"
    )
    cursor.execute("SELECT id FROM storage_policy_groups ORDER BY id")
    [(source,), (target,)] = cursor.fetchall()
    cursor.execute(
        "INSERT INTO storage_policy_group_items"
        " (group_id, policy_id, priority, min_file_size, max_file_size, created_at)"
        " SELECT %s, policy_id, priority, 0, 0, created_at FROM storage_policy_group_items",
        (target,),
    )
    return source, target


def _bare(cursor: Any, source: int, target: int) -> float:
    _tidy(cursor)
    began = perf_counter()
    cursor.execute(BARE, (target, source))
    return perf_counter() - began


def _migrated(
    service: Service, cursor: Any, cookies: dict[str, str], source: int, target: int
) -> tuple[int, float]:
    """Return how many accounts were moved, and the seconds it took."""
    _tidy(cursor)
    began = perf_counter()
    answer = service.api.call(
        "POST", PATH.format(source), {"target_group_id": target}, cookies=cookies
    )
    seconds = perf_counter() - began
    service.api.require(answer, 200)
    return answer.body["data"]["affected_users"], seconds


def _tidy(cursor: Any) -> None:
    for statement in TIDY:
        cursor.execute(statement)


SCENARIOS = (
    Scenario(
        "assignments",
        f"moving {USERS:,} assignments to another policy group beside the bare UPDATE",
        _assignments,
        {"of the bare UPDATE": Target(at_most=1.2)},
        databases=("postgres",),
        is_opt_in=True,
        runs_last=True,
    ),
)
