"""What a login asks of second factors."""

import pytest
from passlib.context import CryptContext

from app.crypto.secret_box import SecretBox
from app.mfa import queries, service
from app.mfa.errors import MfaCodeInvalid, MfaRecoveryCodeUsed
from app.mfa.models import CodePurpose, MfaMethod
from tests.support.factories import account_of, change_user, configure

TOTP, RECOVERY_CODE, EMAIL_CODE = MfaMethod


def methods(rt, user):
    return service.methods(rt, account_of(rt, user))


def check_totp(rt, user, code, purpose=CodePurpose.LOGIN):
    return service.check_totp(rt, service.find_totp(rt, user.id), code, purpose)


def claim(rt, user, proof):
    account = account_of(rt, user)
    try:
        with rt.transaction() as session:
            service.consume(rt, session, account, proof)
    except (MfaCodeInvalid, MfaRecoveryCodeUsed):
        return False
    return True


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


@pytest.mark.both_databases
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


@pytest.mark.parametrize("purpose", list(CodePurpose))
def test_a_step_is_good_once_for_each_purpose(rt, user, enabled, purpose):
    proof = check_totp(rt, user, enabled.app.code(), purpose)
    assert check_totp(rt, user, enabled.app.code(), purpose).step == proof.step
    assert claim(rt, user, proof)
    assert not claim(rt, user, proof)
    for steps in (-1, 0):
        with pytest.raises(MfaCodeInvalid):
            check_totp(rt, user, enabled.app.code(steps), purpose)
    [other] = set(CodePurpose) - {purpose}
    assert claim(rt, user, check_totp(rt, user, enabled.app.code(), other))
    later = check_totp(rt, user, enabled.app.code(1), purpose)
    assert claim(rt, user, later)
    assert not claim(rt, user, proof)


@pytest.mark.parametrize("purpose", list(CodePurpose))
def test_a_code_stays_right_while_keys_rotate(rt, user, enabled, purpose):
    """The same secret is sealed anew between the look at the code and its use."""
    proof = check_totp(rt, user, enabled.app.code(), purpose)
    with rt.transaction() as session:
        again = rt.secret_box.seal(enabled.app.secret, service.secret_row_name(user.id))
        assert queries.replace_secret(session, enabled.factor_id, proof.factor.secret, again)
    assert claim(rt, user, proof)
    assert not claim(rt, user, proof)


def test_a_login_is_a_use_of_the_factor(rt, user, enabled, signed_in, clock):
    clock.advance(seconds=10)
    assert claim(rt, user, check_totp(rt, user, enabled.app.code()))
    [factor] = signed_in.get("/auth/mfa").ok()["factors"]
    assert factor["last_used_at"] == "2026-03-02T09:30:10Z"


# --- recovery codes ----------------------------------------------------------------------------


def test_a_recovery_code_is_good_once_for_all_purposes(rt, user, enabled):
    code = enabled.recovery_codes[7]
    proof = service.check_recovery_code(rt, user.id, code)
    assert claim(rt, user, proof)
    assert not claim(rt, user, proof)
    with pytest.raises(MfaRecoveryCodeUsed):
        service.check_recovery_code(rt, user.id, code)


def test_another_text_is_no_recovery_code(rt, user, enabled):
    for code in ("", "ABCD", "ABCD-EFGH-2345"):
        with pytest.raises(MfaCodeInvalid):
            service.check_recovery_code(rt, user.id, code)


@pytest.mark.parametrize(("stored", "typed"), [(1, "none"), (10, "first"), (10, "none")])
def test_a_check_costs_one_mac_for_each_stored_code_and_no_argon2(
    rt, user, enabled, monkeypatch, stored, typed
):
    """Issue; how long that takes is measured by the bench. The match makes no difference."""
    codes = enabled.recovery_codes[:stored]
    with rt.transaction() as session:
        service.store_codes(rt, session, user.id, codes)
    macs, hashes = [], []
    compute = SecretBox._hmac
    monkeypatch.setattr(SecretBox, "_hmac", lambda *given: macs.append(1) or compute(*given))
    for name in ("hash", "verify", "verify_and_update"):
        monkeypatch.setattr(CryptContext, name, lambda *_: hashes.append(1))
    if typed == "none":
        with pytest.raises(MfaCodeInvalid):
            service.check_recovery_code(rt, user.id, "ABCD-EFGH-2345")
    else:
        code = codes[0 if typed == "first" else -1]
        assert service.check_recovery_code(rt, user.id, code).used_at is None
    assert (len(macs), len(hashes)) == (stored, 0)
    rt.passwords.check("a password", None)
    assert hashes  # it would have been noticed
