"""/admin/config."""

import json

import pytest

from app.settings import keys, mail_keys, queries
from app.settings import service as settings
from tests.support import outbox
from tests.support.api import ORIGIN
from tests.support.factories import audit_rows, change_user, configure, make_user

CONFIG = "/admin/config"
REDACTED = "***REDACTED***"
SECRET = "a secret planted by the test"


def put(client, key, value, query="", **options):
    return client.put(f"{CONFIG}/{key}{query}", {"value": value}, **options)


def patch(client, **body):
    return client.patch(CONFIG, body)


def value_of(client, key):
    return client.get(f"{CONFIG}/{key}").ok()["value"]


# --- reading ------------------------------------------------------------------------------------


def test_pages_have_every_setting_once_in_the_order_of_their_ids(boss):
    first = boss.get(f"{CONFIG}?limit=30").ok()
    rest = boss.get(f"{CONFIG}?limit=100&offset=30").ok()
    listed = first["items"] + rest["items"]
    assert [item["id"] for item in listed] == list(range(1, len(keys.ALL) + 1))
    assert [item["key"] for item in listed] == sorted(keys.ALL)
    assert first["total"] == len(keys.ALL)
    assert boss.get(f"{CONFIG}/{listed[3]['key']}").ok() == listed[3]


def test_the_schema_tells_programs_what_a_setting_takes(boss):
    told = {item["key"]: item for item in boss.get(f"{CONFIG}/schema").ok()}
    assert set(told) == set(keys.ALL)
    ttl = told["auth_access_token_ttl_secs"]
    assert (ttl["minimum"], ttl["maximum"], ttl["unit"], ttl["default"]) == (
        1,
        86400,
        "seconds",
        "900",
    )
    assert told["public_site_url"]["item_kind"] == "origin"
    assert told["auth_local_email_blocklist"]["item_kind"] == "email_or_domain"
    assert told["branding_title"]["max_length"] == 120
    [action] = told["mail_smtp_host"]["actions"]
    assert (action["action"], action["target_key"]) == ("send_test_email", "mail")
    assert action["presentation"]["category"] == "mail"
    assert told["branding_title"]["invalidates"] == ["frontend_config"]
    assert told["auth_password_login_enabled"]["category"] == "user.registration_and_login"
    [auto, *_] = told["auth_register_activation_enabled"]["options"]
    assert auto["value"] == "auto"
    for choice in ("auth_register_activation_enabled", "pages_theme"):
        assert told[choice]["value_type"] == "string"
        assert boss.get(f"{CONFIG}/{choice}").ok()["value_type"] == "string"
    assert {told[name]["category"] for name in told if name.startswith("pages_")} == {"site"}
    assert boss.get(f"{CONFIG}/pages_theme").ok()["category"] == "site"
    kinds = {item["value_type"] for item in told.values() if item["options"]}
    assert kinds == {"string", "string_enum_set"}


def test_an_unknown_setting_is_not_found(boss):
    boss.get(f"{CONFIG}/nope").fails(404, "not_found")
    put(boss, "nope", "1").fails(404, "not_found")
    patch(boss, values={"nope": "1"}).fails(404, "not_found")
    patch(boss, unset=["nope"]).fails(404, "not_found")
    boss.delete(f"{CONFIG}/nope").fails(404, "not_found")


# --- changing -----------------------------------------------------------------------------------


def test_who_set_it_and_what_it_was_is_told(boss, rt, admin):
    put(boss, "branding_title", "Files").ok()
    shown = put(boss, "branding_title", "Drive").ok()
    assert shown["updated_by"] == admin.id
    entry = audit_rows(rt, "config_update")[-1]
    assert json.loads(entry.details) == {"value": "Drive", "previous_value": "Files"}
    assert (entry.user_id, entry.entity_name) == (admin.id, "branding_title")
    assert entry.ip_address is not None
    assert entry.user_agent is not None
    configure(rt, branding_title="Again")
    assert boss.get(f"{CONFIG}/branding_title").ok()["updated_by"] is None


def test_the_same_value_again_writes_nothing(boss, rt, clock):
    for key, value in (("branding_title", "Drive"), ("mail_smtp_password", SECRET)):
        first = put(boss, key, value).ok()
        rows = len(audit_rows(rt, "config_update"))
        clock.advance(minutes=1)
        assert put(boss, key, value).ok()["updated_at"] == first["updated_at"]
        assert patch(boss, values={key: value}).ok() == {"changed": [], "also_changed": []}
        assert len(audit_rows(rt, "config_update")) == rows


