"""Behind a real nginx that sends the files itself (README, In production)."""

import http.client
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import servers
from tests.support.factories import make_user
from tests.support.images import RED, headers, multipart, plain
from tests.support.live import LiveService, eventually, free_port

NGINX = shutil.which("nginx")
CONFIGURATION = """
daemon off;
worker_processes 1;
{user}
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        client_max_body_size 20m;
        location / {{
            proxy_pass http://127.0.0.1:{upstream};
        }}
        location /internal/avatars/ {{
            internal;
            alias {avatars}/;
            etag off;
            add_header ETag $upstream_http_etag;
            add_header Vary $upstream_http_vary;
            add_header X-Request-ID $upstream_http_x_request_id;
            add_header X-Content-Type-Options nosniff;
        }}
    }}
}}
"""

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not on the PATH")


@pytest.fixture
def service(
    server_folder: Path, sqlite_template: Path, live_redis_server: str
) -> Iterator[LiveService]:
    folder = server_folder / "accel"
    folder.mkdir()
    url = servers.copy_sqlite(sqlite_template, folder / "gatehouse.db")
    service = LiveService(folder, url, live_redis_server, AVATAR_ACCEL="/internal/avatars")
    service.wait()
    yield service
    service.stop()
    shutil.rmtree(folder)


@pytest.fixture
def port(service: LiveService) -> Iterator[int]:
    """The port of an nginx in front."""
    folder, port = service.folder, free_port()
    text = CONFIGURATION.format(
        folder=folder,
        port=port,
        upstream=service.port,
        avatars=folder / "instance" / "avatars",
        user="user root;" if os.geteuid() == 0 else "",
    )
    (folder / "nginx.conf").write_text(text)
    process = subprocess.Popen([NGINX, "-c", str(folder / "nginx.conf"), "-p", str(folder)])
    eventually(lambda: answers(port), "nginx")
    yield port
    process.terminate()
    process.wait(10)


def answers(port):
    try:
        return get(port, "/health", {})[0] == 200
    except OSError:
        return False


def get(port, path, sent, method="GET", body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, body, sent)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, answer.headers, content


def test_the_proxy_sends_the_file_and_keeps_the_headers(service, port):
    make_user(service.rt, username="root", role="admin")
    user = make_user(service.rt)
    with service.client() as direct:
        direct.login(user).ok()
        cookie = "; ".join(f"{name}={value}" for name, value in direct.cookies.items())
    sent = {"Cookie": cookie, **headers()}
    body = multipart(plain(RED))
    status, _, _ = get(port, "/api/v1/auth/profile/avatar/upload", sent, "POST", body)
    assert status == 200

    path = "/api/v1/auth/profile/avatar/512"
    status, got, content = get(port, path, {"Cookie": cookie})
    assert (status, content[8:12]) == (200, b"WEBP")
    assert got["Content-Type"] == "image/webp"
    assert got["Cache-Control"] == "private, max-age=31536000, immutable"
    assert got["ETag"].startswith('"v1-')
    assert "X-Accel-Redirect" not in got
    assert int(got["Content-Length"]) == len(content)
    status, _, content = get(port, path, {"Cookie": cookie, "If-None-Match": got["ETag"]})
    assert (status, content) == (304, b"")

    assert get(port, path, {})[0] == 401
    [file] = (service.folder / "instance" / "avatars").rglob("512.webp")
    inside = file.relative_to(service.folder / "instance" / "avatars")
    assert get(port, f"/internal/avatars/{inside}", {"Cookie": cookie})[0] == 404


def test_a_refusal_of_a_large_upload_arrives(service, port):
    """nginx asks the service to close each connection, unless told otherwise."""
    body = multipart(plain(RED).ljust(9 * 2**20, b"\0"))
    for _ in range(15):
        answer = get(port, "/api/v1/auth/profile/avatar/upload", headers(), "POST", body)
        assert answer[0] == 401
