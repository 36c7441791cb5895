"""The `flask` command as a process: exit codes and what a lost server looks like."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from tests.support.servers import ROOT, secret_keys

UNREACHABLE = "postgresql://nobody@127.0.0.1:1/nothing"


def test_first_steps_without_a_browser(flask):
    assert flask("prepare").returncode == 0
    made = flask(
        "users", "create", "--username", "root", "--email", "root@example.com",
        "--role", "admin", "--password", "-", "--json", stdin="a good long password\n",
    )  # fmt: skip
    assert json.loads(made.stdout)["user"]["role"] == "admin"
    shown = flask("users", "show", "root", "--json")
    assert (shown.returncode, json.loads(shown.stdout)["id"]) == (0, 1)
    refused = flask("users", "disable", "root")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "Error: This is the last active administrator.\n"
    assert flask("users", "disable").returncode == 2


@pytest.fixture
def prepared(flask, tmp_path):
    """The folder of an instance that `flask prepare` has made."""
    assert flask("prepare").returncode == 0
    return tmp_path / "instance"


def test_unprepared_database_is_one_line(flask, prepared):
    (prepared / "gatehouse.db").unlink()
    refused = flask("users", "list")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert "flask prepare" in refused.stderr


def test_a_database_of_a_newer_version_keeps_nothing_from_starting(flask, tmp_path):
    """The unit and compose start an instance only after `prepare`."""
    assert flask("prepare").returncode == 0
    with closing(sqlite3.connect(tmp_path / "instance" / "gatehouse.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    prepared = flask("prepare")
    assert (prepared.returncode, prepared.stdout) == (0, "")
    assert prepared.stderr.count("\n") == 1
    assert "newer version" in prepared.stderr
    assert flask("users", "list").returncode == 0


@pytest.mark.usefixtures("prepared")
def test_lost_database_is_one_line(flask):
    refused = flask("users", "list", GATEHOUSE_DATABASE_URL=UNREACHABLE)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.count("\n") == 1
    refused = flask("users", "list", "--json", GATEHOUSE_DATABASE_URL=UNREACHABLE)
    assert (refused.returncode, refused.stderr) == (1, "")
    assert json.loads(refused.stdout)["code"] == "database.error"


@pytest.mark.usefixtures("prepared")
def test_doctor_names_the_lost_database_once(flask):
    examined = flask("doctor", GATEHOUSE_DATABASE_URL=UNREACHABLE)
    failures = [line for line in examined.stdout.splitlines() if line.startswith("fail")]
    assert examined.returncode == 1
    assert len(failures) == 1
    assert "GATEHOUSE_DATABASE_URL" in failures[0]
    assert examined.stderr == ""


def test_bad_variable_is_one_line(flask):
    refused = flask("users", "list", "--json", GATEHOUSE_WORKERS="many")
    assert refused.returncode == 1
    assert refused.stderr.startswith("GATEHOUSE_WORKERS: ")
    assert refused.stderr.count("\n") == 1


def test_settings_change_without_redis_is_made_all_the_same(flask):
    lost = {"GATEHOUSE_REDIS_URL": "redis://127.0.0.1:1"}
    assert flask("prepare", **lost).returncode == 0
    changed = flask("config", "set", "branding_title", "Drive", "--json", **lost)
    assert (changed.returncode, json.loads(changed.stdout)["value"]) == (0, "Drive")


def test_unreadable_key_file_is_one_line(flask, tmp_path):
    assert flask("prepare").returncode == 0
    (tmp_path / "instance" / "keys.json").write_text("{}")
    refused = flask("keys", "list")
    assert refused.returncode == 1
    assert "keys.json" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_doctor_says_what_is_wrong_with_a_database_file(flask, prepared):
    for file in prepared.glob("gatehouse.db*"):
        file.unlink()
    (prepared / "gatehouse.db").write_text("no database " * 100)
    examined = flask("doctor")
    [failure] = [line for line in examined.stdout.splitlines() if line.startswith("fail")]
    assert "gatehouse.db failed: file is not a database" in failure
    assert "Put a backup in its place" in failure
    assert "Start it" not in failure


@pytest.mark.usefixtures("prepared")
def test_doctor_has_no_database_replaced_that_is_only_out_of_reach(flask, tmp_path):
    """Its disk is full, or was not mounted: an old backup in its place would lose what is new."""
    examined = flask("doctor", GATEHOUSE_DATABASE_URL=f"sqlite:///{tmp_path / 'disk' / 'my.db'}")
    [failure] = [line for line in examined.stdout.splitlines() if line.startswith("fail")]
    assert "my.db failed: unable to open database file" in failure
    assert "Check that its folder exists, has room" in failure
    assert "backup" not in failure


def test_doctor_says_that_a_database_file_is_gone_and_makes_none(flask, prepared):
    file = prepared / "gatehouse.db"
    for part in prepared.glob("gatehouse.db*"):
        part.unlink()
    examined = flask("doctor")
    [failure] = [line for line in examined.stdout.splitlines() if line.startswith("fail")]
    assert f"{file} failed: there is no file {file}" in failure
    assert "put the file or a backup back" in failure
    assert flask("users", "list").stderr.startswith(
        f"Error: The database {file} failed: there is no file {file}. Check that its disk is "
    )
    assert not file.exists()
    made = flask("prepare")
    assert f"creating a database, {file}, for keys that are not new: was one lost?" in made.stderr
    assert flask("prepare").stderr == ""
    file.unlink()
    assert flask("prepare", GATEHOUSE_SECRET_KEYS=secret_keys()).stderr == ""


def test_doctor_says_what_is_wrong_with_a_key_file_and_goes_on(flask, prepared):
    (prepared / "keys.json").unlink()
    (prepared / "keys.json").mkdir()
    examined = flask("doctor")
    failures = [line for line in examined.stdout.splitlines() if line.startswith("fail")]
    assert (examined.returncode, examined.stderr) == (1, "")
    assert failures == [
        f"fail  keys: {prepared / 'keys.json'}: Is a directory. Put the file back from the backup."
    ]
    assert "storage route: " in examined.stdout


def test_a_folder_that_cannot_be_made_is_one_line(flask, tmp_path):
    (tmp_path / "file").touch()
    refused = flask("prepare", GATEHOUSE_INSTANCE=str(tmp_path / "file"))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == f"Error: GATEHOUSE_INSTANCE: {tmp_path / 'file'}: File exists\n"


@pytest.mark.parametrize("command", [("users", "list"), ("doctor",), ("keys", "rotate")])
def test_a_mistyped_instance_stays_what_it_is(flask, tmp_path, command):
    """Nothing."""
    nowhere = str(tmp_path / "nowhere")
    refused = flask(*command, GATEHOUSE_INSTANCE=nowhere)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"Error: There is no instance at {nowhere}. ")
    assert refused.stderr.count("\n") == 1
    refused = flask(*command, "--json", GATEHOUSE_INSTANCE=nowhere)
    assert (refused.returncode, refused.stderr) == (1, "")
    assert json.loads(refused.stdout)["code"] == "config.error"
    assert not (tmp_path / "nowhere").exists()


def test_no_command_makes_keys_or_a_database_in_a_folder_without(flask, tmp_path):
    (tmp_path / "instance").mkdir()
    refused = flask("users", "list")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"{tmp_path / 'instance' / 'keys.json'} is missing." in refused.stderr
    assert "flask prepare" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not list((tmp_path / "instance").iterdir())


@pytest.mark.parametrize("there", [False, True])
def test_gunicorn_makes_no_instance_by_itself(tmp_path, there):
    """The unit and compose run `flask prepare` before it."""
    if there:
        (tmp_path / "instance").mkdir()
    command = [sys.executable, "-m", "gunicorn", "wsgi:app"]
    environment = os.environ | {"GATEHOUSE_INSTANCE": str(tmp_path / "instance")}
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode != 0
    assert ("keys.json is missing." if there else "There is no instance at") in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "Booting worker" not in ran.stderr
    assert not (tmp_path / "instance" / "keys.json").exists()
    assert (tmp_path / "instance").exists() is there
