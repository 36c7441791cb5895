"""GET /auth/export and `flask users export`."""

import csv
import io
import json
import tracemalloc
import zipfile
from datetime import timedelta

import pytest
import sqlalchemy as sa

from app.audit.models import AuditEntry
from app.core.access import COMMAND_LINE
from app.crypto.tokens import digest
from app.own_data import activity
from app.team_admin import service as teams
from app.teams.models import TeamRole
from tests.support.authenticator import enable_totp
from tests.support.external import add_provider, link
from tests.support.factories import audit_rows, bearer_of, configure, make_user
from tests.support.images import plain, upload
from tests.support.mailbox import text_of
from tests.support.passkeys import Authenticator, register
from tests.support.races import run_concurrently

PATH = "/auth/export"
MEMBERS = [
    "schema_version",
    "generated_at",
    "service",
    "account",
    "preferences",
    "sessions",
    "browsers",
    "second_factors",
    "recovery_codes_remaining",
    "tokens",
    "passkeys",
    "external_identities",
    "teams",
    "invitation",
    "mails",
    "activity",
]


def exported(client, query=""):
    answer = client.get(f"{PATH}{query}")
    assert answer.status == 200, answer
    return answer


@pytest.mark.both_databases
def test_everything_of_the_account_is_in_it(signed_in, user, rt, clock):
    configure(rt, public_site_url=["http://localhost"])
    boss = make_user(rt, username="boss", email="boss@example.org", role="admin")
    team = teams.create(rt, COMMAND_LINE, "Crew", boss.username)
    teams.add_member(rt, COMMAND_LINE, str(team.id), user.username, TeamRole.ADMIN)
    signed_in.patch("/auth/preferences", {"theme_mode": "dark"}).ok()
    device = Authenticator()
    register(signed_in, device).ok()
    totp = enable_totp(signed_in, clock)
    link(rt, user, add_provider(rt), subject="s-1", email_snapshot="at@corp.example")
    other = make_user(rt, username="somebody-else")
    register(bearer_of(rt, signed_in.app, other), Authenticator()).ok()
    answer = exported(signed_in)
    name = f'attachment; filename="gatehouse-{user.username}-2026-03-02.json"'
    assert answer.headers["Content-Disposition"] == name
    assert answer.headers["Cache-Control"] == "no-store"
    data = answer.json
    assert list(data) == MEMBERS
    assert (data["schema_version"], data["service"]) == (1, "Gatehouse")
    assert data["account"]["username"] == user.username
    assert data["preferences"]["theme_mode"] == "dark"
    assert len(data["sessions"]) == 1
    assert "is_current" not in data["sessions"][0]
    assert [browser["name"] for browser in data["browsers"]] == ["Unknown browser"]
    assert data["second_factors"][0]["method"] == "totp"
    assert data["recovery_codes_remaining"] == 10
    assert len(data["passkeys"]) == 1
    [identity] = data["external_identities"]
    assert (identity["provider"], identity["subject"]) == ("corp", "s-1")
    assert [(one["name"], one["role"]) for one in data["teams"]] == [("Crew", "admin")]
    assert data["invitation"] is None
    assert {mail["template"] for mail in data["mails"]} == {"security_notice"}
    assert data["activity"][0]["action"] == "user_export_data"
    assert data["activity"][0]["details"] == {"format": "json"}
    assert data["activity"][-1]["action"] == "user_login"
    for secret in ("boss", "somebody-else", totp.app.secret, *totp.recovery_codes, "$argon2"):
        assert secret not in answer.text
    assert signed_in.refresh_token not in answer.text
    assert digest(signed_in.device) not in answer.text


