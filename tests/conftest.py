"""Fixtures: a real application on a real database and a real Redis, with a clock that stands still.

Tests run on SQLite; those marked `both_databases` on PostgreSQL, too.
"""

# ruff: noqa: E402 - modules must be registered for rewriting before they are imported

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import hypothesis
import pytest
from flask import Flask
from redis import Redis

# Failed assertions in these modules are explained like those of a test.
pytest.register_assert_rewrite(
    *(f"tests.support.{name}" for name in ("api", "browser", "live", "openapi", "outbox", "pages"))
)

from app.core.http_client import HttpClient
from app.core.runtime import Runtime
from app.factory import create_app
from app.mail import dispatcher
from app.mail.mailer import Mailer
from app.store import redis as redis_client
from app.web import runtime as web_runtime
from tests.support import browsing, factories, full_disk, leaks, oidc_provider, servers, sharing
from tests.support.api import ApiClient, BrowserClient
from tests.support.clock import FakeClock
from tests.support.commands import CommandLine
from tests.support.factories import KnownUser
from tests.support.fake_provider import FakeProvider
from tests.support.live import LiveService, eventually
from tests.support.mailbox import Mailbox
from tests.support.shared_application import AMPLE, SharedApplication

sharing.install()
leaks.install()

# One browser and one running service for all areas that look at it.
chromium, running = browsing.chromium, browsing.running

