"""Registering a passkey."""

import json
import re
import uuid

import pytest

from app.core.access import COMMAND_LINE, AccountDisabled, TokenInvalid
from app.core.client import Client
from app.passkeys import management, queries
from app.passkeys.errors import FlowInvalid
from app.passkeys.models import Passkey, PasskeyHandle
from app.passkeys.queries import MAX_LISTED
from app.sessions import revocation
from app.sessions import service as sessions
from tests.support.factories import (
    add_passkeys,
    audit_rows,
    change_user,
    configure,
    count,
    delete_user,
)
from tests.support.mailbox import text_of
from tests.support.passkeys import (
    BAD_NAMES,
    DEVICE_BOUND,
    Authenticator,
    b64,
    finish_registration,
    list_passkeys,
    log_in,
    register,
    start_login,
    start_registration,
    unb64,
)

pytestmark = pytest.mark.usefixtures("site")

TOKEN_INVALID = 401, "auth.token_invalid"
REFUSED = 401, "auth.credentials_failed"
MALFORMED = 400, "bad_request"


# --- start -------------------------------------------------------------------------------------


def test_a_registration_starts_with_what_a_page_passes_on(signed_in, user):
    data = start_registration(signed_in)
    assert set(data) == {"flow_id", "public_key"}
    assert uuid.UUID(data["flow_id"]).version == 4
    assert data["flow_id"] == str(uuid.UUID(data["flow_id"]))
    options = data["public_key"]["publicKey"]
    handle, challenge = options["user"]["id"], options["challenge"]
    assert data["public_key"] == {
        "publicKey": {
            "rp": {"name": "Gatehouse", "id": "localhost"},
            "user": {"id": handle, "name": user.username, "displayName": user.username},
            "challenge": challenge,
            "pubKeyCredParams": [
                {"type": "public-key", "alg": -7},
                {"type": "public-key", "alg": -257},
            ],
            "timeout": 300000,
            "authenticatorSelection": {
                "residentKey": "required",
                "requireResidentKey": True,
                "userVerification": "required",
            },
            "attestation": "none",
            "extensions": {
                "credentialProtectionPolicy": "userVerificationRequired",
                "enforceCredentialProtectionPolicy": False,
                "uvm": True,
                "credProps": True,
            },
        }
    }
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", handle)
    assert len(unb64(handle)) == 16
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", challenge)


def test_the_display_name_is_the_local_part_of_the_address(rt, signed_in, user):
    change_user(rt, user, email="ada.lovelace@example.com")
    options = start_registration(signed_in)["public_key"]["publicKey"]
    assert options["user"]["displayName"] == "ada.lovelace"
    assert options["user"]["name"] == user.username


def test_challenges_and_flows_differ_the_handle_does_not(signed_in, other):
    first, second, third = (start_registration(c) for c in (signed_in, signed_in, other))
    assert len({each["flow_id"] for each in (first, second, third)}) == 3
    options = [each["public_key"]["publicKey"] for each in (first, second, third)]
    assert len({each["challenge"] for each in options}) == 3
    assert options[0]["user"]["id"] == options[1]["user"]["id"] != options[2]["user"]["id"]


def test_the_handle_lasts_from_the_first_passkey_to_the_last(signed_in):
    devices = [Authenticator() for _ in range(3)]
    first, second = (register(signed_in, device).ok() for device in devices[:2])
    assert devices[0].passkeys[0].user_handle == devices[1].passkeys[0].user_handle
    for made in (first, second):
        signed_in.delete(f"/auth/passkeys/{made['id']}").ok()
    register(signed_in, devices[2]).ok()
    assert devices[2].passkeys[0].user_handle != devices[0].passkeys[0].user_handle


@pytest.mark.both_databases
def test_passkeys_there_are_excluded(signed_in, other, passkey, device):
    register(other, Authenticator()).ok()
    second = Authenticator()
    register(signed_in, second).ok()
    options = start_registration(signed_in)["public_key"]["publicKey"]
    found = options["excludeCredentials"]
    assert [set(each) for each in found] == [{"type", "id"}] * 2
    assert [unb64(each["id"]) for each in found] == [device.passkeys[0].id, second.passkeys[0].id]


