"""bin/serve's promises: one command up, one signal down, nothing left behind, heals by itself."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from app.core.config import default_redis_url
from app.serving import health, launch, valkey
from app.serving.health import Address
from app.store.redis import SETTINGS_CHANNEL
from tests.support.launcher import TIMEOUT_SECONDS, Service, eventually
from tests.support.live import free_port
from tests.support.servers import ROOT

KEEP_ALIVE = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def listening_workers(service):
    """Return how many have started: one that is still starting has nothing to say at the stop."""
    with redis.Redis(unix_socket_path=str(service.valkey_socket)) as client:
        return client.pubsub_numsub(SETTINGS_CHANNEL)[0][1]


def first_answer(connection):
    return connection.recv(65536).split(b"\r\n")[0]


@pytest.mark.parametrize(
    ("bind", "page"),
    [
        ("127.0.0.1:8000", "http://localhost:8000"),
        ("localhost:8000", "http://localhost:8000"),
        ("0.0.0.0:80", "http://localhost:80"),
        ("[::1]:8000", "http://localhost:8000"),
        ("192.0.2.7:8000", "http://192.0.2.7:8000"),
    ],
)
def test_the_page_is_opened_by_a_name_where_there_is_one(bind, page):
    assert Address.of(bind).page_url == page


# --- one that runs -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A service that is well again after each test; one of its variables is misspelt."""
    service = Service(tmp_path_factory.mktemp("serve") / "instance")
    service.start(WORKER="secret")
    yield service
    service.close()


def test_start_tells_the_address_and_the_next_step(running):
    announced = running.output.read_text()
    assert f"Gatehouse is running at {running.url} " in announced
    assert f" http://localhost:{running.port}/api/v1/docs\n" in announced
    assert f" http://localhost:{running.port}/setup\n" in announced
    assert running.is_healthy()


def test_the_check_of_a_container_passes_only_while_somebody_answers(running, monkeypatch):
    monkeypatch.setenv("GATEHOUSE_BIND", f"127.0.0.1:{running.port}")
    assert health.main() == 0
    monkeypatch.setenv("GATEHOUSE_BIND", f"127.0.0.1:{free_port()}")
    assert health.main() == 1


def test_a_variable_nobody_reads_is_told_once(running):
    told = running.errors.read_text()
    assert "bin/serve: GATEHOUSE_WORKER is not a variable" in told
    assert told.count("GATEHOUSE_WORKERS?") == 1
    assert "secret" not in told


def test_the_instance_is_private(running):
    assert running.instance.stat().st_mode & 0o777 == 0o700
    assert running.valkey_socket.stat().st_mode & 0o777 == 0o700


def test_a_killed_valkey_is_started_again(running):
    client = redis.Redis(unix_socket_path=str(running.valkey_socket))
    before = running.valkey
    before.kill()
    eventually(lambda: running.valkey not in (None, before), "a new Valkey")
    # The socket of the one before may still be there.
    eventually(lambda: valkey.answers(running.valkey_socket), "its answer")
    assert client.ping()
    client.close()
    assert running.is_healthy()


def test_a_killed_worker_is_replaced(running):
    victim = running.workers[0]
    victim.kill()
    eventually(lambda: victim not in running.workers and len(running.workers) == 2, "a new worker")
    assert running.is_healthy()


def test_a_killed_gunicorn_is_started_again(running, all_gone):
    before, workers = running.gunicorn, running.workers
    before_environ = before.environ()
    before.kill()
    all_gone([before, *workers])
    eventually(running.is_healthy, "an answer of the new gunicorn")
    assert running.gunicorn != before
    # Its start must not depend on a database that may be away just then.
    assert launch.PREPARE_VARIABLE in before_environ
    assert launch.PREPARE_VARIABLE not in running.gunicorn.environ()


