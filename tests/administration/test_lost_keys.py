"""Keys that are lost or wrong: what `flask doctor` and the requests that need them say."""

import json
import logging

import pytest
import sqlalchemy as sa

from app.mail.models import OutboxMail
from app.mfa.models import MfaRecoveryCode
from tests.support.api import ApiClient
from tests.support.authenticator import enable_totp
from tests.support.commands import CommandLine
from tests.support.external import add_provider
from tests.support.factories import configure
from tests.support.servers import TEST_KEYS

NEW = ("new", b"a key that opens nothing of before")
IMPOSTOR = ("test", b"another key with the name of the old")


@pytest.fixture
def enabled(signed_in, clock):
    return enable_totp(signed_in, clock)


@pytest.fixture
def used(rt, enabled):
    """An installation that keeps something of every kind under its only key, `test`.

    Two mails tell of the second factor.
    """
    configure(rt, mail_smtp_password="open sesame")
    add_provider(rt, client_secret="open sesame")
    return enabled


def finding(app, check="stored secrets"):
    ran = CommandLine(app)("doctor", "--json")
    [found] = [c for c in json.loads(ran.stdout)["checks"] if c["check"] == check]
    assert ran.exit_code == 1 or found["level"] != "fail"
    told = (found["message"], found["remedy"] or "")
    return found["level"], " ".join(told).rstrip()


def count(rt, *conditions):
    with rt.reading() as connection:
        statement = sa.select(sa.func.count()).where(*conditions)
        return connection.execute(statement).scalar_one()


@pytest.fixture
def secrets(rt, used):
    """How many there are: a setting, a provider, an app, and mails."""
    return 3 + count(rt, OutboxMail.payload.is_not(None))


def test_secrets_under_known_keys_are_well(make_app, secrets):
    app = make_app(secret_keys=(NEW, *TEST_KEYS))
    assert finding(app) == ("ok", f"Secrets: {secrets}; every key they need is present.")


def test_one_secret_is_no_secrets(app, rt):
    assert finding(app) == ("ok", "Secrets: 0; every key they need is present.")
    configure(rt, mail_smtp_password="open sesame")
    assert finding(app) == ("ok", "Secrets: 1; every key they need is present.")


def test_a_missing_key_is_named_with_what_depends_on_it(make_app, secrets):
    level, told = finding(make_app(secret_keys=(NEW,)))
    assert level == "fail"
    assert told.startswith(
        f"Key test is missing; secrets that need it: {secrets}, recovery codes: 10. "
        "Put the right one into GATEHOUSE_SECRET_KEYS. Only if it is lost for good, "
    )
    assert told.endswith("Mails that need it wait for at most three days.")


def test_a_missing_key_of_a_file_is_put_back_there(make_app, rt, secrets):
    assert (
        f"Put the right one into {rt.config.instance / 'keys.json'}."
        in finding(make_app(secret_keys=()))[1]
    )


def test_another_key_of_the_same_name_is_found(make_app, secrets):
    level, told = finding(make_app(secret_keys=(IMPOSTOR,)))
    assert level == "fail"
    assert f"Key test is present with a wrong value; secrets that need it: {secrets}, " in told
    assert "Put the right one into GATEHOUSE_SECRET_KEYS" in told


def test_recovery_codes_of_a_key_that_was_taken_out_are_a_warning(make_app, rt, used):
    """docs/operations.md, "Rotate keys", has a stolen key taken out."""
    app = make_app(secret_keys=(NEW, *TEST_KEYS))
    assert CommandLine(app)("keys", "rotate").exit_code == 0
    without = make_app(secret_keys=(NEW,))
    level, told = finding(without)
    assert level == "warn"
    assert told.startswith("Key test is missing; secrets that need it: 0, recovery codes: 10.")
    assert "on purpose" in told
    with rt.transaction() as session:
        session.execute(sa.update(MfaRecoveryCode).values(used_at=rt.clock.now()))
    assert finding(without)[0] == "ok"


@pytest.mark.parametrize("damaged", ["", "v1", "v1:", "plain text", "v1:test", "v2:test:AAAA:AAAA"])
def test_what_is_no_ciphertext_is_a_failure(app, rt, used, damaged):
    with rt.transaction() as session:
        session.execute(sa.update(OutboxMail).values(payload=damaged))
    level, told = finding(app)
    assert level == "fail"
    assert "plain text" not in told


def test_one_who_looks_for_lost_keys_is_not_told_to_overwrite_secrets_first(make_app, used):
    app = make_app(secret_keys=(NEW,))
    for check in ("settings", "external sign-in"):
        level, told = finding(app, check)
        assert level == "fail"
        told = told.lower()
        assert (
            0
            < told.index("is a key missing? put it back; only if it is lost")
            < told.index(" again")
        )


@pytest.fixture
def told(caplog):
    """What the log tells of a request."""

    def lines():
        return [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR], [
            r for r in caplog.records if r.exc_info
        ]

    return lines


@pytest.fixture
def bereft(make_app, used, caplog):
    """The application without its key."""
    app = make_app(secret_keys=(NEW,))
    caplog.set_level(logging.ERROR)
    logging.getLogger().addHandler(caplog.handler)
    yield app
    logging.getLogger().removeHandler(caplog.handler)


def test_a_login_with_a_secret_that_no_key_opens_is_a_documented_error(bereft, used, user, told):
    """It is no wrong code: neither of this login's attempts nor of the account's is spent."""
    client = ApiClient(bereft)
    flow_token = client.login(user).ok()["flow_token"]
    body = {"flow_token": flow_token, "method": "totp", "code": used.app.code()}
    for _ in range(12):
        client.post("/auth/mfa/challenge/verify", body).fails(500, "config.error")
    lines, tracebacks = told()
    assert set(lines) == {
        f"mfa_factor:{user.id} cannot be decrypted; is a key missing? See `flask doctor`"
    }
    assert tracebacks == []


@pytest.fixture
def access_token(make_app, used, user):
    """A session's, which the key that is there has signed."""
    client = ApiClient(make_app(secret_keys=(NEW, *TEST_KEYS)))
    flow_token = client.login(user).ok()["flow_token"]
    body = {"flow_token": flow_token, "method": "totp", "code": used.app.code()}
    client.post("/auth/mfa/challenge/verify", body).ok()
    return client.access_token


def test_so_is_a_change_of_factors(access_token, bereft, used, user, told):
    bearer = ApiClient(bereft).bearer(access_token)
    code = {"code": used.app.code()}
    bearer.post("/auth/mfa/recovery-codes/regenerate", code).fails(500, "config.error")
    [line] = told()[0]
    assert line.startswith(f"mfa_factor:{user.id} ")


def test_a_setup_whose_key_was_taken_out_is_void(make_app, user, clock):
    both = make_app(secret_keys=(*TEST_KEYS, NEW))
    client = ApiClient(both)
    client.login(user).ok()
    begun = client.post("/auth/mfa/totp/setup/start", {}).ok()
    signed_by_new = ApiClient(make_app(secret_keys=(NEW,)))
    signed_by_new.login(user).ok()
    finish = {"flow_token": begun["flow_token"], "code": "123456"}
    signed_by_new.post("/auth/mfa/totp/setup/finish", finish).fails(401, "auth.token_invalid")
