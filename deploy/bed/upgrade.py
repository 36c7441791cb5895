"""An upgrade from an older version under load, by docs/operations.md, the way back, and again."""

import hashlib
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from flask import Flask

from app.core.clock import Clock
from app.core.config import default_redis_url
from app.core.runtime import Runtime
from app.factory import create_app
from app.serving.parent_death import before_exec
from app.web import runtime as web_runtime
from deploy.bed.actors.actor import Actor
from deploy.bed.actors.cast import LATE_SECONDS
from deploy.bed.actors.codes import MfaUser
from deploy.bed.actors.events import Listener, Publisher
from deploy.bed.actors.pages import FILES, Visitor
from deploy.bed.actors.people import Administrator, AvatarUser, Registrar, RegularUser
from deploy.bed.bed import INSTANCES, Bed
from deploy.bed.database import SETTINGS
from deploy.bed.faults import DOCUMENTED, NOTHING, Fault
from deploy.bed.ledger import Ledger
from deploy.bed.proxy import Proxy
from deploy.bed.storm import Report, Storm
from tests.support import servers
from tests.support.authenticator import Authenticator
from tests.support.factories import PASSWORD, KnownUser
from tests.support.live import eventually, free_port

STOP_SECONDS = 30
RECOVERY_SECONDS = 20.0
REST_SECONDS = 6.0
# Slower than a storm: who asks without a pause while nothing answers slows the start down.
PACE_SECONDS = 0.2
# Pages of every version that has pages.
DOCUMENTS = ("/login", "/register", "/settings/security", "/admin/users")
# How long a step may take that leaves nothing to answer, or to deliver events.
STEP_SECONDS = 120.0


@dataclass(frozen=True)
class Version:
    """The code of one version, and the Python that has its requirements."""

    folder: Path
    python: Path

    @classmethod
    def present(cls) -> "Version":
        """Return the version that this file belongs to."""
        return cls(servers.ROOT, Path(sys.executable))

    @classmethod
    def checked_out(cls, revision: str, folder: Path, venvs: Path) -> "Version":
        """Return an older version, with an environment in `venvs`, which is made if missing.

        One that needs the same packages has this environment.

        Raises: NotStarted.
        """
        archive = folder.with_suffix(".tar")
        _run("git", "-C", servers.ROOT, "archive", "--output", archive, revision)
        folder.mkdir()
        _run("tar", "-xf", archive, "-C", folder)
        requirements = folder / "requirements.txt"
        if requirements.read_bytes() == (servers.ROOT / "requirements.txt").read_bytes():
            return cls(folder, Path(sys.executable))
        venv = venvs / hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]
        python = venv / "bin" / "python"
        if not (venv / "complete").exists():
            _run(sys.executable, "-m", "venv", venv)
            options = ("-q", "--no-deps", "--require-hashes")
            _run(python, "-m", "pip", "install", *options, "-r", requirements)
            (venv / "complete").touch()
        return cls(folder, python)

    def has(self, path: str) -> bool:
        """Return whether it has a file of this name."""
        return (self.folder / path).exists()


def _run(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, check=False)
    if done.returncode:
        raise servers.NotStarted(done.stderr.decode(errors="replace")[-3000:])


