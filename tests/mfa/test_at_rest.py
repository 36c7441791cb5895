"""What database and Redis hold of second factors after everything was used."""

import base64
import hashlib
import logging
import re

import pytest
import sqlalchemy as sa

from app.crypto.secret_box import SecretUnreadable
from app.mfa.models import MfaFactor, MfaRecoveryCode
from tests.support.api import ApiClient
from tests.support.authenticator import enable_totp, start_setup
from tests.support.factories import configure, count, make_user
from tests.support.mailbox import text_of
from tests.support.outbox import use_smtp
from tests.support.smtp import RecordingSmtpServer
from tests.support.stores import everything_at, everything_in


def plain_digests(text):
    """Return what an unkeyed hash of a short text looks like."""
    for name in ("md5", "sha1", "sha256", "sha512"):
        raw = hashlib.new(name, text.encode(), usedforsecurity=False).digest()
        yield raw.hex()
        yield base64.b64encode(raw).decode().rstrip("=")
        yield base64.urlsafe_b64encode(raw).decode().rstrip("=")


@pytest.fixture
def sink(rt):
    with RecordingSmtpServer() as server:
        use_smtp(rt, server.port)
        configure(
            rt,
            auth_email_code_login_enabled=True,
            auth_email_code_login_allow_totp_fallback=True,
        )
        yield server


@pytest.fixture
def listening(app, caplog):
    """Hear everything, from before the scenario on; making the application replaced the handler."""
    logging.getLogger().addHandler(caplog.handler)
    caplog.set_level(logging.DEBUG)
    return caplog


@pytest.fixture
def secrets(app, rt, user, clock, sink):
    """Use second factors in every way, and leave something open; return the secrets by kind."""

    def log_in():
        client = ApiClient(app)
        return client, client.login(user).ok()["flow_token"]

    def verify(client, token, method, code):
        body = {"flow_token": token, "method": method, "code": code}
        return client.post("/auth/mfa/challenge/verify", body)

    def mailed_code(client, token):
        client.post("/auth/mfa/challenge/email-code/send", {"flow_token": token}).ok()
        text = text_of(sink.received[-1].message)
        [code] = re.findall(r"\b\d{8}\b", text)
        return code

    client, token = log_in()  # before TOTP, the mail is the only factor
    mails, tokens = [mailed_code(client, token)], [token]
    verify(client, token, "email_code", mails[0]).ok()
    enabled = enable_totp(client, clock, name="Phone")
    typed = [("totp", enabled.app.code()), ("recovery_code", enabled.recovery_codes[0])]
    for method, code in typed:
        other, token = log_in()
        verify(other, token, method, "000000").fails(401, "auth.mfa_code_invalid")
        verify(other, token, method, code).ok()
        tokens += [token, other.access_token, other.refresh_token]
    path = "/auth/mfa/recovery-codes/regenerate"
    fresh = client.post(path, {"code": enabled.recovery_codes[1]}).ok()
    clock.advance(minutes=2)
    other, token = log_in()
    mails.append(mailed_code(other, token))
    tokens.append(token)
    beginner = ApiClient(app)
    configure(rt, auth_email_code_login_enabled=False)
    beginner.login(make_user(rt)).ok()
    waiting_token, waiting = start_setup(beginner, clock)
    return {
        "totp": [enabled.app.secret, waiting.secret],
        "recovery": [*enabled.recovery_codes, *fresh],
        "mails": mails,
        "tokens": [*tokens, waiting_token],
    }


def clear_forms(secrets):
    """Return every spelling under which a secret would be usable."""
    for secret in secrets["totp"]:
        raw = base64.b32decode(secret)
        yield from (secret, raw.hex(), base64.b64encode(raw).decode(), str(raw))
    for code in secrets["recovery"]:
        yield from (code, code.replace("-", ""))
    yield from secrets["mails"]
    yield from secrets["tokens"]


def test_neither_database_nor_redis_holds_a_usable_secret(rt, redis_url, user, secrets):
    kept = "\n".join([*everything_in(rt.database.engine), *everything_at(redis_url)]).lower()
    # The scenario is all there: a factor, ten codes, flows and a code in Redis, and waiting mails.
    assert count(rt, MfaFactor) == 1
    assert count(rt, MfaRecoveryCode) == 10
    for name in ("mfa-login", "totp-setup", "email-code"):
        assert name in kept
    assert "security_notice" in kept
    assert user.username in kept
    found = [form for form in clear_forms(secrets) if form.lower() in kept]
    assert found == []


def test_no_short_code_is_kept_as_a_plain_hash(rt, redis_url, user, secrets):
    kept = "\n".join([*everything_in(rt.database.engine), *everything_at(redis_url)]).lower()
    for code in (*secrets["recovery"], *secrets["mails"]):
        for bare in (code, code.replace("-", "")):
            for text in (bare, f"{user.id}:{bare}", f"{user.id}{bare}", f"{bare}{user.id}"):
                found = [form for form in plain_digests(text) if form.lower() in kept]
                assert found == [], text


def test_recovery_codes_are_hashed_with_a_key_of_this_installation(rt, secrets):
    key_id = rt.keyring.current().key_id
    with rt.reading() as connection:
        hashes = connection.execute(sa.select(MfaRecoveryCode.code_hash)).scalars().all()
    assert len(set(hashes)) == 10
    for code_hash in hashes:
        assert re.fullmatch(rf"{key_id}:[0-9a-f]{{64}}", code_hash)


def test_a_secret_opens_in_its_own_row_only(rt, signed_in, user, enabled):
    """Copied to another account, or taken for a setup's, it is worth nothing."""
    with rt.reading() as connection:
        sealed = connection.execute(sa.select(MfaFactor.secret)).scalar_one()
    assert rt.secret_box.open(sealed, f"mfa_factor:{user.id}") == enabled.app.secret
    for row in (f"mfa_factor:{user.id + 1}", f"totp_setup:{user.id}", "mail_smtp_password"):
        with pytest.raises(SecretUnreadable):
            rt.secret_box.open(sealed, row)


def test_no_secret_is_logged(listening, secrets):
    records = listening.get_records("setup")  # where the fixture did it all
    ours = (record for record in records if record.name != "mail.log")  # the sink's own
    told = "\n".join(record.getMessage() for record in ours).lower()
    assert "/auth/mfa/challenge/verify" in told
    assert [form for form in clear_forms(secrets) if form.lower() in told] == []
