"""DELETE /auth/account."""

import json
import logging
from contextlib import closing

import pytest
import sqlalchemy as sa

from app.audit.models import AuditEntry
from app.core.access import COMMAND_LINE
from app.invitations.models import Invitation
from app.own_data.models import Erasure
from app.team_admin import service as teams
from app.teams.models import TeamRole
from app.user_admin import service as accounts
from app.users.models import Role
from tests.support.authenticator import enable_totp
from tests.support.external import add_provider, link
from tests.support.factories import (
    audit_rows,
    bearer_of,
    change_user,
    configure,
    count,
    make_user,
)
from tests.support.images import plain, upload
from tests.support.mailbox import text_of
from tests.support.passkeys import Authenticator, register

PATH = "/auth/account"
STALE = 412, "precondition_failed"
CONFLICT = 409, "conflict"


def remove(client, user):
    return client.delete(PATH, {"confirm": user.username})


def dump(rt):
    """Return every row of every table as text, one line each."""
    with rt.reading() as session:
        tables = sa.inspect(session.connection()).get_table_names()
        rows = [
            (name, tuple(row))
            for name in tables
            for row in session.execute(sa.text(f"SELECT * FROM {name}"))
        ]
    return [f"{name}: {row}" for name, row in rows]


def lines_with(rt, *texts):
    return [line for line in dump(rt) if any(text.lower() in line.lower() for text in texts)]


def redis_texts(rt):
    """Yield every key of Redis with its value, as text."""
    redis = rt.redis.client
    read = {
        "string": redis.get,
        "hash": redis.hgetall,
        "zset": lambda key: redis.zrange(key, 0, -1, withscores=True),
    }
    for key in redis.scan_iter():
        yield f"{key}: {read[redis.type(key)](key)}"


@pytest.mark.both_databases
def test_the_account_is_gone_and_its_name_is_free(signed_in, user, rt, mailbox):
    other = signed_in.stranger()
    other.login(user).ok()
    assert remove(signed_in, user).ok() is None
    assert signed_in.cookies == {}
    other.me().fails(401, "auth.token_invalid")
    other.login(user).fails(401, "auth.credentials_failed")
    farewell = mailbox.only()
    assert farewell["To"] == user.email
    assert "Your account was deleted" in text_of(farewell)
    again = {"username": user.username, "email": user.email, "password": user.password}
    configure(rt, auth_register_activation_enabled=False)
    assert signed_in.post("/auth/register", again).ok(201)["id"] > user.id


def test_the_order_of_refusals(api, user, rt, clock):
    body = {"confirm": "not the name"}
    api.delete(PATH, body).fails(401, "auth.token_missing")
    api.login(user).ok()
    configure(rt, auth_account_deletion_enabled=False)
    clock.advance(minutes=16)
    api.refresh().ok()
    api.delete(PATH, b"{").fails(403, "forbidden")
    configure(rt, auth_account_deletion_enabled=True)
    api.delete(PATH, b"{").fails(*STALE)
    api.post("/auth/confirmation", {"method": "password", "password": user.password}).ok()
    api.delete(PATH, b"{").fails(400, "bad_request")
    change_user(rt, user, role="admin")
    api.delete(PATH, body).fails(400, "bad_request")
    remove(api, user).fails(*CONFLICT)
    change_user(rt, user, role="user")
    api.delete(PATH, {"confirm": f" {user.username.upper()} "}).ok()


def test_the_last_owner_of_a_team_is_told_of_which(signed_in, user, rt):
    boss = make_user(rt, role="admin")
    team = teams.create(rt, COMMAND_LINE, "Chess club", boss.username)
    teams.add_member(rt, COMMAND_LINE, str(team.id), user.username, TeamRole.OWNER)
    teams.remove_member(rt, COMMAND_LINE, str(team.id), boss.username)
    assert "Chess club" in remove(signed_in, user).fails(*CONFLICT).json["msg"]
    teams.add_member(rt, COMMAND_LINE, str(team.id), boss.username, TeamRole.OWNER)
    remove(signed_in, user).ok()


