"""What the documentation says of tokens of programs: its commands, its example, its expression."""

import base64
import re
import shlex
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
import sqlalchemy as sa

from app.core.access import Scope
from app.users.models import User
from tests.support.api import ApiClient
from tests.support.commands import CommandLine
from tests.support.factories import KnownUser, make_user
from tests.support.leaks import watch
from tests.support.live import LiveClient, LiveService, eventually, free_port
from tests.support.servers import ROOT

TWO_COMMANDS = re.compile(
    r"^\$ token=\$\(\.venv/bin/flask (tokens create .+)\)\n\$ (curl .+)$", re.MULTILINE
)
PAGES = ("README.md", "docs/tour.md", "docs/administration.md")
EXAMPLE = re.compile(r"```python\n(import base64\n.*?)```", re.DOTALL)


def read(page: str) -> str:
    return (ROOT / page).read_text()


# --- two commands ---------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_a_token_takes_two_commands(
    page: str, api: ApiClient, line: CommandLine, admin: KnownUser
) -> None:
    """What the command prints is the token, ready for a variable of the shell."""
    [(create, curl)] = TWO_COMMANDS.findall(read(page))
    words = shlex.split(create)
    token = line(*[admin.username if word == "ada" else word for word in words]).text
    watch.note(token)
    *_, header, where = shlex.split(curl)
    name, _, value = header.replace("$token", token).partition(": ")
    told = api.get(where.removeprefix("$api"), headers={name: value}).ok()
    found = told["items"][0] if "items" in told else told
    assert found["id"] == admin.id


def test_every_scope_of_the_pages_exists() -> None:
    for page in (*PAGES, "docs/security.md", "docs/integration.md"):
        for scope in re.findall(r"--scope (\S+?)\b[` )]", read(page)):
            assert scope in set(Scope), (page, scope)


# --- what scanners of secrets look for ------------------------------------------------------------


def test_the_expression_finds_a_token_in_what_was_committed(
    line: CommandLine, user: KnownUser
) -> None:
    [expression] = re.findall(r"^```\n(.*gth_.*)\n```$", read("docs/security.md"), re.MULTILINE)
    made = line("tokens", "create", user.username, "--name", "a", "--scope", "files").text
    watch.note(made)
    for text in (f'TOKEN = "{made}"', f"-H 'Authorization: Bearer {made}'", f"{made}\n"):
        assert re.findall(expression, text) == [made]
    for text in (made[:-1], f"{made}0", f"x{made}", "gth_"):
        assert not re.search(expression, text)


# --- the example of a file service ----------------------------------------------------------------


class FileService:
    """The example of docs/integration.md, at an address of its own."""

    def __init__(self, port: int, names: dict[str, Any]) -> None:
        self.url = f"http://127.0.0.1:{port}/"
        self.names = names

    def call(self, name: str, password: str, method: str = "GET") -> tuple[int, str]:
        """Send what a WebDAV client does; return the status and the text."""
        pair = base64.b64encode(f"{name}:{password}".encode()).decode()
        headers = {"Authorization": f"Basic {pair}"}
        return self.send(urllib.request.Request(self.url, method=method, headers=headers))

    def send(self, request: urllib.request.Request) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                is_asked = "WWW-Authenticate" in error.headers
                return error.code, "asked for a password" if is_asked else ""

    def let_a_minute_pass(self) -> None:
        """Make all that is kept a minute older."""
        kept = self.names["kept"]
        for key, (until, account) in kept.items():
            kept[key] = until - self.names["KEPT_SECONDS"], account


class Silent(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(application: Callable[..., Any]) -> Iterator[int]:
    server = make_server("127.0.0.1", 0, application, handler_class=Silent)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def files(live: LiveService, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileService]:
    [source] = EXAMPLE.findall(read("docs/integration.md"))
    monkeypatch.setenv("GATEHOUSE", f"http://127.0.0.1:{live.port}")
    names: dict[str, Any] = {}
    exec(compile(source, "docs/integration.md", "exec"), names)
    with serving(names["application"]) as port:
        yield FileService(port, names)


@pytest.fixture
def ada(live: LiveService) -> Iterator[LiveClient]:
    """The owner of tokens, signed in."""
    make_user(live.rt, username="root", role="admin")
    with live.client() as client:
        client.login(make_user(live.rt, username="ada")).ok()
        yield client


def given(owner: LiveClient, *scopes: str) -> tuple[int, str]:
    """Return the id of a new token and the token itself."""
    body = {"name": " ".join(scopes), "scopes": scopes, "expires_in_days": 1}
    made = owner.post("/auth/tokens", body).ok(201)
    return made["info"]["id"], made["token"]


def test_a_token_is_the_password_of_a_webdav_client(ada: LiveClient, files: FileService) -> None:
    _, whole = given(ada, "files")
    _, reading = given(ada, "files:read")
    _, other = given(ada, "profile")
    for method, name, token, status in (
        ("GET", "ada", whole, 200),
        ("PUT", "ada", whole, 200),
        ("PROPFIND", "Ada", reading, 200),
        ("PUT", "ada", reading, 403),
        ("GET", "ada", other, 403),
        ("GET", "bob", whole, 401),
        ("GET", "ada", f"{whole[:-1]}-", 401),
    ):
        assert files.call(name, token, method)[0] == status, (method, name)
    assert files.call("ada", whole) == (200, "The files of ada\n")
    assert files.send(urllib.request.Request(files.url)) == (401, "asked for a password")


def test_a_password_is_not_sent_on(
    files: FileService, monkeypatch: pytest.MonkeyPatch, ada: LiveClient
) -> None:
    monkeypatch.setitem(files.names, "ask", None)
    assert files.call("ada", "the password of ada")[0] == 401


def test_a_revoked_token_opens_files_for_a_minute_at_most(
    ada: LiveClient, files: FileService
) -> None:
    id_, token = given(ada, "files")
    assert files.call("ada", token)[0] == 200
    ada.delete(f"/auth/tokens/{id_}").ok()
    files.let_a_minute_pass()
    assert files.call("ada", token)[0] == 401
    # What was refused is asked again.
    assert files.call("ada", token)[0] == 401


def test_what_is_kept_is_of_one_name_and_has_no_token_in_it(
    ada: LiveClient, files: FileService
) -> None:
    _, token = given(ada, "files")
    assert files.call("ada", token)[0] == 200
    assert files.call("eve", token)[0] == 401
    assert token not in str(files.names["kept"])


def test_the_address_of_the_client_is_what_the_owner_sees(
    ada: LiveClient, files: FileService
) -> None:
    _, token = given(ada, "files")
    pair = base64.b64encode(f"ada:{token}".encode()).decode()
    environ = {"REQUEST_METHOD": "GET", "HTTP_AUTHORIZATION": f"Basic {pair}"}
    assert files.names["account_of"](environ | {"REMOTE_ADDR": "203.0.113.24"})["username"] == "ada"
    eventually(
        lambda: ada.get("/auth/tokens").ok()[0]["last_used_ip"] == "203.0.113.24", "its address"
    )


def test_a_disabled_account_and_a_service_that_is_away_are_told_apart(
    ada: LiveClient, files: FileService, live: LiveService, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, token = given(ada, "files")
    with live.rt.transaction() as session:
        session.execute(sa.update(User).where(User.username == "ada").values(status="disabled"))
    assert files.call("ada", token)[0] == 403
    monkeypatch.setitem(files.names, "ME", f"http://127.0.0.1:{free_port()}/")
    assert files.call("ada", token)[0] == 503
