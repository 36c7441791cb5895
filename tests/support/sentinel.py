"""A private Valkey with a replica, watched by a Sentinel, over TCP.

One Sentinel decides alone (a quorum of 1): how Sentinels agree among themselves is theirs.
"""

import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from app.serving import valkey
from app.serving.parent_death import before_exec
from tests.support.live import eventually, free_port

SERVICE = "gatehouse"
# Longer than any test or fault: what fails for a while causes no failover unless it is asked for.
PATIENT_MS = 600_000
IMPATIENT_MS = 1_000


class Node:
    """A process of `valkey-server` with a config file, which it may rewrite."""

    def __init__(self, folder: Path, lines: list[str], *arguments: str, password: str = "") -> None:
        folder.mkdir()
        self.folder, self.port, self._arguments = folder, free_port(), arguments
        self._password = password or None
        self._config = folder / "node.conf"
        shared = [f"port {self.port}", "bind 127.0.0.1", f"dir {folder}"]
        self._config.write_text("\n".join([*shared, *lines, ""]))

    def start(self) -> None:
        """Start it, for the first time or again; return once it answers."""
        command = [str(valkey.find_binary()), str(self._config), *self._arguments]
        with (self.folder / "valkey.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=before_exec(),
            )
        eventually(self._is_up, f"a server; its log: {self.folder / 'valkey.log'}")

    def stop(self) -> None:
        """Let it save its data and exit."""
        self._process.terminate()
        self._process.wait(30)

    def kill(self) -> None:
        """Kill it, as in a crash."""
        self._process.kill()
        self._process.wait()

    def hang(self) -> None:
        """Suspend it: it still accepts connections, but never answers."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it."""
        self._process.send_signal(signal.SIGCONT)

    def client(self, **options: Any) -> Redis:
        """Return a client of this very server."""
        return Redis(port=self.port, password=self._password, decode_responses=True, **options)

    def ask(self, ask: Callable[[Redis], Any]) -> Any:
        """Return what `ask` makes of a client; None while the server does not answer."""
        with suppress(RedisError), self.client(socket_timeout=1) as client:
            return ask(client)

    def _is_up(self) -> bool:
        assert self._process.poll() is None, (self.folder / "valkey.log").read_text()[-2000:]
        return bool(self.ask(lambda client: client.ping()))


class WatchedValkey:
    """A primary, a replica and their Sentinel; a context manager.

    `start`, `stop`, `kill`, `hang` and `resume` are of the server that Sentinel calls the primary.
    Without `fails_over` no failover begins by itself. With passwords, user `default` has them.
    """

    def __init__(
        self, folder: Path, *, persist: bool = False, password: str = "", at_sentinel: str = ""
    ) -> None:
        appending = "yes" if persist else "no"
        lines = ["loglevel notice", 'save ""', f"appendonly {appending}", "maxmemory 512mb"]
        lines += ["maxmemory-policy noeviction", "repl-diskless-sync-delay 0"]
        if password:
            lines += [f"requirepass {password}", f"masterauth {password}"]
        first = Node(folder / "first", lines, password=password)
        follows = [*lines, f"replicaof 127.0.0.1 {first.port}"]
        self.nodes = [first, Node(folder / "second", follows, password=password)]
        watched = [
            f"sentinel monitor {SERVICE} 127.0.0.1 {first.port} 1",
            f"sentinel down-after-milliseconds {SERVICE} {PATIENT_MS}",
            f"sentinel failover-timeout {SERVICE} 10000",
        ]
        watched += [f"sentinel auth-pass {SERVICE} {password}"] if password else []
        watched += [f"requirepass {at_sentinel}"] if at_sentinel else []
        self.sentinel = Node(folder / "sentinel", watched, "--sentinel", password=at_sentinel)
        user = f":{password}@" if password else ""
        option = f"?sentinel_password={at_sentinel}" if at_sentinel else ""
        self.url = f"redis+sentinel://{user}127.0.0.1:{self.sentinel.port}/{SERVICE}/0{option}"

    def __enter__(self) -> "WatchedValkey":
        for node in (*self.nodes, self.sentinel):
            node.start()
        self.wait_for_replica()
        return self

    def __exit__(self, *_: object) -> None:
        for node in (self.sentinel, *self.nodes):
            node.resume()
            node.kill()

    @property
    def primary(self) -> Node:
        """The server that Sentinel calls the primary, whether or not it is up."""
        with self.sentinel.client() as client:
            address: Any = client.sentinel_get_master_addr_by_name(SERVICE)
        return next(node for node in self.nodes if node.port == int(address[1]))

    @property
    def other(self) -> Node:
        """The other one."""
        return next(node for node in self.nodes if node is not self.primary)

    def start(self) -> None:
        self.primary.start()

    def stop(self) -> None:
        self.primary.stop()

    def kill(self) -> None:
        self.primary.kill()

    def hang(self) -> None:
        self.primary.hang()

    def resume(self) -> None:
        self.primary.resume()

    def fail_over_after(self, milliseconds: int) -> None:
        """Have Sentinel take the primary for dead when it has not answered for so long."""
        with self.sentinel.client() as client:
            client.sentinel_set(SERVICE, "down-after-milliseconds", milliseconds)

    def cut_off(self) -> Node:
        """Let neither Sentinel nor replica reach the primary, which keeps its clients; return it.

        It takes no writes then, as with the settings that operators are told to use.
        """
        node = self.primary
        with node.client() as client:
            client.config_set("min-replicas-max-lag", 1)
            client.config_set("min-replicas-to-write", 1)
            client.config_set("requirepass", "which nobody else knows")
            for each in client.client_list():
                if each["flags"] == "S" or each["name"].startswith("sentinel-"):
                    client.client_kill_filter(_id=each["id"])
        return node

    def wait_for_replica(self) -> None:
        """Return once Sentinel knows the replica, and it has all that the primary has."""

        def is_known() -> bool:
            found: Any = self.sentinel.ask(lambda client: client.sentinel_slaves(SERVICE))  # type: ignore[no-untyped-call]
            return bool(found) and not any(each["is_disconnected"] for each in found)

        def is_synced() -> bool:
            found: Any = self.other.ask(lambda client: client.info("replication"))
            return bool(found) and found.get("master_link_status") == "up"

        eventually(is_known, "Sentinel to know the replica")
        eventually(is_synced, "the replica to follow")

    def wait_for_failover(self, dead: Node) -> None:
        """Return once Sentinel names another primary than `dead`."""
        eventually(lambda: self.primary is not dead, "another primary")