class Instance:
    """One instance, which `bin/serve` of any version starts."""

    def __init__(self, folder: Path, version: Version, **environment: str) -> None:
        self.folder, self.version = folder, version
        self.port = free_port()
        self.log = folder / "gatehouse.log"
        folder.mkdir()
        ours = {
            "INSTANCE": str(folder / "instance"),
            "BIND": f"127.0.0.1:{self.port}",
            "WORKERS": "2",
            "RATE_LIMITS": "off",
            "RESPONSE_FLOOR_MS": "0",
            "ARGON2": "8/1/1",
            "STORAGE_BOOTSTRAP": "local",
            "SECRET_KEYS": servers.secret_keys(),
            **environment,
        }
        others = {k: v for k, v in os.environ.items() if not k.startswith("GATEHOUSE_")}
        # Code of one version must not be imported by another.
        others.pop("PYTHONPATH", None)
        self._environ = others | {f"GATEHOUSE_{name}": value for name, value in ours.items()}

    def flask(self, *arguments: str, version: Version | None = None) -> None:
        """Run a command on its stores."""
        version = version or self.version
        with self.log.open("ab") as log:
            subprocess.run(
                [version.python, "-m", "flask", "--app", "wsgi", *arguments],
                cwd=version.folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=True,
            )

    def start(self) -> None:
        """Start it; return once it is ready."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self.version.python, "-m", "app.serving.launch"],
                cwd=self.version.folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=before_exec(),
            )
        eventually(self._is_ready, f"an instance; its log: {self.log}", servers.START_SECONDS)

    def _is_ready(self) -> bool:
        if self._process.poll() is not None:
            raise servers.NotStarted(self.log.read_text(errors="replace")[-3000:])
        url = f"http://127.0.0.1:{self.port}/health/ready"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def replace(self, version: Version) -> None:
        """Stop it, and start it with the code of another version."""
        self.stop()
        self.version = version
        self.start()

    def quit_now(self) -> None:
        """Tell it to stop."""
        self._process.terminate()

    def stop(self) -> None:
        """Stop it; return once it has ended."""
        self.quit_now()
        self._process.wait(STOP_SECONDS)


class UpgradedBed(Bed):
    """An installation of an older version: two instances, or one with SQLite and its own Valkey."""

    instances: Any
    valkey: Any

    def __init__(self, folder: Path, revision: str, *, database: str, venvs: Path | None) -> None:
        super().__init__(folder)
        self._revision, self._venvs = revision, venvs or folder / "venvs"
        self.is_embedded = database == "sqlite"
        self._users = 0

    def _start(self) -> None:
        self.old = Version.checked_out(self._revision, self.folder / "old", self._venvs)
        self.new = Version.present()
        self.disks_are_small = False
        self.set_clock(0.0)
        self.avatars.mkdir(mode=0o750, parents=True)
        names = INSTANCES[:1] if self.is_embedded else INSTANCES
        folders = [self.disk / name for name in names]
        stores = self._embedded_stores(folders[0]) if self.is_embedded else self._start_stores()
        self.instances = [Instance(f, self.old, **self._environment(), **stores) for f in folders]
        ports = [instance.port for instance in self.instances]
        self.proxy = Proxy(self.folder / "proxy", ports, self.avatars)
        self.proxy.start()
        self.stack.callback(self.proxy.stop)
        for instance in self.instances:
            self.stack.callback(instance.stop)
            instance.start()

    def _embedded_stores(self, folder: Path) -> dict[str, str]:
        instance = folder / "instance"
        self.database_url = f"sqlite:///{instance / 'gatehouse.db'}"
        self.valkey = SimpleNamespace(url=default_redis_url(instance))
        return {}

    def _start_stores(self) -> dict[str, str]:
        for name in ("pg", "valkey"):
            (self.folder / name).mkdir()
        enter = self.stack.enter_context
        postgres = enter(servers.PrivatePostgres(self.folder / "pg", SETTINGS))
        self.valkey = enter(servers.PrivateValkey(self.folder / "valkey", persist=True))
        self.database_url = postgres.cluster.create("gatehouse")
        return {"DATABASE_URL": self.database_url, "REDIS_URL": self.valkey.url}

    @cached_property
    def _application(self) -> Flask:
        config = servers.cheap_config(self.folder / "observer", self.database_url, self.valkey.url)
        app = create_app(config, clock=Clock())
        servers.prepare_instance(app)
        self.stack.callback(web_runtime.of(app).close)
        return app

    @property
    def rt(self) -> Runtime:
        """Access to the stores with the present version's code: only once they are migrated."""
        return web_runtime.of(self._application)

    def flask(self, *arguments: str) -> None:
        """Run a command of the present version, likewise."""
        result = self._application.test_cli_runner().invoke(args=list(arguments))
        assert result.exit_code == 0, result.output

    # --- people, who can only come by the API of the old version ---------------------------------

    def make_user(self, role: str = "user") -> KnownUser:
        """Make an account; the first one is the administrator."""
        self._users += 1
        name = "root" if role == "admin" else f"user{self._users}"
        body = {"username": name, "email": f"{name}@example.com", "password": PASSWORD}
        path = "/auth/setup" if role == "admin" else "/auth/register"
        with self.client() as client:
            made = client.post(path, body).ok(201)
        return KnownUser(made["id"], name, body["email"], PASSWORD)

    def give_totp(self, user: KnownUser) -> Authenticator:
        """Set up an authenticator app for an account."""
        with self.client() as client:
            client.login(user).ok()
            started = client.post("/auth/mfa/totp/setup/start").ok()
            app = Authenticator(started["secret"], Clock())
            body = {"flow_token": started["flow_token"], "code": app.code()}
            client.post("/auth/mfa/totp/setup/finish", body).ok()
        return app


