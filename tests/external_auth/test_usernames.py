"""Usernames of accounts that external identities bring along."""

import re
import string

import pytest

from app.external_auth.sign_in.new_accounts import usernames

SUBJECT = "248289761001"


def first(preferred=None, address="jane@example.com", subject=SUBJECT):
    return next(usernames(subject, preferred, address))


@pytest.mark.parametrize(
    ("preferred", "address", "name"),
    [
        ("jane", "x@example.com", "jane"),
        ("Jane.Doe", "x@example.com", "jane-doe"),
        ("Jane Doe", "x@example.com", "jane-doe"),
        ("jane_doe", "x@example.com", "jane_doe"),
        ("  jane!?doe  ", "x@example.com", "janedoe"),
        ("--jane--", "x@example.com", "jane"),
        ("Jürgen", "x@example.com", "jrgen"),
        ("\u212aelvin", "x@example.com", "elvin"),
        ("jan", "jane.doe@example.com", "jane-doe"),
        ("j.d", "jane@example.com", "jane"),
        (None, "Jane.Doe@example.com", "jane-doe"),
        (None, "jane+files@example.com", "janefiles"),
        ("an-address@example.com", "x@example.com", "an-addressexampl"),
        ("x" * 40, "jane@example.com", "x" * 16),
        ("x" * 15 + "-y", "jane@example.com", "x" * 15),
    ],
)
def test_a_name_is_made_of_what_the_provider_says(preferred, address, name):
    assert first(preferred, address) == name


@pytest.mark.parametrize("preferred", [None, "", "jd", "名前", "-_-.", "a-b"])
def test_without_four_usable_characters_the_subject_names_it(preferred):
    name = first(preferred, "jd@example.com")
    assert re.fullmatch(r"oidc[0-9a-f]{8}", name)
    assert name == first(preferred, "jd@example.com")
    assert name != first(preferred, "jd@example.com", subject="another")


def test_random_ends_use_all_letters_and_digits():
    ends = "".join(
        name[-6:]
        for _ in range(200)
        for name in list(usernames(SUBJECT, "jane", "x@example.com"))[1:]
    )
    assert set(ends) == set(string.ascii_lowercase + string.digits)


def test_further_names_have_a_random_end():
    names = list(usernames(SUBJECT, "jane.doe.of.york", "x@example.com"))
    assert len(names) == 5
    assert names[0] == "jane-doe-of-york"
    assert all(re.fullmatch(r"jane-doe-[a-z0-9]{6}", n) for n in names[1:])
    assert len(set(names)) == 5


def test_a_stem_too_short_is_replaced():
    [_, second, *_] = usernames(SUBJECT, "a--------b", "x@example.com")
    assert re.fullmatch(r"oidc-[a-z0-9]{6}", second)


def test_every_name_is_one_accounts_may_have():
    for preferred in ("x" * 300, "-" * 300, "____", "jane", "a.b.c.d", None):
        for name in usernames(SUBJECT, preferred, "jane@example.com"):
            assert re.fullmatch(r"[A-Za-z0-9_.-]{4,16}", name)
