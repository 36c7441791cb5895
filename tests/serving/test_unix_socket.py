"""gunicorn on a unix socket, as behind a proxy on the same machine."""

import http.client
import socket

import pytest

from app.web import site
from tests.support import servers
from tests.support.live import TIMEOUT_SECONDS, LiveClient, LiveService

ADMIN = {"username": "admin", "email": "admin@example.com", "password": "correct horse"}
AS_HTTPS = {"Host": "files.example.com", "X-Forwarded-Proto": "https"}
LIES = {
    "Forwarded": "for=192.0.2.1;proto=https;host=elsewhere.example",
    "X-Forwarded-Host": "elsewhere.example",
    "X-Forwarded-Ssl": "on",
    "X-Forwarded-Protocol": "ssl",
}


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=TIMEOUT_SECONDS)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_SECONDS)
        self.sock.connect(self._path)


class UnixService(LiveService):
    """The service on a socket in its folder."""

    def client(self):
        client = LiveClient(self)
        client._connection = UnixConnection(str(self.folder / "g.sock"))
        return client


@pytest.fixture
def start(database_url, redis_url):
    """Start the service with these trusted proxies; return it once it answers."""
    running = []

    with servers.short_folder() as folder:

        def run(trusted_proxies):
            service = UnixService(
                folder,
                database_url,
                redis_url,
                BIND=f"unix:{folder / 'g.sock'}",
                TRUSTED_PROXIES=trusted_proxies,
                WORKERS="1",
            )
            running.append(service)
            service.wait()
            return service

        yield run
        for service in running:
            service.stop()


def seen(service, headers):
    """Set the installation up; return the address it learnt."""
    with service.client() as client:
        client.post("/auth/setup", ADMIN, headers=headers).ok(201)
    service.rt.settings.forget()
    return service.rt.settings.get(site.PUBLIC_SITE_URL)


def test_without_trusted_proxies_nobody_is_believed_to_come_over_https(start):
    service = start("")
    assert seen(service, AS_HTTPS | LIES) == ("http://files.example.com",)
    with service.client() as client:
        headers = AS_HTTPS | {"Origin": "https://files.example.com"}
        body = {"identifier": "admin", "password": ADMIN["password"]}
        answer = client.post("/auth/login", body, headers=headers)
        answer.fails(403, "auth.request_origin_untrusted")
        headers |= {"Origin": "http://files.example.com"}
        answer = client.post("/auth/login", body, headers=headers)
        answer.ok()
        assert not any("secure" in cookie.attributes for cookie in answer.set_cookies.values())


def test_a_proxy_on_the_socket_is_believed_once_loopback_is_trusted(start):
    assert seen(start("127.0.0.1"), AS_HTTPS) == ("https://files.example.com",)
