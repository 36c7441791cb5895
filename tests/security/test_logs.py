"""Nothing secret is ever logged, and every line can be traced."""

import json
import logging
import re
from contextlib import contextmanager, suppress

import pytest

from app.core import logs
from app.crypto.tokens import random_token
from tests.support.factories import configure, make_user
from tests.support.passkeys import (
    Authenticator,
    finish_login,
    finish_registration,
    start_login,
    start_registration,
)
from tests.support.standard_error import lines_of

TYPED = "the wrong password typed"


@pytest.fixture
def lines(caplog):
    """Everything that is logged, in both forms."""
    caplog.set_level(logging.DEBUG)

    def formatted():
        texts = []
        for record in caplog.records:
            texts.append(logs.TextFormatter().format(record))
            texts.append(logs.JsonLineFormatter().format(record))
            texts.append(repr(record.__dict__))
        return "\n".join(texts)

    return formatted


def test_a_whole_life_leaves_no_secret_in_the_log(rt, api, browser, user, lines):
    secrets = {user.password, TYPED, "another good one"}

    def remember(client):
        secrets.update(client.cookies.values())

    api.login(user).ok()
    remember(api)
    thief = api.twin()
    api.login(user, TYPED)
    api.post("/auth/login", f'{{"password": "{TYPED}", "identifier": 1}}'.encode())
    api.post("/auth/login", f'{{"password": "{TYPED}'.encode())
    api.refresh().ok()
    remember(api)
    api.me().ok()
    api.bearer().me().ok()
    api.get("/auth/me", query_string={"fields": TYPED}).fails(400, "bad_request")
    body = {"current_password": user.password, "new_password": "another good one"}
    api.put("/auth/password", body).ok()
    remember(api)
    thief.refresh()
    api.set_cookie("service_refresh", "x")
    browser.login(user, "another good one").ok()
    remember(browser)
    browser.refresh(headers={"X-CSRF-Token": TYPED})
    browser.post("/auth/logout").ok()
    logged = lines()
    assert "/api/v1/auth/login" in logged
    for secret in secrets - {""}:
        assert secret not in logged


def test_passkeys_leave_neither_flows_nor_answers_in_the_log(rt, signed_in, lines):
    configure(rt, public_site_url=["http://localhost"])
    device = Authenticator()
    started = start_registration(signed_in)
    made = device.create(started["public_key"])
    finish_registration(signed_in, started["flow_id"], made).ok()
    stranger = signed_in.stranger()
    for changes in ({}, {"flags": 0}, {"response": {"signature": "="}}):
        begun = start_login(stranger)
        proof = device.get(begun["public_key"], **changes)
        answer = finish_login(stranger, begun["flow_id"], proof)
        assert answer.status in {200, 400, 401}
        secrets = [begun["flow_id"], begun["public_key"]["publicKey"]["challenge"]]
        secrets += [proof["rawId"], proof["response"]["userHandle"], proof["response"]["signature"]]
        logged = lines()
        assert "/api/v1/auth/passkeys/login/finish" in logged
        assert not [secret for secret in secrets if len(secret) > 1 and secret in logged]
    assert started["flow_id"] not in lines()


def test_a_failing_database_leaves_no_parameter_in_the_log(rt, api, user, lines, monkeypatch):
    import sqlalchemy as sa

    def broken(*_):
        raise sa.exc.OperationalError("SELECT secret", {"password": TYPED}, Exception("gone"))

    monkeypatch.setattr("app.users.queries.find_credentials", broken)
    api.login(user, TYPED).fails(503, "database.error")
    assert TYPED not in lines()


def test_an_unexpected_failure_is_logged_and_told_to_nobody(api, user, lines, monkeypatch):
    def broken(*_):
        raise RuntimeError("an inner detail")

    monkeypatch.setattr("app.users.queries.find_credentials", broken)
    answer = api.login(user).fails(500, "internal_server_error")
    assert "detail" not in answer.text
    assert "an inner detail" in lines()


def test_every_line_of_a_request_carries_its_id(api, user, caplog, lines):
    caplog.set_level(logging.INFO)
    answer = api.login(user)
    request_filter = logs.RequestFields()
    [record] = [r for r in caplog.records if getattr(r, "path", "").endswith("/auth/login")]
    request_filter.filter(record)
    line = json.loads(logs.JsonLineFormatter().format(record))
    assert line["request_id"] == answer.headers["X-Request-ID"]


def access_line(caplog):
    """Return the newest access line as JSON."""
    record = [r for r in caplog.records if r.name == "gatehouse.access"][-1]
    logs.RequestFields().filter(record)
    return json.loads(logs.JsonLineFormatter().format(record))


def test_the_access_line_of_a_refusal_tells_its_code(api, user, caplog):
    caplog.set_level(logging.INFO)
    api.login(user, "not the password").fails(401, "auth.credentials_failed")
    line = access_line(caplog)
    assert line["code"] == "auth.credentials_failed"
    assert " 401 auth.credentials_failed " in line["message"]
    api.login(user).ok()
    assert "code" not in access_line(caplog)


def test_the_access_line_tells_from_where_a_request_came(api, user, capfd):
    """An operator finds the address of who guesses passwords in the text form, too."""
    with logging_to_standard_error("text"):
        api.login(user, "not the password")
    [line] = lines_of(capfd, "gatehouse.access")
    assert re.search(r" 401 auth\.credentials_failed [\d.]+ ms 127\.0\.0\.1 request_id=", line)


def test_the_access_lines_of_login_and_refresh_tell_whose_they_are(api, user, caplog):
    caplog.set_level(logging.INFO)
    for call in (lambda: api.login(user), lambda: api.post("/auth/refresh")):
        call().ok()
        line = access_line(caplog)
        [session] = api.get("/auth/sessions").ok()
        assert (line["user_id"], line["session_id"]) == (user.id, session["id"])


