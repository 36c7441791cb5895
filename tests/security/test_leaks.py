"""The watch over all logs of the suite (tests/support/leaks.py) can bite."""

import logging
import subprocess
import sys

import pytest

from app.crypto import tokens
from tests.support import servers
from tests.support.leaks import ON_PURPOSE, Watch, watch


def record(message, name="app.test", **extra):
    made = logging.getLogger(name).makeRecord(name, logging.INFO, "", 0, message, (), None)
    made.__dict__.update(extra)
    return made


@pytest.fixture
def fresh():
    return Watch()


def test_a_test_that_leaks_fails_in_a_process_of_the_suite(tmp_path):
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "tests/security/planted_leaks.py"]
    # Else it would tidy up what other runs on this machine have left, and fail where that fails.
    command.append(f"--basetemp={tmp_path / 'own'}")
    ran = subprocess.run(command, cwd=servers.ROOT, capture_output=True, text=True, timeout=400)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "3 passed, 2 errors" in ran.stdout, ran.stdout
    for name in ("token", "password"):
        assert f"ERROR tests/security/planted_leaks.py::test_that_logs_a_{name}" in ran.stdout


def test_what_the_services_loggers_are_given_is_seen_though_it_is_not_shown(caplog):
    logging.getLogger("app.test").debug("nobody sees this")
    assert caplog.records == []
    token = tokens.random_token()
    logging.getLogger("app.test").debug("ct_%s", token)
    [line] = watch.leaks()
    assert token in line


def test_a_field_beside_the_message_counts(fresh):
    fresh.note_members({"deep": [{"flow_token": "abc-1234567"}]})
    fresh.see(record("harmless", tried="abc-1234567"))
    assert len(fresh.leaks()) == 1
    assert fresh.leaks() == []


def test_so_does_what_a_traceback_repeats(fresh):
    fresh.note("a good long password")
    made = record("it failed")
    error = ValueError("a good long password")
    made.exc_info = (type(error), error, None)
    fresh.see(made)
    assert any("a good long password" in line for line in fresh.leaks())


def test_digits_count_where_they_stand_alone(fresh):
    fresh.note("123456")
    for message in ("port 1234567", "took 0.123456 s", "12:34:123456"):
        fresh.see(record(message))
    assert fresh.leaks() == []
    fresh.note("123456")
    fresh.see(record("code=123456"))
    assert len(fresh.leaks()) == 1


def test_the_id_of_a_process_is_no_code(fresh, tmp_path):
    fresh.note("123456")
    output = tmp_path / "gunicorn.log"
    output.write_text(
        "gunicorn.error Listening at: http://127.0.0.1:8000 (123456)\n"
        "gunicorn.error Booting worker with pid: 123456\n"
        "gunicorn.error Worker exiting (pid: 123456)\n"
    )
    assert fresh.leaks_of(output) == []
    output.write_text("Booting worker with pid: 5, code (123456)\n")
    assert len(fresh.leaks_of(output)) == 1


def test_ordinary_words_are_no_secrets(fresh):
    fresh.note("password", "short", "12345")
    fresh.see(record("PUT /api/v1/auth/password: short, 12345"))
    assert fresh.leaks() == []


def test_links_are_logged_on_purpose_where_there_is_no_smtp_server(fresh):
    fresh.note("abc-1234567")
    fresh.see(record(f"{ON_PURPOSE}/mail/1.eml abc-1234567"))
    assert fresh.leaks() == []


def test_the_output_of_a_process_is_looked_through(fresh, tmp_path):
    fresh.note_answer(
        b'{"code":"success","msg":"","data":{"secret":"JBSWY3DPEHPK3PXP22"}}', ["c0.okie-1"]
    )
    assert fresh.leaks() == []
    output = tmp_path / "gunicorn.log"
    output.write_text("started\ncookie c0.okie-1\nsecret JBSWY3DPEHPK3PXP22\n")
    assert len(fresh.leaks_of(output, tmp_path / "missing")) == 2