# No deadline: slow machines are no fault of the input. The same inputs in every run: what fails,
# fails on every machine, and for whoever made the change.
hypothesis.settings.register_profile(
    "any machine",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("any machine")

# The fixtures of running services, with the settings in which they differ. SLOW_REQUEST_MS is off,
# so that what they log does not depend on their speed.
LIVE: dict[str, dict[str, str]] = {
    "live": {"LOG_LEVEL": "INFO", "SLOW_REQUEST_MS": "0"},
    "direct": {"LOG_LEVEL": "INFO", "SLOW_REQUEST_MS": "0", "TRUSTED_PROXIES": ""},
}


# Tests that ask for one of these are about configuration, or change what an application keeps in
# memory: they get an application of their own.
OWN_APPLICATION = frozenset({"make_app", "database_url", "redis_url", "own_valkey"})


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test marked `both_databases` on each of them."""
    marked = metafunc.definition.get_closest_marker
    is_for_both = marked("both_databases") and not (marked("sqlite") or marked("postgres"))
    if is_for_both and "database_name" in metafunc.fixturenames:
        metafunc.parametrize("database_name", ["sqlite", "postgres"], indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of one running service, or of one browser, in one worker of the suite."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
        for fixture in LIVE:
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.live)
                item.add_marker(pytest.mark.xdist_group(f"{fixture}-{database_of(item)}"))


def database_of(item: pytest.Item) -> str:
    """Return the database a test runs on."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None and "database_name" in callspec.params:
        return str(callspec.params["database_name"])
    return "postgres" if item.get_closest_marker("postgres") else "sqlite"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Make `-n` respect xdist groups without a further option."""
    if config.getvalue("dist") != "load":
        return None
    from tests.support.groups import Groups

    return Groups(config, log)


@pytest.hookimpl(tryfirst=True)  # before xdist reports the collection as finished
def pytest_collection_finish(session: pytest.Session) -> None:
    """Tune the garbage collector, and pass the groups to the scheduler, which collects no tests.

    The collected tests are never garbage: traversing ten thousand of them again and again took a
    sixth of the suite's CPU time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    run = getattr(session.config, "workerinput", {}).get("testrunuid")
    if run:
        from tests.support import groups

        groups.leave(run, session.items)


@pytest.fixture(autouse=True)
def no_secret_is_logged() -> Iterator[None]:
    """Fail a test if a log line contains one of its secrets; see tests/support/leaks.py."""
    yield
    assert leaks.watch.leaks() == []


@pytest.fixture(scope="session", autouse=True)
def patience_with_redis() -> Iterator[None]:
    """Raise the timeout of Redis calls that the service can do without, unless a test sets it.

    On a busy machine one late answer would time out, and then nothing is counted for a second,
    which never passes on a clock that stands still.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redis_client, "FAIL_FAST_TIMEOUT_SECONDS", 10.0)
        yield


# --- servers, one of each per worker of the suite ------------------------------------------------


@pytest.fixture(scope="session")
def worker_name() -> str:
    return os.environ.get("PYTEST_XDIST_WORKER", "main")


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    with servers.short_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def worker_number(worker_name: str) -> int:
    return int(worker_name.removeprefix("gw")) if worker_name != "main" else 0


@pytest.fixture(scope="session")
def redis_server(worker_number: int) -> Iterator[str]:
    with servers.redis_server(2 * worker_number) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[servers.Cluster]:
    with servers.postgres_server() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def postgres_template(postgres_server: servers.Cluster, worker_name: str) -> Iterator[str]:
    """The name of a migrated database to copy."""
    name = f"gatehouse_template_{worker_name}"
    servers.migrate(postgres_server.create(name), clock=FakeClock())
    yield name
    postgres_server.drop(name)


@pytest.fixture(scope="session")
def postgres_database(
    postgres_server: servers.Cluster, postgres_template: str, worker_name: str
) -> Iterator[servers.PristineDatabase]:
    name = f"gatehouse_test_{worker_name}"
    database = servers.PristineDatabase(postgres_server.create(name, postgres_template))
    yield database
    database.close()
    postgres_server.drop(name)


@pytest.fixture(scope="session")
def sqlite_template(server_folder: Path) -> Path:
    return servers.sqlite_template(server_folder / "template.db", clock=FakeClock())


@pytest.fixture(scope="session")
def live_services(
    request: pytest.FixtureRequest, server_folder: Path, worker_name: str
) -> Iterator[Callable[[str, str], LiveService]]:
    """Start the real service once per fixture and database, on first use."""
    running: dict[tuple[str, str], LiveService] = {}

    def find(kind: str, database: str) -> LiveService:
        if (kind, database) not in running:
            folder = server_folder / f"{kind}-{database}"
            folder.mkdir()
            redis_url = request.getfixturevalue("live_redis_server")
            url = copy(kind, database, folder)
            running[kind, database] = LiveService(folder, url, redis_url, **LIVE[kind])
        return running[kind, database]

    def copy(kind: str, database: str, folder: Path) -> str:
        if database == "sqlite":
            template = request.getfixturevalue("sqlite_template")
            return servers.copy_sqlite(template, folder / "gatehouse.db")
        template = request.getfixturevalue("postgres_template")
        cluster = request.getfixturevalue("postgres_server")
        return cluster.create(f"gatehouse_{kind}_{worker_name}", template)

    yield find
    for service in running.values():
        service.stop()
    outputs = [service.log for service in running.values()]
    assert leaks.watch.leaks_of(*outputs) == []


@pytest.fixture(scope="session")
def live_redis_server(worker_number: int) -> Iterator[str]:
    """A Redis for the live services alone: other tests flush theirs."""
    with servers.redis_server(2 * worker_number + 1) as url:
        yield url


@pytest.fixture
def live(database_name: str, live_services: Callable[[str, str], LiveService]) -> LiveService:
    """The real service with two workers and no accounts. It trusts this machine as a proxy."""
    service = live_services("live", database_name)
    service.reset()
    return service


@pytest.fixture
def direct(database_name: str, live_services: Callable[[str, str], LiveService]) -> LiveService:
    """Like `live`, but without a trusted proxy: every peer is a client."""
    service = live_services("direct", database_name)
    service.reset()
    return service


@pytest.fixture
def root(live: LiveService) -> KnownUser:
    """An administrator of `live`, without whom an installation with users is broken."""
    return factories.make_user(live.rt, username="root", role="admin")


@pytest.fixture(scope="session")
def certified_provider() -> Iterator[oidc_provider.OidcProvider]:
    """A certified OpenID provider; its tests are skipped where Node is missing."""
    try:
        oidc_provider.install()
    except oidc_provider.Missing as reason:
        pytest.skip(f"no OpenID provider: {reason}")
    with oidc_provider.running() as provider:
        yield provider


# --- applications ---------------------------------------------------------------------------------


@pytest.fixture
def database_name(request: pytest.FixtureRequest) -> str:
    """The database that the test runs on, `sqlite` or `postgres`."""
    return database_of(request.node)


@pytest.fixture
def configuration() -> dict[str, Any]:
    """What the application is configured with; a module that needs something else replaces it."""
    return {}


@pytest.fixture
def database_url(request: pytest.FixtureRequest, database_name: str, tmp_path: Path) -> str:
    """A migrated database without accounts, with a complete default storage route."""
    if database_name == "sqlite":
        template = request.getfixturevalue("sqlite_template")
        return servers.copy_sqlite(template, tmp_path / "gatehouse.db")
    return request.getfixturevalue("postgres_database").reset()


@pytest.fixture
def redis_url(redis_server: str) -> str:
    """An empty Redis."""
    with Redis.from_url(redis_server) as client:
        client.flushdb()
    return redis_server


@pytest.fixture(scope="session")
def shared_applications(
    request: pytest.FixtureRequest, redis_server: str, server_folder: Path
) -> Iterator[Callable[[str, dict[str, Any]], SharedApplication]]:
    """The applications that the tests of this worker share."""
    known: dict[str, SharedApplication] = {}
    files: list[servers.PristineFile] = []

    def emptied(database: str) -> servers.Pristine:
        if database != "sqlite":
            return cast("servers.Pristine", request.getfixturevalue("postgres_database"))
        if not files:
            template = request.getfixturevalue("sqlite_template")
            files.append(servers.PristineFile(template, server_folder / "shared.db"))
        return files[0]

    def find(database: str, configuration: dict[str, Any]) -> SharedApplication:
        name = f"{database} {configuration}"
        if name not in known:
            instance = server_folder / f"shared-{len(known)}"
            pristine = emptied(database)
            known[name] = SharedApplication(instance, pristine, redis_server, configuration)
        return known[name]

    yield find
    for shared in known.values():
        shared.drop()
    for file in files:
        file.close()


@pytest.fixture
def own_valkey() -> Iterator[servers.PrivateValkey]:
    """A Valkey without persistence that a test may suspend, kill and restart."""
    with servers.short_folder() as folder, servers.PrivateValkey(folder) as valkey:
        yield valkey


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a very small file system."""
    with full_disk.small(tmp_path / "small") as folder:
        yield folder


@pytest.fixture
def wait_for() -> Callable[[Callable[[], Any]], Any]:
    """Wait in real time for a condition that another thread brings about."""
    return lambda condition: eventually(condition, "the condition")


@pytest.fixture
def shared(
    request: pytest.FixtureRequest,
    database_name: str,
    configuration: dict[str, Any],
    shared_applications: Callable[[str, dict[str, Any]], SharedApplication],
) -> SharedApplication | None:
    """The application to share, or None if the test gets one of its own."""
    is_own = request.node.get_closest_marker("own_application")
    if is_own or not OWN_APPLICATION.isdisjoint(request.fixturenames):
        return None
    shared = shared_applications(database_name, configuration)
    shared.renew()
    return shared


@pytest.fixture
def clock(shared: SharedApplication | None) -> FakeClock:
    """Stands still until the test advances it."""
    return shared.clock if shared else FakeClock()


@pytest.fixture
def fake_provider(clock: FakeClock) -> Iterator[FakeProvider]:
    """A provider that can be made to misbehave in any way; its tokens are dated by `clock`."""
    with FakeProvider(clock) as provider:
        yield provider


@pytest.fixture
def make_app(
    database_url: str, redis_url: str, tmp_path: Path, clock: FakeClock
) -> Iterator[Callable[..., Flask]]:
    """Build applications on this test's database and Redis.

    Keywords override configuration values, except the named ones, which go to `create_app`.
    """
    built: list[Flask] = []
    instance = tmp_path / "instance"

    def make(
        *,
        clock: Any = clock,
        redis: Redis | None = None,
        mailer: Mailer | None = None,
        http_client: HttpClient | None = None,
        **overrides: Any,
    ) -> Flask:
        config = servers.cheap_config(instance, database_url, redis_url, **(AMPLE | overrides))
        app = create_app(config, clock=clock, redis=redis, mailer=mailer, http_client=http_client)
        servers.prepare_instance(app)
        sharing.share_routes(app)
        built.append(app)
        return app

    yield make
    for app in built:
        app.extensions[web_runtime.EXTENSION].close()


@pytest.fixture
def app(
    request: pytest.FixtureRequest,
    shared: SharedApplication | None,
    configuration: dict[str, Any],
) -> Iterator[Flask]:
    """The application, on empty stores; tests that need no other share it."""
    if shared is None:
        yield request.getfixturevalue("make_app")(**configuration)
        return
    yield shared.take()
    if "monkeypatch" in request.fixturenames:
        shared.drop()  # it may keep what it saw of the patch


@pytest.fixture
def rt(app: Flask) -> Runtime:
    """The application's runtime."""
    return app.extensions[web_runtime.EXTENSION]


@pytest.fixture
def mailbox(rt: Runtime) -> Mailbox:
    """The mails that the application writes to files, having no SMTP server."""
    return Mailbox(rt.config.mail_dir, deliver=lambda: dispatcher.drain(rt))


@pytest.fixture
def line(app: Flask) -> CommandLine:
    """The command line of the application."""
    return CommandLine(app)


@pytest.fixture
def without_storage_route(rt: Runtime) -> None:
    """Put the installation in the state before `flask storage bootstrap`."""
    factories.remove_storage_route(rt)


@pytest.fixture
def api(app: Flask) -> ApiClient:
    """A script with a cookie jar."""
    return ApiClient(app)


@pytest.fixture
def browser(app: Flask) -> BrowserClient:
    """A page of this site."""
    return BrowserClient(app)


@pytest.fixture
def user(rt: Runtime) -> KnownUser:
    """An ordinary account, beside an administrator so that the installation is ready."""
    factories.make_user(rt, username="root", role="admin")
    return factories.make_user(rt)


@pytest.fixture
def admin(rt: Runtime) -> KnownUser:
    return factories.make_user(rt, username="boss", role="admin")


@pytest.fixture
def signed_in(api: ApiClient, user: KnownUser) -> ApiClient:
    """`user`'s client, with the cookies of a login."""
    api.login(user).ok()
    return api


@pytest.fixture
def boss(api: ApiClient, admin: KnownUser) -> ApiClient:
    """An administrator's client, with the cookies of a login."""
    api.login(admin).ok()
    return api