def test_of_very_many_passkeys_the_newest_are_excluded(rt, signed_in, user, passkey):
    """Whoever registers without end must not have a worker read and write them all."""
    made = add_passkeys(rt, user, MAX_LISTED)
    started = start_registration(signed_in)
    with rt.transaction() as session:
        known = queries.list_credentials(session, user.id)
    assert [passkey_id for passkey_id, _ in known] == made
    found = started["public_key"]["publicKey"]["excludeCredentials"]
    assert [each["id"] for each in found] == [credential_id for _, credential_id in known]


def test_one_too_old_to_be_excluded_is_refused_all_the_same(rt, signed_in, user, passkey, device):
    add_passkeys(rt, user, MAX_LISTED)
    again = register(signed_in, Authenticator(), credential_id=device.passkeys[0].id)
    again.fails(*REFUSED)


def test_many_passkeys_take_no_more_room_in_redis_than_one(rt, signed_in):
    """An account may have any number of them, and start again and again."""
    sizes = []
    for _ in range(3):
        register(signed_in, Authenticator()).ok()
        start_registration(signed_in)
        [key] = rt.redis.client.keys("gatehouse:passkey:*")
        sizes.append(rt.redis.client.strlen(key))
        rt.redis.client.delete(key)
    assert sizes[0] == sizes[1] == sizes[2]


def test_starting_changes_nothing_and_is_not_recorded(rt, signed_in, mailbox):
    start_registration(signed_in)
    assert list_passkeys(signed_in) == []
    assert [row.action for row in audit_rows(rt)] == ["config_update", "user_login"]
    assert mailbox.read() == []


# --- finish ------------------------------------------------------------------------------------


def test_a_new_passkey_is_shown(signed_in, device):
    made = register(signed_in, device).ok()
    assert made == {
        "id": made["id"],
        "credential_id": b64(device.passkeys[0].id),
        "name": "Passkey",
        "transports": ["internal", "hybrid"],
        "backup_eligible": True,
        "backed_up": True,
        "sign_count": 0,
        "created_at": "2026-03-02T09:30:00Z",
        "updated_at": "2026-03-02T09:30:00Z",
        "last_used_at": None,
    }
    assert list_passkeys(signed_in) == [made]


def test_a_device_bound_one_is_told_apart(signed_in):
    made = register(signed_in, Authenticator(flags=DEVICE_BOUND, counts=True)).ok()
    assert (made["backup_eligible"], made["backed_up"], made["sign_count"]) == (False, False, 1)


def test_sessions_go_on(signed_in, user, device):
    phone = signed_in.stranger()
    phone.login(user).ok()
    register(signed_in, device).ok()
    signed_in.me().ok()
    phone.me().ok()


def test_neither_keys_nor_handles_are_shown(signed_in, device, passkey):
    text = signed_in.get("/auth/passkeys").text + json.dumps(passkey)
    assert start_registration(signed_in)["public_key"]["publicKey"]["user"]["id"] not in text


def test_registering_is_recorded(rt, signed_in, user, device):
    data = start_registration(signed_in, name="Phone")
    made = device.create(data["public_key"])
    body = {"flow_id": data["flow_id"], "credential": made}
    headers = {"User-Agent": "Firefox"}
    answer = signed_in.post("/auth/passkeys/register/finish", body, headers=headers).ok()
    [entry] = audit_rows(rt, "user_passkey_register")
    told = entry.user_id, entry.entity_type, entry.entity_id, entry.entity_name
    assert told == (user.id, "passkey", answer["id"], "Phone")
    assert (entry.ip_address, entry.user_agent) == ("127.0.0.1", "Firefox")
    assert json.loads(entry.details) == {
        "passkey_id": answer["id"],
        "name": "Phone",
        "backup_eligible": True,
        "backed_up": True,
        "sign_count": 0,
        "last_used_at": None,
    }


