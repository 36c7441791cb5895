"""What a login asks of second factors (Interface, Endpoint rules 4; spec 02 §1.1; A15, A16)."""

import time

import pytest

from app.mfa import service
from app.mfa.errors import MfaCodeInvalid, MfaFactorRequired, MfaRecoveryCodeUsed
from app.mfa.models import MfaMethod
from app.mfa.service import Proof, Purpose
from app.users import service as users
from tests.support.factories import change_user, configure

TOTP, RECOVERY_CODE, EMAIL_CODE = MfaMethod


def methods(rt, user):
    with rt.reading() as connection:
        account = users.get(connection, user.id)
    return service.methods(rt, account)


def claim(rt, user, proof, **options):
    with rt.transaction() as session:
        return service.claim(rt, session, user.id, proof, **options)


@pytest.fixture
def email_codes_on(rt):
    configure(
        rt,
        mail_smtp_host="smtp.example",
        mail_from_address="files@files.example",
        auth_email_code_login_enabled=True,
    )


# --- which methods there are -------------------------------------------------------------------


def test_without_anything_there_is_none(rt, user):
    assert methods(rt, user) == ()


def test_with_an_app_there_are_its_codes_and_recovery_codes(rt, user, enabled):
    assert methods(rt, user) == (TOTP, RECOVERY_CODE)


def test_used_recovery_codes_are_no_method(rt, user, enabled):
    for number, code in enumerate(enabled.recovery_codes, start=1):
        assert claim(rt, user, service.check_recovery_code(rt, user.id, code))
        assert (RECOVERY_CODE in methods(rt, user)) is (number < 10)


@pytest.mark.usefixtures("email_codes_on")
def test_a_code_by_mail_is_for_verified_addresses(rt, user):
    assert methods(rt, user) == (EMAIL_CODE,)
    change_user(rt, user, email_verified_at=None)
    assert methods(rt, user) == ()


def test_a_code_by_mail_needs_the_switch_and_a_mail_server(rt, user, email_codes_on):
    configure(rt, auth_email_code_login_enabled=False)
    assert methods(rt, user) == ()
    configure(rt, auth_email_code_login_enabled=True)
    configure(rt, mail_smtp_host="")
    assert methods(rt, user) == ()


def test_beside_an_app_a_code_by_mail_is_a_fallback_to_be_allowed(rt, user, enabled):
    configure(
        rt,
        mail_smtp_host="smtp.example",
        mail_from_address="files@files.example",
        auth_email_code_login_enabled=True,
    )
    assert methods(rt, user) == (TOTP, RECOVERY_CODE)
    configure(rt, auth_email_code_login_allow_totp_fallback=True)
    assert methods(rt, user) == (TOTP, RECOVERY_CODE, EMAIL_CODE)


# --- codes of the app --------------------------------------------------------------------------


@pytest.mark.parametrize("purpose", list(Purpose))
def test_a_step_is_good_once_for_each_purpose(rt, user, enabled, purpose):
    proof = service.check_totp(rt, user.id, enabled.app.code(), purpose=purpose)
    assert service.check_totp(rt, user.id, enabled.app.code(), purpose=purpose) == proof
    assert claim(rt, user, proof, purpose=purpose)
    assert not claim(rt, user, proof, purpose=purpose)
    for steps in (-1, 0):
        with pytest.raises(MfaCodeInvalid):
            service.check_totp(rt, user.id, enabled.app.code(steps), purpose=purpose)
    [other] = set(Purpose) - {purpose}
    assert claim(rt, user, proof, purpose=other)
    later = service.check_totp(rt, user.id, enabled.app.code(1), purpose=purpose)
    assert claim(rt, user, later, purpose=purpose)


@pytest.mark.parametrize("code", ["", "12345", "ABCD-EFGH-2345"])
def test_the_shape_is_checked_before_the_factor(rt, user, code):
    with pytest.raises(MfaCodeInvalid):
        service.check_totp(rt, user.id, code)
    with pytest.raises(MfaFactorRequired):
        service.check_totp(rt, user.id, "123456")


def test_a_login_is_a_use_of_the_factor(rt, user, enabled, signed_in, clock):
    clock.advance(seconds=10)
    assert claim(rt, user, service.check_totp(rt, user.id, enabled.app.code()))
    [factor] = signed_in.get("/auth/mfa").ok()["factors"]
    assert factor["last_used_at"] == "2026-03-02T09:30:10Z"


# --- recovery codes ----------------------------------------------------------------------------


def test_a_recovery_code_is_good_once_for_all_purposes(rt, user, enabled):
    code = enabled.recovery_codes[7]
    proof = service.check_recovery_code(rt, user.id, code)
    assert claim(rt, user, proof)
    assert not claim(rt, user, proof, purpose=Purpose.MANAGEMENT)
    with pytest.raises(MfaRecoveryCodeUsed):
        service.check_recovery_code(rt, user.id, code)


@pytest.mark.parametrize("code", ["", "ABCD", "ABCD-EFGH-2345"])
def test_another_text_is_no_recovery_code(rt, user, enabled, code):
    with pytest.raises(MfaCodeInvalid):
        service.check_recovery_code(rt, user.id, code)


def test_a_check_of_recovery_codes_takes_less_than_three_milliseconds(rt, user, enabled):
    """Issue: whatever the number of codes, and without Argon2."""
    began = time.process_time()
    for _ in range(20):
        with pytest.raises(MfaCodeInvalid):
            service.check_recovery_code(rt, user.id, "ABCD-EFGH-2345")
    assert (time.process_time() - began) / 20 < 0.003


def test_a_code_by_mail_is_not_used_up_here(rt, user):
    with pytest.raises(ValueError, match="email_code"):
        claim(rt, user, Proof(EMAIL_CODE))
