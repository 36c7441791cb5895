"""deploy/ in containers, as docs/operations.md starts it: the image, and the whole composition.

Skipped without Docker; test_image.py still takes the steps of the Dockerfile one by one.
"""

import io
import json
import re
import resource
import secrets
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from PIL import Image

from tests.support import images, servers
from tests.support.live import free_port
from tests.support.smtp import Authority

# What is sent to the builder, and what lies beside it.
TREE = ("Dockerfile", ".dockerignore", "app", "migrations", "wsgi.py", "gunicorn.conf.py")
NEEDED = (*TREE, "requirements.txt", "deploy")
NEW_PASSWORD = "a password that nobody else has"

pytestmark = [
    pytest.mark.live,
    pytest.mark.xdist_group("containers"),
    pytest.mark.timeout(1800),  # the first build fetches images and packages
]


def docker(*arguments: str, cwd: Path = servers.ROOT) -> subprocess.CompletedProcess[str]:
    """Run docker; checking the exit code is left to the caller."""
    return subprocess.run(
        ["docker", *arguments], check=False, capture_output=True, text=True, cwd=cwd
    )


class Composed:
    """The services of compose.yaml, with a project name, port and secrets of their own."""

    def __init__(self, folder: Path) -> None:
        for name in NEEDED:
            copy = shutil.copytree if (servers.ROOT / name).is_dir() else shutil.copy2
            copy(servers.ROOT / name, folder / name)
        self._deploy = folder / "deploy"
        self._project = f"gatehouse-test-{secrets.token_hex(4)}"
        self.port = free_port()
        self.origin = f"https://localhost:{self.port}"
        self.secrets = secrets.token_urlsafe(24), secrets.token_urlsafe(32)
        self._fill_in()
        self.authority = self._certify()
        self._keep_apart()

    def _fill_in(self) -> None:
        password, key = self.secrets
        example = (self._deploy / "gatehouse.env.example").read_text()
        filled = example.replace(":CHANGE-ME@", f":{password}@").replace("=CHANGE-ME", f"=k1:{key}")
        assert "CHANGE-ME" not in filled
        (self._deploy / "gatehouse.env").write_text(filled)
        (self._deploy / "postgres.env").write_text(f"POSTGRES_PASSWORD={password}\n")

    def _certify(self) -> Path:
        """Make nginx's certificate, readable for its user; return the authority for clients."""
        tls = self._deploy / "tls"
        tls.mkdir()
        authority = Authority(tls)
        pem = authority.pem("localhost").read_bytes()
        for name in ("fullchain.pem", "privkey.pem"):
            (tls / name).write_bytes(pem)
            (tls / name).chmod(0o644)
        return authority.path

    def _keep_apart(self) -> None:
        """Override the port with a free one, and limit open files to what this machine allows."""
        files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 65536)
        lines = ["services:"]
        for service in ("app1", "app2", "nginx"):
            lines += [f"  {service}:", f"    ulimits: {{nofile: {files}}}"]
        lines.append(f'    ports: !override ["127.0.0.1:{self.port}:8443"]')
        (self._deploy / "compose.override.yaml").write_text("\n".join(lines) + "\n")

    def compose(self, *arguments: str) -> str:
        """Run docker compose, which has to succeed; return what it printed."""
        done = docker("compose", "--project-name", self._project, *arguments, cwd=self._deploy)
        assert done.returncode == 0, f"{arguments}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
        return done.stdout

    def flask(self, *arguments: str) -> str:
        """Run a command of the service in the first instance; return what it printed."""
        return self.compose("exec", "-T", "app1", "flask", "--app", "wsgi", *arguments)

    def begin(self) -> None:
        """Start the instances, complete the installation, start nginx and change the password."""
        self.compose("up", "--build", "--detach", "--wait", "app1", "app2")
        self.flask("storage", "bootstrap")
        made = self.flask(
            *("users", "create", "--username", "ada", "--email", "ada@example.com"),
            *("--role", "admin", "--generate"),
        )
        [first_password] = re.findall(r"password: (\S+)", made)
        self.flask("config", "set", "public_site_url", json.dumps([self.origin]))
        self.flask("config", "set", "auth_cookie_secure", "true")
        self.compose("up", "--detach", "--wait", "nginx")
        browser = Browser(self)
        browser.login(first_password)
        change = {"current_password": first_password, "new_password": NEW_PASSWORD}
        assert browser.call("PUT", "/auth/password", json=change).status_code == 200
        self.secrets += (first_password, NEW_PASSWORD)


