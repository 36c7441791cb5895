"""The faults of a run, and the failures that clients may see because of them."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import psycopg2

from deploy.bed.actors.codes import MailedCodeUser, MfaUser
from deploy.bed.bed import Bed
from deploy.bed.ledger import Failure
from tests.support.sentinel import IMPATIENT_MS, PATIENT_MS

# The answers when a dependency is lost; nginx gives the first.
DOCUMENTED = frozenset({(503, "internal_server_error"), (503, "database.error")})
# The clients that cannot do without Valkey, which keeps their sign-ins.
NEEDS_VALKEY = {kind.__name__ for kind in (MfaUser, MailedCodeUser)}
NOTHING: frozenset[tuple[int, str]] = frozenset()
# An avatar folder that cannot be written.
DISK_ANSWERS = DOCUMENTED | {(500, "storage.unknown")}


class Fault:
    """Begins, holds for a while and ends; `allowed` are the failures that clients may see."""

    name: str
    allowed = DOCUMENTED
    # Needs the bed's own small disks, which only root can mount.
    fills_a_disk = False
    # Some client must see a failure or a long wait; otherwise the fault was ineffective.
    must_be_noticed = False

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        # Whether the fault could be brought about.
        self.was_effective = True

    @classmethod
    def obstacle(cls, bed: Bed) -> str | None:
        """Return why the fault cannot be brought about on this machine; None if it can."""
        return "needs root" if cls.fills_a_disk and not bed.disks_are_small else None

    def begin(self) -> None:
        """Bring the fault about."""

    def hold(self, seconds: float) -> None:
        """Wait while it lasts."""
        time.sleep(seconds)

    def end(self) -> None:
        """Undo it, even if it began only in part; the service must recover by itself."""

    def explains(self, failure: Failure) -> bool:
        """Return whether this fault accounts for a client's failure."""
        return (failure.status, failure.code) in self.allowed


class Calm(Fault):
    """Nothing goes wrong, and no client may see a failure."""

    name = "calm"
    allowed = NOTHING


class PostgresRestarts(Fault):
    """It stops and starts again; every connection is cut."""

    name = "PostgreSQL restarts"
    must_be_noticed = True

    def begin(self) -> None:
        self.bed.postgres.stop()

    def end(self) -> None:
        self.bed.postgres.start()


class PostgresCrashes(PostgresRestarts):
    """It exits without a last write, and recovers from its WAL when started again."""

    name = "PostgreSQL crashes"

    def begin(self) -> None:
        self.bed.postgres.crash()


class PostgresHangs(Fault):
    """It accepts connections but never answers."""

    name = "PostgreSQL hangs"
    must_be_noticed = True

    def begin(self) -> None:
        self.bed.postgres.hang()

    def end(self) -> None:
        self.bed.postgres.resume()


class PostgresIsFull(Fault):
    """Every connection slot is taken by another client."""

    name = "PostgreSQL has no connection left"
    must_be_noticed = True

    def __init__(self, bed: Bed) -> None:
        super().__init__(bed)
        self._taken: list[Any] = []

    def begin(self) -> None:
        url = self.bed.postgres.cluster.url("postgres").replace("+psycopg2", "")
        self._taken.append(psycopg2.connect(url))
        self._taken[0].autocommit = True
        with suppress(psycopg2.OperationalError):
            while True:
                self._taken.append(psycopg2.connect(url))
        # Cut the instances' connections, and take their slots before they reconnect.
        ours = "application_name = 'gatehouse'"
        cursor = self._taken[0].cursor()
        for _ in range(5):
            cursor.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}")
            with suppress(psycopg2.OperationalError):
                while True:
                    self._taken.append(psycopg2.connect(url))

    def end(self) -> None:
        for connection in self._taken:
            connection.close()


class StandbyIsPromoted(Fault):
    """The primary crashes for good, and its standby takes over; later there is a new standby."""

    name = "PostgreSQL's standby is promoted"
    must_be_noticed = True

    def begin(self) -> None:
        self.bed.database.fail_over()
        if self.bed.pgbouncer is not None:
            self.bed.pgbouncer.lead_to(self.bed.postgres)
            self.bed.pgbouncer.reload()

    def end(self) -> None:
        self.bed.database.renew_standby()


class PgBouncerRestarts(Fault):
    """It stops and starts again; every connection through it is cut."""

    name = "PgBouncer restarts"
    must_be_noticed = True

    @classmethod
    def obstacle(cls, bed: Bed) -> str | None:
        return "pgbouncer is not installed" if bed.pgbouncer is None else None

    def begin(self) -> None:
        assert self.bed.pgbouncer is not None
        self.bed.pgbouncer.stop()

    def end(self) -> None:
        assert self.bed.pgbouncer is not None
        self.bed.pgbouncer.start()


