"""`flask doctor`."""

import json
import socket
from dataclasses import replace

import pytest
import sqlalchemy as sa
from redis import Redis

from app import factory
from app.avatars import render_process
from app.core.clock import Clock
from app.core.config import Argon2Cost, Config
from app.crypto.passwords import Passwords
from app.installation import machine_checks
from app.installation.machine_checks import Level
from app.mail.mailer import Mailer
from app.settings import queries as settings_queries
from app.store import redis as redis_client
from tests.support.clock import FakeClock
from tests.support.commands import CommandLine
from tests.support.factories import at_revision, change_user, configure, make_user
from tests.support.full_disk import fill
from tests.support.live import free_port
from tests.support.privileges import bound_by_modes
from tests.support.servers import CHEAP_ARGON2, short_folder
from tests.support.smtp import HOST, Authority, RecordingSmtpServer

CHECKS = {
    "configuration",
    "instance folder",
    "keys",
    "avatars",
    "password hash",
    "leaked passwords",
    "redis",
    "database",
    "clock",
    "migrations",
    "stored secrets",
    "settings",
    "site address",
    "cookies",
    "mail",
    "external sign-in",
    "access tokens",
    "storage route",
}


class Stopwatch(Clock):
    """Real time of day, while the time that work takes is only what a test says.

    So that a machine with much else to do is not found slow.
    """

    def __init__(self) -> None:
        self._seconds = 0.0

    def monotonic(self) -> float:
        return self._seconds

    def take(self, seconds: float) -> None:
        """Let something have taken so long."""
        self._seconds += seconds


@pytest.fixture
def stopwatch():
    return Stopwatch()


@pytest.fixture(autouse=True)
def quick_hashes(request, monkeypatch):
    """Spare all but one examination hashes at their full price."""
    if "unhurried" not in request.fixturenames:
        cheap = lambda _cost, *rest: Passwords(CHEAP_ARGON2, *rest)  # noqa: E731
        monkeypatch.setattr(factory, "Passwords", cheap)


@pytest.fixture
def app(make_app, stopwatch):
    """An application like that of a deployment: real time, full-price hashes, keys in a file."""
    return make_app(clock=stopwatch, argon2=Argon2Cost(), secret_keys=())


@pytest.fixture
def healthy(rt):
    make_user(rt, role="admin")
    configure(rt, public_site_url=["https://files.example"], auth_cookie_secure=True)


def examined(line, *options):
    """Return the exit code and the findings by check."""
    ran = line("doctor", "--json", *options)
    data = json.loads(ran.stdout)
    assert data["ok"] is (ran.exit_code == 0)
    return ran.exit_code, {check["check"]: check for check in data["checks"]}


def finds(line, check, level):
    """Insist on one finding besides good ones; return its message and remedy."""
    code, checks = examined(line)
    assert code == (1 if level == "fail" else 0), checks
    assert {n: c["level"] for n, c in checks.items() if c["level"] != "ok"} == {check: level}
    assert examined(line, "--strict")[0] == 1
    return "{message} {remedy}".format(**checks[check])


@pytest.mark.both_databases
@pytest.mark.usefixtures("unhurried", "healthy")
def test_healthy_installation_passes_the_strict_examination(line):
    code, checks = examined(line, "--strict")
    assert {check["level"] for check in checks.values()} == {"ok"}, checks
    assert code == 0
    assert set(checks) == CHECKS


@pytest.mark.usefixtures("healthy")
def test_nonsense_from_a_store_is_a_failure_like_any_other(line, rt, monkeypatch):
    monkeypatch.setattr(rt.redis.client, "info", lambda _section: {})
    assert "redis_version" in finds(line, "redis", "fail")


@pytest.mark.usefixtures("healthy")
def test_human_text_has_a_line_per_check(line):
    lines = line("doctor").text.splitlines()
    assert len(lines) == len(CHECKS)
    assert {line.partition(":")[0] for line in lines} == {f"ok    {check}" for check in CHECKS}


