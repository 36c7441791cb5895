"""What docs/operations.md tells an operator to type does what the page says."""

import json
import logging
import re
import shlex
from unittest.mock import Mock

import pytest

from app.core.clock import SystemClock
from app.core.config import Argon2Cost
from app.core.logs import OneJsonObject, RequestFields
from tests.support.commands import CommandLine
from tests.support.servers import ROOT
from tests.support.smtp import Sink

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
    """Return the commands of a text's console blocks; one that goes on in the next line is one."""
    lines = "".join(CONSOLE.findall(text)).replace("\\\n", " ").splitlines()
    return [line.strip()[2:] for line in lines if line.strip().startswith(("$ ", "# "))]


@pytest.fixture
def app(make_app):
    """An application like that of a deployment: real time, full-price hashes, keys in a file.

    To it, every request is slow.
    """
    return make_app(clock=SystemClock(), argon2=Argon2Cost(), secret_keys=(), slow_request_ms=1)


@pytest.fixture
def line(app):
    return CommandLine(app)


@pytest.mark.usefixtures("without_storage_route")
def test_what_comes_before_opening_closes_the_installation(api, line):
    stranger = {"username": "eve", "email": "eve@example.com", "password": "a long password"}
    commands = [shlex.split(each, comments=True) for each in typed(section(OPENING))]
    with Sink(passwords={"gatehouse": "the password"}) as server:
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


@pytest.mark.any_database
def test_the_page_has_every_field_of_a_log_line_in_its_table(api, user, caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    caplog.handler.addFilter(RequestFields())
    api.login(user).ok()
    with monkeypatch.context() as broken:
        broken.setattr("app.users.queries.find_credentials", Mock(side_effect=RuntimeError))
        api.login(user).fails(500, "internal_server_error")
    lines = [json.loads(OneJsonObject().format(record)) for record in caplog.records]
    assert {line["logger"] for line in lines} >= {"gatehouse.access", "gatehouse.slow"}
    table = section("Watch it").partition("\n| Field |")[2].partition("\n\n")[0]
    names = "".join(re.findall(r"^\|([^|]*)\|", table, re.MULTILINE))
    assert set().union(*lines) == set(re.findall(r"`(\w+)`", names))