def test_a_second_run_on_the_instance_is_refused(running):
    second = Service(running.instance.with_name("second"))
    launcher = second.launch(INSTANCE=str(running.instance))
    assert launcher.wait(TIMEOUT_SECONDS) == 1
    assert second.errors.read_text().count("\n") == 1
    assert f"another bin/serve is running on {running.instance}" in second.errors.read_text()
    assert running.is_healthy()


# --- its end and the next start ------------------------------------------------------------------


def test_a_stop_answers_what_is_under_way_and_leaves_nothing_but_data(service, all_gone):
    """In a folder too deep for a socket; the second run ends without a warning."""
    service.instance = service.instance / ("deep" * 20) / ("deeper" * 10)
    service.valkey_socket = Path(default_redis_url(service.instance).removeprefix("unix://"))
    service.start()
    assert not (service.instance / "valkey.sock").exists()
    admin = {"username": "admin", "email": "admin@example.com", "password": "correct horse"}
    service.post("/api/v1/auth/setup", **admin)
    with redis.Redis(unix_socket_path=str(service.valkey_socket)) as client:
        client.set("test:kept", "yes")
    eventually(lambda: listening_workers(service) == 2, "both workers")
    processes = service.processes()
    stop_with_requests_under_way(service)
    all_gone(processes)

    service.start()
    assert service.post("/api/v1/auth/check")["has_users"] is True
    with redis.Redis(unix_socket_path=str(service.valkey_socket)) as client:
        assert client.get("test:kept") == b"yes"
    announced = service.output.read_text()
    assert "no administrator" not in announced
    assert f" http://localhost:{service.port}/api/v1/docs\n" in announced
    processes = service.processes()
    with service.connect() as open_connection:
        open_connection.sendall(KEEP_ALIVE)
        first_answer(open_connection)
        service.stop(signal.SIGKILL)
        service.start()  # takes over at once
    assert service.is_healthy()
    all_gone(processes)
    processes = service.processes()
    assert service.stop(signal.SIGINT) == 0
    all_gone(processes)


def stop_with_requests_under_way(service):
    body = b'{"identifier": "nobody", "password": "wrong password"}'
    head = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\n"
    head += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    with service.connect() as connection, service.connect() as idle:
        connection.sendall(head + body[:10])
        idle.sendall(KEEP_ALIVE)
        assert first_answer(idle) == b"HTTP/1.1 200 OK"
        service.launcher.terminate()
        while idle.recv(65536):  # the worker is stopping once this one is hung up
            pass
        connection.sendall(body[10:])
        assert first_answer(connection).startswith(b"HTTP/1.1 4")
    assert service.launcher.wait(TIMEOUT_SECONDS) == 0
    # One whose connections last for longer than it waits for them says so, or is killed first.
    log = service.errors.read_text()
    assert "Worker graceful timeout" not in log
    assert log.count("Worker exiting") == 2


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_every_process_and_exits_0(service, all_gone, number):
    service.start()
    processes = service.processes()
    assert service.stop(number) == 0
    all_gone(processes)


# --- what stops a start --------------------------------------------------------------------------


def test_bad_variables_stop_the_start_with_a_line_each(service):
    launcher = service.launch(WORKERS="many", LOG_FORMAT="xml")
    assert launcher.wait(TIMEOUT_SECONDS) == 2
    lines = service.errors.read_text().splitlines()
    assert len(lines) == 2
    assert "GATEHOUSE_WORKERS" in lines[0]
    assert "GATEHOUSE_LOG_FORMAT" in lines[1]
    assert not service.instance.exists()


def test_a_database_that_does_not_answer_stops_the_start(service):
    nobody = f"postgresql://gatehouse@127.0.0.1:{service.port}/gatehouse"
    assert service.launch(DATABASE_URL=nobody, LOG_LEVEL="WARNING").wait(TIMEOUT_SECONDS) == 1
    assert service.errors.read_text() == (
        "Error: The database failed: Connection refused."
        " Start it, or correct GATEHOUSE_DATABASE_URL.\nbin/serve: gunicorn exited with code 1\n"
    )