class Browser:
    """A client of the composed service, over https through nginx."""

    def __init__(self, composed: Composed) -> None:
        self._base = f"{composed.origin}/api/v1"
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = str(composed.authority)
        self._session.headers["Origin"] = composed.origin

    def call(self, method: str, path: str, **options: object) -> requests.Response:
        csrf = self._session.cookies.get("service_csrf")
        headers = {"X-CSRF-Token": csrf} if csrf else {}
        return self._session.request(
            method, self._base + path, headers=headers, timeout=30, **options
        )

    def login(self, password: str) -> "Browser":
        known = {"identifier": "ada", "password": password}
        answer = self.call("POST", "/auth/login", json=known)
        assert answer.status_code == 200, answer.text
        return self


@pytest.fixture(scope="module")
def composed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    if shutil.which("docker") is None or docker("compose", "version").returncode:
        pytest.skip("there is no docker with compose")
    if docker("info").returncode:
        pytest.skip("docker's service does not answer")
    started = Composed(tmp_path_factory.mktemp("composed"))
    try:
        started.begin()
        yield started
        log = started.compose("logs", "--no-color")
        assert [secret for secret in started.secrets if secret in log] == []
    finally:
        started.compose("down", "--volumes", "--timeout", "1")


def test_doctor_finds_nothing_wrong_in_a_container(composed):
    findings = json.loads(composed.flask("doctor", "--json"))["checks"]
    assert {finding["level"] for finding in findings} == {"ok"}


def test_an_instance_is_nobody_in_particular_and_writes_only_its_folders(composed):
    def inside(command: str) -> str:
        return composed.compose("exec", "-T", "app1", "sh", "-c", command)

    assert inside("id -u").strip() == "10001"
    assert inside("grep CapEff /proc/1/status").split()[1].strip("0") == ""
    writable = "for d in / /etc /srv /srv/gatehouse /venv /tmp /srv/instance /srv/avatars; do"
    assert inside(f"{writable} test -w $d && echo $d; done; true").split() == [
        *("/tmp", "/srv/instance", "/srv/avatars")
    ]


def test_both_instances_know_a_session_and_nginx_sends_the_avatar(composed):
    ada = Browser(composed).login(NEW_PASSWORD)
    upload = {"file": ("ada.png", images.plain(), "image/png")}
    sent = ada.call("POST", "/auth/profile/avatar/upload", files=upload)
    assert sent.status_code == 200, sent.text
    url = sent.json()["data"]["profile"]["avatar"]["url_512"]
    answers = [ada.call("GET", url) for _ in range(8)]
    assert {answer.status_code for answer in answers} == {200}
    assert {Image.open(io.BytesIO(answer.content)).format for answer in answers} == {"WEBP"}
    for instance in ("app1", "app2"):
        log = composed.compose("logs", "--no-color", instance)
        assert f"GET /api/v1{url.partition('?')[0]} 200" in log


@contextmanager
def under_load(composed: Composed) -> Iterator[Counter[str]]:
    """Have two clients ask who is signed in throughout the block; count the answers."""
    seen: Counter[str] = Counter()
    done = threading.Event()

    def ask() -> None:
        browser = Browser(composed).login(NEW_PASSWORD)
        while not done.wait(0.05):
            try:
                seen[str(browser.call("GET", "/auth/me").status_code)] += 1
            except requests.RequestException as failure:
                seen[repr(failure)] += 1

    clients = [threading.Thread(target=ask) for _ in range(2)]
    for client in clients:
        client.start()
    try:
        yield seen
    finally:
        done.set()
        for client in clients:
            client.join()


def test_an_upgrade_of_one_instance_after_the_other_fails_no_request(composed):
    with under_load(composed) as seen:
        composed.compose("run", "--rm", "prepare")
        for instance in ("app1", "app2"):
            recreate = ("up", "--detach", "--no-deps", "--force-recreate", "--wait", instance)
            composed.compose(*recreate)
    assert set(seen) == {"200"}
    assert seen["200"] > 20


def test_all_is_there_again_after_everything_was_stopped(composed):
    composed.compose("stop", "--timeout", "20")
    composed.compose("up", "--detach", "--wait", "nginx")
    ada = Browser(composed).login(NEW_PASSWORD)
    assert ada.call("GET", "/auth/me").json()["data"]["username"] == "ada"