@pytest.mark.both_databases
def test_a_change_meant_for_another_state_is_refused(boss, clock):
    before = "2020-01-01T00:00:00Z"
    assert patch(boss, values={"branding_title": "A"}, expected_updated_at=before).ok()["changed"]
    seen = boss.get(f"{CONFIG}/branding_title").ok()["updated_at"]
    clock.advance(seconds=1)
    patch(boss, values={"branding_description": "B"}).ok()
    named = {"branding_title": "C", "branding_description": "D"}
    patch(boss, values=named, expected_updated_at=seen).fails(409, "conflict")
    patch(boss, unset=["branding_description"], expected_updated_at=seen).fails(409, "conflict")
    assert value_of(boss, "branding_title") == "A"
    patch(boss, values={"branding_title": "C"}, expected_updated_at=seen).ok()
    clock.advance(seconds=1)
    patch(boss, unset=["branding_title"]).ok()
    shown = boss.get(f"{CONFIG}/branding_title").ok()
    assert (shown["is_set"], shown["value"]) == (False, shown["default"])
    late = {"values": {"branding_title": "E"}, "expected_updated_at": seen}
    patch(boss, **late).fails(409, "conflict")
    boss.patch(f"{CONFIG}?force=true", late).fails(409, "conflict")
    patch(boss, **{**late, "expected_updated_at": shown["updated_at"]}).ok()
    patch(boss, values={}, expected_updated_at="yesterday").fails(400, "bad_request")


def test_what_a_clock_ahead_has_written_is_no_later_change(boss, admin, clock):
    clock.advance(days=2)
    boss.refresh().ok()
    patch(boss, values={"branding_title": "A"}).ok()
    clock.advance(days=-2)
    boss.login(admin).ok()
    now = "2026-03-02T09:30:00Z"
    patch(boss, values={"branding_title": "B"}, expected_updated_at=now).ok()


def test_a_secret_is_neither_shown_nor_recorded_nor_lost(boss, rt):
    assert put(boss, "mail_smtp_password", SECRET).ok()["value"] == REDACTED
    put(boss, "mail_smtp_password", REDACTED).ok()
    patch(boss, values={"mail_smtp_password": REDACTED, "branding_title": "x"}).ok()
    assert settings.secret(rt, mail_keys.MAIL_SMTP_PASSWORD) == SECRET
    for path in ("", "/export", "/mail_smtp_password", "?limit=100"):
        assert SECRET not in boss.get(CONFIG + path).text
    with rt.reading() as session:
        assert SECRET not in str(queries.list_texts(session))
    assert SECRET not in str(audit_rows(rt))
    assert put(boss, "mail_smtp_password", "").ok()["value"] == ""
    assert json.loads(audit_rows(rt, "config_update")[-1].details) == {
        "value": "",
        "previous_value": REDACTED,
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("auth_access_token_ttl_secs", 0),
        ("auth_access_token_ttl_secs", True),
        ("auth_access_token_ttl_secs", "9" * 5000),
        ("auth_allow_user_registration", "perhaps"),
        ("archive_download_user_enabled", "1"),
        ("branding_title", 5),
        ("branding_title", "\ud800"),
        ("branding_title", "a\x00"),
        ("branding_title", None),
        ("branding_title", {"a": 1}),
        ("branding_title", 1.5),
        ("public_site_url", ["ftp://a.example"]),
        ("public_site_url", [["https://a.example"]]),
        ("public_site_url", "https://a.example"),
        ("audit_log_recorded_actions", ["nonsense"]),
        ("auth_email_code_login_enabled", "true"),
    ],
)
def test_a_bad_value_is_refused(boss, rt, key, value):
    before = boss.get(f"{CONFIG}/{key}").ok()
    put(boss, key, value).fails(400, "bad_request")
    patch(boss, values={key: value, "branding_description": "x"}).fails(400, "bad_request")
    assert boss.get(f"{CONFIG}/{key}").ok() == before
    assert value_of(boss, "branding_description") == ""
    assert audit_rows(rt, "config_update") == []


