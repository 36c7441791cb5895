"""Usernames that nobody can choose, and numbers that mean one account or another."""

import pytest
import sqlalchemy as sa

from app.core.access import COMMAND_LINE
from app.core.texts import typed_reference
from app.invitations import service as invitations
from app.users.models import User
from tests.support.api import ORIGIN
from tests.support.commands import CommandLine
from tests.support.external import add_provider, signs_in, wait_for_account
from tests.support.factories import change_user, configure, make_user

PASSWORD = "correct horse battery"
RESERVED = ["129", "007", "admin", "Admin", "ROOT", "no-reply", "postmaster", "undefined"]


@pytest.fixture(autouse=True)
def boss(rt):
    return make_user(rt, username="boss", role="admin")


@pytest.fixture
def line(app):
    return CommandLine(app)


def register(api, username):
    body = {"username": username, "email": "new@example.com", "password": PASSWORD}
    return api.post("/auth/register", body)


@pytest.mark.parametrize("name", RESERVED)
def test_nobody_chooses_one_when_registering_or_accepting(rt, api, name):
    refused = register(api, f" {name} ").fails(400, "bad_request")
    assert refused.json["msg"] == "This username cannot be chosen."
    token = invitations.create(rt, COMMAND_LINE, email="guest@example.com").token
    path, body = f"/auth/invitations/{token}/accept", {"username": name, "password": PASSWORD}
    api.post(path, body).fails(400, "bad_request")
    api.post(path, {**body, "username": f"{name}-1"}).ok(201)


def test_the_setting_says_which(rt, api):
    configure(rt, auth_reserved_usernames=["Captain"])
    register(api, "captain").fails(400, "bad_request")
    register(api, "12").fails(400, "bad_request")
    register(api, "admin").ok(201)


def test_an_empty_one_reserves_digits_only(rt, api):
    configure(rt, auth_reserved_usernames=[])
    register(api, "0815").fails(400, "bad_request")
    register(api, "root").ok(201)


def test_who_has_one_keeps_it(rt, api):
    make_user(rt, username="captain", password=PASSWORD)
    configure(rt, auth_reserved_usernames=["captain"])
    api.login("captain", PASSWORD).ok()
    api.patch("/auth/profile", {"display_name": "The Captain"}).ok()


@pytest.mark.parametrize("preferred", ["root", "support", "1234"])
def test_who_comes_by_a_provider_gets_a_suffix(rt, api, mailbox, preferred):
    configure(rt, public_site_url=[ORIGIN])
    provider = add_provider(rt, auto_provision_enabled=True)
    flow = wait_for_account(rt, provider, preferred_username=preferred)
    path = "/auth/external-auth/email-verification"
    api.post(f"{path}/start", {"flow_token": flow, "email": "new@example.com"}).ok()
    signs_in(api.get(f"{path}/confirm?token={mailbox.token(mailbox.only())}"), "/files")
    name = api.me().ok()["username"]
    assert name.startswith(f"{preferred}-")
    assert len(name) == len(preferred) + 7


def test_operators_may_give_any(rt, api, line, boss):
    for number, name in enumerate(("admin", "4711")):
        words = ["--username", name, "--email", f"a{number}@example.com", "--generate"]
        line.json("users", "create", *words)
        assert line.json("users", "show", f"name:{name}")["username"] == name
    api.login(boss).ok()
    body = {"username": "root", "email": "r@example.com", "password": PASSWORD}
    api.post("/admin/users", body).ok(201)
    assert line.json("users", "show", "root")["username"] == "root"


def test_the_first_administrator_may_be_called_admin(rt, api):
    with rt.transaction() as session:
        session.execute(sa.delete(User))
    body = {"username": "admin", "email": "admin@example.com", "password": PASSWORD}
    assert api.post("/auth/setup", body).ok(201)["username"] == "admin"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("129", (129, "129")),
        ("007", (7, "007")),
        (" 7 ", (7, " 7 ")),
        ("bob", (None, "bob")),
        ("id:129", (129, None)),
        ("id:007", (7, None)),
        ("id:bob", (None, None)),
        ("id:", (None, None)),
        ("name:129", (None, "129")),
        ("name:id:7", (None, "id:7")),
        ("bob@example.com", (None, "bob@example.com")),
        ("9" * 30, (None, "9" * 30)),
    ],
)
def test_what_a_number_may_mean(typed, meant):
    assert typed_reference(typed) == meant


@pytest.fixture
def twins(rt):
    """An account, and one that is called as the first one's id, with a zero before it."""
    one = make_user(rt, username="one")
    return one, make_user(rt, username=f"0{one.id}")


@pytest.mark.parametrize("command", ["show", "disable", "enable", "revoke-sessions", "export"])
def test_a_number_that_means_two_accounts_is_refused(line, twins, command):
    one, other = twins
    said = line.refuses("conflict", "users", command, other.username, "--json")
    assert f"id:{one.id} or name:{other.username}" in said
    assert line.json("users", "show", f"id:{other.username}")["id"] == one.id
    assert line.json("users", "show", f"name:{other.username}")["id"] == other.id
    assert line.json("users", "show", str(other.id))["id"] == other.id


def test_so_is_one_that_means_two_teams(rt, line, boss):
    crew = line.json("teams", "create", "Crew", "--owner", boss.username)
    line.json("teams", "create", str(crew["id"]), "--owner", boss.username)
    said = line.refuses("conflict", "teams", "members", str(crew["id"]), "--json")
    assert f"id:{crew['id']} or id:" in said
    for number, which in enumerate((f"id:{crew['id']}", f"name:{crew['id']}")):
        line.json("teams", "update", which, "--name", f"Renamed {number}")
    assert line.json("teams", "update", "Renamed 0", "--name", "Crew")["id"] == crew["id"]


def test_an_account_that_is_called_as_its_own_id_is_meant_by_both(rt, line, twins):
    one, _ = twins
    change_user(rt, one, username=str(one.id), username_key=str(one.id))
    assert line.json("users", "show", str(one.id))["id"] == one.id
