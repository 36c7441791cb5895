"""`auth_password_blocklist_enabled`: new passwords that are easy to guess (ASVS 5.0 §6.2.4)."""

import pytest

from app.core.access import COMMAND_LINE
from app.crypto.passwords import is_guessable
from app.invitations import service as invitations
from tests.support.factories import configure, make_user
from tests.support.passwords import change, confirm

COMMON = "Password123"
# No other test's: what is tried as a password may be in no log line of the suite.
USERNAME, EMAIL = "Blocklisted.Lovelace", "blocklisted-countess@example.com"
# Hashed as the ordinary letters are.
FULL_WIDTH = "".join(chr(ord(letter) + 0xFEE0) for letter in "password")
GUESSABLE = "This password is too easy to guess. Please choose another one."


@pytest.fixture
def user(rt):
    make_user(rt, username="root", role="admin")
    return make_user(rt, username=USERNAME, email=EMAIL)


@pytest.fixture
def blocklist(rt):
    configure(rt, auth_password_blocklist_enabled=True)


def refuse(answer):
    answer.fails(400, "bad_request")
    assert answer.json["msg"] == GUESSABLE


def test_common_passwords_and_own_names_are_guessable():
    common = ["password", "PASSWORD", "12345678", "iloveyou", FULL_WIDTH]
    for password in (*common, USERNAME, USERNAME.lower(), "Blocklisted-Countess", EMAIL):
        assert is_guessable(password, (USERNAME, EMAIL)), password


def test_other_passwords_are_not():
    for password in ("correct horse battery", "example.com", "password of hers"):
        assert not is_guessable(password, (USERNAME, EMAIL)), password


def test_length_is_the_only_rule_by_default(signed_in, user):
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
    for guessable in (COMMON, EMAIL):
        refuse(api.sign_up_admin(email=EMAIL, password=guessable))
    api.sign_up_admin().ok(201)


def test_registration_refuses_them(rt, api, blocklist):
    make_user(rt, username="root", role="admin")
    ada = {"username": USERNAME, "email": EMAIL}
    for guessable in (COMMON, USERNAME):
        refuse(api.post("/auth/register", ada | {"password": guessable}))
    api.post("/auth/register", ada | {"password": "correct horse battery"}).ok(201)


def test_space_around_a_name_hides_nothing(rt, api, blocklist):
    """Names are stored without it."""
    make_user(rt, username="root", role="admin")
    spaced = {"username": f" {USERNAME} ", "email": f" {EMAIL} "}
    for guessable in (USERNAME, EMAIL):
        refuse(api.post("/auth/register", spaced | {"password": guessable}))


def test_an_invitation_refuses_them_and_stays_open(rt, api, blocklist):
    make_user(rt, username="root", role="admin")
    token = invitations.create(rt, COMMAND_LINE, email=EMAIL).token
    path, ada = f"/auth/invitations/{token}/accept", {"username": USERNAME}
    for guessable in (COMMON, EMAIL):
        refuse(api.post(path, ada | {"password": guessable}))
    api.post(path, ada | {"password": "correct horse battery"}).ok(201)


def test_the_api_description_has_the_refusal(api):
    described = api.get("/openapi.json", described=False).json
    for method, path in (
        ("put", "/auth/password"),
        ("post", "/auth/password/reset/confirm"),
        ("post", "/auth/register"),
        ("post", "/auth/setup"),
        ("post", "/auth/invitations/{token}/accept"),
    ):
        refusal = described["paths"][f"/api/v1{path}"][method]["responses"]["400"]
        if "$ref" in refusal:
            refusal = described["components"]["responses"][refusal["$ref"].rpartition("/")[2]]
        examples = refusal["content"]["application/json"]["examples"]
        assert "PasswordGuessable" in examples, path
    assert described["components"]["examples"]["PasswordGuessable"]["value"]["msg"] == GUESSABLE


def test_commands_refuse_them(line, user, blocklist):
    other = f"other-{EMAIL}"
    new = ("users", "create", "--username", "Ada", "--email", other, "--password")
    for arguments in (
        (*new, COMMON),
        (*new, other),
        ("users", "set-password", user.username, "--password", COMMON),
        ("users", "set-password", user.username, "--password", user.email),
    ):
        assert GUESSABLE in line.refuses("bad_request", *arguments)


def test_a_password_that_is_in_use_goes_on_working(rt, api):
    ada = make_user(rt, username="ada", password=COMMON)
    configure(rt, auth_password_blocklist_enabled=True)
    api.login(ada).ok()
