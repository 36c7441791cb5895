"""Listing, renaming and removing passkeys."""

import json

import pytest

from app.core.access import COMMAND_LINE, AccountDisabled, TokenInvalid
from app.core.client import Client
from app.passkeys import management
from app.passkeys.models import Passkey, PasskeyHandle
from app.passkeys.queries import MAX_LISTED
from app.sessions import revocation
from app.sessions import service as sessions
from tests.support.factories import add_passkeys, audit_rows, change_user, configure, count
from tests.support.mailbox import text_of
from tests.support.passkeys import (
    BAD_NAMES,
    Authenticator,
    b64,
    list_passkeys,
    log_in,
    register,
    start_registration,
)

pytestmark = pytest.mark.usefixtures("site")

NOT_FOUND = 404, "not_found"
CONFLICT = 409, "conflict"


def path_of(passkey):
    return f"/auth/passkeys/{passkey['id']}"


# --- list --------------------------------------------------------------------------------------


def test_without_a_passkey_there_is_nothing(signed_in):
    assert list_passkeys(signed_in) == []


def test_everybody_sees_only_their_own(other, passkey):
    assert list_passkeys(other) == []
    theirs = register(other, Authenticator()).ok()
    assert list_passkeys(other) == [theirs]


@pytest.mark.both_databases
def test_the_one_used_last_comes_first_then_the_newest(signed_in, clock):
    devices = [Authenticator() for _ in range(5)]
    ids = []
    for device in devices:
        ids.append(register(signed_in, device).ok()["id"])
        clock.advance(seconds=1)
    for number in (3, 1):
        log_in(signed_in.stranger(), devices[number]).ok()
        clock.advance(seconds=1)
    shown = [each["id"] for each in list_passkeys(signed_in)]
    assert shown == [ids[1], ids[3], ids[4], ids[2], ids[0]]


def test_those_of_the_same_moment_have_an_order_too(signed_in):
    ids = [register(signed_in, Authenticator()).ok()["id"] for _ in range(3)]
    assert [each["id"] for each in list_passkeys(signed_in)] == ids[::-1]


@pytest.mark.both_databases
def test_of_very_many_passkeys_those_used_last_are_listed_and_then_the_newest(
    rt, signed_in, user, passkey, device, clock
):
    """Whoever registers without end must not have a worker read and write them all."""
    clock.advance(seconds=1)
    made = add_passkeys(rt, user, MAX_LISTED)
    log_in(signed_in.stranger(), device).ok()
    shown = [each["id"] for each in list_passkeys(signed_in)]
    assert shown == [passkey["id"], *made[:0:-1]]
    for each in made[0], made[-1]:
        signed_in.patch(f"/auth/passkeys/{each}", {"name": "listed or not"}).ok()


# --- what browsers are told of them --------------------------------------------------------------


def test_without_a_passkey_browsers_are_told_of_nobody(signed_in, user):
    assert signed_in.get("/auth/passkeys/signal").ok() == {
        "rp_id": "localhost",
        "user_id": None,
        "name": user.username,
        "display_name": user.email.partition("@")[0],
        "accepted": [],
    }


def test_browsers_are_told_what_they_were_told_at_the_registration(signed_in, other, device):
    options = start_registration(signed_in)["public_key"]["publicKey"]
    passkey = register(signed_in, device).ok()
    register(other, Authenticator()).ok()
    told = signed_in.get("/auth/passkeys/signal").ok()
    assert told.pop("accepted") == [passkey["credential_id"]] == [b64(device.passkeys[0].id)]
    user = options["user"]
    assert told == {
        "rp_id": options["rp"]["id"],
        "user_id": user["id"],
        "name": user["name"],
        "display_name": user["displayName"],
    }


