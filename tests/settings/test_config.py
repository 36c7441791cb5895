"""`flask config`."""

import json

import pytest
import sqlalchemy as sa

from app.settings import keys, mail_keys
from app.settings import queries as settings_queries
from app.settings import service as settings
from app.settings.models import SystemConfig
from tests.support import servers
from tests.support.factories import audit_rows, configure

REDACTED = "***REDACTED***"


def store(rt, **texts):
    """Put rows into the table behind the service's back."""
    with rt.transaction() as session:
        for name, text in texts.items():
            settings_queries.store(session, name, text, rt.clock.now())
    rt.settings.forget()


@pytest.mark.parametrize(
    ("key", "typed", "value"),
    [
        ("auth_allow_user_registration", "off", "false"),
        ("auth_allow_user_registration", " TRUE ", "true"),
        ("auth_access_token_ttl_secs", "60", "60"),
        ("audit_log_retention_days", "-1", "-1"),
        ("auth_register_activation_enabled", "auto", "auto"),
        ("branding_title", "Drive", "Drive"),
        (
            "branding_title",
            "Café\u00a0Cloud \u0645\u06cc\u200c",
            "Café\u00a0Cloud \u0645\u06cc\u200c",
        ),
        ("public_site_url", '["https://A.example/"]', ["https://a.example"]),
        ("auth_local_email_blocklist", '["@b.example", "a.example"]', ["a.example", "b.example"]),
    ],
)
def test_set_and_get_print_key_and_value(line, key, typed, value):
    assert line.json("config", "set", key, typed) == {"key": key, "value": value}
    assert line.json("config", "get", key) == {"key": key, "value": value}


def test_human_text_is_one_line(line):
    assert line("config", "set", "branding_title", "Drive").text == "branding_title = Drive"
    assert line("config", "get", "public_site_url").text == "public_site_url = []"


def test_unknown_key_is_not_found(line):
    for arguments in (("get", "nope"), ("set", "nope", "1"), ("unset", "nope")):
        line.refuses("not_found", "config", *arguments)
        assert "nope" in line("config", *arguments).complains()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("auth_access_token_ttl_secs", "0"),
        ("auth_access_token_ttl_secs", "many"),
        ("auth_password_login_enabled", "perhaps"),
        ("public_site_url", "https://a.example"),
        ("public_site_url", '"https://a.example"'),
        ("public_site_url", "[" * 100_000),
        ("public_site_url", '["ftp://a.example"]'),
        ("audit_log_recorded_actions", '["nonsense"]'),
        ("branding_title", "two\nlines"),
        ("branding_title", "bell\a"),
        ("branding_title", "x" * 121),
        ("mail_smtp_password", "pasted\u200b"),
        ("mail_smtp_password", REDACTED),
        ("auth_email_code_login_enabled", "true"),
    ],
)
def test_bad_value_is_refused(line, rt, key, value):
    before = line.json("config", "get", key)
    assert line.refuses("bad_request", "config", "set", key, value).startswith(key)
    assert line.json("config", "get", key) == before
    assert audit_rows(rt) == []


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        (" @A.example ", "a.example"),
        ("One@A.Example", "one@a.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("1.2", "1.2"),
        (".".join(["a" * 63] * 3 + ["b" * 61]), ".".join(["a" * 63] * 3 + ["b" * 61])),
    ],
)
def test_an_address_list_has_addresses_and_domains(line, typed, stored):
    key = "auth_local_email_blocklist"
    assert line.json("config", "set", key, json.dumps([typed, "", " "]))["value"] == [stored]


@pytest.mark.parametrize(
    "entry",
    [
        "nodot",
        ".a.example",
        "a.example.",
        "a..example",
        "*.a.example",
        "a_b.example",
        "-a.example",
        "bücher.example",
        "\u212aelvin.example",
        "one@bücher.example",
        "@one@a.example",
        "@@a.example",
        "one@",
        "@",
        ".".join(["a" * 63] * 3 + ["b" * 62]),
    ],
    ids=ascii,
)
def test_nothing_else_gets_into_an_address_list(line, entry):
    line.refuses("bad_request", "config", "set", "auth_local_email_allowlist", json.dumps([entry]))


