"""Recovery codes as a rule, and how they are kept."""

import re

from app.mfa import recovery_codes

FORM = re.compile(r"[A-Z2-7]{4}(-[A-Z2-7]{4}){2}")


def test_ten_codes_in_three_groups_of_four():
    codes = recovery_codes.new_codes()
    assert len(set(codes)) == 10
    assert all(FORM.fullmatch(code) for code in codes)


def test_every_character_occurs_everywhere():
    """None of the sixty bits is fixed."""
    codes = [recovery_codes.normalised(c) for _ in range(100) for c in recovery_codes.new_codes()]
    assert {len(set(place)) for place in zip(*codes, strict=True)} == {32}


def test_case_hyphens_and_spaces_do_not_matter():
    for typed in ("ABCD-EFGH-2345", "abcdefgh2345", " ab cd-ef\tgh 2-3-4-5 ", "ABCDEFGH2345\n"):
        assert recovery_codes.normalised(typed) == "ABCDEFGH2345", typed


def test_short_and_odd_texts_are_no_code():
    assert recovery_codes.normalised("ABCD-EFGH") == "ABCDEFGH"
    for typed in ("", "-", "ABCD-EFG", "ABCDEFG½", "ÄBCDEFGH2345"):
        assert recovery_codes.normalised(typed) is None, typed


def test_a_stored_code_is_known_for_its_account_only(rt):
    box, code = rt.secret_box, "ABCD-EFGH-2345"
    stored = recovery_codes.hash_code(box, 7, code)
    assert recovery_codes.matches_hash(box, 7, "abcdefgh2345", stored)
    assert not recovery_codes.matches_hash(box, 8, code, stored)
    assert not recovery_codes.matches_hash(box, 7, "ABCD-EFGH-2346", stored)


def test_a_stored_code_names_its_key_and_older_keys_still_verify(make_app):
    rt = make_app(secret_keys=()).extensions["gatehouse"]
    box, code, old = rt.secret_box, "ABCD-EFGH-2345", rt.keyring.current().key_id
    stored = recovery_codes.hash_code(box, 7, code)
    assert re.fullmatch(rf"{old}:[0-9a-f]{{64}}", stored)
    rt.keyring.rotate()
    assert recovery_codes.matches_hash(box, 7, code, stored)
    assert not recovery_codes.hash_code(box, 7, code).startswith(old)


def test_what_no_key_made_matches_nothing(rt):
    for stored in ("", ":", "gone:" + "0" * 64, "x" * 64):
        assert not recovery_codes.matches_hash(rt.secret_box, 7, "ABCD-EFGH-2345", stored), stored