class ValkeyFault(Fault):
    """Only sign-ins with codes, kept in Valkey, may fail: all else needs the database."""

    must_be_noticed = True

    def explains(self, failure: Failure) -> bool:
        return super().explains(failure) and failure.actor in NEEDS_VALKEY


class ValkeyRestarts(ValkeyFault):
    """It stops, and starts again with its persisted data."""

    name = "Valkey restarts"

    def begin(self) -> None:
        self.bed.valkey.stop()

    def end(self) -> None:
        self.bed.valkey.start()


class ValkeyFailsOver(ValkeyFault):
    """Its primary dies and Sentinel promotes the replica, which may lack the last moments."""

    name = "Valkey's primary dies"
    # A login that was begun in those moments is unknown.
    allowed = DOCUMENTED | {(401, "auth.mfa_flow_invalid")}

    def begin(self) -> None:
        self._dead = self.bed.valkey.primary
        self.bed.valkey.fail_over_after(IMPATIENT_MS)
        self._dead.kill()

    def end(self) -> None:
        self.bed.valkey.wait_for_failover(self._dead)
        self.bed.valkey.fail_over_after(PATIENT_MS)
        self._dead.start()
        self.bed.valkey.wait_for_replica()


class ValkeyHangs(ValkeyFault):
    """It accepts connections but never answers."""

    name = "Valkey hangs"

    def begin(self) -> None:
        self.bed.valkey.hang()

    def end(self) -> None:
        self.bed.valkey.resume()


class ValkeyIsFull(ValkeyFault):
    """It accepts no further connection, and existing ones are cut."""

    name = "Valkey has no connection left"

    def begin(self) -> None:
        self._redis = self.bed.valkey.primary.client(single_connection_client=True)
        limits = cast("dict[str, str]", self._redis.config_get("maxclients"))
        self._usual = limits["maxclients"]
        self._redis.config_set("maxclients", 1)
        for kind in ("normal", "pubsub"):
            self._redis.client_kill_filter(_type=kind, skipme=True)

    def end(self) -> None:
        self._redis.config_set("maxclients", self._usual)
        self._redis.close()


class DiskIsFull(Fault):
    """Nothing more can be written: no avatar, no log, no metrics file."""

    name = "the disk is full"
    allowed = DISK_ANSWERS
    fills_a_disk = True

    @property
    def _filler(self) -> Path:
        return self.bed.disk / "filler"

    def begin(self) -> None:
        self._fill()

    def _fill(self) -> None:
        with self._filler.open("ab", buffering=0) as stream, suppress(OSError):
            while True:
                stream.write(b"x" * 65_536)

    def hold(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.05)
            self._fill()  # take the room that replaced avatars have freed

    def end(self) -> None:
        self._filler.unlink(missing_ok=True)


class PostgresDiskIsFull(Fault):
    """It can overwrite the space it has, but not allocate more."""

    name = "PostgreSQL's disk is full"
    fills_a_disk = True

    def begin(self) -> None:
        self.was_effective = self.bed.fill_database_disk()

    def hold(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.05)
            self.was_effective |= self.bed.fill_database_disk()  # take the room it has freed

    def end(self) -> None:
        self.bed.empty_database_disk()
        # PostgreSQL stops when there is no room for its WAL; the operator has to start it again.
        self.bed.postgres.revive()


class ClockIsSetBack(Fault):
    """The clocks of both instances are an hour slow for a while."""

    name = "the clock is set back an hour"
    allowed = NOTHING

    def begin(self) -> None:
        self.bed.set_clock(-3600.0)

    def end(self) -> None:
        self.bed.set_clock(0.0)


class WorkersAreKilled(Fault):
    """Every second one worker of the first instance is killed, in the middle of its work."""

    name = "a worker is killed every second"
    # It may have sent part of an answer.
    allowed = DOCUMENTED | {(599, "cut off")}

    def hold(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for pid in self.bed.instances[0].workers()[:1]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(min(1.0, max(0.1, until - time.monotonic())))


class InstancesAreReplaced(Fault):
    """Both are restarted, one after the other, as in a rolling upgrade: no request fails."""

    name = "both instances are restarted, one after the other"
    allowed = NOTHING

    def hold(self, seconds: float) -> None:
        """Replace the instances; `seconds` is ignored, since this takes as long as it takes."""
        del seconds
        self.bed.roll()


FAULTS: tuple[type[Fault], ...] = (
    InstancesAreReplaced,
    PostgresRestarts,
    PostgresCrashes,
    PostgresHangs,
    PostgresIsFull,
    PostgresDiskIsFull,
    StandbyIsPromoted,
    PgBouncerRestarts,
    ValkeyRestarts,
    ValkeyFailsOver,
    ValkeyHangs,
    ValkeyIsFull,
    DiskIsFull,
    ClockIsSetBack,
    WorkersAreKilled,
)