def test_secret_is_read_from_standard_input_and_never_shown(line, rt):
    shown = line.json("config", "set", "mail_smtp_password", "-", stdin="open sesame\n")
    assert shown == {"key": "mail_smtp_password", "value": REDACTED}
    assert settings.secret(rt, mail_keys.MAIL_SMTP_PASSWORD) == "open sesame"
    for arguments in (("get", "mail_smtp_password"), ("list",), ("export",)):
        assert "sesame" not in line("config", *arguments).text
    [entry] = audit_rows(rt, "config_update")
    assert json.loads(entry.details) == {"value": REDACTED, "previous_value": None}
    assert line.json("config", "set", "mail_smtp_password", "")["value"] == ""


def test_template_is_read_from_standard_input(line):
    html = "<p>one</p>\n<p>{{invitation_url}}</p>\n"
    key = "mail_template_user_invitation_html"
    assert line.json("config", "set", key, "-", stdin=html)["value"] == html


def test_unset_returns_to_the_default(line, rt):
    line.json("config", "set", "branding_title", "Drive")
    shown = {"key": "branding_title", "value": "Gatehouse"}
    assert line.json("config", "unset", "branding_title") == shown
    assert line.json("config", "unset", "branding_title") == shown
    assert len(audit_rows(rt, "config_update")) == 2


def test_unset_removes_what_another_version_has_left(line, rt):
    """Otherwise `config validate` and `doctor` would complain for ever."""
    store(rt, of_another_version="7")
    ran = line("config", "validate", "--json")
    assert ran.exit_code == 1
    [problem] = json.loads(ran.stdout)["problems"]
    assert problem["key"] == "of_another_version"
    assert "unset" in problem["problem"]
    removed = line.json("config", "unset", "of_another_version")
    assert removed == {"key": "of_another_version", "value": None}
    [entry] = audit_rows(rt, "admin_delete_config")
    assert entry.entity_name == "of_another_version"
    assert line.json("config", "validate")["valid"] is True
    line.refuses("not_found", "config", "unset", "of_another_version")


@pytest.mark.parametrize("command", ["unset", "set", "import"])
def test_a_setting_that_changes_with_another_is_told(line, rt, command):
    configure(rt, mail_smtp_host="mail.example", mail_from_address="a@mail.example")
    line.json("config", "set", "auth_email_code_login_enabled", "true")
    runs = {
        "unset": lambda: line("config", "unset", "mail_smtp_host"),
        "set": lambda: line("config", "set", "mail_smtp_host", ""),
        "import": lambda: line("config", "import", "-", stdin='{"mail_smtp_host": ""}'),
    }
    first, second = runs[command]().text.splitlines()
    assert first.strip() in {"mail_smtp_host =", "1 setting was applied"}
    assert second == "auth_email_code_login_enabled = false"


def test_list_shows_every_key(line):
    line.json("config", "set", "branding_title", "Drive")
    listed = {entry["key"]: entry for entry in line.json("config", "list")}
    assert set(listed) == set(keys.ALL)
    entry = listed["branding_title"]
    assert (entry["value"], entry["default"], entry["is_set"]) == ("Drive", "Gatehouse", True)
    assert listed["mail_smtp_password"]["is_sensitive"]
    assert listed["auth_mfa_flow_ttl_secs"]["updated_at"] is None
    assert "branding_title" in line("config", "list").text


# --- what a setting means ---------------------------------------------------------------------


def test_every_setting_says_what_it_means_and_takes(line):
    described = {entry["key"]: entry["description"] for entry in line.json("config", "describe")}
    assert set(described) == set(keys.ALL)
    assert described == {e["key"]: e["description"] for e in line.json("config", "list")}
    for name, key in keys.ALL.items():
        assert key.meaning[0].isupper(), name
        assert not key.meaning.endswith("."), name
        assert key.takes in described[name], name
        assert len(described[name]) <= 512, name