def test_a_variable_nobody_reads_is_a_warning(make_app, stopwatch):
    environ = {"GATEHOUSE_WORKER": "4 of my secrets"}
    odd = Config.from_env(environ).unknown_variables
    app = make_app(clock=stopwatch, argon2=Argon2Cost(), secret_keys=(), unknown_variables=odd)
    finding = examined(CommandLine(app))[1]["configuration"]
    assert finding["level"] == "warn"
    assert "GATEHOUSE_WORKERS?" in finding["message"]
    assert "secret" not in finding["message"]


@pytest.mark.usefixtures("healthy", "without_storage_route")
def test_missing_storage_route_is_a_warning(line):
    assert "flask storage bootstrap" in finds(line, "storage route", "warn")


@pytest.mark.usefixtures("healthy")
def test_lost_administrator_is_a_failure(line, rt):
    with rt.transaction() as session:
        session.execute(sa.text("UPDATE users SET role = 'user'"))
    assert "set-role" in finds(line, "storage route", "fail")


def test_new_installation_is_told_what_comes_next(line):
    code, checks = examined(line)
    assert code == 0
    assert checks["storage route"]["level"] == checks["site address"]["level"] == "warn"


@pytest.mark.usefixtures("healthy")
def test_open_folder_is_a_warning_and_open_keys_are_a_failure(line, rt):
    rt.config.instance.chmod(0o750)
    assert "chmod 700" in finds(line, "instance folder", "warn")
    rt.config.instance.chmod(0o700)
    (rt.config.instance / "keys.json").chmod(0o640)
    assert "chmod 600" in finds(line, "keys", "fail")


@pytest.mark.usefixtures("healthy")
def test_folder_without_room_is_a_failure(make_app, stopwatch, small_disk):
    app = make_app(clock=stopwatch, argon2=Argon2Cost(), secret_keys=(), avatar_dir=small_disk)
    fill(small_disk / "filler")
    told = finds(CommandLine(app), "avatars", "fail")
    assert "(No space left on device). Make room there, or" in told
    rt = app.extensions["gatehouse"]
    there = replace(rt, config=replace(rt.config, instance=small_disk))
    finding = machine_checks.instance_folder(there)
    assert finding.level is Level.FAIL
    assert finding.message == (
        f"{small_disk} cannot be written to (No space left on device). "
        "Make room there, or give it to the user the service runs as."
    )
    assert [file.name for file in small_disk.iterdir() if file.is_file()] == ["filler"]


@pytest.mark.usefixtures("healthy")
def test_folder_that_is_not_ours_is_a_failure(line, rt):
    rt.config.instance.chmod(0o500)
    with bound_by_modes():
        told = examined(line)[1]["instance folder"]
    assert told["level"] == "fail"
    assert "(Permission denied). Make room there, or give it to the user" in told["message"]


@pytest.mark.usefixtures("healthy")
def test_avatars_that_cannot_be_kept_are_a_failure(line, rt):
    rt.config.avatar_dir.parent.mkdir(parents=True, exist_ok=True)
    rt.config.avatar_dir.write_text("no folder")
    assert "GATEHOUSE_AVATAR_DIR" in finds(line, "avatars", "fail")


@pytest.mark.usefixtures("unhurried", "healthy")
def test_avatars_that_cannot_be_drawn_are_a_failure(line, rt, monkeypatch):
    monkeypatch.setattr(render_process, "PROGRAM", "/nowhere")
    assert "Pictures cannot be rendered" in finds(line, "avatars", "fail")
    assert not list((rt.config.avatar_dir / "staging").iterdir())


@pytest.mark.usefixtures("healthy")
def test_tables_of_an_older_version_are_a_failure(line, rt):
    with at_revision(rt, "0001"):
        code, checks = examined(line)
    assert code == 1
    assert checks["migrations"]["remedy"] == "Run `flask prepare`."
    assert "settings" not in checks


@pytest.mark.usefixtures("healthy")
def test_tables_of_a_newer_version_are_a_warning(line, rt):
    with at_revision(rt, "9999"):
        assert "a newer one migrated it" in finds(line, "migrations", "warn")
        assert set(examined(line)[1]) == CHECKS


