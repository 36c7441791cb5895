"""`flask users`: address, reset mail, credentials, lockout."""

import pytest

from app.external_auth.models import Identity
from app.passkeys.models import Passkey
from tests.support.external import add_provider, link
from tests.support.factories import add_passkeys, audit_rows, count, make_user


def test_an_address_is_set(line, rt, user, mailbox):
    changed = line.json("users", "set-email", user.username, "New@example.com", "--verified")
    assert (changed["email"], changed["email_verified"]) == ("new@example.com", True)
    assert mailbox.only()["To"] == user.email
    line.refuses("bad_request", "users", "set-email", user.username, "nobody")
    line.refuses("not_found", "users", "set-email", "nobody", "a@example.com")
    [row] = audit_rows(rt, "admin_set_user_email")
    assert (row.user_id, row.ip_address) == (0, None)


def test_a_verification_is_taken_back(line, user):
    shown = line.json("users", "verify-email", user.username, "--off")
    assert (shown["email_verified"], shown["is_activated"]) == (False, True)
    line.refuses("conflict", "users", "send-reset-mail", user.username)
    line.refuses("conflict", "users", "verify-email", "root", "--off")


def test_a_reset_link_is_mailed(line, api, user, mailbox):
    line.json("users", "send-reset-mail", user.username)
    body = {"token": mailbox.token(mailbox.only()), "new_password": "a new one of hers"}
    api.post("/auth/password/reset/confirm", body).ok()


def test_credentials_are_listed_with_their_ids_and_removed(line, rt, user):
    [passkey] = add_passkeys(rt, user, 1)
    linked = link(rt, user, add_provider(rt))
    shown = line.json("users", "credentials", user.username)
    assert [each["id"] for each in shown["passkeys"]] == [passkey]
    text = line("users", "credentials", user.username).text
    assert f"{passkey} Passkey" in text
    assert f"{linked} Corporate" in text
    line.json("users", "remove-passkey", user.username, str(passkey))
    line.json("users", "remove-link", user.username, str(linked))
    for name, number in (("remove-passkey", passkey), ("remove-link", linked)):
        line.refuses("not_found", "users", name, user.username, str(number))
        assert line("users", name, user.username, "9" * 30).exit_code == 2


def test_the_last_way_in_is_removed_by_force(line, rt, admin):
    owner = make_user(rt, password=None)
    [passkey] = add_passkeys(rt, owner, 1)
    command = ("users", "remove-passkey", owner.username, str(passkey))
    line.refuses("conflict", *command)
    line.json(*command, "--force")
    linked = link(rt, owner, add_provider(rt))
    command = ("users", "remove-link", owner.username, str(linked))
    line.refuses("conflict", *command)
    line.json(*command, "--force")
    assert count(rt, Passkey) == count(rt, Identity) == 0


def test_an_account_is_unlocked(line, api, user):
    for _ in range(10):
        api.login(user, "wrong password").fails(401, "auth.credentials_failed")
    api.login(user).fails(429, "rate_limited")
    line.json("users", "unlock", user.username)
    api.login(user).ok()


@pytest.mark.parametrize("typed", ["Display", "DISPLAY name", "1%"])
def test_a_search_reads_display_names_too(line, rt, api, admin, typed):
    owner = make_user(rt, username="carol")
    api.login(owner).ok()
    api.patch("/auth/profile", {"display_name": "Display Name 1%"}).ok()
    found = line.json("users", "list", "--search", typed)
    assert [each["id"] for each in found] == [owner.id]