# --- the load ------------------------------------------------------------------------------------


class Reader(Visitor):
    """Opens pages and their files, which differ between the versions."""

    def step(self) -> None:
        """Open a page and one of its files."""
        page = self.call("GET", self.dice.choice(DOCUMENTS))
        if page.status < 500:
            self.check(page.status == 200, f"has no page: {page.path} {page.status}")
            file = self.call("GET", self.dice.choice(FILES.findall(page.text)))
            what = f"has no file: {file.path} {file.status}"
            # While both versions answer, the other one may not have it.
            self.check(file.status in {200, 404} or file.status >= 500, what)
        self.stopped.wait(0.1)


class Keeper(RegularUser):
    """Has two sessions of the old version, one in use all the time, one not before the end."""

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(bed, ledger)
        self.asleep = bed.client()
        self.kept = 0
        self.sign_in()
        self.asleep.login(self.user).ok()

    def step(self) -> None:
        """Do one thing, chosen at random."""
        if not self.is_signed_in:
            self.stopped.wait(0.5)
        else:
            actions = [self.look, self.look, self.refresh, self.rename, self.list_sessions]
            self.dice.choice(actions)()

    def forget(self) -> None:
        """Complain, since nobody ends its sessions."""
        self.check(holds=False, what="lost its session")
        super().forget()

    def compare(self) -> None:
        """Check that both sessions still go on."""
        for client in (self.client, self.asleep):
            client.close()
            refreshed, me = client.refresh(), client.me()
            self.kept += refreshed.status == me.status == 200
            self.check(me.status == 200, f"a session is over: {refreshed}, {me}")
            client.close()


def create_actors(bed: Bed, ledger: Ledger, hold: float) -> list[Actor]:
    """Return the people of the old version; afterwards, a registration waits for its activation."""
    assert isinstance(bed, UpgradedBed)
    flask = bed.instances[0].flask
    flask("config", "set", "auth_register_activation_enabled", "false")
    # Nobody can register before there is an administrator, for whom 0.1 has no pages.
    if bed.old.has("app/pages"):
        kinds: list[Any] = [Administrator, Reader]
    else:
        bed.make_user("admin")
        kinds = []
    kinds += [Keeper] * 5 + [RegularUser] * 3
    kinds += [MfaUser, Registrar, AvatarUser]
    people = [kind(bed, ledger) for kind in kinds]
    publisher = Publisher(bed, ledger)
    patience = hold + LATE_SECONDS
    people += [publisher, Listener(bed, ledger, publisher, patience)]
    for person in people:
        person.pace = PACE_SECONDS
    flask("config", "set", "auth_register_activation_enabled", "true")
    return people


# --- the upgrade ---------------------------------------------------------------------------------


class Step(Fault):
    """A step of docs/operations.md, which lasts as long as it takes."""

    bed: UpgradedBed

    def hold(self, seconds: float) -> None:
        """Do not wait."""
        del seconds


class Prepare(Step):
    """The new version migrates while the old one runs."""

    name = "prepare"
    allowed = DOCUMENTED

    def begin(self) -> None:
        self.bed.instances[0].flask("prepare", version=self.bed.new)


