"""nginx with the configuration of deploy/nginx; only the files in its gatehouse/ are replaced."""

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path

from app.serving.parent_death import before_exec
from tests.support import live
from tests.support.live import dial, eventually, free_port
from tests.support.servers import NotStarted
from tests.support.smtp import HOST, Authority

CONFIGURATION = Path(__file__).resolve().parents[1] / "nginx"


def find_nginx() -> str:
    """Return the path of the nginx executable.

    Raises: NotStarted.
    """
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        raise NotStarted("nginx is not on the PATH")
    return program


class Proxy:
    """One nginx in front of local instances; serves https on `port` and http on `plain_port`."""

    def __init__(self, folder: Path, upstreams: Sequence[int], avatars: Path) -> None:
        self._program = find_nginx()
        self.folder = folder
        self.port, self.plain_port = free_port(), free_port()
        self.access_log, self.error_log = folder / "access.log", folder / "error.log"
        folder.mkdir()
        self._authority = Authority(folder)
        self.certificate = self._authority.path
        self._client = self._authority.client()
        self._configuration = folder / "nginx"
        shutil.copytree(CONFIGURATION, self._configuration)
        self._write(upstreams, avatars)

    def _write(self, upstreams: Sequence[int], avatars: Path) -> None:
        folder, pem = self.folder, self._authority.pem(HOST)
        own = self._configuration / "gatehouse"
        ssl_options = f" ssl http2; ssl_certificate {pem}; ssl_certificate_key {pem}"
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        # Started as root, nginx would switch to a user who cannot read a private folder.
        user = "user root;" if os.geteuid() == 0 else ""
        texts = {
            "main": f"daemon off; {user} pid {folder}/pid; error_log {self.error_log};"
            " worker_processes auto;",
            "http": "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds),
            "log": f"access_log {self.access_log} gatehouse; error_log {self.error_log} crit;",
            "listen-http": f"listen 127.0.0.1:{self.plain_port};",
            "listen-https": f"listen 127.0.0.1:{self.port}{ssl_options};",
            "instances": " ".join(f"server 127.0.0.1:{p} max_fails=0;" for p in upstreams),
            "avatars": f"alias {avatars}/;",
            "acme": f"root {folder}/acme;",
        }
        for name, text in texts.items():
            (own / f"{name}.conf").write_text(text + "\n")

    @property
    def url(self) -> str:
        """The base URL for clients on this machine."""
        return f"https://{HOST}:{self.port}"

    def start(self) -> None:
        """Start it; return once it accepts connections."""
        command = [self._program, "-p", str(self.folder), "-e", str(self.error_log)]
        command += ["-c", str(self._configuration / "nginx.conf")]
        with (self.folder / "output.log").open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=before_exec(),
            )
        eventually(self._listens, "nginx")

    def _listens(self) -> bool:
        if self._process.poll() is not None:
            raise NotStarted((self.folder / "output.log").read_text())
        try:
            dial(self.port).close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        """Stop it without waiting for its clients."""
        self._process.terminate()
        self._process.wait(10)

    # --- clients -------------------------------------------------------------------------------

    def dial(
        self, receive_buffer: int | None = None, *, protocols: Sequence[str] = ()
    ) -> ssl.SSLSocket:
        """Return a new connection with a verified certificate; `protocols` are offered by ALPN."""
        context = self._client
        if protocols:
            context = self._authority.client()
            context.set_alpn_protocols(list(protocols))
        plain = dial(self.port, receive_buffer)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return context.wrap_socket(plain, server_hostname=HOST)
        except BaseException:
            plain.close()
            raise

    def client(self) -> live.LiveClient:
        """Return a client with one connection, kept open; close it or use it as a context."""
        return live.LiveClient(self)
