"""The bed itself: servers, two instances and the proxy, started and stopped together."""

import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from app.core.runtime import Runtime
from deploy.bed.database import Pair, PgBouncer, find_pgbouncer
from deploy.bed.proxy import Proxy
from tests.support import live, servers
from tests.support.authenticator import Authenticator
from tests.support.challenge import give_totp
from tests.support.factories import KnownUser, make_user
from tests.support.live import LiveService
from tests.support.sentinel import WatchedValkey

INSTANCES = ("one", "two")
DISK_BYTES = 64 * 1024 * 1024
DATABASE_DISK_BYTES = 512 * 1024 * 1024
AVATAR_PATH = "/internal/avatars"


class Instance(LiveService):
    """One instance, whose clock can be set."""

    gunicorn_config = "deploy/bed/gunicorn_conf.py"

    def quit_now(self) -> None:
        """Tell it to quit at once; neither it nor this call waits for requests in flight."""
        self._process.send_signal(signal.SIGQUIT)

    def replace(self) -> None:
        """Restart it as an upgrade would: requests in flight are finished first."""
        self._process.terminate()
        self.wait_for_end()
        self.restart()


class Bed:
    """A complete installation; a context manager.

    It starts on an empty database, which both instances migrate concurrently. Settings of the
    instances are keywords as for LiveService: WORKERS="2".
    """

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        # Where the instances write, avatars and logs included; small, so that it can be filled.
        self.disk = folder / "disk"
        self.avatars = self.disk / "avatars"
        self._settings = settings
        self._clock = folder / "clock"
        # In monotonic seconds; None while the clock is wrong.
        self.clock_is_right_since: float | None = None
        # None if it is not installed.
        self.pgbouncer: PgBouncer | None = None
        self.stack = ExitStack()

    def __enter__(self) -> "Bed":
        try:
            self._start()
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for instance in self.instances:
            instance.quit_now()  # all at once; the stack then waits for each
        self.stack.close()

    def _start(self) -> None:
        self.set_clock(0.0)
        database_disks = self.folder / "pg1", self.folder / "pg2"
        self.disks_are_small = all(
            [
                self._own_disk(self.disk, DISK_BYTES),
                *(self._own_disk(folder, DATABASE_DISK_BYTES) for folder in database_disks),
            ]
        )
        self.avatars.mkdir(mode=0o750)
        enter = self.stack.enter_context
        self.database = enter(Pair(*database_disks))
        (self.folder / "valkey").mkdir()
        self.valkey = enter(WatchedValkey(self.folder / "valkey", persist=True))
        self.prepare_exit_codes = self.prepare_concurrently(self.database.url)
        if any(self.prepare_exit_codes):
            raise servers.NotStarted((self.folder / "prepare.log").read_text())
        # One instance knows both servers; the other goes through PgBouncer, if it is there.
        urls = [self.database.url, self.database.url]
        if (program := find_pgbouncer()) is not None:
            self.pgbouncer = PgBouncer(program, self.folder / "pgbouncer")
            self.pgbouncer.lead_to(self.postgres)
            urls[1] = enter(self.pgbouncer).url
        self.instances = [self._instance(*each) for each in zip(INSTANCES, urls, strict=True)]
        self.proxy = Proxy(
            self.folder / "proxy", [instance.port for instance in self.instances], self.avatars
        )
        self.proxy.start()
        self.stack.callback(self.proxy.stop)
        for instance in self.instances:
            instance.wait()

    def _own_disk(self, folder: Path, size: int) -> bool:
        folder.mkdir()
        is_small = mount_small_disk(folder, size)
        if is_small:
            self.stack.callback(subprocess.run, ["umount", "-l", str(folder)], check=False)
        return is_small

    def _environment(self) -> dict[str, str]:
        return {
            # Clients try wrong codes all the time; throttling them is not what the bed tests.
            "LOGIN_FAILURES": "1000000/300",
            "TRUSTED_PROXIES": "127.0.0.1",
            "AVATAR_DIR": str(self.avatars),
            "AVATAR_ACCEL": AVATAR_PATH,
            # The mails of an hour would not fit on the small disk.
            "MAIL_DIR": str(self.folder / "mail"),
            **self._settings,
        }

    def _instance(self, name: str, database_url: str) -> Instance:
        folder = self.disk / name
        folder.mkdir()
        os.environ["BED_CLOCK"] = str(self._clock)  # LiveService passes the environment on
        instance = Instance(folder, database_url, self.valkey.url, **self._environment())
        self.stack.callback(instance.stop)
        return instance

    def prepare_concurrently(self, database_url: str) -> list[int]:
        """Migrate a database from one process per instance, concurrently; return the exit codes."""
        environ = {k: v for k, v in os.environ.items() if not k.startswith("GATEHOUSE_")}
        environ |= {
            "GATEHOUSE_DATABASE_URL": database_url,
            "GATEHOUSE_REDIS_URL": self.valkey.url,
            "GATEHOUSE_STORAGE_BOOTSTRAP": "local",
            "GATEHOUSE_SECRET_KEYS": servers.secret_keys(),
        }
        with (self.folder / "prepare.log").open("ab") as log:
            processes = [
                subprocess.Popen(
                    [sys.executable, "-m", "flask", "--app", "wsgi", "prepare"],
                    cwd=servers.ROOT,
                    env=environ | {"GATEHOUSE_INSTANCE": str(self.folder / f"prepare-{name}")},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
                for name in INSTANCES
            ]
            return [process.wait(120) for process in processes]

    # --- for tests and faults --------------------------------------------------------------------

    @property
    def postgres(self) -> servers.PrivatePostgres:
        """The server that takes writes."""
        return self.database.primary

    @property
    def rt(self) -> Runtime:
        """Access to the bed's database and Redis from this process."""
        return self.instances[0].rt

    def set_clock(self, seconds: float) -> None:
        """Set the clock of both instances ahead by `seconds`, or back if negative."""
        self.clock_is_right_since = None
        with self._clock.open("r+b" if self._clock.exists() else "wb") as file:
            file.write(struct.pack("d", seconds))
        if not seconds:
            self.clock_is_right_since = time.monotonic()

    def fill_database_disk(self) -> bool:
        """Shrink the primary's disk to what it holds now.

        False if it has grown in the meantime, so that the size no longer suffices: call again.
        """
        disk = os.statvfs(self.postgres.folder)
        return resize(self.postgres.folder, (disk.f_blocks - disk.f_bfree) * disk.f_frsize)

    def empty_database_disk(self) -> None:
        """Restore the primary's disk to its full size."""
        resize(self.postgres.folder, DATABASE_DISK_BYTES)

    def client(self) -> live.LiveClient:
        """Return a client of the proxy."""
        return self.proxy.client()

    def make_user(self, role: str = "user") -> KnownUser:
        """Make an account."""
        return make_user(self.rt, role=role)

    def give_totp(self, user: KnownUser) -> Authenticator:
        """Give an account an authenticator app."""
        return give_totp(self.rt, user).app

    def reset(self) -> None:
        """Remove every account, session, setting and counter; the processes stay."""
        for instance in self.instances:
            instance.wait()
        self.instances[0].reset()

    def roll(self) -> None:
        """Restart the instances one after the other, as in a rolling upgrade."""
        for instance in self.instances:
            instance.replace()

    def logs(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the text of every instance's log."""
        for instance in self.instances:
            yield instance.folder.name, instance.log.read_text(errors="replace")


@contextmanager
def running(**settings: str) -> Iterator[Bed]:
    """Yield a bed in a folder of its own, which is removed afterwards."""
    with servers.short_folder() as folder:
        # PostgreSQL runs as another user, who must be able to traverse it.
        folder.chmod(0o711)
        with Bed(folder, **settings) as bed:
            yield bed


def mount_small_disk(folder: Path, size: int) -> bool:
    """Mount a tmpfs of `size` bytes at `folder`; return whether this user could."""
    if os.geteuid() != 0:
        return False
    return _mount("-t", "tmpfs", "-o", f"size={size},mode=711", "tmpfs", str(folder))


def resize(folder: Path, size: int) -> bool:
    """Resize such a file system; return False, unchanged, if its contents do not fit."""
    return _mount("-o", f"remount,size={size}", str(folder))


def _mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


def describe(bed: Bed) -> dict[str, Any]:
    """Return the addresses and paths of everything in the bed."""
    return {
        "nginx": bed.proxy.url,
        "certificate": str(bed.proxy.certificate),
        "instances": [f"http://127.0.0.1:{instance.port}" for instance in bed.instances],
        "database": bed.database.url,
        "pgbouncer": bed.pgbouncer.url if bed.pgbouncer else None,
        "valkey": bed.valkey.url,
        "logs": [str(instance.log) for instance in bed.instances] + [str(bed.proxy.folder)],
    }
