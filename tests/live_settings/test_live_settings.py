"""Runtime settings as a running process sees them."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.access import COMMAND_LINE
from app.mail import service as mail
from app.mail.templates import Template
from app.settings import changes, keys, service
from app.settings import queries as settings_queries
from app.settings.models import SystemConfig
from app.store import live_settings
from app.store.database import DatabaseReadOnly
from app.store.live_settings import LiveSettings
from tests.support.api import ApiClient
from tests.support.factories import configure

GONE = sa.exc.OperationalError("SELECT", {}, Exception("gone"))


@pytest.fixture
def other(make_app):
    """Another worker on the same database and Redis."""
    return make_app().extensions["gatehouse"]


def store_behind_the_back(rt, name, text):
    """Write a row as a foreign hand would: unchecked, unannounced."""
    with rt.transaction() as session:
        settings_queries.store(session, name, text, rt.clock.now())


def lifetime(rt):
    return rt.settings.get(keys.ACCESS_TTL_SECONDS)


def test_a_change_is_in_force_for_the_next_request(rt, api, user):
    assert api.login(user).ok()["expires_in"] == 900
    configure(rt, auth_access_token_ttl_secs=60)
    assert api.login(user).ok()["expires_in"] == 60


def test_unsetting_returns_to_the_default(rt):
    configure(rt, auth_access_token_ttl_secs=60)
    changes.change(rt, COMMAND_LINE, {}, ["auth_access_token_ttl_secs"])
    assert lifetime(rt) == 900


def test_a_missed_message_is_made_up_for_within_a_second(rt, other, clock):
    assert lifetime(other) == 900
    configure(rt, auth_access_token_ttl_secs=60)
    assert lifetime(other) == 900
    clock.advance(seconds=0.999)
    assert lifetime(other) == 900
    clock.advance(seconds=0.001)
    assert lifetime(other) == 60


def test_a_transaction_reads_no_settings_but_before_it_begins(rt, clock, monkeypatch):
    """It would keep others waiting for one more connection."""
    load, loaded = rt.settings._load, []

    def counting():
        loaded.append(rt.database.engine.pool.checkedout())
        return load()

    monkeypatch.setattr(rt.settings, "_load", counting)
    clock.advance(seconds=1)
    with rt.transaction() as session:
        mail.queue(rt, session, Template.PASSWORD_RESET_NOTICE, "ada@example.com", username="Ada")
        audit.record(rt, session, Event(Action.SYSTEM_SETUP, EntityType.USER))
    assert loaded == [0]


def test_a_worker_that_listens_sees_a_change_at_once(rt, other, wait_for):
    stop = service.listen(other)
    try:
        channel = rt.redis.client.pubsub_numsub
        wait_for(lambda: channel("gatehouse:settings")[0][1] == 1)
        assert lifetime(other) == 900
        configure(rt, auth_access_token_ttl_secs=60)
        wait_for(lambda: lifetime(other) == 60)
    finally:
        stop()


def test_settings_are_read_once_a_second_at_most(rt, api, user, clock):
    statements = []
    engine = rt.database.engine
    sa.event.listen(engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
    clock.advance(seconds=5)
    for _ in range(10):
        api.login(user).ok()
        api.me().ok()
    assert sum("FROM system_config" in statement for statement in statements) == 1


@pytest.mark.parametrize(
    ("name", "garbage"),
    [
        ("auth_access_token_ttl_secs", "soon"),
        ("auth_access_token_ttl_secs", "0"),
        ("auth_access_token_ttl_secs", "9" * 100),
        ("auth_access_token_ttl_secs", "٣٠"),
        ("auth_password_login_enabled", "perhaps"),
        ("auth_refresh_reuse_grace_secs", "61"),
        ("public_site_url", "https://not.a.list"),
        ("public_site_url", "[1, 2]"),
        ("public_site_url", "[" * 100_000),
    ],
)
def test_garbage_in_the_database_counts_as_not_set(rt, api, user, clock, name, garbage):
    store_behind_the_back(rt, name, garbage)
    clock.advance(seconds=1)
    assert rt.settings.get(keys.ALL[name]) == keys.ALL[name].default
    assert api.login(user).ok()["expires_in"] == 900


def test_a_missing_or_garbled_secure_switch_fails_safe(rt, api, user, clock):
    for text in ("perhaps", None):
        if text is None:
            with rt.transaction() as session:
                session.execute(
                    sa.delete(SystemConfig).where(SystemConfig.key == "auth_cookie_secure")
                )
        else:
            store_behind_the_back(rt, "auth_cookie_secure", text)
        clock.advance(seconds=1)
        cookies = api.login(user).set_cookies
        assert all("secure" in cookie.attributes for cookie in cookies.values())


def test_entries_of_a_list_are_skipped_one_by_one(rt, clock):
    stored = (
        '["https://A.example", "nonsense", "https://b.example/path", 5, "http://c.example:81/"]'
    )
    store_behind_the_back(rt, "public_site_url", stored)
    clock.advance(seconds=1)
    assert rt.settings.get(keys.ALL["public_site_url"]) == (
        "https://a.example",
        "http://c.example:81",
    )


@pytest.mark.parametrize("text", ["TRUE", " yes ", "On", "1"])
def test_switches_understand_the_usual_words(rt, clock, text):
    store_behind_the_back(rt, "auth_strict_request_source", text)
    clock.advance(seconds=1)
    assert rt.settings.get(keys.ALL["auth_strict_request_source"]) is True


def test_the_documented_defaults():
    documented = {
        "auth_access_token_ttl_secs": 900,
        "auth_refresh_token_ttl_secs": 604_800,
        "auth_register_activation_ttl_secs": 86_400,
        "auth_contact_change_ttl_secs": 86_400,
        "auth_password_reset_ttl_secs": 3600,
        "auth_user_invitation_ttl_secs": 259_200,
        "auth_contact_verification_resend_cooldown_secs": 60,
        "auth_password_reset_request_cooldown_secs": 60,
        "auth_allow_user_registration": True,
        "auth_register_activation_enabled": "auto",
        "auth_password_login_enabled": True,
        "auth_passkey_login_enabled": True,
        "auth_email_code_login_enabled": False,
        "auth_email_code_login_allow_totp_fallback": False,
        "auth_email_code_login_ttl_secs": 600,
        "auth_email_code_login_resend_cooldown_secs": 60,
        "auth_mfa_flow_ttl_secs": 300,
        "auth_passkey_flow_ttl_secs": 300,
        "auth_external_flow_ttl_secs": 300,
        "auth_local_email_allowlist": (),
        "auth_local_email_blocklist": (),
        "auth_strict_request_source": False,
        "auth_refresh_reuse_grace_secs": 0,
        "public_site_url": (),
        "default_storage_quota": 0,
        "gravatar_base_url": "https://www.gravatar.com/avatar",
        "mail_smtp_host": "",
        "mail_smtp_port": 587,
        "mail_smtp_username": "",
        "mail_smtp_password": "",
        "mail_from_address": "",
        "mail_security": True,
        "mail_outbox_dispatch_interval_secs": 5,
        "audit_log_enabled": True,
    }
    assert {name: keys.ALL[name].default for name in documented} == documented


def test_a_new_installation_does_not_ask_for_https(rt):
    assert rt.settings.get(keys.ALL["auth_cookie_secure"]) is False


def test_without_redis_a_change_still_reaches_everybody(rt, other, clock, monkeypatch):
    from redis.exceptions import ConnectionError as RedisGone

    def gone(*_):
        raise RedisGone

    monkeypatch.setattr(rt.redis.client, "publish", gone)
    configure(rt, auth_access_token_ttl_secs=60)
    assert lifetime(rt) == 60
    clock.advance(seconds=1)
    assert lifetime(other) == 60


@pytest.mark.parametrize("error", [GONE, DatabaseReadOnly()], ids=["gone", "a standby"])
def test_the_last_known_settings_survive_a_lost_database_and_redis(
    rt, api, monkeypatch, wait_for, error
):
    """A lost subscription may have missed a change; that is no reason to know nothing."""
    configure(rt, branding_title="Files of Ada")
    load, loads = rt.settings._load, []

    def counting():
        loads.append(0)
        return load()

    monkeypatch.setattr(rt.settings, "_load", counting)

    def is_read_anew():
        api.get("/public/frontend-config").ok()
        return loads

    stop = service.listen(rt)
    try:
        wait_for(is_read_anew)

        def gone():
            loads.append(0)
            raise error

        monkeypatch.setattr(rt.settings, "_load", gone)
        loads.clear()
        rt.redis.client.client_kill_filter(_type="pubsub")
        wait_for(is_read_anew)
        config = api.get("/public/frontend-config").ok()
        assert config["branding"]["title"] == "Files of Ada"
    finally:
        stop()


class Rows:
    """The database as LiveSettings sees it; `value` is stored, `loading` runs while it is read."""

    def __init__(self, clock):
        self.value = 60
        self.loading = lambda: None
        self.settings = LiveSettings(self._load, clock)

    def _load(self):
        texts = {"auth_access_token_ttl_secs": str(self.value)}
        self.loading()
        return texts

    def get(self):
        return self.settings.get(keys.ACCESS_TTL_SECONDS)


@pytest.fixture
def rows(clock):
    rows = Rows(clock)
    assert rows.get() == 60
    return rows


def test_a_change_that_is_announced_while_settings_are_read_is_not_lost(rows, clock):
    def change():
        rows.loading = lambda: None
        rows.value = 120
        rows.settings.expire()

    rows.loading = change
    clock.advance(seconds=1)
    assert rows.get() == 60
    assert rows.get() == 120


@pytest.fixture
def slowly(rows):
    """Have the database answer when told to; yields how to tell it, and where to read meanwhile."""
    begun, answers = threading.Event(), threading.Event()

    def load():
        begun.set()
        answers.wait(10)

    with ThreadPoolExecutor(2) as pool:

        def read_in_vain():
            rows.loading = load
            first = pool.submit(rows.get)
            assert begun.wait(10)
            return first

        yield read_in_vain, answers.set, pool
        answers.set()


def test_after_a_change_nobody_goes_on_with_what_was_before(rows, slowly, monkeypatch):
    read, answer, pool = slowly
    # The wait for who reads is in real time, in which a busy machine may stand still for a second.
    monkeypatch.setattr(live_settings, "MAX_AGE_SECONDS", 60.0)
    rows.value = 120
    rows.settings.expire()
    first = read()
    second = pool.submit(rows.get)
    with pytest.raises(TimeoutError):
        second.result(0.1)
    answer()
    assert (first.result(10), second.result(10)) == (120, 120)


def test_while_the_database_hangs_only_who_asks_it_waits(rows, slowly, clock):
    read, answer, pool = slowly
    rows.settings.expire()
    first = read()
    clock.advance(seconds=1)
    assert [pool.submit(rows.get).result(10) for _ in range(20)] == [60] * 20
    assert not first.done()
    answer()
    assert first.result(10) == 60


def test_what_a_parent_process_read_long_ago_is_not_the_last_known(rt, monkeypatch):
    assert lifetime(rt) == 900

    def gone():
        raise GONE

    monkeypatch.setattr(rt.settings, "_load", gone)
    # What a child forgets is its parent's to close; here nobody would close it.
    rt.database.close()
    rt.start_background()
    with pytest.raises(sa.exc.OperationalError):
        lifetime(rt)


def test_audited_actions_can_be_switched_off(rt, api, user):
    from tests.support.factories import audit_rows

    configure(rt, audit_log_enabled=False)
    ApiClient(api.app).login(user).ok()
    assert audit_rows(rt, "user_login") == []
    configure(rt, audit_log_enabled=True, audit_log_recorded_actions=["user_logout"])
    api.login(user).ok()
    api.post("/auth/logout").ok()
    assert audit_rows(rt, "user_login") == []
    assert len(audit_rows(rt, "user_logout")) == 1