def test_the_owner_is_told_by_mail(signed_in, user, device, mailbox):
    data = start_registration(signed_in, name="https://evil.example")
    made = device.create(data["public_key"])
    finish_registration(signed_in, data["flow_id"], made).ok()
    message = mailbox.only()
    [address] = message["To"].addresses
    assert address.addr_spec == user.email
    text = " ".join(text_of(message).split())
    assert "A passkey was added." in text
    assert "evil" not in text


def test_transports_are_kept_as_far_as_they_make_sense(signed_in):
    for told, kept in (
        (..., None),
        (None, None),
        ([], []),
        (["usb", "usb", "nfc"], ["usb", "nfc"]),
        (["smart-card", "from the future", "", "x" * 40, "\ud800", "usb\0"], ["smart-card"]),
        ([f"t{n}" for n in range(50)], [f"t{n}" for n in range(16)]),
    ):
        device = Authenticator()
        made = register(signed_in, device, response={"transports": told}).ok()
        assert made["transports"] == kept
        assert log_in(signed_in.stranger(), device).status == 200, told


# --- names -------------------------------------------------------------------------------------


def test_the_name_of_the_finish_wins_over_that_of_the_start(signed_in):
    for at_start, at_finish, kept in (
        (..., ..., "Passkey"),
        (None, None, "Passkey"),
        (" \t", ..., "Passkey"),
        (" Phone ", ..., "Phone"),
        ("Phone", None, "Phone"),
        ("Phone", "Laptop", "Laptop"),
        ("Phone", "  ", "Passkey"),
        (..., "\u2003Schlüssel 😀\u2003", "Schlüssel 😀"),
        ("😀" * 128, ..., "😀" * 128),
        (" " + "x" * 128 + " ", ..., "x" * 128),
    ):
        data = start_registration(signed_in, **({} if at_start is ... else {"name": at_start}))
        body = {} if at_finish is ... else {"name": at_finish}
        made = Authenticator().create(data["public_key"])
        assert finish_registration(signed_in, data["flow_id"], made, **body).ok()["name"] == kept


def test_a_bad_name_is_refused_at_the_start_and_last_at_the_finish(rt, signed_in, device):
    for name, code in BAD_NAMES:
        signed_in.post("/auth/passkeys/register/start", {"name": name}).fails(400, code)
        data = start_registration(signed_in)
        made = device.create(data["public_key"])
        finish_registration(signed_in, data["flow_id"], made, name=name).fails(400, code)
        finish_registration(signed_in, data["flow_id"], made).fails(*TOKEN_INVALID)
    assert count(rt, Passkey) == 0


# --- refusals, in their order ------------------------------------------------------------------


def test_the_checks_come_in_their_order(rt, signed_in, other, passkey, device):
    """Each request has every fault of those after it, too."""
    long_name = {"name": "x" * 129}
    theirs = start_registration(other)
    configure(rt, public_site_url=[])
    answer = finish_registration(signed_in, theirs["flow_id"], {}, **long_name)
    answer.fails(400, "config.public_site_url_required")
    configure(rt, public_site_url=["http://localhost"])
    finish_registration(signed_in, "unknown", {}, **long_name).fails(*TOKEN_INVALID)
    finish_registration(signed_in, theirs["flow_id"], {}, **long_name).fails(403, "forbidden")

    def flawed(**changes):
        data = start_registration(signed_in)
        made = Authenticator().create(data["public_key"], **changes)
        return finish_registration(signed_in, data["flow_id"], made, **long_name)

    not_discoverable = {"clientExtensionResults": {"credProps": {"rk": False}}}
    flawed(credential=not_discoverable | {"type": "x"}).fails(*MALFORMED)
    flawed(credential=not_discoverable, flags=0).fails(400, "passkey.not_discoverable")
    flawed(flags=0).fails(*REFUSED)
    answer = flawed(credential_id=device.passkeys[0].id).fails(*REFUSED)
    register(other, taken := Authenticator()).ok()
    answer = flawed(credential_id=taken.passkeys[0].id).fails(*MALFORMED)
    assert answer.json["msg"] == "This passkey is already registered."
    flawed().fails(400, "passkey.name_too_long")
    assert list_passkeys(signed_in) == [passkey]


