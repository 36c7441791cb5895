"""Codes as people type and paste them, in every place that takes one."""

import re

import pytest

from app.mfa import recovery_codes, typed_codes
from tests.support.authenticator import finish_setup, start_setup
from tests.support.challenge import send_code, start_login, verify
from tests.support.factories import configure
from tests.support.mailbox import text_of
from tests.support.outbox import use_smtp
from tests.support.smtp import RecordingSmtpServer


def in_digits_from(zero):
    """Return what writes a code in the decimal digits of another script."""
    return lambda code: code.translate({ord("0") + n: ord(zero) + n for n in range(10)})


def parted_by(mark):
    return lambda code: mark.join([code[:3], code[3:]])


SPELLINGS = {
    "full_width": in_digits_from("\uff10"),
    "arabic": in_digits_from("\u0660"),
    "persian": in_digits_from("\u06f0"),
    "devanagari": in_digits_from("\u0966"),
    "bold": in_digits_from("\U0001d7ce"),
    "space": parted_by(" "),
    "no_break_space": parted_by("\u00a0"),
    "narrow_space": parted_by("\u202f"),
    "tab_and_newline": lambda code: f"\t{code}\r\n",
    "hyphen": parted_by("-"),
    "no_break_hyphen": parted_by("\u2011"),
    "dash": parted_by(" \u2013 "),
    "minus": parted_by("\u2212"),
    "full_width_hyphen": parted_by("\uff0d"),
    "japanese_hyphen": parted_by("\u30fc"),
    "dot": parted_by("."),
    "middle_dot": parted_by("\u00b7"),
    "quoted": lambda code: f'"{code}".',
    "marks_of_direction": lambda code: f"\u200e\u2068{code}\u2069\u200f",
    "byte_order_mark": lambda code: f"\ufeff{code}",
    "zero_width_space": lambda code: "\u200b".join(code),
    "soft_hyphen": parted_by("\u00ad"),
}


def all_at_once(code):
    wide = SPELLINGS["full_width"](SPELLINGS["hyphen"](code))
    return SPELLINGS["marks_of_direction"](wide)


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_a_code_is_read_by_its_meaning(spell):
    assert typed_codes.digits(spell("123456"), 6) == "123456"
    assert recovery_codes.normalised(spell("234567ABcd")) == "234567ABCD"


def test_a_code_of_the_app_is_read_by_its_meaning(api, user, enabled):
    flow_token = start_login(api, user)
    verify(api, f" {flow_token}\n", all_at_once(enabled.app.code())).ok()


def test_a_recovery_code_is_read_by_its_meaning(api, user, enabled):
    code = enabled.recovery_codes[0]
    verify(api, start_login(api, user), all_at_once(code.lower()), "recovery_code").ok()


def test_a_mailed_code_is_read_by_its_meaning(rt, api, user):
    with RecordingSmtpServer() as sink:
        use_smtp(rt, sink.port)
        configure(rt, auth_email_code_login_enabled=True)
        flow_token = start_login(api, user)
        send_code(api, flow_token).ok()
        [code] = re.findall(r"\b\d{8}\b", text_of(sink.received[-1].message))
        verify(api, flow_token, all_at_once(code), "email_code").ok()


def test_the_first_code_and_a_proof_are_read_by_their_meaning(signed_in, clock):
    flow_token, app = start_setup(signed_in, clock)
    finish_setup(signed_in, flow_token, all_at_once(app.code())).ok()
    path = "/auth/mfa/recovery-codes/regenerate"
    codes = signed_in.post(path, {"code": all_at_once(app.wait())}).ok()
    signed_in.post(path, {"code": all_at_once(codes[0])}).ok()


def test_full_width_letters_of_a_recovery_code_are_letters():
    wide = "".join(chr(ord(character) + 0xFEE0) for character in "ABCD-EFGH-2345")
    assert recovery_codes.normalised(wide) == "ABCDEFGH2345"
