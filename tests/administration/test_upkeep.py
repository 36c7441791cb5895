"""`flask keys`, `flask cleanup`, `flask storage`, and the server's own round."""

import json
from contextlib import nullcontext
from itertools import pairwise
from unittest.mock import Mock

import pytest
import sqlalchemy as sa
from redis import Redis

from app.audit.models import AuditEntry
from app.browsers import queries as browser_queries
from app.browsers.models import Browser
from app.core.access import COMMAND_LINE
from app.core.errors import DatabaseUnavailable
from app.crypto.keyring import Keyring
from app.installation import cleanup, secret_keys
from app.sessions import queries as session_queries
from app.sessions.models import LoginSession
from app.settings import mail_keys
from app.settings import service as settings
from app.settings.models import SystemConfig
from app.storage_policies.models import StoragePolicyGroup, StoragePolicyGroupItem
from tests.support.api import ApiClient
from tests.support.commands import CommandLine
from tests.support.factories import audit_rows, configure, count

OLD = ("old", b"the key of last year, 32 bytes long")
NEW = ("new", b"the key of this year, 32 bytes")


@pytest.fixture
def app(make_app):
    """An application whose keys are in its instance folder."""
    return make_app(secret_keys=())


def stored(rt, name):
    with rt.reading() as connection:
        statement = sa.select(SystemConfig.value).where(SystemConfig.key == name)
        return connection.execute(statement).scalar()


# --- keys ------------------------------------------------------------------------------------


def test_keys_are_listed_without_a_secret(line, rt, clock):
    [entry] = line.json("keys", "list")
    assert entry == {
        "id": rt.keyring.current().key_id,
        "created_at": "2026-03-02T09:30:00Z",
        "retired_at": None,
        "is_signing": True,
    }
    file = json.loads((rt.config.instance / "keys.json").read_text())
    assert file["keys"][0]["secret"] not in line("keys", "list").text


def test_rotation_puts_a_new_key_first_and_keeps_the_old_one(line, rt, clock):
    old = rt.keyring.current().key_id
    clock.advance(days=1)
    answer = line.json("keys", "rotate")
    fresh, retired = line.json("keys", "list")
    assert answer == {"key": fresh, "resealed": 0, "unreadable": 0}
    assert fresh["is_signing"]
    assert fresh["id"] != old
    assert (retired["id"], retired["retired_at"]) == (old, "2026-03-03T09:30:00Z")
    assert not retired["is_signing"]
    [entry] = audit_rows(rt, "config_action_execute")
    assert fresh["id"] in entry.details


def test_rotation_keeps_sessions(line, api, signed_in):
    line.json("keys", "rotate")
    api.me().ok()


@pytest.mark.both_databases
def test_rotation_encrypts_the_stored_secrets_under_the_new_key(line, rt):
    configure(rt, mail_smtp_password="open sesame")
    old = stored(rt, "mail_smtp_password")
    assert line.json("keys", "rotate")["resealed"] == 1
    assert stored(rt, "mail_smtp_password") != old
    assert rt.secret_box.is_current(stored(rt, "mail_smtp_password"))
    assert settings.secret(rt, mail_keys.MAIL_SMTP_PASSWORD) == "open sesame"


def test_rotation_leaves_alone_what_it_cannot_read(line, rt):
    configure(rt, mail_smtp_password="open sesame")
    with rt.transaction() as session:
        session.execute(sa.update(SystemConfig).values(value="v1:gone:AAAA:AAAA"))
    ran = line("keys", "rotate")
    assert (ran.exit_code, ran.stderr) == (1, "")
    assert ran.stdout.endswith(
        "; 0 secrets were encrypted anew, 1 cannot be read with any key: see `flask doctor`\n"
    )
    assert stored(rt, "mail_smtp_password") == "v1:gone:AAAA:AAAA"


