"""What becomes of tokens in the clean-up, an export, doctor's eyes, and after a deletion."""

import json
from contextlib import closing
from datetime import timedelta

import pytest

from app.access_tokens import service as tokens
from app.core.client import Client
from app.events.views import HUB
from app.installation import doctor
from app.installation.machine_checks import Level
from app.own_data import erasure
from app.sessions import service as sessions
from app.store.redis import SESSIONS_CHANNEL
from tests.support.commands import CommandLine
from tests.support.factories import audit_rows, change_user, configure, make_user
from tests.support.programs import PATH, add_token, program, program_of, row_of


@pytest.fixture
def line(app):
    return CommandLine(app)


def test_expired_ones_go_after_thirty_days(rt, line, user):
    now = rt.clock.now()
    ends = [now - timedelta(days=30, seconds=1), now - timedelta(days=29), None]
    _, *kept = [add_token(rt, user, "files", expires_at=end)[1] for end in ends]
    assert line.json("cleanup")["access_tokens"] == 1
    with rt.reading() as session:
        assert {token.id for token in tokens.list_of(rt, session, user.id)} == set(kept)


@pytest.mark.parametrize(
    ("scope", "columns", "is_told"),
    [
        ("admin", {"age": 401, "used": 1}, True),
        ("admin", {"age": 400, "used": 1}, False),
        ("admin", {"age": 181}, True),
        ("admin", {"age": 180}, False),
        ("admin", {"age": 200, "used": 181}, True),
        ("admin", {"age": 200, "used": 179}, False),
        ("admin:read", {"age": 500}, False),
        ("admin", {"age": 500, "is_expired": True}, False),
    ],
)
def test_doctor_warns_of_forgotten_tokens_with_all_rights(rt, admin, scope, columns, is_told):
    now = rt.clock.now()
    used = columns.get("used")
    add_token(
        rt,
        admin,
        scope,
        name="backup",
        created_at=now - timedelta(days=columns["age"]),
        last_used_at=used and now - timedelta(days=used),
        expires_at=now if columns.get("is_expired") else None,
    )
    finding = doctor.access_tokens(rt)
    assert (finding.level is Level.WARN) == is_told
    assert (f"{admin.username}: backup" in finding.message) == is_told


def test_an_export_has_them_without_their_secret(app, rt, signed_in, user):
    text, token_id = add_token(rt, user, "files", name="It")
    add_token(rt, make_user(rt), "files")
    exported = signed_in.get("/auth/export").json
    assert exported["tokens"] == signed_in.get(PATH).ok()
    assert exported["tokens"][0]["id"] == token_id
    row = row_of(rt, token_id)
    for secret in (text, row.digest):
        assert secret not in json.dumps(exported)
    program(app, text).get("/auth/export").fails(403, "forbidden")


def test_after_a_deletion_nothing_names_them(rt, signed_in, user, clock):
    body = {"name": "Ada's laptop", "scopes": ["files"], "expires_in_days": 1}
    made = signed_in.post(PATH, body).ok(201)["info"]["id"]
    signed_in.patch(f"{PATH}/{made}", {"name": "Ada's phone"}).ok()
    _, second = add_token(rt, user, "files", name="Ada's desk")
    CommandLine(signed_in.app).json("tokens", "revoke", str(second))
    signed_in.delete("/auth/account", {"confirm": user.username}).ok()
    assert row_of(rt, made) is None
    clock.advance(minutes=6)
    erasure.scrub(rt)
    rows = [row for row in audit_rows(rt) if row.entity_type == "access_token"]
    assert len(rows) == 3
    assert "Ada" not in str(rows)
    assert {row.entity_id for row in rows} == {made, second}


def test_sessions_list_no_tokens(rt, signed_in, user):
    add_token(rt, user, "files")
    assert len(signed_in.get("/auth/sessions").ok()) == 1


# --- event streams -------------------------------------------------------------------------------


@pytest.fixture
def hub(app):
    """A hub that takes streams; without its threads, which real time drives."""
    hub = app.extensions[HUB]
    hub.streams.open_up()
    yield hub
    hub.begin_shutdown()


def remove(rt, user, token_id):
    with rt.transaction() as session:
        tokens.queries.remove(session, [token_id])


def expire(rt, user, token_id):
    with rt.transaction() as session:
        session.get(tokens.AccessToken, token_id).expires_at = rt.clock.now()


ENDS = {
    "removed": remove,
    "expired": expire,
    "disabled": lambda rt, user, _: change_user(rt, user, status="disabled"),
    "not activated": lambda rt, user, _: change_user(rt, user, activated_at=None),
    "forced": lambda rt, user, _: change_user(rt, user, must_change_password=True),
    "switched off": lambda rt, *_: configure(rt, auth_access_tokens_enabled=False),
}


@pytest.mark.both_databases
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_stream_ends_with_what_opened_it(rt, hub, user, end):
    _, token_id = add_token(rt, user, "events")
    with rt.transaction() as session:
        pair = sessions.open_session(rt, session, user.id, Client(), is_limited=False)
    own = sessions.authenticate(rt, pair.access_token).session_id
    with (
        closing(hub.open(user.id, token_id, None)) as stream,
        closing(hub.open(user.id, own, None)) as beside,
    ):
        hub.check()
        assert not stream.has_ended
        end(rt, user, token_id)
        hub._sessions_ended([str(user.id)])
        assert stream.has_ended
        is_about_the_account = end in (ENDS["disabled"], ENDS["forced"])
        assert beside.has_ended == is_about_the_account


def test_the_end_of_a_token_is_announced_after_the_commit(rt, signed_in, user, monkeypatch):
    _, token_id = add_token(rt, user, "events")
    told = []
    monkeypatch.setattr(rt.redis.fail_fast.client, "publish", lambda *what: told.append(what))
    signed_in.delete(f"{PATH}/{token_id}").ok()
    assert told == [(SESSIONS_CHANNEL, str(user.id))]


def test_a_program_opens_a_stream_and_that_is_use(app, rt, hub, user):
    text, token_id = add_token(rt, user, "events")
    client = app.test_client()
    headers = {"Authorization": f"Bearer {text}"}
    with closing(client.get("/api/v1/auth/events/storage", headers=headers)) as answer:
        assert answer.status_code == 200
        assert len(hub.streams.of_user(user.id)) == 1
    assert row_of(rt, token_id).last_used_at is not None
    program_of(app, user, "files").get("/auth/events/storage").fails(403, "forbidden")
