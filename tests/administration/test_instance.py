"""Who makes an instance, its key file above all, and when that would do harm."""

import json
import os

import pytest
import sqlalchemy as sa

from app.core import folders
from app.core.config import ConfigError
from app.crypto.keyring import Keyring
from app.factory import create_app
from app.mail.models import OutboxMail
from tests.support import full_disk, servers
from tests.support.commands import CommandLine
from tests.support.external import add_provider
from tests.support.factories import configure, make_user
from tests.support.privileges import bound_by_modes
from tests.support.standard_error import lines_of

UNREACHABLE = "postgresql+psycopg2://nobody@127.0.0.1:1/nothing"


@pytest.fixture
def elsewhere(tmp_path):
    """The folder of an instance that is not there yet."""
    return tmp_path / "elsewhere"


@pytest.fixture
def new(elsewhere, database_url, redis_url):
    """What runs a command on the test's database in that folder, as a process of its own would."""
    built = []

    def run(*arguments, url=database_url):
        options = {"secret_keys": (), "log_level": "WARNING"}
        app = create_app(servers.cheap_config(elsewhere, url, redis_url, **options))
        built.append(app.extensions["gatehouse"])
        return CommandLine(app)(*arguments)

    yield run
    for rt in built:
        rt.close()


def test_new_keys_are_told_in_the_log(new, elsewhere, capfd):
    file = elsewhere / "keys.json"
    assert new("prepare").exit_code == 0
    [told] = lines_of(capfd, "app.crypto.keyring")
    assert f" WARNING app.crypto.keyring created new keys in {file}" in told
    assert (file.stat().st_mode & 0o777, elsewhere.stat().st_mode & 0o777) == (0o600, 0o700)
    made = file.read_bytes()
    assert new("prepare").exit_code == 0
    assert (file.read_bytes(), lines_of(capfd, "app.crypto.keyring")) == (made, [])


@pytest.mark.sqlite
def test_a_database_without_tables_gets_keys(new, elsewhere, tmp_path):
    assert new("prepare", url=f"sqlite:///{tmp_path / 'empty.db'}").exit_code == 0
    assert (elsewhere / "keys.json").exists()


@pytest.mark.sqlite
def test_a_database_file_is_as_private_as_sqlites_own(new, tmp_path):
    file = tmp_path / "new.db"
    before = os.umask(0)
    try:
        assert new("prepare", url=f"sqlite:///{file}").exit_code == 0
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o644


@pytest.mark.sqlite
def test_why_a_database_file_cannot_be_made_is_told(new, tmp_path):
    file = tmp_path / "link.db"
    file.symlink_to(tmp_path / "unmounted" / "gatehouse.db")
    assert new("prepare", url=f"sqlite:///{file}").complains() == (
        f"Error: {file}: No such file or directory"
    )


def account(rt):
    make_user(rt)


def setting(rt):
    configure(rt, mail_smtp_password="open sesame")


def provider(rt):
    add_provider(rt, client_secret="open sesame")


def mail(rt):
    make_user(rt, email="x@example.com")
    with rt.transaction() as session:
        session.execute(sa.text("DELETE FROM users"))
        now = rt.clock.now()
        columns = {"template": "t", "recipient": "x@example.com", "payload": "v1:a:b:c"}
        times = {"created_at": now, "due_at": now}
        session.execute(
            sa.insert(OutboxMail).values(id="1", status="queued", attempts=0, **columns, **times)
        )


@pytest.mark.parametrize("made_use", [account, setting, provider, mail])
def test_no_keys_are_made_beside_a_database_that_was_used_with_others(new, rt, elsewhere, made_use):
    made_use(rt)
    told = new("prepare").complains()
    assert "Put the file back" in told
    assert "flask prepare --new-keys" in told
    assert "The key file is missing" in new("prepare", "--json").refuses("config.error")
    assert not (elsewhere / "keys.json").exists()