def test_rotation_tells_of_keys_that_have_the_right_names_alone(make_app, rt):
    """What is under the first one need not be encrypted anew, and is looked at all the same."""
    configure(make_app(secret_keys=(OLD,)).extensions["gatehouse"], mail_smtp_password="open")
    wrong = (("old", b"another key of the name of last year's"), NEW)
    ran = CommandLine(make_app(secret_keys=wrong))("keys", "rotate", "--json")
    told = json.loads(ran.stdout)
    assert (ran.exit_code, told["resealed"], told["unreadable"]) == (1, 0, 1)


def test_rotations_in_two_processes_keep_each_others_keys(rt, make_app, clock):
    other = make_app(secret_keys=()).extensions["gatehouse"]
    one, two = (secret_keys.rotate_keys(each, COMMAND_LINE)["key"] for each in (rt, other))
    known = {key.key_id for key in Keyring(rt.config, clock).keys}
    assert {one["id"], two["id"]} < known
    assert len(known) == 3


def test_a_single_key_of_the_environment_is_not_rotated(make_app):
    line = CommandLine(make_app())
    assert "GATEHOUSE_SECRET_KEYS" in line.refuses("conflict", "keys", "rotate")
    [entry] = line.json("keys", "list")
    assert entry["created_at"] is None


def test_what_older_keys_of_the_environment_encrypted_is_encrypted_under_the_first(make_app, rt):
    """So that a key that was seen by others need not be kept."""
    with_old, with_new = (
        make_app(secret_keys=(key,)).extensions["gatehouse"] for key in (OLD, NEW)
    )
    configure(with_old, mail_smtp_password="open sesame")
    answer = CommandLine(make_app(secret_keys=(NEW, OLD))).json("keys", "rotate")
    assert (answer["key"]["id"], answer["resealed"]) == ("new", 1)
    assert settings.secret(with_new, mail_keys.MAIL_SMTP_PASSWORD) == "open sesame"
    [entry] = audit_rows(rt, "config_action_execute")
    assert "new" in entry.details


def are_one_service(make_app, user, *orders):
    """Tell whether instances with these keys each take the tokens of the other."""
    one, two = (ApiClient(make_app(secret_keys=order)) for order in orders)
    tokens = []
    for client in (one, two):
        client.login(user).ok()
        tokens.append(client.access_token)
    return {client.bearer(token).me().status for client in (one, two) for token in tokens} == {200}


def test_in_two_rounds_no_instance_meets_a_key_it_does_not_know(make_app, user):
    """docs/operations.md, "Rotate keys"."""
    rounds = [(OLD,), (OLD, NEW), (NEW, OLD)]
    for before, after in pairwise(rounds):
        assert are_one_service(make_app, user, before, after)
    assert not are_one_service(make_app, user, rounds[0], rounds[-1])


# --- cleanup ---------------------------------------------------------------------------------


def test_cleanup_deletes_expired_sessions_only(line, rt, api, user, clock):
    configure(rt, auth_refresh_token_ttl_secs=3600, audit_log_enabled=False)
    api.login(user).ok()
    api.refresh().ok()
    clock.advance(minutes=50)
    api.login(user).ok()
    clock.advance(minutes=20)
    assert line.json("cleanup")["sessions"] == 1
    assert count(rt, LoginSession) == 1
    names = ("sessions", "audit_entries", "mails", "mail_tokens", "teams", "pending_identities")
    nothing = dict.fromkeys(
        (
            *names,
            "access_tokens",
            "browsers",
            "erased_accounts",
            "unactivated_accounts",
            "avatar_leftovers",
        ),
        0,
    )
    assert line.json("cleanup") == nothing


@pytest.mark.both_databases
def test_cleanup_deletes_old_mails_and_long_expired_links(line, rt, api, user, clock, mailbox):
    configure(rt, auth_password_reset_ttl_secs=3600)
    api.post("/auth/password/reset/request", json={"email": user.email}).ok()
    token = mailbox.token(mailbox.only())
    clock.advance(days=7, hours=1)
    cleaned = line.json("cleanup")
    assert (cleaned["mails"], cleaned["mail_tokens"]) == (1, 0)
    reset = {"token": token, "new_password": "another password"}
    api.post("/auth/password/reset/confirm", json=reset).fails(
        410, "auth.contact_verification_expired"
    )
    clock.advance(seconds=1)
    assert line.json("cleanup")["mail_tokens"] == 1
    api.post("/auth/password/reset/confirm", json=reset).fails(
        400, "auth.contact_verification_invalid"
    )


