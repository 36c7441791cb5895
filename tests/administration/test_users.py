"""`flask users`."""

import json

import pytest
import sqlalchemy as sa

from app.storage_policies.models import StoragePolicyGroup, StoragePolicyGroupItem
from app.users.models import User
from app.web.schema import timestamp
from tests.support.api import ORIGIN
from tests.support.authenticator import enable_totp
from tests.support.external import add_provider, link
from tests.support.factories import audit_rows, change_user, column_of, configure, count, make_user
from tests.support.images import plain, upload
from tests.support.passkeys import Authenticator, register

USER_INFO = {
    "id",
    "username",
    "email",
    "email_verified",
    "pending_email",
    "role",
    "status",
    "is_activated",
    "must_change_password",
    "storage_used",
    "storage_quota",
    "policy_group_id",
    "created_at",
    "updated_at",
    "profile",
}
NEW = ("users", "create", "--username", "Alice", "--email", "Alice@Example.com")


def bearer(api, user):
    """Sign in; return how to ask who is signed in."""
    api.login(user).ok()
    return api.me


# --- create ----------------------------------------------------------------------------------


def test_create_prints_the_account_and_no_password_that_was_given(line, admin):
    made = line.json(*NEW, "--password", "a password of hers")
    assert set(made) == {"user", "generated_password"}
    assert made["generated_password"] is None
    user = made["user"]
    assert set(user) == USER_INFO
    assert (user["username"], user["email"]) == ("Alice", "alice@example.com")
    assert (user["role"], user["status"]) == ("user", "active")
    assert user["email_verified"] is True
    assert user["must_change_password"] is False
    assert user["policy_group_id"] is not None


@pytest.mark.parametrize("options", [["--generate"], []])
def test_generated_password_is_told_and_must_be_changed(line, api, admin, options):
    made = line.json(*NEW, *options)
    assert len(made["generated_password"]) == 24
    assert made["user"]["must_change_password"] is True
    status = api.login("alice", made["generated_password"]).ok()["status"]
    assert status == "password_change_required"


def test_generated_password_is_in_the_human_line(line, admin):
    text = line(*NEW, "--generate").text
    assert text.startswith("Alice (id ")
    assert len(text.rpartition("password: ")[2]) == 24


def test_password_is_read_from_standard_input(line, api, admin):
    line.json(*NEW, "--password", "-", stdin=" typed, not trimmed \n")
    api.login("alice", " typed, not trimmed ").ok()


def test_change_can_be_asked_for(line, admin):
    made = line.json(*NEW, "--password", "a password of hers", "--must-change-password")
    assert made["user"]["must_change_password"] is True


def test_create_uses_the_default_quota(line, rt, admin):
    configure(rt, default_storage_quota=4096)
    assert line.json(*NEW, "--generate")["user"]["storage_quota"] == 4096


def test_first_administrator_can_be_made_without_a_browser(line, api):
    made = line.json(*NEW, "--role", "admin", "--password", "a password of hers")
    assert made["user"]["role"] == "admin"
    assert api.post("/auth/check").ok()["setup_state"] == "ready"


def test_first_account_must_be_an_administrator(line, rt):
    line.refuses("validation.system_not_initialized", *NEW, "--generate")
    assert count(rt, User) == 0


@pytest.mark.usefixtures("without_storage_route")
def test_without_storage_route_only_the_first_administrator_is_made(line):
    made = line.json(*NEW, "--role", "admin", "--generate")
    assert made["user"]["policy_group_id"] is None
    other = ("users", "create", "--username", "bob", "--email", "bob@example.com", "--generate")
    line.refuses("validation.system_not_initialized", *other)
    line.refuses("validation.system_not_initialized", *other, "--role", "admin")


def test_accounts_without_administrator_are_told_how_to_get_one(line, rt):
    make_user(rt, username="bob")
    message = line.refuses("validation.system_not_initialized", *NEW, "--generate")
    assert "set-role" in message
    line.json("users", "set-role", "bob", "admin")
    line.json(*NEW, "--generate")


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("bad_request", ["--username", "x"]),
        ("bad_request", ["--email", "nowhere"]),
        ("bad_request", ["--password", "2short"]),
        ("auth.username_exists", ["--username", "BOSS"]),
        ("auth.email_exists", ["--email", "BOSS@example.com"]),
    ],
)
def test_create_refuses(line, rt, admin, code, options):
    line.refuses(code, *NEW, *options)
    assert count(rt, User) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        NEW[:4],
        (*NEW, "--password", "a password", "--generate"),
        (*NEW, "--role", "boss"),
        (*NEW, "--nonsense"),
    ],
)
def test_bad_usage_exits_2(line, rt, admin, arguments):
    assert line(*arguments).exit_code == 2
    assert line(*arguments, "--json").exit_code == 2
    assert count(rt, User) == 1


