"""A dependency is lost under load, and comes back.

The long forms are `python -m deploy.bed --storm 3m` and `--storm 1h`, see docs/operations.md.
"""

import pytest

from deploy.bed.faults import FAULTS, PgBouncerRestarts, StandbyIsPromoted
from deploy.bed.storm import Storm
from tests.support.live import eventually

pytestmark = pytest.mark.soak

# The command allows 5 s; the suite may run on machines that are busy with other work.
RECOVERY_SECONDS = 20.0
# Longer than a worker avoids Redis after a failure, lest that count towards the next fault.
REST_SECONDS = 1.5


def test_no_write_is_lost_or_doubled_and_all_recovers_by_itself(bed):
    report = Storm(bed, recovery=RECOVERY_SECONDS).run(0, hold=1.2, rest=REST_SECONDS)
    assert report.violations == [], report.text()
    assert report.answers["2xx"] > 200, report.text()
    assert report.changes > 50, report.text()
    assert report.events > 50, report.text()
    assert len(report.faults) + len(report.skipped) == len(FAULTS)


def test_each_server_takes_over_from_the_other_and_a_standby_is_there_again(bed):
    was = bed.postgres.folder
    faults = [StandbyIsPromoted, StandbyIsPromoted]
    report = Storm(bed, recovery=RECOVERY_SECONDS, faults=faults).run(0, hold=1, rest=REST_SECONDS)
    assert report.violations == [], report.text()
    assert report.changes > 10, report.text()
    assert bed.postgres.folder == was
    followers = "SELECT string_agg(sync_state, ',') FROM pg_stat_replication"
    assert bed.postgres.cluster.ask(followers) == "sync"


def test_one_instance_goes_through_pgbouncer_and_survives_its_restart(bed):
    if bed.pgbouncer is None:
        pytest.skip("pgbouncer is not installed")
    report = Storm(bed, recovery=RECOVERY_SECONDS, faults=[PgBouncerRestarts]).run(
        0, hold=1, rest=REST_SECONDS
    )
    assert report.violations == [], report.text()
    with bed.instances[1].client() as client:
        client.get("/health/ready").ok()
        bed.pgbouncer.stop()
        try:
            client.get("/health/ready").fails(503, "database.error")
        finally:
            bed.pgbouncer.start()


def test_a_hanging_postgres_is_found_out_and_refuses_nobody_for_long(bed, user):
    with bed.client() as client:
        client.login(user).ok()
        bed.postgres.hang()
        try:
            eventually(lambda: client.me().status == 503, "the hang to be told", 20)
            # By every worker: each finds out for itself. nginx would give up with another code.
            for _ in range(4):
                client.me().fails(503, "database.error")
            client.refresh().fails(503, "database.error")
        finally:
            bed.postgres.resume()
        # Every worker, or the next test would meet one that still refuses.
        eventually(
            lambda: all(client.me().status == 200 for _ in range(20)),
            "the service to be back",
            RECOVERY_SECONDS,
        )
        client.refresh().ok()