def test_keys_rotate_and_waiting_mails_can_still_be_sent(line, rt, api, user, mailbox):
    api.post("/auth/password/reset/request", json={"email": user.email}).ok()
    assert line.json("keys", "rotate")["resealed"] == 1
    [mail] = [mail for mail in mailbox.read() if user.email in mail["To"]]
    assert mailbox.token(mail).startswith("cv_")


def test_cleanup_works_in_batches(rt, api, user, clock, monkeypatch):
    monkeypatch.setattr("app.store.bulk.BATCH_ROWS", 2)
    for _ in range(5):
        api.login(user).ok()
    clock.advance(days=91)
    cleaned = cleanup.cleanup(rt)
    assert (cleaned["sessions"], cleaned["audit_entries"]) == (5, 5)
    assert count(rt, LoginSession) == count(rt, AuditEntry) == 0


@pytest.mark.both_databases
def test_old_sessions_are_looked_for_once_and_deleted_in_batches(rt, api, user, clock, monkeypatch):
    find = Mock(wraps=session_queries.find_expired)
    delete = Mock(wraps=session_queries.delete_expired)
    monkeypatch.setattr(session_queries, "find_expired", find)
    monkeypatch.setattr(session_queries, "delete_expired", delete)
    monkeypatch.setattr("app.store.bulk.BATCH_ROWS", 2)
    for _ in range(5):
        api.login(user).ok()
    clock.advance(days=8)
    assert cleanup.cleanup(rt)["sessions"] == 5
    assert (find.call_count, delete.call_count) == (1, 3)
    assert count(rt, LoginSession) == 0


@pytest.mark.both_databases
def test_more_old_sessions_than_are_found_at_once_are_deleted_too(
    rt, api, user, clock, monkeypatch
):
    monkeypatch.setattr("app.store.bulk.MOST_FOUND", 2)
    for _ in range(5):
        api.login(user).ok()
    clock.advance(days=8)
    assert cleanup.cleanup(rt)["sessions"] == 5


@pytest.mark.both_databases
def test_what_came_back_to_use_since_it_was_found_stays(rt, api, user, monkeypatch):
    api.login(user).ok()
    with rt.reading() as session:
        sessions = session.scalars(sa.select(LoginSession.id)).all()
        browsers = session.scalars(sa.select(Browser.id)).all()
    assert (len(sessions), len(browsers)) == (1, 1)
    monkeypatch.setattr(session_queries, "find_expired", lambda *_, **__: sessions)
    monkeypatch.setattr(browser_queries, "find_unused", lambda *_: browsers)
    cleaned = cleanup.cleanup(rt)
    assert (cleaned["sessions"], cleaned["browsers"]) == (0, 0)
    assert count(rt, LoginSession) == count(rt, Browser) == 1


def test_audit_log_is_kept_as_long_as_configured(line, rt, api, user, clock):
    configure(rt, audit_log_retention_days=30)
    api.login(user).ok()
    clock.advance(days=30)
    line("cleanup").text  # noqa: B018
    assert count(rt, AuditEntry, AuditEntry.action != "config_action_execute") == 2
    clock.advance(seconds=1)
    assert ", 2 outdated audit entries," in line("cleanup").text


@pytest.mark.parametrize("days", [0, -1])
def test_audit_log_is_kept_for_ever(line, rt, clock, days):
    configure(rt, audit_log_retention_days=days)
    clock.advance(days=5000)
    assert line.json("cleanup")["audit_entries"] == 0
    assert count(rt, AuditEntry, AuditEntry.action == "config_update") == 1