@pytest.mark.both_databases
def test_of_many_teams_the_first_few_are_named(signed_in, user, rt):
    for number in range(6):
        teams.create(rt, COMMAND_LINE, f"Team {number}", user.username)
    message = remove(signed_in, user).fails(*CONFLICT).json["msg"]
    assert "Team 0, Team 1, Team 2, Team 3, Team 4, and more." in message


def test_the_file_side_is_told(signed_in, user, rt, line, clock):
    other, abandoned = make_user(rt), make_user(rt, activated=False)
    with closing(rt.redis.client.pubsub()) as listener:
        listener.subscribe("gatehouse:account_events")
        listener.get_message(timeout=5)
        remove(signed_in, user).ok()
        line.json("users", "delete", "--yes", other.username)
        clock.advance(days=8)
        line.json("cleanup")
        told = [json.loads(listener.get_message(timeout=5)["data"]) for _ in range(3)]
    assert told == [
        {"kind": "account.deleted", "user_id": one.id} for one in (user, other, abandoned)
    ]


@pytest.fixture
def known(app, rt, clock, mailbox, api, line):
    """An account that has left its name everywhere; return its client, and what names it."""
    configure(rt, public_site_url=["http://localhost"])
    make_user(rt, username="root", role="admin")
    line.json("invitations", "create", "ada-home@example.com")
    names = {"username": "ada-lovelace", "password": "a good long password"}
    invited = mailbox.token(mailbox.only())
    api.post(f"/auth/invitations/{invited}/accept", names).ok(201)
    agent = {"User-Agent": "Analytical-Engine/1"}
    client = api.stranger()
    client.headers = agent
    client.login("ada-lovelace", "a good long password", address="203.0.113.77").ok()
    client.login("ada-lovelace", "not hers", address="203.0.113.77").fails(
        401, "auth.credentials_failed"
    )
    client.patch("/auth/profile", {"display_name": "Countess Ada"}).ok()
    client.patch("/auth/preferences", {"custom": {"motto": "Numbers sing"}}).ok()
    upload(client, plain()).ok()
    client.post("/auth/email/change", {"new_email": "ada-work@example.com"}).ok()
    change = next(m for m in mailbox.read() if m["To"] == "ada-work@example.com")
    client.get(mailbox.link(change).removeprefix("http://localhost"), headers=agent)
    key_id = register(client, Authenticator()).ok()["id"]
    client.patch(f"/auth/passkeys/{key_id}", {"name": "Babbage key"}).ok()
    enable_totp(client, clock)
    me = client.me().ok()
    user = type("Known", (), {"id": me["id"], "username": "ada-lovelace"})
    link(rt, user, add_provider(rt), subject="ada-subject", email_snapshot="ada-corp@example.com")
    accounts.update(rt, COMMAND_LINE, user.username, storage_quota=7)
    client.post("/auth/password/reset/request", {"email": "ada-work@example.com"}).ok()
    client.post("/auth/email/change", {"new_email": "ada-next@example.com"}).ok()
    # Whole names: a random id may contain "ada-".
    hers = [f"ada-{end}" for end in ("lovelace", "home", "work", "next", "corp", "subject")]
    said = ("Countess", "Numbers sing", "Babbage", "Analytical", "203.0.113.77")
    return client, user, (*hers, *said)


