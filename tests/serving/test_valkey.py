"""The embedded Valkey."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import redis

from app.serving import valkey
from tests.support import full_disk
from tests.support.servers import PrivateValkey


@pytest.fixture
def folder():
    # Not tmp_path: a unix socket's path is short.
    with tempfile.TemporaryDirectory(prefix="vk") as name:
        yield Path(name)


def run_once(folder, work, *, persist):
    server = PrivateValkey(folder, persist=persist)
    with server, redis.Redis.from_url(server.url) as client:
        return work(client)


@pytest.mark.parametrize("persist", [True, False])
def test_data_survives_only_when_asked_to(folder, persist):
    run_once(folder, lambda client: client.set("a", "b"), persist=persist)
    kept = run_once(folder, lambda client: client.get("a"), persist=persist)
    assert kept == (b"b" if persist else None)


def test_a_full_memory_refuses_writes_instead_of_dropping_keys(folder):
    def settings(client):
        return client.config_get("maxmemory", "maxmemory-policy")

    found = run_once(folder, settings, persist=False)
    assert found == {"maxmemory": str(512 * 1024 * 1024), "maxmemory-policy": "noeviction"}


def test_it_dies_with_its_parent(folder, eventually):
    program = (
        "import os, pathlib, sys; from app.serving import valkey; d = pathlib.Path(sys.argv[1]);"
        "p = valkey.start(d, d / 's', persist=False); valkey.wait_until_ready(p, d / 's');"
        "os.kill(os.getpid(), 9)"
    )
    parent = subprocess.run([sys.executable, "-c", program, str(folder)], check=False)
    assert parent.returncode == -signal.SIGKILL  # after the server was ready
    eventually(lambda: not valkey.answers(folder / "s"), "the server's end")


def test_a_server_that_cannot_start_is_reported(folder):
    process = valkey.start(folder, folder / "missing" / "s")
    with pytest.raises(valkey.ValkeyUnavailable, match=r"exited with 1.*No such file or directory"):
        valkey.wait_until_ready(process, folder / "missing" / "s", folder=folder)


def test_a_server_that_has_no_room_for_its_log_is_reported_with_that(folder):
    """It can write nothing down itself."""
    with full_disk.small(folder / "disk") as disk:
        full_disk.fill(disk / "waste")
        process = valkey.start(disk, folder / "s")
        with pytest.raises(valkey.ValkeyUnavailable, match="/disk: No space left on device"):
            valkey.wait_until_ready(process, folder / "s", folder=disk)