def test_browsers_are_told_of_more_passkeys_than_are_listed(rt, signed_in, user, passkey):
    """They hide what is not named."""
    add_passkeys(rt, user, MAX_LISTED)
    accepted = signed_in.get("/auth/passkeys/signal").ok()["accepted"]
    assert len(accepted) == MAX_LISTED + 1
    assert passkey["credential_id"] in accepted


def test_a_site_without_an_address_has_no_passkeys_to_tell_of(rt, signed_in, passkey):
    configure(rt, public_site_url=[])
    refused = signed_in.get("/auth/passkeys/signal")
    refused.fails(400, "config.public_site_url_required")


# --- rename ------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_a_passkey_is_renamed(signed_in, device, passkey, clock):
    clock.advance(seconds=1)
    for name, kept in (
        ("Laptop", "Laptop"),
        (" Laptop\n", "Laptop"),
        ("", "Passkey"),
        ("😀" * 128, "😀" * 128),
    ):
        renamed = signed_in.patch(path_of(passkey), {"name": name}).ok()
        assert renamed == passkey | {"name": kept, "updated_at": "2026-03-02T09:30:01Z"}
        assert list_passkeys(signed_in) == [renamed]
    log_in(signed_in.stranger(), device).ok()


def test_renaming_is_recorded_and_not_mailed(rt, signed_in, user, passkey, mailbox):
    mailbox.read()
    signed_in.patch(path_of(passkey), {"name": "Laptop"}).ok()
    [entry] = audit_rows(rt, "user_passkey_rename")
    told = entry.user_id, entry.entity_type, entry.entity_id, entry.entity_name
    assert told == (user.id, "passkey", passkey["id"], "Laptop")
    assert json.loads(entry.details) == {
        "passkey_id": passkey["id"],
        "previous_name": "Passkey",
        "next_name": "Laptop",
        "backup_eligible": True,
        "backed_up": True,
    }
    assert mailbox.read() == []


def test_a_bad_name_changes_nothing(signed_in, passkey):
    for name, code in BAD_NAMES:
        signed_in.patch(path_of(passkey), {"name": name}).fails(400, code)
    assert list_passkeys(signed_in) == [passkey]


def test_an_unknown_passkey_is_not_found_before_its_name_is_looked_at(signed_in, passkey):
    spellings = ["%20{}", "{}%20", "{}%0A", "%2B{}", "{}.0", "0{}"]
    own = [spelling.format(passkey["id"]) for spelling in spellings]
    for unknown in ("4711", "0", "-1", "x", "1.0", "9" * 30, "%20", "%D9%A3", *own):
        path = f"/auth/passkeys/{unknown}"
        for answer in (signed_in.patch(path, {"name": "x" * 129}), signed_in.delete(path)):
            assert (answer.status, answer.code) == NOT_FOUND, unknown


def test_a_passkey_of_somebody_else_is_not_found(rt, other, signed_in, passkey):
    other.patch(path_of(passkey), {"name": "x" * 129}).fails(*NOT_FOUND)
    other.delete(path_of(passkey)).fails(*NOT_FOUND)
    assert list_passkeys(signed_in) == [passkey]
    assert audit_rows(rt, "user_passkey_delete") == []


# --- remove ------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_a_passkey_is_removed(rt, signed_in, device, passkey):
    answer = signed_in.delete(path_of(passkey))
    assert answer.ok() is None
    assert list_passkeys(signed_in) == []
    assert count(rt, Passkey) == count(rt, PasskeyHandle) == 0
    signed_in.delete(path_of(passkey)).fails(*NOT_FOUND)


def test_sessions_go_on_those_it_opened_too(signed_in, device, passkey):
    phone = signed_in.stranger()
    log_in(phone, device).ok()
    signed_in.delete(path_of(passkey)).ok()
    signed_in.me().ok()
    phone.me().ok()


def test_the_others_stay_and_so_does_the_handle(rt, signed_in, device, passkey):
    second = Authenticator()
    register(signed_in, second).ok()
    signed_in.delete(path_of(passkey)).ok()
    assert count(rt, PasskeyHandle) == 1
    log_in(signed_in.stranger(), second).ok()
    log_in(signed_in.stranger(), device).fails(401, "auth.credentials_failed")