def test_numbers_tell_their_unit_and_bounds(line):
    described = {entry["key"]: entry["description"] for entry in line.json("config", "describe")}
    assert described["auth_access_token_ttl_secs"].endswith("(1 to 86400 seconds)")
    assert described["team_archive_retention_days"].endswith("(0 to 36500 days)")
    assert described["default_storage_quota"].endswith(
        "(0 or more bytes, or with a unit such as MB or MiB)"
    )
    for name, text in described.items():
        if name.endswith("_secs"):
            assert text.endswith("seconds)"), name


def test_get_tells_people_what_a_setting_means_and_scripts_the_value_alone(line):
    ran = line("config", "get", "auth_access_token_ttl_secs")
    assert ran.text == "auth_access_token_ttl_secs = 900"
    assert "1 to 86400 seconds" in ran.stderr
    assert "default: 900" in ran.stderr


def test_describe_tells_of_one(line):
    text = line("config", "describe", "mail_smtp_port").text
    assert text.startswith("mail_smtp_port (default: 587)")
    shown = line.json("config", "describe", "mail_smtp_port")
    assert (shown["key"], shown["default"], shown["value_type"]) == (
        "mail_smtp_port",
        "587",
        "number",
    )
    line.refuses("not_found", "config", "describe", "nope")
    assert "user_logout" in line("config", "describe", "audit_log_recorded_actions").text
    assert line("config", "describe", "mail_smtp_port", "--markdown").exit_code == 2


def test_a_list_of_given_words_is_told_from_one_of_any_texts(line):
    """The types `string_enum_set` and `string_array`."""
    types = {each["key"]: each["value_type"] for each in line.json("config", "list")}
    assert types["audit_log_recorded_actions"] == "string_enum_set"
    assert types["public_site_url"] == types["cors_allowed_origins"] == "string_array"


def test_the_page_about_settings_is_what_the_command_prints(line):
    page = (servers.ROOT / "docs" / "settings.md").read_text()
    assert line("config", "describe", "--markdown").stdout == page
    rows = [row.split("`")[1] for row in page.splitlines() if row.startswith("| `")]
    assert sorted(rows) == sorted(keys.ALL)


@pytest.mark.parametrize("key", ["public_site_url", "auth_local_email_allowlist"])
def test_who_writes_no_list_is_shown_one(line, key):
    refusal = line.refuses("bad_request", "config", "set", key, "example.com")
    example = refusal.partition("such as ")[2].partition(". Did you mean")[0]
    assert line.json("config", "set", key, example)["value"] == sorted(json.loads(example))


# --- settings that contradict each other ------------------------------------------------------

ANY_PAGE = ("cors_allowed_origins", '["*"]')
WITH_CREDENTIALS = ("cors_allow_credentials", "true")


@pytest.mark.parametrize(
    ("first", "second"), [(ANY_PAGE, WITH_CREDENTIALS), (WITH_CREDENTIALS, ANY_PAGE)]
)
@pytest.mark.parametrize("enabled", ["true", "false"])
def test_every_page_with_credentials_is_refused_in_either_order(line, first, second, enabled):
    line.json("config", "set", "cors_enabled", enabled)
    line.json("config", "set", *first)
    before = line.json("config", "get", second[0])
    assert "cors_allowed_origins" in line.refuses("bad_request", "config", "set", *second)
    assert line.json("config", "get", second[0]) == before


def test_every_page_beside_a_single_one_is_refused(line):
    mixed = '["*", "https://a.example"]'
    line.refuses("bad_request", "config", "set", "cors_allowed_origins", mixed)
    both = '{"cors_allowed_origins": ["*"], "cors_allow_credentials": true}'
    line.refuses("bad_request", "config", "import", "-", stdin=both)
    assert line.json("config", "get", "cors_allowed_origins")["value"] == []


def test_a_contradiction_is_resolved_by_one_import(line):
    line.json("config", "set", *ANY_PAGE)
    both = '{"cors_allowed_origins": ["https://a.example"], "cors_allow_credentials": true}'
    line.json("config", "import", "-", stdin=both)
    assert line.json("config", "get", "cors_allow_credentials")["value"] == "true"


