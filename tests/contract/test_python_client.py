"""A Python client is made from the API description, and works on the running service."""

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support import pip
from tests.support.factories import KnownUser, audit_rows, make_user
from tests.support.leaks import watch
from tests.support.live import LiveService
from tests.support.openapi import DOCUMENT
from tests.support.servers import ROOT

FOLDER = ROOT / "clients" / "python"
USAGE = FOLDER / "usage.py"
PACKAGE = "gatehouse_client"
ACCESS = "service_access"
SECONDS = 300


@pytest.fixture(scope="module")
def python() -> Path:
    """The Python of an environment with the generator, and what its clients import."""
    try:
        return pip.install(FOLDER)
    except pip.Missing as reason:
        pytest.skip(f"no Python client: {reason}")


@pytest.fixture(scope="module")
def generated(python: Path, live_services: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the client that was made of the running service's description."""
    folder = tmp_path_factory.mktemp("python_client")
    service = live_services("live", "sqlite")
    service.wait()
    with service.client() as client:
        (folder / "openapi.json").write_bytes(client.get(DOCUMENT).body)
    command = [
        *(python.with_name("openapi-python-client"), "generate", "--fail-on-warning"),
        *("--path", "openapi.json", "--config", FOLDER / "generator.yaml"),
        *("--meta", "none", "--output-path", PACKAGE),
    ]
    made = run(command, folder)
    assert (made.returncode, "WARNING" in made.stdout) == (0, False), made.stdout + made.stderr
    shutil.copy(USAGE, folder)
    return folder


@pytest.fixture(scope="module")
def package(python: Path, generated: Path) -> Iterator[ModuleType]:
    """That client, imported; what it imports, the suite may have in another version or not."""
    [packages] = python.parents[1].glob("lib/python*/site-packages")
    places = str(generated), str(packages)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, *places])
        importlib.import_module(f"{PACKAGE}.models")
        yield importlib.import_module(PACKAGE)
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(places):
            del sys.modules[name]


def run(command: Sequence[object], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that speaks to no host but this one."""
    return subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env=os.environ | {"NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


class Caller:
    """A program that calls the service through the generated client."""

    def __init__(self, package: ModuleType, service: LiveService, token: str = "") -> None:
        self.service = service
        self.models = package.models
        # What no test may make it meet: a proxy of this machine, or an answer not described.
        options = {
            "base_url": f"http://127.0.0.1:{service.port}",
            "httpx_args": {"trust_env": False, "event_hooks": {"response": [note]}},
            "raise_on_unexpected_status": True,
        }
        if token:
            self.client = package.AuthenticatedClient(token=token, **options)
        else:
            self.client = package.Client(**options)

    def call(self, operation: str, **arguments: Any) -> Any:
        """Return the answer as the client's type of it; `operation` has its area before a dot."""
        module = importlib.import_module(f"{PACKAGE}.api.{operation}")
        return module.sync(client=self.client, **arguments)

    def sign_in(self, user: KnownUser, password: str = "") -> Any:
        body = self.models.LoginBody(user.username, password or user.password)
        return self.call("login.login", body=body)

    @property
    def access_token(self) -> str:
        return str(self.client.get_httpx_client().cookies[ACCESS])

    def close(self) -> None:
        self.client.get_httpx_client().close()


def note(response: Any) -> None:
    """Have the secrets of an exchange looked for in the service's log."""
    watch.note_body(response.request.content)
    watch.note_answer(response.read(), response.cookies.values())


@pytest.fixture
def root(live: LiveService) -> KnownUser:
    return make_user(live.rt, username="root", role="admin")


@pytest.fixture
def caller(package: ModuleType, live: LiveService) -> Iterator[Caller]:
    """A program that keeps cookies, and has none yet."""
    caller = Caller(package, live)
    yield caller
    caller.close()


@pytest.fixture(params=["cookies", "bearer token"])
def admin(
    request: pytest.FixtureRequest, package: ModuleType, caller: Caller, root: KnownUser
) -> Iterator[Caller]:
    """A program that an administrator has signed in."""
    caller.sign_in(root)
    if request.param == "cookies":
        yield caller
    else:
        with_token = Caller(package, caller.service, caller.access_token)
        yield with_token
        with_token.close()


@pytest.mark.soak
def test_a_programs_use_of_it_has_the_right_types(python: Path, generated: Path) -> None:
    """Only what uses the client is checked, and the client as far as that needs its types."""
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += ["--python-executable", str(python), USAGE.name]
    checked = run(command, generated)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.soak
def test_a_programs_use_of_it_works(python: Path, generated: Path, live: LiveService) -> None:
    live.wait()
    used = run([str(python), USAGE.name, f"http://127.0.0.1:{live.port}"], generated)
    assert used.stdout.splitlines() == [
        "refused: auth.credentials_failed",
        "signed in: ada",
        "shown: /auth/profile/avatar/512?v=1",
        "accounts: ada",
        "refused: forbidden",
    ], used.stderr


def test_it_signs_in_and_refreshes(caller: Caller, root: KnownUser) -> None:
    assert caller.sign_in(root).data.status == "authenticated"
    first = caller.access_token
    assert caller.call("profile.get_me").data.username == "root"
    refreshed = caller.call("sessions.refresh_session")
    assert isinstance(refreshed, caller.models.RefreshedAnswer)
    assert refreshed.data.expires_in > 0
    assert caller.access_token != first
    assert caller.call("profile.get_me").data.username == "root"


def test_it_tells_refusals_apart_by_their_type(caller: Caller, root: KnownUser) -> None:
    refused = caller.sign_in(root, "not the password")
    assert isinstance(refused, caller.models.LoginCredentialsFailedAnswer)
    refused = caller.call("profile.get_me")
    assert isinstance(refused, caller.models.GetMeSessionMissingAnswer)
    assert refused.code == "auth.token_missing"


def test_it_administers_an_account(admin: Caller, live: LiveService) -> None:
    models = admin.models
    new = models.CreateUserBody(username="bob", email="bob@example.com")
    created = admin.call("administration.admin_create_user", body=new).data
    assert created.generated_password
    bob = created.user
    listed = admin.call("administration.admin_list_users", keyword="bob").data
    assert (listed.total, listed.items) == (1, [bob])

    lock = models.UpdateUserBody(
        status=models.UpdateUserBodyStatus.DISABLED, expected_updated_at=bob.updated_at
    )
    locked = admin.call("administration.admin_update_user", id=bob.id, body=lock).data
    assert (locked.status, locked.role) == ("disabled", "user")
    refused = admin.call("administration.admin_update_user", id=bob.id, body=lock)
    assert refused.code == "conflict"  # it is no longer as it was at that time

    deleted = admin.call("administration.admin_delete_user", id=bob.id, confirm="bob")
    assert deleted.code == "success"
    assert admin.call("administration.admin_get_user", id=bob.id).code == "not_found"
    assert len(audit_rows(live.rt, "admin_force_delete_user")) == 1


def test_it_exports_the_account_of_its_caller(admin: Caller, root: KnownUser) -> None:
    exported = admin.call("own_data.export_data")
    assert isinstance(exported, admin.models.ExportData)
    assert (exported.account.id, exported.account.email) == (root.id, root.email)
    assert len(exported.sessions) == 1
    assert exported.generated_at.tzinfo is not None