def test_json_values_are_taken_as_such(boss):
    assert put(boss, "auth_allow_user_registration", False).ok()["value"] == "false"
    assert put(boss, "mail_smtp_port", 25).ok()["value"] == "25"
    blocked = put(boss, "auth_local_email_blocklist", ["b.example", "a.example"]).ok()["value"]
    assert blocked == ["a.example", "b.example"]


def test_what_is_private_stays_so(boss):
    body = {"value": "x", "visibility": "public"}
    boss.put(f"{CONFIG}/branding_title", body).fails(400, "bad_request")


def test_a_change_of_many_is_judged_by_its_outcome(boss):
    mail = {"mail_smtp_host": "mail.example", "mail_from_address": "a@mail.example"}
    done = patch(boss, values={"auth_email_code_login_enabled": True, **mail}).ok()
    assert {item["key"] for item in done["changed"]} == {"auth_email_code_login_enabled", *mail}
    assert done["also_changed"] == []
    done = patch(boss, unset=["mail_smtp_host", "mail_smtp_port"]).ok()
    assert [item["key"] for item in done["changed"]] == ["mail_smtp_host"]
    assert done["also_changed"] == ["auth_email_code_login_enabled"]
    assert value_of(boss, "auth_email_code_login_enabled") == "false"


def test_a_setting_is_set_or_unset_but_not_both(boss):
    patch(boss, values={"branding_title": "x"}, unset=["branding_title"]).fails(400, "bad_request")
    many = {f"key{n}": "x" for n in range(101)}
    patch(boss, values=many).fails(400, "bad_request")


def test_the_last_way_to_sign_in_stays(boss):
    put(boss, "auth_passkey_login_enabled", "false").ok()
    put(boss, "auth_password_login_enabled", "false", "?force=true").fails(400, "bad_request")


# --- what must not shut out its author ----------------------------------------------------------


@pytest.fixture
def page(browser, admin):
    browser.login(admin).ok()
    return browser


def test_the_address_in_use_stays_the_sites(page, rt):
    own = ORIGIN
    put(page, "public_site_url", [own]).ok()
    put(page, "public_site_url", [own, "https://new.example"]).ok()
    put(page, "public_site_url", ["https://new.example"]).fails(409, "conflict")
    assert value_of(page, "public_site_url") == [own, "https://new.example"]
    patch(page, unset=["public_site_url"]).fails(409, "conflict")
    put(page, "public_site_url", ["https://new.example"], "?force=true").ok()


def test_an_address_is_added_from_a_page_that_is_not_listed(page, rt):
    configure(rt, public_site_url=["https://files.example"])
    put(page, "public_site_url", ["https://files.example", ORIGIN]).ok()


def test_cookies_for_https_only_are_refused_over_http(page, boss, rt):
    configure(rt, auth_cookie_secure="false")
    put(page, "auth_cookie_secure", True).fails(409, "conflict")
    patch(page, unset=["auth_cookie_secure"]).fails(409, "conflict")
    bearer = boss.bearer(boss.access_token)
    put(bearer, "auth_cookie_secure", True).ok()


def test_a_script_without_a_source_does_not_ask_for_one(boss):
    put(boss, "auth_strict_request_source", True).fails(409, "conflict")
    put(boss.bearer(boss.access_token), "auth_strict_request_source", True).ok()


def test_the_page_of_another_origin_stays_allowed(page, rt, admin, app):
    there = "https://panel.example"
    configure(
        rt,
        public_site_url=[ORIGIN, there],
        cors_enabled=True,
        cors_allowed_origins=[there],
        cors_allow_credentials=True,
    )
    from_there = {"headers": {"Origin": there, "Sec-Fetch-Site": "same-site"}}
    for key, value in (
        ("cors_allowed_origins", ["https://else.example"]),
        ("cors_enabled", False),
        ("cors_allow_credentials", False),
    ):
        put(page, key, value, **from_there).fails(409, "conflict")
    put(page, "cors_allowed_origins", [there, "https://else.example"], **from_there).ok()
    put(page, "cors_max_age_secs", 5, **from_there).ok()
    put(page, "cors_enabled", False, "?force=true", **from_there).ok()
    put(page, "cors_enabled", True).ok()


def test_ones_own_way_to_sign_in_stays(boss, rt):
    put(boss, "auth_password_login_enabled", "false").fails(409, "conflict")
    put(boss, "auth_passkey_login_enabled", "false").ok()
    put(boss, "auth_passkey_login_enabled", "true").ok()
    put(boss, "auth_password_login_enabled", "false", "?force=true").ok()