@pytest.mark.parametrize("token", ["oev_" + "0f" * 16, "0f" * 16, "cv_" + "aZ-_" * 11])
def test_the_access_line_of_a_mistyped_path_has_no_token(api, caplog, token):
    caplog.set_level(logging.INFO)
    api.get(f"/auth/contact-verification/confirm%3Ftoken={token}").fails(404, "endpoint.not_found")
    assert access_line(caplog)["path"].endswith("/contact-verification/confirm?token=...")


def test_an_access_line_has_no_query(api, user, caplog):
    caplog.set_level(logging.INFO)
    api.login(user).ok()
    api.get("/auth/me?fields=profile&token=hidden").ok()
    access = [r.getMessage() for r in caplog.records if r.name == "gatehouse.access"]
    assert any("/api/v1/auth/me" in line for line in access)
    assert not any("hidden" in line or "?" in line for line in access)


@pytest.mark.postgres
def test_what_gunicorn_refuses_is_not_repeated(direct):
    """Its own words would have the whole line."""
    token, code = random_token(), "a-code-0f-6.chars"
    path = f"/api/v1/auth/invitations/{token}?code={code}"
    refused = (
        f"GET {path} {code} HTTP/1.1\r\n\r\n",
        f"GET {path}\u00e9 HTTP/1.1\r\n\r\n",
        f"GET /health HTTP/1.1\r\nCookie service_refresh={token}\r\n\r\n",
    )
    before = direct.log.read_text()
    for request in refused:
        with direct.dial() as connection:
            connection.sendall(request.encode())
            assert connection.recv(65_536).startswith(b"HTTP/1.1 400 ")
    logged = direct.log.read_text().removeprefix(before)
    assert logged.count("Invalid request from ip=127.0.0.1: ") == len(refused)
    assert re.search(r"Invalid HTTP request line: \.\.\.(?!\S)", logged)
    assert token not in logged
    assert code not in logged


def test_nor_is_the_query_of_a_request_that_it_fails_at():
    token, code = random_token(), "a-code-0f-6.chars"
    record = logging.makeLogRecord(
        {
            "msg": "Error handling request %s %s",
            "args": ("GET", f"/invite/{token}?code={code}"),
        }
    )
    assert logs.WithoutRequest().filter(record)
    assert record.getMessage() == "Error handling request GET /invite/...?..."


def test_a_configured_secret_is_not_logged(rt, api, user, lines):
    configure(rt, mail_smtp_password="the smtp password")
    make_user(rt)
    api.login(user).ok()
    assert "the smtp password" not in lines()


# --- lines that a request tries to forge -------------------------------------------------------


@contextmanager
def logging_to_standard_error(log_format):
    """Log as the service does, for as long as the test does not look."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    logs.configure(log_format, "INFO")
    try:
        yield
    finally:
        root.handlers[:], root.level = handlers, level
        root.setLevel(level)


@pytest.mark.parametrize("log_format", ["text", "json"])
@pytest.mark.parametrize(
    "forged",
    ["%0a", "%0d%0a", "%1b[2J", "%00", "%7f", "%c2%85", "%e2%80%a8", "%0b", "%0c", "%1c"],
)
def test_a_path_cannot_start_another_line_or_steer_a_terminal(api, capfd, log_format, forged):
    line = "2026-03-02T09:30:00.000Z INFO gatehouse.access GET /forged 200"
    with logging_to_standard_error(log_format):
        api.get(f"/auth/{forged}{line}", described=False).fails(404, "endpoint.not_found")
    [only] = lines_of(capfd, "/forged")
    assert only.isprintable()
    assert " 404 " in only


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_path_cannot_write_the_fields_that_follow_it(api, capfd, log_format):
    forged = "/api/v1/auth/login%20200%200.9%20ms%20192.0.2.1%20request_id=0%25%22%C3%A9"
    with logging_to_standard_error(log_format):
        api.get(forged.removeprefix("/api/v1"), described=False).fails(404, "endpoint.not_found")
    [line] = lines_of(capfd, "gatehouse.access")
    message = json.loads(line)["message"] if log_format == "json" else line
    assert f"GET {forged} 404 endpoint.not_found " in message
    assert message.count(" request_id=") == (log_format == "text")


def test_a_message_with_line_breaks_stays_on_one_line(capfd):
    with logging_to_standard_error("text"):
        logging.getLogger("gatehouse.test").warning("one\ntwo\x1b[31m\u202ethree \ud800 caf\u00e9")
    [written] = lines_of(capfd, "one")
    assert "one\\ntwo\\x1b[31m\\u202ethree \\ud800 caf\u00e9" in written


@pytest.mark.parametrize("name", ["urllib3.connectionpool", "requests_oauthlib.oauth2_session"])
def test_libraries_that_repeat_secrets_are_quiet_even_at_debug(name):
    """They would log URLs with codes, client secrets, and whole token answers."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        logs.configure("text", "DEBUG")
        assert not logging.getLogger(name).isEnabledFor(logging.DEBUG)
        assert logging.getLogger("app.core").isEnabledFor(logging.DEBUG)
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])


def test_lines_that_a_full_disk_loses_leave_no_traceback(capsys):
    def emit(message, *values):
        record = logging.LogRecord("x", logging.INFO, __file__, 1, message, values, None)
        handler.emit(record)
        return capsys.readouterr().err

    with suppress(OSError), open("/dev/full", "w", encoding="utf-8") as full:
        handler = logs.StderrHandler(full)
        assert emit("lost") == ""
        assert "Logging error" in emit("%d", "no number")