# --- find ------------------------------------------------------------------------------------


def test_list_prints_an_array_of_accounts(line, admin, user):
    listed = line.json("users", "list")
    assert [entry["username"] for entry in listed] == ["boss", "root", user.username]
    assert all(set(entry) == USER_INFO for entry in listed)
    assert len(line.json("users", "list", "--limit", "2")) == 2


def test_the_avatar_of_another_has_the_address_for_administrators(line, signed_in, user):
    upload(signed_in, plain()).ok()
    urls = {f"url_{size}": f"/admin/users/{user.id}/avatar/{size}?v=1" for size in (512, 1024)}
    [actor] = [entry["user"] for entry in line.json("audit", "list", "--action", "user_login")]
    [listed] = [entry for entry in line.json("users", "list") if entry["id"] == user.id]
    for shown in (line.json("users", "show", user.username), listed, actor):
        avatar = shown["profile"]["avatar"]
        assert {name: avatar[name] for name in urls} == urls


def test_list_prints_a_table(line, admin):
    titles, row = line("users", "list").text.splitlines()
    assert titles.split() == ["ID", "USERNAME", "E-MAIL", "ROLE", "STATUS"]
    assert row.split()[1:] == ["boss", "boss@example.com", "admin", "active"]


@pytest.mark.both_databases
def test_who_waits_for_activation_is_pending_to_people_alone(line, rt, admin):
    make_user(rt, username="bob", activated=False, verified=False)
    make_user(rt, username="eve", activated=False, status="disabled")
    _, *rows = line("users", "list").text.splitlines()
    assert [row.split()[-1] for row in rows] == ["active", "pending", "disabled"]
    assert ["status", "pending"] in map(str.split, line("users", "show", "bob").text.splitlines())
    assert [entry["status"] for entry in line.json("users", "list")][1] == "active"
    assert "waits for its activation" in line("users", "enable", "eve").text
    assert line("users", "enable", "boss").text.endswith("is active")


@pytest.mark.both_databases
def test_list_is_filtered(line, rt, admin):
    make_user(rt, username="Bob", email="b_b@example.net", activated=False)
    make_user(rt, username="eve", status="disabled")
    for options, names in (
        (["--status", "active"], ["boss"]),
        (["--status", "pending"], ["Bob"]),
        (["--status", "disabled"], ["eve"]),
        (["--role", "admin"], ["boss"]),
        (["--search", " BO"], ["boss", "Bob"]),
        (["--search", "example.NET"], ["Bob"]),
        (["--search", "_"], ["Bob"]),
        (["--search", "%"], []),
        (["--search", "bo", "--role", "user", "--limit", "1"], ["Bob"]),
    ):
        listed = line.json("users", "list", *options)
        assert [entry["username"] for entry in listed] == names, options
    assert line("users", "list", "--status", "gone").exit_code == 2
    assert line("users", "list", "--role", "boss").exit_code == 2


def test_show_tells_people_what_an_account_signs_in_with(line, rt, signed_in, clock, user):
    configure(rt, public_site_url=[ORIGIN])
    other = make_user(rt, username="bare", password=None)
    register(signed_in, Authenticator()).ok()
    enable_totp(signed_in, clock)
    link(rt, user, add_provider(rt))

    def told(name):
        lines = line("users", "show", name).text.splitlines()
        return {key: text.strip() for key, _, text in (line.partition(" ") for line in lines)}

    has, lacks = told(user.username), told(other.username)
    assert (has["password"], lacks["password"]) == ("yes", "no")
    assert (has["second_factor"], lacks["second_factor"]) == ("totp, recovery_code", "-")
    assert (has["passkeys"], lacks["passkeys"]) == ("1", "0")
    assert (has["external_links"], lacks["external_links"]) == ("1", "0")
    assert set(line.json("users", "show", user.username)) == USER_INFO


def test_list_of_nobody_is_an_empty_array(line):
    assert line.json("users", "list") == []
    assert line("users", "list").text == ""


def test_user_is_named_by_id_username_or_address(line, user):
    for name in (str(user.id), user.username.upper(), f" {user.email.upper()} "):
        assert line.json("users", "show", name)["id"] == user.id


def test_digits_are_an_id_or_a_username_and_what_may_be_both_is_asked_back(line, rt, admin):
    named = make_user(rt, username="4711", email="digits@example.com")
    assert line.json("users", "show", "4711")["id"] == named.id
    both = make_user(rt, username=str(admin.id).rjust(2, "0"))
    told = line.refuses("conflict", "users", "show", both.username)
    assert told.endswith(f"say id:{admin.id} or name:{both.username}.")
    assert line.json("users", "show", f"id:{admin.id}")["id"] == admin.id
    assert line.json("users", "show", f"name:{both.username}")["id"] == both.id