@pytest.mark.usefixtures("healthy")
def test_bad_setting_is_a_failure(line, rt):
    with rt.transaction() as session:
        settings_queries.store(session, "auth_access_token_ttl_secs", "soon", rt.clock.now())
    assert "auth_access_token_ttl_secs" in finds(line, "settings", "fail")


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize(
    ("check", "values"),
    [
        ("site address", {"public_site_url": []}),
        ("cookies", {"auth_cookie_secure": False}),
        ("site address", {"public_site_url": ["https://192.0.2.7"]}),
        (
            "cookies",
            {"public_site_url": ["http://files.example"], "auth_passkey_login_enabled": False},
        ),
        ("mail", {"mail_smtp_host": "mail.example"}),
        ("mail", {"mail_from_address": "a@mail.example"}),
    ],
)
def test_doubtful_setting_is_a_warning(line, rt, check, values):
    configure(rt, **values)
    finds(line, check, "warn")


def use_server(rt, port, **values):
    configure(
        rt,
        mail_smtp_host=HOST,
        mail_smtp_port=port,
        mail_security=False,
        mail_from_address="a@mail.example",
        **values,
    )


@pytest.mark.usefixtures("healthy")
def test_a_mail_server_that_answers_is_fine(line, rt):
    with RecordingSmtpServer() as server:
        use_server(rt, server.port)
        code, checks = examined(line, "--strict")
        assert not server.received
    assert (code, checks["mail"]["level"]) == (0, "ok"), checks
    assert f"{HOST}, port {server.port}, sender a@mail.example" in checks["mail"]["message"]


@pytest.mark.usefixtures("healthy")
def test_a_mail_server_that_cannot_be_used_is_a_warning_with_the_reason(line, rt):
    use_server(rt, free_port())
    assert "Connection refused" in finds(line, "mail", "warn")
    with RecordingSmtpServer(passwords={"files": "right"}) as server:
        use_server(rt, server.port, mail_smtp_username="files", mail_smtp_password="a wrong one")
        told = finds(line, "mail", "warn")
    assert "a wrong one" not in told
    assert "mail_smtp_*" in told


@pytest.mark.both_databases
@pytest.mark.usefixtures("healthy")
def test_addresses_that_an_older_version_took_are_a_warning_with_names(line, rt):
    change_user(rt, make_user(rt, username="ada"), email="=?utf-8?q?x=40y.test=3e?=a@b.example")
    change_user(rt, make_user(rt, username="bob"), pending_email="a=?@b.example")
    change_user(rt, make_user(rt, username="eve"), email="a=b?c@b.example")
    told = finds(line, "mail", "warn")
    assert told.startswith("Accounts with an address with =? in it")
    assert ": 2 (ada, bob). " in told
    assert "flask users set-email" in told
    for number in range(5):
        change_user(rt, make_user(rt), email=f"{number}=?@b.example")
    assert ", ...)." in finds(line, "mail", "warn")


@pytest.fixture
def names_lead_here(monkeypatch):
    """Have every name be one of this machine."""
    look_up = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda _host, port, *rest, **options: look_up("127.0.0.1", port, *rest, **options),
    )


@pytest.mark.usefixtures("healthy", "names_lead_here")
@pytest.mark.parametrize("host", ["mail.example", "192.0.2.25", "localhost.example"])
def test_mails_in_clear_to_another_machine_are_a_warning(line, rt, host):
    with RecordingSmtpServer() as server:
        use_server(rt, server.port)
        configure(rt, mail_smtp_host=host)
        told = finds(line, "mail", "warn")
    assert f"codes, go to {host}, port {server.port}, unencrypted" in told
    assert "flask config set mail_security true" in told


@pytest.mark.usefixtures("healthy", "names_lead_here")
@pytest.mark.parametrize("host", ["LocalHost", "127.0.0.53", "::1"])
def test_mails_in_clear_within_this_machine_are_fine(line, rt, host):
    with RecordingSmtpServer() as server:
        use_server(rt, server.port)
        configure(rt, mail_smtp_host=host)
        assert examined(line)[1]["mail"]["level"] == "ok"