def test_one_process_takes_the_turn_per_interval(rt, make_app):
    other = make_app().extensions["gatehouse"]
    assert cleanup.clean_up_if_due(rt)
    assert not cleanup.clean_up_if_due(other)
    remaining = rt.redis.client.pttl(cleanup.CLEANUP_LOCK_KEY)
    assert 3_500_000 < remaining <= 3_600_000
    rt.redis.client.delete(cleanup.CLEANUP_LOCK_KEY)
    assert cleanup.clean_up_if_due(other)


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [(DatabaseUnavailable, nullcontext()), (KeyError, pytest.raises(KeyError))],
)
def test_a_turn_that_fails_comes_again_soon(rt, monkeypatch, failure, outcome):
    with monkeypatch.context() as failing, outcome:
        failing.setattr(cleanup, "cleanup", Mock(side_effect=failure))
        assert not cleanup.clean_up_if_due(rt)
    assert 0 < rt.redis.client.pttl(cleanup.CLEANUP_LOCK_KEY) <= 120_000
    rt.redis.client.delete(cleanup.CLEANUP_LOCK_KEY)
    assert cleanup.clean_up_if_due(rt)


def test_nobody_takes_the_turn_without_redis(make_app):
    app = make_app(redis=Redis.from_url("unix:///nowhere.sock"))
    assert not cleanup.clean_up_if_due(app.extensions["gatehouse"])


def test_the_round_runs_in_the_background_until_it_is_stopped(rt, monkeypatch, wait_for):
    monkeypatch.setattr(cleanup, "POLL_SECONDS", 0.01)
    stop = cleanup.start_cleanup(rt)
    wait_for(lambda: rt.redis.client.exists(cleanup.CLEANUP_LOCK_KEY))
    stop()


# --- storage ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("without_storage_route")
def test_bootstrap_makes_the_installation_ready(line, api, admin):
    assert api.post("/auth/check").ok()["setup_state"] == "needs_storage"
    made = line.json("storage", "bootstrap")
    assert list(made) == ["policy_id", "group_id", "setup_state"]
    assert made["setup_state"] == "ready"
    assert api.post("/auth/check").ok()["setup_state"] == "ready"
    assert line.json("storage", "bootstrap") == made


@pytest.mark.usefixtures("without_storage_route")
def test_what_bootstrap_makes_is_in_the_audit_log(line, rt):
    made = line.json("storage", "bootstrap")
    policy, group = audit_rows(rt)
    assert (policy.action, policy.entity_id) == ("admin_create_storage_policy", made["policy_id"])
    assert (group.action, group.entity_id) == ("admin_create_policy_group", made["group_id"])
    assert json.loads(group.details) == {"policy_ids": [made["policy_id"]], "is_default": True}
    line.json("storage", "bootstrap")
    assert len(audit_rows(rt)) == 2


def test_what_bootstrap_mends_is_in_the_audit_log(line, rt):
    with rt.transaction() as session:
        session.execute(sa.update(StoragePolicyGroup).values(is_enabled=False))
        session.execute(sa.delete(StoragePolicyGroupItem))
    made = line.json("storage", "bootstrap")
    rows = audit_rows(rt, "admin_update_policy_group")
    assert [json.loads(row.details) for row in rows] == [
        {"is_enabled": True},
        {"policy_ids": [made["policy_id"]]},
    ]


def test_bootstrap_tells_that_an_administrator_is_missing(line):
    assert line.json("storage", "bootstrap")["setup_state"] == "needs_admin"


@pytest.mark.both_databases
def test_policies_and_groups_are_listed(line):
    [policy] = line.json("storage", "policies")
    assert (policy["connector_id"], policy["is_default"]) == ("local", True)
    [group] = line.json("storage", "groups")
    assert (group["name"], group["is_enabled"]) == ("Default Policy Group", True)
    [item] = group["items"]
    assert item["policy"] == {k: policy[k] for k in ("id", "name", "connector_id")}
    assert "Local storage" in line("storage", "groups").text
    assert "Local storage" in line("storage", "policies").text