def test_to_start_over_has_to_be_said(new, rt, elsewhere):
    make_user(rt)
    assert new("prepare", "--new-keys").exit_code == 0
    made = (elsewhere / "keys.json").read_bytes()
    assert new("prepare", "--new-keys").exit_code == 0
    assert (elsewhere / "keys.json").read_bytes() == made
    assert new("users", "list").exit_code == 0


def test_no_keys_are_made_while_the_database_is_away(new, elsewhere):
    """It cannot tell whether it was used with others."""
    new("prepare", "--json", url=UNREACHABLE).refuses("database.error")
    assert not (elsewhere / "keys.json").exists()


@pytest.mark.parametrize("text", ["", "{", '{"keys": []}', "[]"], ids=ascii)
def test_a_damaged_key_file_is_not_replaced(new, elsewhere, text):
    assert new("prepare").exit_code == 0
    (elsewhere / "keys.json").write_text(text)
    for command in (("prepare",), ("prepare", "--new-keys"), ("users", "list"), ("keys", "rotate")):
        assert "Put the file back" in new(*command).complains()
    assert (elsewhere / "keys.json").read_text() == text


def test_a_disk_without_room_for_keys_is_told_and_nothing_is_left_on_it(new, elsewhere):
    with full_disk.small(elsewhere):
        full_disk.fill(elsewhere / "waste")
        told = new("prepare").complains()
        assert told == f"Error: {elsewhere / 'keys.json'}: No space left on device"
        assert [file.name for file in elsewhere.iterdir()] == ["waste"]


def test_two_who_make_keys_at_once_agree(
    rt, elsewhere, database_url, redis_url, clock, monkeypatch
):
    config = servers.cheap_config(elsewhere, database_url, redis_url, secret_keys=())
    elsewhere.mkdir()
    one, other = Keyring(config, clock), Keyring(config, clock)
    link, done = os.link, []

    def overtaken(source, target):
        if not done:
            done.append(True)
            other.create()
        link(source, target)

    monkeypatch.setattr(os, "link", overtaken)
    one.create()
    assert one.keys == other.keys
    assert list(elsewhere.iterdir()) == [elsewhere / "keys.json"]


@pytest.mark.parametrize("text", ["", "{}", "no JSON", "\x00", '{"keys": []}', None], ids=ascii)
def test_doctor_examines_the_rest_without_a_key_file_that_can_be_read(new, elsewhere, text):
    assert new("prepare").exit_code == 0
    assert new("config", "set", "mail_smtp_password", "open sesame").exit_code == 0
    file = elsewhere / "keys.json"
    file.unlink() if text is None else file.write_text(text)
    examined = new("doctor", "--json")
    assert (examined.exit_code, examined.stderr) == (1, "")
    told = json.loads(examined.stdout)
    checks = {check["check"]: check for check in told["checks"]}
    failures = {name for name, check in checks.items() if check["level"] == "fail"}
    assert told["ok"] is False
    assert failures == {"keys", "stored secrets", "settings"}
    assert checks["keys"]["message"].startswith(str(file))
    assert "Put the file back from the backup" in checks["keys"]["message"]
    assert checks["settings"]["message"] == "This cannot be checked without the keys."
    assert checks["storage route"]["level"] == "warn"


@pytest.mark.parametrize("look", [folders.require_instance, folders.make_instance])
def test_a_folder_that_is_closed_to_the_service_is_named(tmp_path, look):
    """gunicorn and the launcher show a ConfigError as one line, all else as a traceback."""
    (tmp_path / "closed" / "instance").mkdir(parents=True)
    (tmp_path / "closed").chmod(0)
    try:
        with bound_by_modes(), pytest.raises(ConfigError) as refused:
            look(tmp_path / "closed" / "instance")
    finally:
        (tmp_path / "closed").chmod(0o700)
    there = tmp_path / "closed" / "instance"
    assert str(refused.value) == f"GATEHOUSE_INSTANCE: {there}: Permission denied"