# --- around a change ----------------------------------------------------------------------------


def test_other_administrators_hear_that_a_way_to_sign_in_was_switched(boss, rt, admin):
    other = make_user(rt, role="admin")
    put(boss, "auth_passkey_login_enabled", "false").ok()
    put(boss, "auth_passkey_login_enabled", "false").ok()
    put(boss, "branding_title", "Drive").ok()
    assert [row.recipient for row in outbox.rows(rt)] == [other.email]


def test_secrets_and_sign_in_ask_for_a_confirmation_where_the_settings_do(boss, rt, clock):
    configure(rt, auth_confirmation_max_age_secs=60)
    clock.advance(seconds=61)
    put(boss, "branding_title", "Drive").ok()
    for key, value in (
        ("mail_smtp_password", SECRET),
        ("mail_smtp_host", "thief.example"),
        ("mail_security", "false"),
        ("auth_passkey_login_enabled", "false"),
    ):
        put(boss, key, value).fails(412, "precondition_failed")
        patch(boss, values={key: value}).fails(412, "precondition_failed")
    patch(boss, unset=["auth_confirmation_max_age_secs"]).fails(412, "precondition_failed")


def test_a_draft_is_judged_and_not_written(boss, rt):
    def judged(**body):
        return boss.post(f"{CONFIG}/validate", body).ok()

    assert judged() == {"valid": True, "problems": [], "also_changed": []}
    bad = judged(values={"mail_smtp_port": 0, "nope": "1", "branding_title": "fine"})
    assert bad["valid"] is False
    assert {one["key"] for one in bad["problems"]} == {"mail_smtp_port", "nope"}
    configure(rt, mail_smtp_host="mail.example", mail_from_address="a@mail.example")
    configure(rt, auth_email_code_login_enabled=True)
    assert judged(unset=["mail_smtp_host"]) == {
        "valid": True,
        "problems": [],
        "also_changed": ["auth_email_code_login_enabled"],
    }
    both = {"auth_password_login_enabled": False, "auth_passkey_login_enabled": False}
    assert [one["key"] for one in judged(values=both)["problems"]] == [
        "auth_password_login_enabled"
    ]
    assert value_of(boss, "mail_smtp_host") == "mail.example"
    with rt.transaction() as session:
        queries.store(session, "of_another_version", "7", rt.clock.now())
    [problem] = judged()["problems"]
    assert problem["key"] == "of_another_version"


def test_what_is_exported_is_imported(boss, rt):
    put(boss, "branding_title", "Drive").ok()
    put(boss, "mail_smtp_password", SECRET).ok()
    kept = boss.get(f"{CONFIG}/export").ok()
    assert kept["branding_title"] == "Drive"
    assert audit_rows(rt, "config_action_execute")[-1].details == '{"action": "export"}'
    assert "mail_smtp_password" not in kept
    boss.patch(f"{CONFIG}?force=true", {"unset": list(kept)}).ok()
    done = boss.post(f"{CONFIG}/import", {"branding_title": "Drive"}).ok()
    assert [item["key"] for item in done["changed"]] == ["branding_title"]
    boss.post(f"{CONFIG}/import", {"values": kept}).ok()
    assert boss.get(f"{CONFIG}/export").ok() == kept
    assert boss.post(f"{CONFIG}/import", {"values": kept}).ok()["changed"] == []
    boss.post(f"{CONFIG}/import", {"branding_title": "x", "nope": "1"}).fails(404, "not_found")
    assert value_of(boss, "branding_title") == "Drive"


def test_only_what_another_version_left_is_removed(boss, rt):
    boss.delete(f"{CONFIG}/branding_title").fails(403, "forbidden")
    with rt.transaction() as session:
        queries.store(session, "of_another_version", "7", rt.clock.now())
    boss.delete(f"{CONFIG}/of_another_version").ok()
    boss.delete(f"{CONFIG}/of_another_version").fails(404, "not_found")
    [entry] = audit_rows(rt, "admin_delete_config")
    assert entry.entity_name == "of_another_version"


def test_a_role_that_is_gone_changes_no_setting(boss, rt, admin):
    change_user(rt, admin, role="user")
    put(boss, "branding_title", "Drive").fails(403, "auth.admin_required")