EMPTY = '""'


@pytest.mark.parametrize("name", ["nobody", "nobody@example.com", "999", "9" * 30, ""])
def test_unknown_user_is_not_found(line, admin, name):
    line.refuses("not_found", "users", "show", name)
    assert line("users", "show", name).complains() == f"Error: There is no user {name or EMPTY}."


def test_undecodable_name_is_refused_in_one_line(line, admin):
    line.refuses("bad_request", "users", "show", "\udcff")


# --- change ----------------------------------------------------------------------------------


def test_role_change_keeps_sessions(line, api, user):
    me = bearer(api, user)
    assert line.json("users", "set-role", user.username, "admin")["role"] == "admin"
    assert me().ok()["role"] == "admin"


def test_disabling_ends_sessions_and_enabling_does_not_bring_them_back(line, api, user):
    me = bearer(api, user)
    assert line.json("users", "disable", user.username)["status"] == "disabled"
    me().fails(403, "auth.account_disabled")
    assert line.json("users", "enable", user.username)["status"] == "active"
    me().fails(401, "auth.token_invalid")
    api.login(user).ok()


@pytest.mark.parametrize(
    "arguments",
    [
        ["enable"],
        ["require-password-change", "--off"],
        ["verify-email"],
        ["set-role", "user"],
        ["set-quota", "0"],
        ["assign-group", "1"],
    ],
)
def test_what_changes_nothing_ends_nothing_and_is_not_recorded(line, rt, api, user, arguments):
    me = bearer(api, user)
    command, *rest = arguments
    line.json("users", command, user.username, *rest)
    me().ok()
    assert audit_rows(rt, "admin_update_user") == []


def test_password_change_is_asked_for_and_no_longer(line, api, user):
    me = bearer(api, user)
    shown = line.json("users", "require-password-change", user.username)
    assert shown["must_change_password"] is True
    me().fails(401, "auth.token_invalid")
    assert api.login(user).ok()["status"] == "password_change_required"
    shown = line.json("users", "require-password-change", user.username, "--off")
    assert shown["must_change_password"] is False
    assert api.login(user).ok()["status"] == "authenticated"


def test_a_change_is_not_asked_of_who_has_no_password(line, rt, user):
    """Its owner could sign in by other means, and then do nothing at all."""
    change_user(rt, user, password_hash=None)
    told = line.refuses("conflict", "users", "require-password-change", user.username)
    assert "give it one first" in told


def test_more_accounts_than_there_can_be_are_a_mistake(line):
    assert line("users", "list", "--limit", "9" * 20).exit_code == 2


@pytest.mark.both_databases
def test_verifying_the_address_activates(line, rt, api, user):
    change_user(rt, user, activated_at=None, email_verified_at=None)
    api.login(user).fails(403, "auth.pending_activation")
    assert line.json("users", "verify-email", user.username)["email_verified"] is True
    api.login(user).ok()


def test_times_in_the_audit_log_are_those_of_the_wire(line, rt, user):
    """RFC 3339 in UTC, as everywhere else."""
    change_user(rt, user, activated_at=None, email_verified_at=None)
    line.json("users", "verify-email", user.username)
    [row] = audit_rows(rt, "admin_update_user")
    now = timestamp(rt.clock.now())
    assert json.loads(row.details) == {
        "changed_fields": ["activated_at", "email_verified_at"],
        "email_verified_at": now,
        "previous_email_verified_at": None,
        "activated_at": now,
        "previous_activated_at": None,
    }


@pytest.mark.both_databases
def test_quota_is_set(line, user):
    assert line.json("users", "set-quota", user.username, "1048576")["storage_quota"] == 1048576
    assert line("users", "set-quota", user.username, "many").exit_code == 2
    assert line("users", "set-quota", user.username, "-5").exit_code == 2


def test_set_password_replaces_it_and_ends_sessions(line, rt, api, user):
    change_user(rt, user, must_change_password=True)
    api.login(user).ok()
    set_to = ("users", "set-password", user.username, "--password", "quite another one")
    made = line.json(*set_to)
    assert made["generated_password"] is None
    assert made["user"]["must_change_password"] is False
    api.me().fails(401, "auth.token_invalid")
    api.login(user).fails(401, "auth.credentials_failed")
    assert api.login(user.username, "quite another one").ok()["status"] == "authenticated"


@pytest.mark.both_databases
def test_sessions_are_revoked(line, rt, api, user):
    bearer(api, user)
    assert line.json("users", "revoke-sessions", user.username) == {"removed": 1}
    api.me().fails(401, "auth.token_invalid")
    assert column_of(rt, user, "session_version") == 2