def test_only_a_clear_no_makes_a_credential_not_discoverable(signed_in):
    for results in (
        {"credProps": {"rk": True}},
        {"credProps": {"rk": None}},
        {"credProps": {}},
        {"credProps": None},
        {},
        {"credProps": []},
        {"credProps": {"rk": "false"}},
        {"uvm": [[2, 4, 2]], "another": {"deep": [1]}},
        None,
        ...,
    ):
        changes = {"credential": {"clientExtensionResults": results}}
        assert register(signed_in, Authenticator(), **changes).status == 200, results


def test_a_credential_that_is_not_discoverable_is_refused(rt, signed_in, device):
    changes = {"credential": {"clientExtensionResults": {"credProps": {"rk": False}}}}
    register(signed_in, device, **changes).fails(400, "passkey.not_discoverable")
    assert count(rt, Passkey) == 0


def test_a_credential_belongs_to_one_account(signed_in, other, device, passkey):
    answer = register(other, Authenticator(), credential_id=device.passkeys[0].id)
    answer.fails(*MALFORMED)
    assert list_passkeys(other) == []
    log_in(other.stranger(), device).ok()


def test_one_that_somebody_registered_before_ones_own_is_taken(signed_in, other):
    register(other, theirs := Authenticator()).ok()
    register(signed_in, Authenticator()).ok()
    answer = register(signed_in, Authenticator(), credential_id=theirs.passkeys[0].id)
    answer.fails(*MALFORMED)


def test_one_registered_after_the_start_is_taken_too(signed_in):
    device = Authenticator()
    first, second = start_registration(signed_in), start_registration(signed_in)
    made = device.create(first["public_key"])
    finish_registration(signed_in, first["flow_id"], made).ok()
    again = device.create(second["public_key"], credential_id=device.passkeys[0].id)
    finish_registration(signed_in, second["flow_id"], again).fails(*MALFORMED)


@pytest.mark.both_databases
def test_one_that_somebody_registers_this_very_moment_is_taken(
    signed_in, other, device, passkey, monkeypatch
):
    monkeypatch.setattr(queries, "find_id", lambda *_: None)
    answer = register(other, Authenticator(), credential_id=device.passkeys[0].id)
    answer.fails(*MALFORMED)
    assert list_passkeys(other) == []


# --- flows -------------------------------------------------------------------------------------


def test_a_flow_is_good_for_one_answer(rt, signed_in, device):
    data = start_registration(signed_in)
    made = device.create(data["public_key"])
    finish_registration(signed_in, data["flow_id"], made).ok()
    other_made = Authenticator().create(data["public_key"])
    for replayed in (made, other_made):
        finish_registration(signed_in, data["flow_id"], replayed).fails(*TOKEN_INVALID)
    assert count(rt, Passkey) == 1


@pytest.mark.parametrize("changes", [{"credential": {"type": "x"}}, {"flags": 0}])
def test_a_wrong_answer_uses_it_up_too(signed_in, device, changes):
    data = start_registration(signed_in)
    wrong = device.create(data["public_key"], **changes)
    assert finish_registration(signed_in, data["flow_id"], wrong).status in {400, 401}
    made = device.create(data["public_key"])
    finish_registration(signed_in, data["flow_id"], made).fails(*TOKEN_INVALID)


def test_an_unknown_flow_is_refused_as_a_token(signed_in):
    some_uuid = str(uuid.UUID(int=7, version=4))
    for flow_id in ("", " ", "unknown", "\u00e9", "x" * 1024, some_uuid):
        answer = finish_registration(signed_in, flow_id, {})
        assert (answer.status, answer.code) == TOKEN_INVALID, flow_id
        assert answer.set_cookies == {}


def test_an_id_may_be_spaced(signed_in, device):
    data = start_registration(signed_in)
    made = device.create(data["public_key"])
    finish_registration(signed_in, f" {data['flow_id']}\n", made).ok()


