"""The `flask` command on an instance of its own: exit codes, and what a lost server looks like."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from tests.support.servers import ROOT, secret_keys
from tests.support.standard_error import lines_of

UNREACHABLE = "postgresql://nobody@127.0.0.1:1/nothing"


def test_first_steps_without_a_browser(flask_process, flask):
    """Only a process has an exit code."""
    assert flask_process("prepare").returncode == 0
    made = flask(
        "users", "create", "--username", "root", "--email", "root@example.com",
        "--role", "admin", "--password", "-", stdin="a good long password\n",
    )  # fmt: skip
    assert made.exit_code == 0
    assert flask("users", "show", "root", "--json").json["id"] == 1
    refused = flask_process("users", "disable", "root")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "Error: This is the last active administrator.\n"


def test_bad_variable_is_one_line(flask_process, environment):
    environment["GATEHOUSE_WORKERS"] = "many"
    refused = flask_process("users", "list", "--json")
    assert refused.returncode == 1
    assert refused.stderr.startswith("GATEHOUSE_WORKERS: ")
    assert refused.stderr.count("\n") == 1


@pytest.mark.usefixtures("prepared")
def test_unprepared_database_is_one_line(flask, instance):
    (instance / "gatehouse.db").unlink()
    assert "flask prepare" in flask("users", "list").complains()


@pytest.mark.usefixtures("prepared")
def test_a_database_of_a_newer_version_keeps_nothing_from_starting(flask, instance, capfd):
    """The unit and compose start an instance only after `prepare`."""
    with closing(sqlite3.connect(instance / "gatehouse.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    assert flask("prepare", GATEHOUSE_LOG_LEVEL="WARNING").text == ""
    [told] = lines_of(capfd, "app.installation.cli")
    assert "newer version" in told
    assert flask("users", "list").exit_code == 0


@pytest.mark.usefixtures("prepared")
def test_lost_database_is_one_line(flask):
    lost = {"GATEHOUSE_DATABASE_URL": UNREACHABLE}
    flask("users", "list", **lost).complains()
    flask("users", "list", "--json", **lost).refuses("database.error")
    examined = flask("doctor", **lost)
    [failure] = [line for line in examined.stdout.splitlines() if line.startswith("fail")]
    assert "GATEHOUSE_DATABASE_URL" in failure
    assert (examined.exit_code, examined.stderr) == (1, "")


@pytest.mark.usefixtures("prepared")
def test_settings_change_without_redis_is_made_all_the_same(flask):
    lost = {"GATEHOUSE_REDIS_URL": "redis://127.0.0.1:1"}
    assert flask("prepare", **lost).exit_code == 0
    changed = flask("config", "set", "branding_title", "Drive", "--json", **lost)
    assert (changed.exit_code, json.loads(changed.stdout)["value"]) == (0, "Drive")


@pytest.mark.usefixtures("prepared")
def test_unreadable_key_file_is_one_line(flask, instance):
    (instance / "keys.json").write_text("{}")
    assert "keys.json" in flask("keys", "list").complains()


def failure(flask, **variables):
    """Return the only failure that `flask doctor` finds."""
    examined = flask("doctor", **variables)
    [told] = [line for line in examined.stdout.splitlines() if line.startswith("fail")]
    assert (examined.exit_code, examined.stderr) == (1, "")
    return told


@pytest.mark.usefixtures("prepared")
def test_doctor_says_what_is_wrong_with_a_database_file(flask, instance):
    (instance / "gatehouse.db").write_text("no database " * 100)
    told = failure(flask)
    assert "gatehouse.db failed: file is not a database" in told
    assert "Put a backup in its place" in told
    assert "Start it" not in told


@pytest.mark.usefixtures("prepared")
def test_doctor_has_no_database_replaced_that_is_only_out_of_reach(flask, tmp_path):
    """Its disk is full, or was not mounted: an old backup in its place would lose what is new."""
    told = failure(flask, GATEHOUSE_DATABASE_URL=f"sqlite:///{tmp_path / 'disk' / 'my.db'}")
    assert "my.db failed: unable to open database file" in told
    assert "Check that its folder exists, has room" in told
    assert "backup" not in told


@pytest.mark.usefixtures("prepared")
def test_doctor_says_that_a_database_file_is_gone_and_makes_none(flask, instance, capfd):
    file = instance / "gatehouse.db"
    assert flask("users", "list").exit_code == 0  # it has been there
    for part in instance.glob("gatehouse.db*"):
        part.unlink()
    told = failure(flask)
    assert f"{file} failed: there is no file {file}" in told
    assert "put the file or a backup back" in told
    assert (
        flask("users", "list")
        .complains()
        .startswith(
            f"Error: The database {file} failed: there is no file {file}. Check that its disk is "
        )
    )
    assert not file.exists()

    def warned(**variables):
        assert flask("prepare", GATEHOUSE_LOG_LEVEL="WARNING", **variables).exit_code == 0
        return capfd.readouterr().err

    assert f"creating a database, {file}, for keys that are not new: was one lost?" in warned()
    assert warned() == ""
    file.unlink()
    assert warned(GATEHOUSE_SECRET_KEYS=secret_keys()) == ""


@pytest.mark.usefixtures("prepared")
def test_doctor_says_what_is_wrong_with_a_key_file_and_goes_on(flask, instance):
    (instance / "keys.json").unlink()
    (instance / "keys.json").mkdir()
    assert failure(flask) == (
        f"fail  keys: {instance / 'keys.json'}: Is a directory. Put the file back from the backup."
    )
    assert "storage route: " in flask("doctor").stdout


def test_a_folder_that_cannot_be_made_is_one_line(flask, tmp_path):
    (tmp_path / "file").touch()
    refused = flask("prepare", GATEHOUSE_INSTANCE=str(tmp_path / "file"))
    assert refused.complains() == f"Error: GATEHOUSE_INSTANCE: {tmp_path / 'file'}: File exists"


@pytest.mark.parametrize("command", [("users", "list"), ("doctor",), ("keys", "rotate")])
def test_a_mistyped_instance_stays_what_it_is(flask, tmp_path, command):
    """Nothing."""
    nowhere = str(tmp_path / "nowhere")
    told = flask(*command, GATEHOUSE_INSTANCE=nowhere).complains()
    assert told.startswith(f"Error: There is no instance at {nowhere}. ")
    flask(*command, "--json", GATEHOUSE_INSTANCE=nowhere).refuses("config.error")
    assert not (tmp_path / "nowhere").exists()


def test_no_command_makes_keys_or_a_database_in_a_folder_without(flask, instance):
    instance.mkdir()
    told = flask("users", "list").complains()
    assert f"{instance / 'keys.json'} is missing." in told
    assert "flask prepare" in told
    assert not list(instance.iterdir())


def test_gunicorn_makes_no_instance_by_itself(environment, instance):
    """The unit and compose run `flask prepare` before it."""
    command = [sys.executable, "-m", "gunicorn", "wsgi:app"]

    def told():
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert ran.returncode != 0
        assert "Traceback" not in ran.stderr
        assert "Booting worker" not in ran.stderr
        return ran.stderr

    assert "There is no instance at" in told()
    assert not instance.exists()
    instance.mkdir()
    assert "keys.json is missing." in told()
    assert not (instance / "keys.json").exists()