@pytest.mark.both_databases
def test_delete_removes_the_account_and_its_sessions(line, rt, api, user):
    me = bearer(api, user)
    assert line.json("users", "delete", "--yes", user.email)["id"] == user.id
    me().fails(401, "auth.token_invalid")
    line.refuses("not_found", "users", "show", user.username)
    [entry] = audit_rows(rt, "admin_force_delete_user")
    assert entry.entity_name == user.username


# --- administrators --------------------------------------------------------------------------


def test_administrators_are_not_deleted(line, rt, admin):
    make_user(rt, role="admin")
    line.refuses("conflict", "users", "delete", "--yes", admin.username)


@pytest.mark.parametrize("arguments", [["disable", "boss"], ["set-role", "boss", "user"]])
@pytest.mark.parametrize("other", [{"status": "disabled"}, {"activated": False}])
def test_last_active_administrator_stays(line, rt, admin, arguments, other):
    make_user(rt, role="admin", **other)
    line.refuses("conflict", "users", *arguments)
    message = line("users", *arguments).complains()
    assert message == "Error: This is the last active administrator."
    make_user(rt, role="admin")
    line.json("users", *arguments)


def test_every_change_is_recorded_as_done_by_the_command_line(line, rt, user):
    for arguments in (
        ("disable", user.username),
        ("set-quota", user.username, "7"),
        ("set-password", user.username, "--generate"),
        ("revoke-sessions", user.username),
    ):
        line.json("users", *arguments)
    line.json(*NEW, "--generate")
    rows = audit_rows(rt)
    assert [row.action for row in rows] == [
        "admin_update_user",
        "admin_update_user",
        "admin_reset_user_password",
        "admin_revoke_user_sessions",
        "admin_create_user",
    ]
    assert {row.user_id for row in rows} == {0}
    assert {row.entity_type for row in rows} == {"user"}
    assert [row.entity_id for row in rows[:4]] == [user.id] * 4
    changed = {"changed_fields": ["status"], "status": "disabled", "previous_status": "active"}
    assert json.loads(rows[0].details) == changed


# --- groups ----------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_group_is_assigned_by_id_or_name(line, rt, user):
    change_user(rt, user, policy_group_id=None)
    for name in ("Default Policy Group", "1"):
        shown = line.json("users", "assign-group", user.username, name)
        assert shown["policy_group_id"] == 1


def test_unknown_group_is_not_found(line, user):
    line.refuses("not_found", "users", "assign-group", user.username, "nowhere")
    line.refuses("not_found", "users", "assign-group", user.username, "77")


def test_group_that_takes_no_files_is_refused(line, rt, user):
    change_user(rt, user, policy_group_id=None)
    with rt.transaction() as session:
        session.execute(sa.update(StoragePolicyGroup).values(is_enabled=False))
    line.refuses("bad_request", "users", "assign-group", user.username, "1")
    with rt.transaction() as session:
        session.execute(sa.update(StoragePolicyGroup).values(is_enabled=True))
        session.execute(sa.delete(StoragePolicyGroupItem))
    line.refuses("bad_request", "users", "assign-group", user.username, "1")
    assert column_of(rt, user, "policy_group_id") is None


def test_group_name_that_two_groups_have_is_refused(line, rt, user, clock):
    now = clock.now()
    fields = {"description": "", "is_enabled": True, "is_default": False}
    with rt.transaction() as session:
        for _ in range(2):
            group = StoragePolicyGroup(name="Twin", **fields, created_at=now, updated_at=now)
            session.add(group)
    line.refuses("conflict", "users", "assign-group", user.username, "Twin")


# --- at a terminal ---------------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch):
    """Standard input counts as a terminal."""
    stdin = "click.testing._NamedTextIOWrapper.isatty"
    monkeypatch.setattr(stdin, lambda _self: True, raising=False)


@pytest.mark.usefixtures("terminal")
def test_an_empty_list_is_silence_to_scripts_alone(line):
    nobody = line("users", "list", "--search", "nobody")
    assert (nobody.text, nobody.stderr) == ("", "nothing to list\n")
    assert line.json("users", "list", "--search", "nobody") == []


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("options", [[], ["--password", "-"]])
def test_password_is_asked_for_twice_at_a_terminal(line, api, admin, options):
    typed = "a password of hers\na passwort of hers\n" + 2 * "a password of hers\n"
    ran = line(*NEW, *options, stdin=typed)
    assert ran.text.startswith("Alice (id ")
    assert "a password" not in ran.stdout
    api.login("alice", "a password of hers").ok()
