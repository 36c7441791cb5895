"""What docs/operations.md tells an operator to type does what the page says."""

import json
import logging
import re
import shlex
import shutil
import sqlite3
import subprocess
from contextlib import closing
from unittest.mock import Mock

import pytest

from app.core.clock import Clock
from app.core.config import Argon2Cost
from app.core.logs import JsonLineFormatter, RequestFields
from app.installation import doctor
from tests.support.factories import configure, make_user
from tests.support.programs import program_of
from tests.support.servers import ROOT
from tests.support.smtp import RecordingSmtpServer

OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
CONSOLE = re.compile(r"^ *```console\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
OPENING = "Before you open it"
# What lets the first stranger in.
STARTS_NGINX = re.compile(r"systemctl \w+ nginx|docker compose up(?!.* app\d\b)")


def section(title):
    """Return one section of the page."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", OPERATIONS, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def typed(text):
    """Return the commands of a text's console blocks; `>` and a backslash continue one."""
    commands = []
    for line in "".join(CONSOLE.findall(text)).splitlines():
        prompt, _, rest = line.strip().partition(" ")
        if prompt in ("$", "#"):
            commands.append(rest)
        elif prompt == ">" or (commands and commands[-1].endswith("\\")):
            commands[-1] += f"\n{rest if prompt == '>' else line}"
    return commands


def sh(script, folder):
    """Run what is typed in a shell there; return what it printed."""
    ran = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def only(commands, *words):
    """Return the one command that has these words."""
    [found] = [command for command in commands if all(word in command for word in words)]
    return found


@pytest.fixture
def app(make_app):
    """An application like that of a deployment: real time, full-price hashes, keys in a file.

    To it, every request is slow.
    """
    return make_app(clock=Clock(), argon2=Argon2Cost(), secret_keys=(), slow_request_ms=1)


@pytest.mark.usefixtures("without_storage_route")
def test_what_comes_before_opening_closes_the_installation(api, line):
    stranger = {"username": "eve", "email": "eve@example.com", "password": "a long password"}
    commands = [shlex.split(each, comments=True) for each in typed(section(OPENING))]
    with RecordingSmtpServer(passwords={"gatehouse": "the password"}) as server:
        # In the place of the documented server, which has a certificate of its own.
        line.json("config", "set", "mail_smtp_port", str(server.port))
        line.json("config", "set", "mail_security", "false")
        for flask, *arguments in commands:
            assert flask == "flask"
            here = ["127.0.0.1" if each == "smtp.example.com" else each for each in arguments]
            line.json(*here, stdin="the password" if "-" in here else None)
        assert server.recipients == ["ada@example.com"]
    assert commands[-1] == ["flask", "doctor", "--strict"]
    api.post("/auth/setup", stranger).fails(400, "validation.system_already_initialized")
    api.post("/auth/register", stranger).fails(403, "auth.registration_disabled")


@pytest.mark.parametrize("way", ["With compose", "With systemd"])
def test_nginx_is_not_started_before_the_installation_is_closed(way):
    text = section(way)
    before, told, _ = text.partition(f'"{OPENING}"')
    assert told
    assert typed(before)
    assert not [command for command in typed(before) if STARTS_NGINX.search(command)]


def test_the_page_has_every_field_of_a_log_line_in_its_table(app, api, user, caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    caplog.handler.addFilter(RequestFields())
    api.login(user).ok()
    program_of(app, user, "profile:read").get("/auth/me").ok()
    with monkeypatch.context() as broken:
        broken.setattr("app.users.queries.find_credentials", Mock(side_effect=RuntimeError))
        api.login(user).fails(500, "internal_server_error")
    lines = [json.loads(JsonLineFormatter().format(record)) for record in caplog.records]
    assert {line["logger"] for line in lines} >= {"gatehouse.access", "gatehouse.slow"}
    table = section("Watch it").partition("\n| Field |")[2].partition("\n\n")[0]
    names = "".join(re.findall(r"^\|([^|]*)\|", table, re.MULTILINE))
    assert set().union(*lines) == set(re.findall(r"`(\w+)`", names))


# --- backup and restore -------------------------------------------------------------------------


@pytest.fixture
def installation(rt, api, user, tmp_path):
    """A folder as bin/serve has it, with somebody signed in, a picture and a mail that waits."""
    api.login(user).ok()
    configure(rt, mail_smtp_host="127.0.0.1", mail_from_address="no-reply@example.com")
    api.post("/auth/password/reset/request", {"email": user.email}).ok()
    folder = tmp_path / "installation"
    (folder / "instance" / "avatars").mkdir(parents=True)
    (folder / "instance" / "avatars" / "picture").touch()
    database = rt.database.engine.url.database
    with closing(sqlite3.connect(database)) as source:
        source.execute("VACUUM INTO ?", [str(folder / "instance" / "gatehouse.db")])
    return folder


def counted(database):
    """Return how many sessions are open, and how many mails wait."""
    with closing(sqlite3.connect(database)) as source:
        return [
            source.execute(statement).fetchone()[0]
            for statement in (
                "SELECT COUNT(*) FROM login_sessions WHERE revoked_at IS NULL",
                "SELECT COUNT(*) FROM mail_outbox WHERE status = 'queued'",
            )
        ]


@pytest.mark.sqlite
def test_a_backup_can_be_made_every_night_and_changes_nothing_for_the_shell(installation):
    commands = typed(section("Back up"))
    script = "\n".join(
        ("set -e; umask 022", only(commands, "mkdir -p"), only(commands, "VACUUM INTO"), "umask")
    )
    for night in ("first", "second"):
        folder = installation / night
        made = sh(f'backup="{folder}"\n{script}', installation)
        assert made.strip() == "0022"
        assert {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()} == {
            "avatars-1.tar": 0o600,
            "avatars-2.tar": 0o600,
            "gatehouse.db": 0o600,
        }
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.sqlite
def test_a_backup_without_the_database_is_told_and_makes_none(installation):
    """An empty one would look like a backup."""
    commands = typed(section("Back up"))
    (installation / "instance" / "gatehouse.db").unlink()
    backup = installation / "backup"
    script = f'backup="{backup}"; mkdir "$backup"\n{only(commands, "VACUUM INTO")}'
    ran = subprocess.run(["bash", "-c", script], cwd=installation, capture_output=True, check=False)
    assert ran.returncode == 2
    assert b"unable to open database file" in ran.stderr
    assert not (installation / "instance" / "gatehouse.db").exists()
    assert [file.name for file in backup.iterdir()] == ["avatars-1.tar"]


@pytest.mark.sqlite
def test_a_restore_opens_no_old_session_and_sends_no_mail_twice(installation):
    database = installation / "instance" / "gatehouse.db"
    assert counted(database) == [1, 1]
    sh(only(typed(section("Restore")), "sqlite3", "login_sessions"), installation)
    assert counted(database) == [0, 0]


def test_every_way_to_restore_signs_everybody_out_and_sends_no_mail_twice():
    statements = re.findall(r"(?:UPDATE|DELETE) [^'\"]*", section("Restore"))
    assert len(statements) == 3 * 2
    assert len({s for s in statements if s.startswith("UPDATE login_sessions ")}) == 1
    assert len([s for s in statements if s.startswith("DELETE FROM mail_outbox ")]) == 3


def test_no_command_has_a_password():
    assert not [c for c in typed(OPERATIONS) if re.search(r"://\w+:[^@\s]*@", c)]


def test_what_git_writes_at_an_upgrade_can_be_read_by_the_service():
    first, *others = typed(section("Upgrade"))
    assert shlex.split(first, comments=True) == ["umask", "022"]
    assert "git checkout" in others[0]


def test_an_upgrade_migrates_before_an_instance_has_to_start_in_time():
    names = ("pip install", "prepare", "systemctl restart")
    commands = typed(section("Upgrade"))
    assert sorted(names, key=lambda name: commands.index(only(commands, name))) == list(names)


@pytest.mark.parametrize("answers", [True, False])
def test_waiting_for_an_instance_ends(tmp_path, answers):
    """With a clock and an instance that cost no time."""
    outcome = "true" if answers else "false"
    (tmp_path / "curl").write_text(f"#!/bin/sh\necho asked >> {tmp_path}/asked; {outcome}\n")
    (tmp_path / "sleep").write_text("#!/bin/sh\n")
    for name in ("curl", "sleep"):
        (tmp_path / name).chmod(0o755)
    ready = only(typed(section("Upgrade")), "ready()")
    told = sh(f'PATH="{tmp_path}:$PATH"\n{ready}\nready 8001 && echo yes || echo no', tmp_path)
    assert told.strip() == ("yes" if answers else "no")
    assert (tmp_path / "asked").read_text().count("asked") == (1 if answers else 60)


def test_what_doctor_is_said_to_look_at_are_its_checks():
    told = re.search(r"`flask doctor` checks(.*?)It\s+does\s+not", section("Watch it"), re.DOTALL)[
        1
    ]
    # What a check is called there, where its own name is not the word.
    words = {
        "instance folder": "folders",
        "avatars": "pictures",
        "password hash": "hash",
        "clock": "clocks",
        "site address": "settings",
        "cookies": "settings",
        "external sign-in": "settings",
    }
    for check in doctor.MACHINE | doctor.DATABASE | doctor.ROWS:
        assert words.get(check, check).lower() in told.lower().replace("\n ", ""), check


# --- other steps --------------------------------------------------------------------------------


def test_the_beds_command_has_all_it_needs_in_a_fresh_clone():
    environment, packages, bed, *_ = typed(section("Trying it out: the test bed"))
    assert environment == "python3 -m venv .venv"
    for name in ("requirements.txt", "requirements-dev.txt"):
        assert f"-r {name}" in packages
    assert bed == ".venv/bin/python -m deploy.bed"


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
@pytest.mark.postgres
def test_a_script_finds_its_bearer_token_as_the_tour_tells(direct, tmp_path):
    make_user(direct.rt, username="ada", password="battery staple")
    [block] = [
        b for b in CONSOLE.findall((ROOT / "docs" / "tour.md").read_text()) if "service_access" in b
    ]
    login, token, me = typed(f"```console\n{block}```\n")
    begin = f"api=http://127.0.0.1:{direct.port}/api/v1; json='Content-Type: application/json'"
    told = sh("\n".join((begin, login, token, f"echo; {me}")), tmp_path).splitlines()
    assert json.loads(told[-1])["data"]["username"] == "ada"