@pytest.mark.usefixtures("healthy", "names_lead_here")
def test_encrypted_mails_to_another_machine_are_fine(make_app, stopwatch, rt, tmp_path):
    authority = Authority(tmp_path)
    mailer = Mailer(tls=authority.client())
    app = make_app(clock=stopwatch, argon2=Argon2Cost(), secret_keys=(), mailer=mailer)
    with RecordingSmtpServer(tls=authority.server("mail.example")) as server:
        use_server(rt, server.port)
        configure(rt, mail_smtp_host="mail.example", mail_security=True)
        assert examined(CommandLine(app))[1]["mail"]["level"] == "ok"


@pytest.mark.usefixtures("healthy")
def test_mails_that_cannot_become_files_are_a_warning(make_app, stopwatch, tmp_path):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "mail"
    app = make_app(clock=stopwatch, argon2=Argon2Cost(), secret_keys=(), mail_dir=folder)
    assert f"{folder} cannot be written" in finds(CommandLine(app), "mail", "warn")


@pytest.mark.both_databases
@pytest.mark.usefixtures("healthy")
def test_clocks_that_disagree_are_a_failure(make_app):
    line = CommandLine(make_app(clock=FakeClock(), argon2=Argon2Cost(), secret_keys=()))
    assert "NTP" in finds(line, "clock", "fail")


@pytest.mark.usefixtures("healthy")
def test_cheap_or_slow_hashes_are_a_warning(make_app, monkeypatch):
    line = CommandLine(make_app(clock=Clock(), secret_keys=()))
    assert "GATEHOUSE_ARGON2" in finds(line, "password hash", "warn")
    monkeypatch.setattr(machine_checks, "MAX_HASH_SECONDS", 0.0)
    assert "CPU" in finds(line, "password hash", "warn")


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize(
    ("seconds", "level"), [((9.0, 9.0, 1.0), "ok"), ((9.0, 1.01, 9.0), "warn")]
)
def test_a_machine_is_slow_when_each_of_three_hashes_is(
    line, rt, stopwatch, monkeypatch, seconds, level
):
    taken = iter(seconds)
    monkeypatch.setattr(rt.passwords, "hash", lambda _: stopwatch.take(next(taken)))
    check = examined(line)[1]["password hash"]
    assert check["level"] == level, check
    assert ("A hash takes 1.0 s." if level == "warn" else "1000 ms") in check["message"]
    assert next(taken, None) is None


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize(("embedded", "level"), [(True, "warn"), (False, "fail")])
def test_missing_redis_is_found(make_app, embedded, level):
    app = make_app(
        clock=Stopwatch(),
        argon2=Argon2Cost(),
        redis=Redis.from_url("unix:///nowhere.sock"),
        embedded_redis=embedded,
    )
    finds(CommandLine(app), "redis", level)


@pytest.fixture
def with_embedded(make_app):
    """Return a command line whose embedded Valkey is the one at this address."""

    def make(url):
        redis = redis_client.connect(url, timeout_seconds=0.25)
        options = {"argon2": Argon2Cost(), "redis": redis, "embedded_redis": True}
        return CommandLine(make_app(clock=Stopwatch(), **options))

    return make


@pytest.mark.usefixtures("healthy")
def test_an_embedded_valkey_that_left_its_socket_is_a_warning(with_embedded):
    with short_folder() as folder:
        path = folder / "valkey.sock"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
        assert "is not running" in finds(with_embedded(f"unix://{path}"), "redis", "warn")


@pytest.mark.usefixtures("healthy")
def test_an_embedded_valkey_that_hangs_is_a_failure(with_embedded, own_valkey):
    line = with_embedded(own_valkey.url)
    own_valkey.hang()
    told = finds(line, "redis", "fail")
    assert told.startswith("Redis does not answer (Timeout")
    assert "Restart `bin/serve`" in told