def test_an_archive_opens_and_says_the_same(signed_in, user, mailbox):
    upload(signed_in, plain()).ok()
    signed_in.patch("/auth/profile", {"display_name": "=cmd()"}).ok()
    answer = exported(signed_in, "?format=zip")
    assert answer.headers["Content-Type"] == "application/zip"
    assert ".zip" in answer.headers["Content-Disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        assert archive.testzip() is None
        names = ["README.txt", "export.json", "activity.csv", "avatar-1024.webp"]
        assert archive.namelist() == names
        document = json.loads(archive.read("export.json"))
        table = archive.read("activity.csv").decode("utf-8-sig")
        readme = archive.read("README.txt").decode()
        assert archive.read("avatar-1024.webp").startswith(b"RIFF")
    assert list(document) == MEMBERS
    rows = list(csv.DictReader(io.StringIO(table, newline="")))
    assert [row["id"] for row in rows] == [str(item["id"]) for item in document["activity"]]
    assert all(f"  {member} " in readme for member in MEMBERS[3:])
    assert user.username in readme
    assert "downloaded all" in text_of(mailbox.only())


def test_the_order_of_refusals(api, user, rt, clock):
    api.get(f"{PATH}?format=xml").fails(401, "auth.token_missing")
    api.login(user).ok()
    clock.advance(minutes=16)
    api.refresh().ok()
    configure(rt, auth_account_export_enabled=False)
    api.get(f"{PATH}?format=xml").fails(403, "forbidden")
    configure(rt, auth_account_export_enabled=True)
    api.get(f"{PATH}?format=xml").fails(412, "precondition_failed")
    api.post("/auth/confirmation", {"method": "password", "password": user.password}).ok()
    api.get(f"{PATH}?format=xml").fails(400, "bad_request")
    exported(api)


def test_five_in_an_hour(signed_in, user, rt, app):
    other = bearer_of(rt, app, make_user(rt))
    for _ in range(5):
        exported(signed_in)
    signed_in.get(PATH).fails(429, "rate_limited")
    bearer_of(rt, app, user).get(PATH).fails(429, "rate_limited")
    exported(other)


def test_to_ask_for_the_headers_exports_nothing(signed_in, rt):
    assert signed_in.call("HEAD", PATH).status == 200
    assert audit_rows(rt, "user_export_data") == []


def add_entries(rt, user, number, **columns):
    now = rt.clock.now()
    details = json.dumps({"display_name": "x" * 200})
    row = {"user_id": user.id, "action": "user_update_profile", "entity_type": "user"}
    row |= columns
    rows = [
        {**row, "created_at": now + timedelta(seconds=n), "details": details} for n in range(number)
    ]
    with rt.transaction() as session:
        session.execute(sa.insert(AuditEntry), rows)


def test_a_long_activity_takes_no_more_memory(rt, user, app, monkeypatch):
    monkeypatch.setattr(activity, "BATCH", activity.BATCH // 5)
    add_entries(rt, user, 30 * activity.BATCH)
    client = bearer_of(rt, app, user)
    header = client.headers
    response = app.test_client().get(f"/api/v1{PATH}", headers=header, buffered=False)
    pieces = iter(response.response)
    first = [next(pieces) for _ in range(4)]
    tracemalloc.start()
    some = sum(len(next(pieces)) for _ in range(20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    rest = list(pieces)
    response.close()
    assert some > 600_000
    assert peak < 2 * 1024 * 1024, peak
    assert rest
    assert first


@pytest.mark.both_databases
def test_every_entry_is_there_once(rt, signed_in, user, monkeypatch):
    monkeypatch.setattr(activity, "BATCH", 2)
    add_entries(rt, user, 5)
    add_entries(rt, user, 3, user_id=0, entity_id=user.id)
    seen = [(item["at"], item["id"]) for item in exported(signed_in).json["activity"]]
    assert len(seen) == len(set(seen)) == 10
    assert seen == sorted(seen, reverse=True)


@pytest.mark.both_databases
@pytest.mark.parametrize("attempt", range(2))
def test_a_deletion_meanwhile_leaves_the_file_whole_or_there_is_none(rt, app, user, attempt):
    add_entries(rt, user, 20)
    leaving, asking = bearer_of(rt, app, user), bearer_of(rt, app, user)
    removed, answer = run_concurrently(
        [
            lambda: leaving.delete("/auth/account", {"confirm": user.username}),
            lambda: asking.get(PATH),
        ]
    )
    removed.ok()
    if answer.status == 200:
        assert answer.json["account"]["username"] == user.username
        assert len(answer.json["activity"]) >= 20
    else:
        answer.fails(401, "auth.token_invalid")


def test_an_operator_exports_an_account(line, user, rt, tmp_path):
    path = tmp_path / "user.json"
    arguments = ("users", "export", user.username, "--output", str(path))
    assert line.json(*arguments) == {"file": str(path), "user_id": user.id}
    assert json.loads(path.read_text())["account"]["username"] == user.username
    assert path.stat().st_mode & 0o777 == 0o600
    [row] = audit_rows(rt, "user_export_data")
    assert (row.user_id, row.entity_id) == (0, user.id)