# --- validate --------------------------------------------------------------------------------


def test_fresh_settings_are_valid(line, rt):
    configure(rt, mail_smtp_password="open sesame", public_site_url=["https://a.example"])
    assert line.json("config", "validate") == {"valid": True, "problems": []}
    assert line("config", "validate").text == "all settings are valid"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("auth_access_token_ttl_secs", "soon"),
        ("auth_local_email_allowlist", '["not a domain"]'),
        ("auth_local_email_allowlist", "not JSON"),
        ("auth_local_email_allowlist", "[" * 100_000),
        ("mail_smtp_password", "v1:gone:AAAA:AAAA"),
        ("mail_smtp_password", "in clear"),
        ("of_another_version", "1"),
        ("auth_email_code_login_enabled", "true"),
        ("cors_allowed_origins", '["*", "https://a.example"]'),
    ],
)
def test_bad_row_is_found(line, rt, key, text):
    store(rt, **{key: text})
    ran = line("config", "validate", "--json")
    found = json.loads(ran.stdout)
    assert (ran.exit_code, found["valid"]) == (1, False)
    assert [problem["key"] for problem in found["problems"]] == [key]
    human = line("config", "validate")
    assert human.exit_code == 1
    assert human.stdout.startswith(f"{key}: ")


def test_closed_installation_is_found(line, rt):
    store(rt, auth_password_login_enabled="false", auth_passkey_login_enabled="false")
    assert line("config", "validate").exit_code == 1


# --- export and import -----------------------------------------------------------------------


def test_export_leaves_out_what_cannot_be_read(line, rt):
    configure(rt, auth_access_token_ttl_secs=60, auth_refresh_token_ttl_secs=600)
    before = line.json("config", "export")
    with rt.transaction() as session:
        broken = SystemConfig.key == "auth_access_token_ttl_secs"
        session.execute(sa.update(SystemConfig).where(broken).values(value="garbage"))
    after = line.json("config", "export")
    assert before == {**after, "auth_access_token_ttl_secs": "60"}


def test_export_can_be_imported_elsewhere(line, rt):
    configure(
        rt,
        branding_title="Drive",
        auth_local_email_allowlist=["a.example"],
        auth_access_token_ttl_secs=60,
        mail_smtp_password="open sesame",
    )
    exported = line("config", "export").text
    assert json.loads(exported) == {
        "auth_access_token_ttl_secs": "60",
        "auth_cookie_secure": "false",
        "auth_local_email_allowlist": ["a.example"],
        "branding_title": "Drive",
    }
    with rt.transaction() as session:
        session.execute(sa.delete(SystemConfig))
    applied = line.json("config", "import", "-", stdin=exported)
    assert {"key": "branding_title", "value": "Drive"} in applied
    assert line.json("config", "export") == json.loads(exported)


def test_import_takes_a_file_and_json_values(line, tmp_path):
    file = tmp_path / "settings.json"
    file.write_text('{"auth_access_token_ttl_secs": 60, "auth_allow_user_registration": false}')
    assert line("config", "import", str(file)).text == "2 settings were applied"
    assert line.json("config", "get", "auth_allow_user_registration")["value"] == "false"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("bad_request", "{"),
        ("bad_request", "[]"),
        ("bad_request", '{"branding_title": null}'),
        ("bad_request", '{"branding_title": "\\ud800"}'),
        ("bad_request", '{"public_site_url": {"a": 1}}'),
        ("not_found", '{"nope": 1}'),
        ("bad_request", '{"auth_password_login_enabled": 0, "auth_passkey_login_enabled": 0}'),
    ],
)
def test_import_is_all_or_nothing(line, rt, code, text):
    if text.endswith("}") and len(text) > 2:
        text = text.replace("{", '{"branding_description": "changed", ', 1)
    line.refuses(code, "config", "import", "-", stdin=text)
    assert line.json("config", "get", "branding_description")["value"] == ""
    assert audit_rows(rt) == []


def test_missing_file_is_bad_usage(line):
    assert line("config", "import", "/nowhere.json").exit_code == 2