def test_help_is_told_before_anything_is_set_up(tmp_path):
    command = [str(ROOT / "bin" / "serve"), "--help"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("Usage: bin/serve")
    assert list(tmp_path.iterdir()) == []


def test_gunicorn_tells_it_when_bin_serve_does_not(tmp_path):
    ours = {"GATEHOUSE_INSTANCE": str(tmp_path), "GATEHOUSE_WORKER": "secret"}
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GATEHOUSE_")} | ours
    command = [sys.executable, "-m", "gunicorn", "--check-config", "wsgi:app"]
    ran = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    assert ran.stderr.count("GATEHOUSE_WORKERS?") == 1
    assert "secret" not in ran.stderr


def test_arguments_are_refused_before_anything_starts(capsys):
    assert launch.main(["--help"]) == 2
    assert "takes no arguments" in capsys.readouterr().err


def test_a_database_file_that_cannot_be_opened_is_named(service, tmp_path):
    file = tmp_path / "missing" / "my.db"
    ran = service.launch(DATABASE_URL=f"sqlite:///{file}", LOG_LEVEL="ERROR")
    assert ran.wait(TIMEOUT_SECONDS) == 1
    assert service.errors.read_text() == (
        f"Error: The database {file} failed: unable to open database file."
        " Check that its folder exists, has room and belongs to the user the service runs as,"
        " or correct GATEHOUSE_DATABASE_URL.\n"
        "bin/serve: gunicorn exited with code 1\n"
    )


def test_an_instance_that_is_no_folder_stops_the_start(service):
    service.instance.touch()
    assert service.launch().wait(TIMEOUT_SECONDS) == 1
    told = f"bin/serve: GATEHOUSE_INSTANCE: {service.instance} is not a folder\n"
    assert service.errors.read_text() == told


def test_an_instance_that_cannot_be_made_names_its_variable(service, tmp_path):
    (tmp_path / "file").touch()
    nowhere = tmp_path / "file" / "instance"
    assert service.launch(INSTANCE=str(nowhere)).wait(TIMEOUT_SECONDS) == 1
    told = f"bin/serve: GATEHOUSE_INSTANCE: {nowhere}: Not a directory\n"
    assert service.errors.read_text() == told


def test_a_lock_that_cannot_be_had_stops_the_start_in_one_line(service):
    lock = service.instance / "serve.lock"
    lock.mkdir(parents=True, mode=0o700)
    service.instance.chmod(0o700)
    assert service.launch().wait(TIMEOUT_SECONDS) == 1
    assert service.errors.read_text() == f"bin/serve: {lock}: Is a directory\n"


def test_an_embedded_valkey_that_does_not_start_says_why(service):
    folder = service.instance / "valkey"
    (folder / "appendonlydir").mkdir(parents=True)
    (folder / "appendonlydir" / "appendonly.aof.manifest").write_text("nonsense\n")
    assert service.launch().wait(TIMEOUT_SECONDS) == 1
    [line] = service.errors.read_text().splitlines()
    assert line.startswith("bin/serve: the embedded Valkey exited with 1: ")
    assert "AOF manifest" in line


def test_a_socket_without_a_folder_stops_the_start(service):
    assert service.launch(BIND="unix:/nonexistent/folder/s").wait(TIMEOUT_SECONDS) == 1
    assert service.errors.read_text() == (
        "bin/serve: GATEHOUSE_BIND: cannot listen on unix:/nonexistent/folder/s:"
        " there is no such folder\n"
    )


def test_an_address_in_use_stops_the_start(service):
    with socket.create_server(("127.0.0.1", service.port)):
        assert service.launch().wait(TIMEOUT_SECONDS) == 1
    assert service.errors.read_text().startswith("bin/serve: GATEHOUSE_BIND: cannot listen on")