def test_a_removed_credential_can_be_registered_again_by_anybody(signed_in, other, device, passkey):
    signed_in.delete(path_of(passkey)).ok()
    register(other, Authenticator(), credential_id=device.passkeys[0].id).ok()


def test_removing_is_recorded_and_mailed(rt, signed_in, user, passkey, mailbox):
    mailbox.read()
    signed_in.delete(path_of(passkey)).ok()
    [entry] = audit_rows(rt, "user_passkey_delete")
    told = entry.user_id, entry.entity_type, entry.entity_id, entry.entity_name
    assert told == (user.id, "passkey", passkey["id"], "Passkey")
    assert json.loads(entry.details) == {
        "passkey_id": passkey["id"],
        "name": "Passkey",
        "backup_eligible": True,
        "backed_up": True,
    }
    assert "A passkey was removed." in " ".join(text_of(mailbox.only()).split())


# --- the last way in ---------------------------------------------------------------------------


def test_the_only_way_to_sign_in_cannot_be_removed(rt, signed_in, user, device, passkey, mailbox):
    mailbox.read()
    change_user(rt, user, password_hash=None)
    signed_in.delete(path_of(passkey)).fails(*CONFLICT)
    assert list_passkeys(signed_in) == [passkey]
    assert audit_rows(rt, "user_passkey_delete") == []
    assert mailbox.read() == []
    log_in(signed_in.stranger(), device).ok()


def test_a_password_is_a_way_only_while_passwords_are_in_use(rt, signed_in, passkey):
    configure(rt, auth_password_login_enabled=False)
    signed_in.delete(path_of(passkey)).fails(*CONFLICT)
    configure(rt, auth_password_login_enabled=True)
    signed_in.delete(path_of(passkey)).ok()


def test_another_passkey_is_a_way(rt, signed_in, user, passkey):
    change_user(rt, user, password_hash=None)
    second = register(signed_in, Authenticator()).ok()
    signed_in.delete(path_of(passkey)).ok()
    signed_in.delete(path_of(second)).fails(*CONFLICT)


def test_while_passkeys_are_off_all_but_the_last_can_be_removed(rt, signed_in, user, passkey):
    second = register(signed_in, Authenticator()).ok()
    change_user(rt, user, password_hash=None)
    configure(rt, auth_passkey_login_enabled=False)
    signed_in.delete(path_of(passkey)).ok()
    signed_in.delete(path_of(second)).fails(*CONFLICT)


@pytest.mark.own_application
def test_a_way_that_another_area_knows_counts(rt, signed_in, user, passkey):
    change_user(rt, user, password_hash=None)
    asked = []

    def linked(session, user_id):
        asked.append(user_id)
        return True

    rt.hooks.sign_in_methods.append(lambda rt: linked)
    signed_in.delete(path_of(passkey)).ok()
    assert asked == [user.id]


CHANGES = {
    "rename": lambda rt, who, passkey: management.rename(
        rt, who, str(passkey["id"]), name="Phone", client=Client()
    ),
    "remove": lambda rt, who, passkey: management.remove(
        rt, who, str(passkey["id"]), client=Client()
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_overtaken_is_refused(rt, signed_in, user, passkey, change):
    """What the access check found was a moment ago."""
    stale = sessions.authenticate(rt, signed_in.access_token)
    revocation.revoke_any(rt, COMMAND_LINE, stale.session_id)
    with pytest.raises(TokenInvalid):
        CHANGES[change](rt, stale, passkey)
    change_user(rt, user, status="disabled")
    with pytest.raises(AccountDisabled):
        CHANGES[change](rt, stale, passkey)
    change_user(rt, user, status="active")
    signed_in.login(user).ok()
    assert list_passkeys(signed_in) == [passkey]
