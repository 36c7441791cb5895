"""`flask tokens`."""

import pytest

from tests.support.commands import CommandLine
from tests.support.factories import audit_rows, configure, make_user
from tests.support.mailbox import text_of
from tests.support.programs import add_token, names_of, program


@pytest.fixture
def line(app):
    return CommandLine(app)


def make(user, *more):
    return ("tokens", "create", user.username, "--name", "It", "--scope", "files", *more)


def test_a_token_in_one_command(app, rt, line, user, mailbox):
    text = line(*make(user)).text
    me = program(app, text).me().ok()
    assert me["id"] == user.id
    assert me["access_token_expires_at"] == int(rt.clock.now().timestamp()) + 365 * 86_400
    [mail] = mailbox.read()
    assert mail["To"] == user.email
    told = " ".join(text_of(mail).split())
    assert "was made for your account by an administrator: “It” (scopes: files;" in told
    [row] = audit_rows(rt, "admin_create_user_token")
    assert (row.user_id, row.entity_type, row.entity_name) == (0, "access_token", "It")
    assert text not in str(row)


def test_json_has_the_token_and_what_is_known_of_it(line, user):
    made = line.json(*make(user, "--scope", "events", "--days", "7"))
    assert made.keys() == {"token", "info"}
    assert made["info"]["scopes"] == ["events", "files"]
    assert line.json("tokens", "list", user.username) == [made["info"]]
    assert made["info"]["prefix"] in line("tokens", "list", user.username).text


def test_it_lasts_as_long_as_is_allowed(rt, line, user):
    configure(rt, auth_access_token_max_days=0)
    assert line.json(*make(user))["info"]["expires_at"] is None


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (("--days", "366"), "bad_request"),
        (("--days", "0"), "bad_request"),
        (("--scope", "admin"), "auth.admin_required"),
        (("--name", "it"), "conflict"),
        (("--name", " "), "bad_request"),
    ],
)
def test_the_rules_are_those_of_http(rt, line, user, more, code):
    add_token(rt, user, "files", name="It")
    line.refuses(code, *make(user, "--name", "other", *more))
    assert names_of(rt, user) == ["It"]


def test_an_unknown_account_and_one_that_is_switched_off(rt, line, user):
    line.refuses("not_found", "tokens", "create", "nobody", "--name", "It", "--scope", "files")
    line.refuses("not_found", "tokens", "list", "nobody")
    configure(rt, auth_access_tokens_enabled=False)
    line.refuses("forbidden", *make(user))


def test_one_is_revoked_by_its_number_whosever_it_is(app, rt, line, admin, mailbox):
    text, token_id = add_token(rt, admin, "admin", name="old")
    line.json("tokens", "revoke", str(token_id))
    program(app, text).me().fails(401, "auth.token_invalid")
    assert [mail["To"] for mail in mailbox.read()] == [admin.email]
    [row] = audit_rows(rt, "admin_remove_user_token")
    assert (row.user_id, row.entity_id) == (0, token_id)
    line.refuses("not_found", "tokens", "revoke", str(token_id))


def test_administrators_learn_of_one_for_administration(rt, line, admin, mailbox):
    other = make_user(rt, role="admin")
    line.json(*make(other, "--scope", "admin"))
    told = [(mail["To"], " ".join(text_of(mail).split())) for mail in mailbox.read()]
    assert sorted(to for to, _ in told) == sorted([admin.email, other.email])  # once each
    assert "command line" in dict(told)[admin.email]
    assert "made for your account" in dict(told)[other.email]
