"""Back up and restore, by the commands of docs/operations.md."""

import re
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
import sqlalchemy as sa

from app.factory import create_app
from app.mail.models import MailStatus
from tests.support import servers
from tests.support.api import ApiClient
from tests.support.commands import CommandLine

PAGE = (servers.ROOT / "docs" / "operations.md").read_text()
[SIGN_OUT] = set(re.findall(r"UPDATE login_sessions [^'\"]+", PAGE))
# The options between the program and those that tell the database.
[DUMP] = re.findall(r"postgres pg_dump (.+) -U", PAGE)
[RESTORE] = re.findall(r"postgres pg_restore (.+) -U", PAGE)
[COPY_SQLITE] = re.findall(r"python3 -c '(import sqlite3, sys; [^']+)'", PAGE)


def test_the_statement_for_a_restored_database_signs_everybody_out(rt, signed_in):
    with rt.transaction() as session:
        session.execute(sa.text(SIGN_OUT))
    signed_in.me().fails(401, "auth.token_invalid")
    signed_in.refresh().fails(401, "auth.token_invalid")


def program(name, *arguments, **streams):
    command = [str(servers.postgres_binaries() / name), *arguments]
    subprocess.run(command, check=True, timeout=60, **streams)


@pytest.fixture
def restored(request, database_url, tmp_path, worker_name):
    """What makes a backup and restores it somewhere else, and returns that URL."""
    if database_url.startswith("sqlite"):
        yield lambda: copied(database_url, tmp_path / "backup.db")
        return
    cluster = request.getfixturevalue("postgres_server")
    name = f"gatehouse_restored_{worker_name}"
    yield lambda: dumped(database_url, cluster.create(name), tmp_path / "gatehouse.dump")
    cluster.drop(name)


def copied(source, backup):
    file = source.removeprefix("sqlite:///")
    command = [sys.executable, "-c", COPY_SQLITE, f"file:{file}?mode=rw", str(backup)]
    subprocess.run(command, check=True, timeout=60)
    return f"sqlite:///{backup}"


def dumped(source, target, backup):
    with backup.open("wb") as file:
        program("pg_dump", *DUMP.split(), plain(source), stdout=file)
    with backup.open("rb") as file:
        program("pg_restore", *RESTORE.split(), f"--dbname={plain(target)}", stdin=file)
    return target


def plain(url):
    return url.replace("+psycopg2", "")


def test_a_backup_that_is_restored_is_the_service_again(
    restored, api, user, redis_url, tmp_path, clock
):
    api.login(user).ok()
    config = servers.cheap_config(tmp_path / "instance", restored(), redis_url)
    app = create_app(config, clock=clock)
    rt = app.extensions["gatehouse"]
    with closing(rt):
        assert CommandLine(app).json("prepare") == {"prepared": True}
        device = ApiClient(app)
        for name, value in api.cookies.items():
            device.set_cookie(name, value)
        device.me().ok()
        with rt.transaction() as session:
            session.execute(sa.text(SIGN_OUT))
        device.refresh().fails(401, "auth.token_invalid")
        device.login(user).ok()


def test_the_sign_out_of_an_sqlite_file_is_python(tmp_path):
    [code] = re.findall(r"python3 -c '(import sqlite3; [^']+)'", PAGE)
    (tmp_path / "instance").mkdir()
    with closing(sqlite3.connect(tmp_path / "instance" / "gatehouse.db")) as database:
        database.execute("CREATE TABLE login_sessions (revoked_at TEXT)")
        database.execute("INSERT INTO login_sessions VALUES (NULL)")
        database.execute("CREATE TABLE mail_outbox (status TEXT)")
        mails = [(status.value,) for status in MailStatus]
        database.executemany("INSERT INTO mail_outbox VALUES (?)", mails)
        database.commit()
        command = [sys.executable, "-c", code.replace("\n> ", "\n")]
        subprocess.run(command, check=True, timeout=60, cwd=tmp_path)
        [(moment,)] = database.execute("SELECT revoked_at FROM login_sessions").fetchall()
        kept = {status for (status,) in database.execute("SELECT status FROM mail_outbox")}
    assert moment is not None
    assert kept == {MailStatus.SENT, MailStatus.FAILED}