def test_a_flow_of_another_account_is_refused_and_used_up(signed_in, other, device):
    data = start_registration(other)
    made = device.create(data["public_key"])
    finish_registration(signed_in, data["flow_id"], made).fails(403, "forbidden")
    finish_registration(other, data["flow_id"], made).fails(*TOKEN_INVALID)


def test_a_flow_of_a_login_is_unknown_and_stays_open(signed_in, device, passkey):
    data = start_login(signed_in)
    finish_registration(signed_in, data["flow_id"], {}).fails(*TOKEN_INVALID)
    body = {"flow_id": data["flow_id"], "credential": device.get(data["public_key"])}
    signed_in.stranger().post("/auth/passkeys/login/finish", body).ok()


def test_a_flow_lives_five_minutes(signed_in, device, clock):
    in_time, late = start_registration(signed_in), start_registration(signed_in)
    clock.advance(seconds=299.999)
    made = device.create(in_time["public_key"])
    finish_registration(signed_in, in_time["flow_id"], made).ok()
    clock.advance(seconds=0.001)
    made = Authenticator().create(late["public_key"])
    finish_registration(signed_in, late["flow_id"], made).fails(*TOKEN_INVALID)


def test_its_life_is_a_setting(rt, signed_in, device, clock):
    configure(rt, auth_passkey_flow_ttl_secs=60)
    data = start_registration(signed_in)
    assert data["public_key"]["publicKey"]["timeout"] == 60_000
    clock.advance(seconds=60)
    made = device.create(data["public_key"])
    finish_registration(signed_in, data["flow_id"], made).fails(*TOKEN_INVALID)


def test_a_changed_password_voids_it(signed_in, user, device):
    data = start_registration(signed_in)
    body = {"current_password": user.password, "new_password": "another good one"}
    signed_in.put("/auth/password", body).ok()
    made = device.create(data["public_key"])
    finish_registration(signed_in, data["flow_id"], made).fails(*TOKEN_INVALID)


def test_removing_the_last_passkey_voids_those_begun_before(signed_in, device, passkey):
    """Its handle is gone, and authenticators must know an account by one name."""
    data = start_registration(signed_in)
    signed_in.delete(f"/auth/passkeys/{passkey['id']}").ok()
    made = Authenticator().create(data["public_key"])
    finish_registration(signed_in, data["flow_id"], made).fails(*TOKEN_INVALID)
    register(signed_in, Authenticator()).ok()


def finish_with(rt, principal, data, credential):
    """Finish as a request that was authenticated a moment ago."""
    return management.finish(
        rt,
        principal,
        flow_id=data["flow_id"],
        credential=credential,
        name=None,
        client=Client.of("127.0.0.1", None),
    )


MEANWHILE = {
    "session ended": (
        lambda rt, user, session_id: revocation.revoke_any(rt, COMMAND_LINE, session_id),
        TokenInvalid,
    ),
    "account disabled": (
        lambda rt, user, _: change_user(rt, user, status="disabled"),
        AccountDisabled,
    ),
    "password changed": (lambda rt, user, _: change_user(rt, user, session_version=7), FlowInvalid),
}


@pytest.mark.parametrize("event", MEANWHILE)
def test_a_finish_overtaken_is_refused(rt, signed_in, user, device, event):
    data = start_registration(signed_in)
    made = device.create(data["public_key"])
    stale = sessions.authenticate(rt, signed_in.access_token)
    act, refusal = MEANWHILE[event]
    act(rt, user, stale.session_id)
    with pytest.raises(refusal):
        finish_with(rt, stale, data, made)
    assert count(rt, Passkey) == 0


def test_a_start_for_an_account_that_is_just_gone_is_refused(rt, signed_in, user):
    stale = sessions.authenticate(rt, signed_in.access_token)
    delete_user(rt, user)
    with pytest.raises(TokenInvalid):
        management.start(rt, stale, name=None)


def test_passkeys_go_with_their_account(rt, signed_in, user, device, passkey):
    delete_user(rt, user)
    assert count(rt, Passkey) == count(rt, PasskeyHandle) == 0
    log_in(signed_in.stranger(), device).fails(*REFUSED)
