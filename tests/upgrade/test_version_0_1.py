"""What an installation of version 0.1 keeps is served after `flask prepare`.

The folder `version_0_1` is such an installation: the rows of its database, its keys and avatars,
and in known.json what its only active user knows.
"""

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from flask_migrate import upgrade

from app.commands import run
from tests.support import servers
from tests.support.api import ApiClient
from tests.support.authenticator import Authenticator as TotpApp
from tests.support.challenge import verify
from tests.support.clock import FakeClock
from tests.support.images import BLUE, shown
from tests.support.passkeys import ES256, Authenticator, Key, Passkey, log_in

pytestmark = pytest.mark.both_databases

KEPT = Path(__file__).parent / "version_0_1"
KNOWN = json.loads((KEPT / "known.json").read_text())
ITS_REVISION = "0008"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime.fromisoformat(KNOWN["at"]))


@pytest.fixture
def database_url(request: pytest.FixtureRequest, database_name: str, tmp_path: Path) -> Any:
    """An empty database."""
    if database_name == "sqlite":
        yield f"sqlite:///{tmp_path / 'gatehouse.db'}"
        return
    cluster = request.getfixturevalue("postgres_server")
    name = f"gatehouse_upgraded_{request.getfixturevalue('worker_name')}"
    yield cluster.create(name)
    cluster.drop(name)


@pytest.fixture
def app(make_app, tmp_path, database_url):
    """The present version, prepared on what version 0.1 left."""
    instance = tmp_path / "instance"
    shutil.copytree(KEPT, instance)
    app = make_app(secret_keys=())
    with app.app_context():
        upgrade(str(servers.ROOT / "migrations"), ITS_REVISION)
    fill(database_url)
    assert run(app, "prepare") == 0
    return app


@pytest.fixture
def api(app):
    return ApiClient(app)


def fill(url: str) -> None:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    schema = sa.MetaData()
    schema.reflect(engine)
    kept = json.loads((KEPT / "rows.json").read_text())
    with engine.begin() as connection:
        for table in reversed(schema.sorted_tables):
            connection.execute(sa.delete(table))
        for table in schema.sorted_tables:
            content = kept.get(table.name, {"columns": [], "rows": []})
            columns = [table.c[name] for name in content["columns"]]
            for row in content["rows"]:
                values = [stored(column, value) for column, value in zip(columns, row, strict=True)]
                names = [column.name for column in columns]
                connection.execute(sa.insert(table).values(dict(zip(names, values, strict=True))))
            if engine.name == "postgresql" and content["rows"] and "id" in table.c:
                restart_ids(connection, table)
    engine.dispose()


def stored(column: sa.Column[Any], value: Any) -> Any:
    """Return SQLite's value as the reflected type of a column takes it."""
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    if value is None:
        return None
    if isinstance(column.type, sa.DateTime):
        moment = datetime.fromisoformat(f"{value}+00:00")
        return moment if column.type.timezone else moment.replace(tzinfo=None)
    if isinstance(column.type, sa.Boolean):
        return bool(value)
    return json.loads(value) if isinstance(column.type, sa.JSON) else value


def restart_ids(connection: sa.Connection, table: sa.Table) -> None:
    sequence = connection.execute(
        sa.text("SELECT pg_get_serial_sequence(:name, 'id')"), {"name": table.name}
    ).scalar()
    if sequence:
        most = sa.select(sa.func.max(table.c.id)).scalar_subquery()
        connection.execute(sa.select(sa.func.setval(sequence, most)))


def sign_in(api: ApiClient) -> str:
    """Do the first step; return the token for the second."""
    data = api.login(KNOWN["username"], KNOWN["password"]).ok()
    assert data["status"] == "mfa_required"
    return data["flow_token"]


@pytest.mark.usefixtures("app")
def test_instances_of_that_version_still_write_while_they_are_replaced(database_url):
    fill(database_url)


def test_its_sessions_go_on(api):
    """By the access token, which its key signed, and by the refresh token."""
    me = api.bearer(KNOWN["access_token"]).me().ok()
    assert (me["username"], me["role"]) == ("Ada", "admin")
    assert me["profile"]["display_name"] == "Ada Lovelace"

    api.set_cookie("service_refresh", KNOWN["refresh_token"])
    api.refresh().ok()
    assert api.me().ok()["id"] == me["id"]


def test_its_accounts_count_as_proven_if_they_could_be_used(app):
    with app.extensions["gatehouse"].reading() as session:
        rows = session.execute(sa.text("SELECT activated_at, proven_at FROM users")).all()
    assert sorted((active is not None, proven is not None) for active, proven in rows) == [
        (False, False),
        (True, True),
    ]


def test_a_password_and_a_totp_code_sign_in(api, clock):
    clock.advance(seconds=30)
    verify(api, sign_in(api), TotpApp(KNOWN["totp_secret"], clock).code()).ok()
    assert api.me().ok()["username"] == "Ada"


def test_a_recovery_code_signs_in_once(api):
    verify(api, sign_in(api), KNOWN["recovery_code"], "recovery_code").ok()
    again = verify(api.stranger(), sign_in(api.stranger()), KNOWN["recovery_code"], "recovery_code")
    again.fails(401, "auth.mfa_recovery_code_used")


def test_a_passkey_signs_in(api):
    kept, device = KNOWN["passkey"], Authenticator(counts=True)
    private = load_pem_private_key(kept["private_key"].encode(), None)
    device.passkeys.append(
        Passkey(
            id=bytes.fromhex(kept["id"]),
            key=Key(ES256, private),
            rp_id=kept["rp_id"],
            user_handle=kept["user_handle"],
            count=kept["count"],
        )
    )
    log_in(api, device).ok()
    assert api.me().ok()["username"] == "Ada"


def test_its_avatar_is_shown(api):
    api.headers["Authorization"] = f"Bearer {KNOWN['access_token']}"
    assert shown(api, 512).getpixel((256, 256)) == BLUE
    assert shown(api, 1024).size == (1024, 1024)


def test_the_mails_that_waited_are_sent_and_their_links_work(api, mailbox):
    mails = mailbox.read()
    assert sorted(mail["Subject"] for mail in mails) == [
        "Files: activate your account",
        "Files: reset your password",
        "Files: security notice",
        "Files: security notice",
    ]
    [reset] = [mail for mail in mails if "reset" in mail["Subject"]]
    body = {"token": mailbox.token(reset), "new_password": "one more long password"}
    api.post("/auth/password/reset/confirm", body).ok()


def test_new_rows_get_ids_of_their_own(api):
    api.headers["Authorization"] = f"Bearer {KNOWN['access_token']}"
    body = {"username": "grace", "email": "grace@example.com", "password": "a rather long password"}
    assert api.stranger().post("/auth/register", body).ok(201)["id"] == 3