@pytest.mark.both_databases
def test_nothing_names_the_person_afterwards(known, rt, clock, line, mailbox, caplog):
    client, user, texts = known
    assert {line.partition(":")[0] for line in lines_with(rt, *texts)} >= {
        "users",
        "audit_log",
        "mail_outbox",
        "passkeys",
        "external_auth_identities",
        "invitations",
        "user_profiles",
        "login_sessions",
    }
    before = count(rt, AuditEntry)
    caplog.clear()
    caplog.set_level(logging.INFO)
    remove(client, user).ok()
    # What is listed in docs/security.md: the farewell mail, and what housekeeping still has to do.
    left = {line.partition(":")[0] for line in lines_with(rt, *texts)}
    assert left == {"account_erasures", "audit_log", "mail_outbox"}
    clock.advance(minutes=6)
    mailbox.read()
    assert line.json("cleanup")["erased_accounts"] > 5
    assert lines_with(rt, *texts) == []
    assert count(rt, AuditEntry) > before
    assert line.json("cleanup")["erased_accounts"] == 0
    assert [key for key in redis_texts(rt) if any(text in key for text in texts)] == []
    assert [r for r in caplog.records if any(text in r.getMessage() for text in texts)] == []
    assert list(rt.config.avatar_dir.rglob("*.webp")) == []


def test_the_audit_log_keeps_what_was_done(known, rt, clock, line, mailbox):
    client, user, _ = known
    remove(client, user).ok()
    [row] = audit_rows(rt, "user_delete_account")
    assert (row.user_id, row.entity_id) == (user.id, user.id)
    assert (row.entity_name, row.details, row.ip_address, row.user_agent) == (None,) * 4
    clock.advance(minutes=6)
    mailbox.read()
    line.json("cleanup")
    [change] = audit_rows(rt, "admin_update_user")
    assert json.loads(change.details)["storage_quota"] == 7
    assert change.entity_id == user.id
    assert count(rt, Erasure) == 0


def test_of_others_nothing_is_lost(known, rt, clock, line, mailbox, app):
    client, user, _ = known
    other = make_user(rt, username="grace")
    bearer_of(rt, app, other).patch("/auth/profile", {"display_name": "Grace"}).ok()
    remove(client, user).ok()
    clock.advance(minutes=6)
    mailbox.read()
    line.json("cleanup")
    kept = [row for row in audit_rows(rt, "user_update_profile") if row.user_id == other.id]
    assert [row.entity_name for row in kept] == ["grace"]


@pytest.mark.both_databases
def test_traces_wait_for_the_farewell_mail(signed_in, user, rt, clock, line, mailbox):
    remove(signed_in, user).ok()
    clock.advance(minutes=6)
    line.json("cleanup")
    assert {line.partition(":")[0] for line in lines_with(rt, user.email)} == {
        "account_erasures",
        "mail_outbox",
    }
    mailbox.read()
    line.json("cleanup")
    assert lines_with(rt, user.email) == []


def test_what_a_former_administrator_changed_is_not_its_own(api, admin, user, rt):
    make_user(rt, username="chief", role=Role.ADMIN)
    api.login(admin).ok()
    path, body = f"/admin/users/{user.id}/email", {"email": "new@example.com", "verified": True}
    api.put(path, body).ok()
    api.post("/admin/users/invitations", {"email": user.email}).ok(201)
    accounts.update(rt, COMMAND_LINE, admin.username, role=Role.USER)
    remove(api, admin).ok()
    assert count(rt, Invitation) == 1


def test_what_an_operator_deletes_stays_in_the_audit_log(user, rt, line, clock):
    line.json("users", "delete", "--yes", user.username)
    clock.advance(minutes=6)
    line.json("cleanup")
    [row] = audit_rows(rt, "admin_force_delete_user")
    assert (row.entity_name, json.loads(row.details)) == (user.username, {"email": user.email})


@pytest.mark.both_databases
def test_an_address_that_somebody_else_has_by_now_is_theirs(known, rt, line, mailbox, clock):
    client, user, _ = known
    make_user(rt, username="heir", email="ada-home@example.com")
    remove(client, user).ok()
    clock.advance(minutes=6)
    mailbox.read()
    line.json("cleanup")
    sent = [row.entity_name for row in audit_rows(rt, "mail_send")]
    assert "ada-home@example.com" in sent
    assert "ada-work@example.com" not in sent
