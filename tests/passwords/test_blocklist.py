"""`auth_password_blocklist_enabled`: new passwords that are easy to guess (ASVS 5.0 §6.2.4)."""

import pytest

from app.core.common_passwords import is_guessable
from app.invitations import service as invitations
from tests.support.factories import configure, make_user
from tests.support.passwords import change, confirm

COMMON = "Password123"
# Hashed as the ordinary letters are.
FULL_WIDTH = "".join(chr(ord(letter) + 0xFEE0) for letter in "password")
GUESSABLE = "This password is too easy to guess. Please choose another one."


@pytest.fixture
def blocklist(rt):
    configure(rt, auth_password_blocklist_enabled=True)


def refuse(answer):
    answer.fails(400, "bad_request")
    assert answer.json["msg"] == GUESSABLE


@pytest.mark.parametrize(
    "password",
    [
        "password",
        "PASSWORD",
        "12345678",
        "iloveyou",
        FULL_WIDTH,
        "ada.lovelace",
        "Ada.Lovelace",
        "countess",
        "countess@example.com",
    ],
)
def test_common_passwords_and_own_names_are_guessable(password):
    assert is_guessable(password, ("Ada.Lovelace", "Countess@example.com"))


@pytest.mark.parametrize("password", ["correct horse battery", "example.com", "password of hers"])
def test_other_passwords_are_not(password):
    assert not is_guessable(password, ("Ada.Lovelace", "Countess@example.com"))


def test_length_is_the_only_rule_by_default(signed_in, user):
    """Decision A14."""
    change(signed_in, user.password, COMMON).ok()


def test_a_change_refuses_them(signed_in, user, blocklist):
    for guessable in (COMMON, user.email):
        refuse(change(signed_in, user.password, guessable))
    change(signed_in, user.password).ok()


def test_a_reset_refuses_them_and_keeps_its_link(api, user, mailed, blocklist):
    token = mailed(user)
    for guessable in (COMMON, user.email):
        refuse(confirm(api, token, guessable))
    confirm(api, token).ok()


def test_an_unknown_reset_link_is_no_oracle_for_names(api, user, blocklist):
    confirm(api, "unknown", user.email).fails(400, "auth.contact_verification_invalid")


def test_set_up_refuses_them(api, blocklist):
    for guessable in (COMMON, "admin@example.com"):
        refuse(api.sign_up_admin(password=guessable))
    api.sign_up_admin().ok(201)


def test_registration_refuses_them(rt, api, blocklist):
    make_user(rt, username="root", role="admin")
    ada = {"username": "ada.lovelace", "email": "ada@example.com"}
    for guessable in (COMMON, "Ada.Lovelace"):
        refuse(api.post("/auth/register", ada | {"password": guessable}))
    api.post("/auth/register", ada | {"password": "correct horse battery"}).ok(201)


def test_an_invitation_refuses_them_and_stays_open(rt, api, blocklist):
    make_user(rt, username="root", role="admin")
    token = invitations.create(rt, email="ada@example.com").token
    path, ada = f"/auth/invitations/{token}/accept", {"username": "ada.lovelace"}
    for guessable in (COMMON, "ada@example.com"):
        refuse(api.post(path, ada | {"password": guessable}))
    api.post(path, ada | {"password": "correct horse battery"}).ok(201)


def test_commands_refuse_them(line, user, blocklist):
    new = ("users", "create", "--username", "Ada", "--email", "ada@example.com", "--password")
    for arguments in (
        (*new, COMMON),
        (*new, "ada@example.com"),
        ("users", "set-password", user.username, "--password", COMMON),
        ("users", "set-password", user.username, "--password", user.email),
    ):
        assert GUESSABLE in line.refuses("bad_request", *arguments)


def test_a_password_that_is_in_use_goes_on_working(rt, api):
    ada = make_user(rt, username="ada", password=COMMON)
    configure(rt, auth_password_blocklist_enabled=True)
    api.login(ada).ok()