class NewRows(Step):
    """Rows are written that only the new version writes, which the old one is to pass over."""

    name = "new rows"
    allowed = NOTHING

    def begin(self) -> None:
        flask = self.bed.flask
        flask("config", "set", "branding_title", "Files")
        flask("config", "unset", "branding_title")
        flask("teams", "create", "Crew", "--owner", "root")
        flask("tokens", "create", "root", "--name", "Backup", "--scope", "profile:read")


class Replace(Step):
    """Instances are restarted with other code."""

    is_back = False
    numbers: Sequence[int] = (0,)

    # While the only one is stopped; of two, what one has not finished 3 s after it is told to stop.
    allowed = frozenset({(503, "internal_server_error")})

    def begin(self) -> None:
        version = self.bed.old if self.is_back else self.bed.new
        for number in self.numbers:
            self.bed.instances[number].replace(version)


class First(Replace):
    name = "the first is new"


class Second(Replace):
    name = "the second is new"
    numbers = (1,)


class FirstBack(First):
    name = "the first is old again"
    is_back = True


class SecondBack(Second):
    name = "the second is old again"
    is_back = True


class Both(Replace):
    name = "both are new again"
    numbers = (0, 1)


class Only(Replace):
    name = "it is new"


class OnlyBack(Replace):
    name = "it is old again"
    is_back = True


class OnlyAgain(Replace):
    name = "it is new again"


STEPS: dict[str, tuple[type[Fault], ...]] = {
    "postgres": (Prepare, First, Second, NewRows, FirstBack, SecondBack, Both),
    "sqlite": (Only, NewRows, OnlyBack, OnlyAgain),
}


@contextmanager
def running(revision: str, *, database: str, venvs: Path | None = None) -> Iterator[UpgradedBed]:
    """Yield an installation of an older version in a folder of its own, which is removed.

    Raises: NotStarted, if this repository lacks the revision, or its packages cannot be fetched.
    """
    with servers.short_folder() as folder:
        # PostgreSQL runs as another user, who must be able to traverse it.
        folder.chmod(0o711)
        bed = UpgradedBed(folder, revision, database=database, venvs=venvs)
        with bed:
            yield bed


def run(bed: UpgradedBed, *, rest: float = REST_SECONDS) -> tuple[Report, str]:
    """Take every step under load, with a calm of `rest` seconds after each; return the results."""
    keepers: list[Keeper] = []

    def people(bed: Bed, ledger: Ledger, hold: float) -> list[Actor]:
        made = create_actors(bed, ledger, hold)
        keepers.extend(actor for actor in made if isinstance(actor, Keeper))
        return made

    steps = STEPS["sqlite" if bed.is_embedded else "postgres"]
    storm = Storm(bed, recovery=RECOVERY_SECONDS, faults=steps, people=people)
    report = storm.run(0.0, hold=STEP_SECONDS, rest=rest)
    return report, text(report, keepers)


def text(report: Report, keepers: Sequence[Keeper]) -> str:
    """Return the results as human-readable text."""
    kept = sum(keeper.kept for keeper in keepers)
    lines = [
        f"{report.seconds:.0f} s, {sum(report.answers.values())} answers, {report.changes} changes"
        f" and {report.events} events compared, {kept} of {2 * len(keepers)} old sessions kept",
        "",
        "| Step | Took | Failures | From first to last | Slowest answer |",
        "|---|---|---|---|---|",
    ]
    for step in report.faults:
        codes = Counter(f"{failure.status} {failure.code}" for failure in step.failures)
        told = ", ".join(f"{number} x {code}" for code, number in codes.items()) or "none"
        times = [failure.ended for failure in step.failures] or [0.0]
        lines.append(
            f"| {step.name} | {step.lasted:.1f} s | {told} | {max(times) - min(times):.1f} s"
            f" | {step.longest:.1f} s |"
        )
    lines.append("")
    lines += [f"BROKEN: {what}" for what in report.violations] or ["no invariant broken"]
    return "\n".join(lines)
