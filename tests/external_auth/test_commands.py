"""`flask external-auth`."""

import json
import logging

import pytest
import sqlalchemy as sa

from app.crypto.secret_box import SecretUnreadable
from app.external_auth.drivers.openid import OpenIdDriver
from app.external_auth.models import Identity, PendingIdentity, Provider
from app.external_auth.providers import service as providers
from tests.support.commands import CommandLine
from tests.support.external import (
    add_provider,
    asks_for_address,
    change_provider,
    delete_provider,
    fails,
    link,
    sign_in,
    wait_for_account,
)
from tests.support.factories import audit_rows, configure, count
from tests.support.fake_provider import SUBJECT

SECRET = "the client's secret"
HUB = ("add", "github", "--key", "hub", "--name", "Hub", "--client-id", "id")
OIDC = ("add", "oidc", "--key", "corp", "--name", "Corporate", "--client-id", "id")
MICROSOFT = "https://login.microsoftonline.com"
ISSUER = ("--issuer-url", "https://id.example.com")
GENERIC = ("add", "generic_oauth2", "--key", "any", "--name", "Any", "--client-id", "id")
URLS = {
    "--authorization-url": "https://id.example.com/authorize",
    "--token-url": "https://id.example.com/token",
    "--userinfo-url": "https://id.example.com/userinfo",
}
CLAIMS = (
    "subject_claim",
    "username_claim",
    "display_name_claim",
    "email_claim",
    "email_verified_claim",
)
ENDPOINTS = tuple(word for pair in URLS.items() for word in pair)


@pytest.fixture
def run(line):
    """Run a command of the group; insist on a success."""
    return lambda *words, **options: line.json("external-auth", *words, **options)


@pytest.fixture
def refused(line):
    """Run a command of the group; insist on this refusal."""
    return lambda code, *words: line.refuses(code, "external-auth", *words)


def stored(rt, key, name):
    with rt.reading() as connection:
        column = getattr(Provider, name)
        statement = sa.select(column).where(Provider.key == key)
        return connection.execute(statement).scalar_one()


# --- add --------------------------------------------------------------------------------------


def test_who_adds_a_provider_is_told_what_to_register_there(line, run):
    path = "/api/v1/auth/external-auth/callback"
    line.json("config", "unset", "public_site_url")
    assert "public_site_url" in line("external-auth", *OIDC, *ISSUER).stderr
    sites = ["https://files.example.com", "https://other.example.com"]
    line.json("config", "set", "public_site_url", json.dumps(sites))
    title, *rest = line("external-auth", *HUB).stderr.splitlines()
    assert title.startswith("Register at the provider")
    assert rest == [site + path for site in sites]
    line.json("config", "set", "public_site_url", '["http://localhost:8000"]')
    told = line("external-auth", "add", "qq", "--key", "qq", "--client-id", "id").stderr
    _, address, hint = told.splitlines()
    assert address == "http://localhost:8000" + path
    assert "Only browsers on this machine" in hint


def test_a_complaint_names_the_option_where_the_field_is_called_otherwise(line):
    for words, told in [
        (("add", "oidc"), "display_name (--name) must not be empty"),
        (("add", "oidc", "--name", "x"), "issuer_url must not be empty for the kind oidc"),
        (
            ("add", "github", "--tenant", "x"),
            "tenant cannot be set for the kind github",
        ),
        (
            ("add", "qq", "--allowed-domain", "x y"),
            "allowed_domains (--allowed-domain) must name domains such as",
        ),
    ]:
        ran = line("external-auth", *words, "--key", "key", "--client-id", "id")
        assert ran.complains().startswith(f"Error: {told}")


def test_an_update_without_a_change_says_so(line, run):
    run(*HUB)
    assert "github/hub is unchanged" in line("external-auth", "update", "hub").text


def test_a_misspelt_provider_is_told_which_may_be_meant(run, refused):
    run(*HUB)
    told = refused("not_found", "disable", "hubb")
    assert told == "There is no provider hubb. Did you mean hub?"


def test_a_provider_with_everything_left_out(rt, run):
    assert run(*OIDC, *ISSUER) == {
        "id": 1,
        "key": "corp",
        "provider_kind": "oidc",
        "protocol": "oidc",
        "display_name": "Corporate",
        "icon_url": None,
        "options": {},
        "issuer_url": "https://id.example.com",
        "authorization_url": None,
        "token_url": None,
        "userinfo_url": None,
        "client_id": "id",
        "client_secret": None,
        "client_secret_configured": False,
        "token_auth": "auto",
        "scopes": "openid profile email",
        "enabled": True,
        "auto_provision_enabled": False,
        "auto_link_verified_email_enabled": False,
        "require_email_verified": True,
        **dict.fromkeys(CLAIMS),
        "allowed_domains": [],
        "created_at": "2026-03-02T09:30:00Z",
        "updated_at": "2026-03-02T09:30:00Z",
    }
    [entry] = audit_rows(rt, "admin_create_external_auth_provider")
    assert (entry.user_id, entry.entity_type) == (0, "external_auth_provider")
    assert (entry.entity_id, entry.entity_name) == (1, "corp")
    assert json.loads(entry.details) == {
        "key": "corp",
        "icon_url": None,
        "issuer_url": "https://id.example.com",
        "enabled": True,
        "auto_provision_enabled": False,
        "auto_link_verified_email_enabled": False,
        "require_email_verified": True,
    }


def test_a_provider_with_everything_given(rt, run):
    claims = [f"--{name.replace('_', '-')}" for name in CLAIMS]
    made = run(
        *GENERIC,
        *ENDPOINTS,
        *ISSUER,
        *("--scopes", " a  b a "),
        *("--icon-url", "/icons/any.svg"),
        *("--auto-provision", "--auto-link", "--no-require-email-verified", "--disabled"),
        *("--allowed-domain", " @Example.COM ", "--allowed-domain", "example.com"),
        *("--allowed-domain", "sub.example.com"),
        *(word for claim in claims for word in (claim, f" /{claim} ")),
        *("--client-secret", SECRET),
    )
    assert made["scopes"] == "a b"
    assert made["icon_url"] == "/icons/any.svg"
    assert made["allowed_domains"] == ["example.com", "sub.example.com"]
    assert {made[name] for name in ("enabled", "require_email_verified")} == {False}
    assert made["auto_provision_enabled"] is made["auto_link_verified_email_enabled"] is True
    assert [made[name] for name in CLAIMS] == [f"/{claim}" for claim in claims]
    assert made["token_url"] == URLS["--token-url"]
    assert (made["client_secret"], made["client_secret_configured"]) == ("***REDACTED***", True)


def test_how_the_secret_is_sent_can_be_chosen(run, line, refused):
    assert run(*OIDC, *ISSUER, "--token-auth", "post")["token_auth"] == "post"
    assert run("update", "corp", "--name", "x")["token_auth"] == "post"
    assert run("update", "corp", "--token-auth", "auto")["token_auth"] == "auto"
    assert run(*GENERIC, *ENDPOINTS, "--token-auth", "basic")["token_auth"] == "basic"
    assert line("external-auth", "update", "corp", "--token-auth", "jwt").exit_code == 2
    assert "token_auth" in refused("bad_request", *HUB, "--token-auth", "basic")
    assert run(*HUB)["token_auth"] is None


# --- what somebody changed in the database -------------------------------------------------------


@pytest.fixture
def broken(rt):
    """Overwrite a column of text of every provider."""

    def overwrite(column, value):
        with rt.transaction() as session:
            session.execute(
                sa.text(f"UPDATE external_auth_providers SET {column} = :x"), {"x": value}
            )

    return overwrite


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "5", '{"microsoft": "x"}', '{"microsoft": {"tenant": 5}}']
)
def test_options_that_cannot_be_read_open_no_tenant(rt, api, run, line, refused, broken, text):
    run("add", "microsoft", "--key", "ms", "--client-id", "id", "--tenant", "organizations")
    broken("options", text)
    assert [one["key"] for one in api.get("/auth/external-auth/providers").ok()] == ["ms"]
    api.post("/auth/external-auth/microsoft/ms/start", {}).fails(400, "bad_request")
    assert [one["options"] for one in run("list")] == [{}]
    assert "set the tenant again" in refused("bad_request", "test", "ms")
    assert run("update", "ms", "--tenant", "consumers")["options"]["microsoft"]


@pytest.mark.parametrize("text", ["x", "[]", "null"])
def test_options_of_other_kinds_do_not_matter(api, run, fake, corp, broken, text):
    broken("options", text)
    assert run("list")[0]["options"] == {}
    run("test", "corp")
    api.post("/auth/external-auth/oidc/corp/start", {}).ok()


@pytest.mark.parametrize("text", ["", "example.com", "{}", '"example.com"'])
def test_domains_that_cannot_be_read_take_nobody_new(rt, api, admin, fake, corp, broken, text):
    change_provider(rt, corp, auto_provision_enabled=True)
    broken("allowed_domains", text)
    fails(sign_in(api, fake), "external_auth.policy_denied")


def test_wrong_usage_is_told_apart(line):
    assert line("external-auth", "add", "saml", "--key", "x1", "--client-id", "x").exit_code == 2
    assert line("external-auth", "add", "github", "--client-id", "x").exit_code == 2
    assert line("external-auth", "add", "github", "--key", "x1").exit_code == 2


# --- secrets ------------------------------------------------------------------------------------


def test_a_secret_comes_from_standard_input_or_the_environment(rt, run, monkeypatch):
    def secret(key):
        return rt.secret_box.open(
            stored(rt, key, "client_secret"), f"external_auth_provider:github:{key}"
        )

    run(*HUB, "--client-secret", "-", stdin=f"{SECRET}\n")
    assert secret("hub") == SECRET
    monkeypatch.setenv("GATEHOUSE_CLIENT_SECRET", "from the environment")
    run("add", "github", "--key", "hub2", "--client-id", "x")
    assert secret("hub2") == "from the environment"
    run("update", "hub", "--name", "Hub")
    assert secret("hub") == SECRET, "the secret of another provider"
    run("update", "hub", "--client-secret", "-", stdin="new\n")
    assert secret("hub") == "new"


def test_a_secret_is_never_shown_kept_or_logged_in_clear(rt, line, caplog):
    logging.getLogger().addHandler(caplog.handler)
    caplog.set_level(logging.DEBUG)
    told = ""
    for words in (
        (*HUB, "--client-secret", SECRET),
        ("list",),
        ("update", "hub", "--name", "Hub 2"),
        ("disable", "hub"),
        ("enable", "hub"),
        ("test", "hub"),
    ):
        for more in ((), ("--json",)) if words[0] in {"list", "test"} else (("--json",),):
            ran = line("external-auth", *words, *more)
            told += ran.stdout + ran.stderr
    told += str(audit_rows(rt)) + caplog.text
    logging.getLogger().removeHandler(caplog.handler)
    with rt.reading() as connection:
        told += str(connection.execute(sa.select(Provider.__table__.columns)).all())
    assert "Hub 2" in told
    assert SECRET not in told


@pytest.mark.both_databases
def test_a_secret_opens_in_its_own_row_only(rt, run):
    run(*HUB, "--client-secret", SECRET)
    sealed = stored(rt, "hub", "client_secret")
    for row in ("external_auth_provider:github:other", "external_auth_provider:oidc:hub", "hub"):
        with pytest.raises(SecretUnreadable):
            rt.secret_box.open(sealed, row)


def test_blanks_and_the_placeholder_are_no_secret_of_a_new_provider(run):
    for key, typed in (("one", "  "), ("two", "***REDACTED***")):
        made = run("add", "github", "--key", key, "--client-id", "id", "--client-secret", typed)
        assert not made["client_secret_configured"], typed


def test_keys_rotate_and_the_secret_still_works(make_app, rt, fake, admin):
    app = make_app(secret_keys=())
    theirs = app.extensions["gatehouse"]
    provider = add_provider(theirs, fake)
    line = CommandLine(app)
    assert line.json("keys", "rotate")["resealed"] == 1
    sealed = stored(theirs, provider.key, "client_secret")
    assert theirs.secret_box.is_current(sealed)
    assert theirs.secret_box.open(sealed, "external_auth_provider:oidc:corp") == fake.client_secret


# --- list, kinds ---------------------------------------------------------------------------------


def test_providers_are_listed_by_name(run, line):
    assert run("list") == []
    run(*HUB)
    run(*OIDC, *ISSUER, "--disabled")
    assert [item["key"] for item in run("list")] == ["corp", "hub"]
    text = line("external-auth", "list").text
    assert text.splitlines()[1].split() == ["corp", "oidc", "Corporate", "no"]


def test_kinds(run):
    kinds = {item["kind"]: item for item in run("kinds")}
    assert list(kinds) == ["generic_oauth2", "github", "google", "microsoft", "oidc", "qq"]
    assert kinds["microsoft"]["create_defaults"] == {
        "display_name": "Microsoft",
        "options": {"microsoft": {"tenant": "common"}},
        "scopes": "openid profile email",
        "enabled": True,
        "auto_provision_enabled": False,
        "auto_link_verified_email_enabled": False,
        "require_email_verified": False,
    }
    facts = {
        kind: "".join(
            "TF"[not item[name]]
            for name in (
                "issuer_url_supported",
                "issuer_url_required",
                "manual_endpoint_configuration_supported",
                "authorization_url_required",
                "token_url_required",
                "userinfo_url_required",
                "supports_discovery",
                "supports_pkce",
                "supports_email_verified_claim",
            )
        )
        for kind, item in kinds.items()
    }
    assert facts == {
        "generic_oauth2": "TFTTTTFTT",
        "github": "FFFFFFFTF",
        "google": "FFFFFFTTT",
        "microsoft": "FFFFFFTTF",
        "oidc": "TTFFFFTTT",
        "qq": "FFFFFFFTF",
    }


# --- update, enable, disable ---------------------------------------------------------------------


def test_an_empty_text_clears(run, refused):
    run(*GENERIC, *ENDPOINTS, *ISSUER, "--icon-url", "/i", "--email-claim", "mail")
    run("update", "any", "--allowed-domain", "a.example")
    words = ("--icon-url", "", "--issuer-url", "", "--email-claim", " ", "--allowed-domain", "")
    after = run("update", "any", *words)
    assert after["icon_url"] is after["issuer_url"] is after["email_claim"] is None
    assert after["allowed_domains"] == []
    for name in URLS:
        refused("bad_request", "update", "any", name, "")
    refused("bad_request", "update", "any", "--name", " ")


def test_a_new_tenant_takes_the_place_of_a_stored_issuer(rt, run):
    provider = add_provider(rt, kind="microsoft", key="ms")
    change_provider(rt, provider, options={}, issuer_url="https://legacy.example")
    [before] = run("list")
    assert (before["options"], before["issuer_url"]) == ({}, "https://legacy.example")
    after = run("update", "ms", "--tenant", "consumers")
    assert (after["options"]["microsoft"]["tenant"], after["issuer_url"]) == ("consumers", None)
    assert stored(rt, "ms", "issuer_url") is None


@pytest.mark.parametrize(
    ("issuer", "options", "shown"),
    [
        (f"{MICROSOFT}/organizations/v2.0", {"microsoft": {"tenant": "organizations"}}, None),
        (f"{MICROSOFT}/contoso.com/v2.0", {}, f"{MICROSOFT}/contoso.com/v2.0"),
        ("https://a.example/common/v2.0", {}, "https://a.example/common/v2.0"),
        ("https://[", {}, "https://["),
    ],
)
def test_a_stored_microsoft_issuer_is_shown_as_its_tenant_where_it_names_one(
    rt, run, issuer, options, shown
):
    """Only one that cannot be read as a tenant is shown as it is."""
    provider = add_provider(rt, kind="microsoft", key="ms")
    change_provider(rt, provider, options={}, issuer_url=issuer)
    [found] = run("list")
    assert (found["options"], found["issuer_url"]) == (options, shown)


def test_addresses_in_place_of_fixed_ones_are_not_shown(rt, run):
    """The hook of tests is neither set nor seen through an interface."""
    provider = add_provider(rt, kind="github", key="hub")
    change_provider(rt, provider, authorization_url="http://127.0.0.1:1", issuer_url="http://x")
    [shown] = run("list")
    assert shown["authorization_url"] is shown["issuer_url"] is None


@pytest.mark.parametrize(
    "command", [("update",), ("enable",), ("disable",), ("test",), ("remove", "--yes")]
)
def test_naming_a_provider(run, refused, command):
    run(*HUB)
    run(*OIDC[:3], "hub", *OIDC[4:], *ISSUER)
    assert "KIND/KEY" in refused("conflict", *command, "hub")
    refused("not_found", *command, "other")
    refused("not_found", *command, "qq/hub")
    refused("not_found", *command, "saml/hub")
    refused("bad_request", *command, "-")
    run(*command, "github/hub")


# --- remove --------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_remove_takes_links_and_waiting_identities_along(rt, run, user):
    run(*OIDC, *ISSUER)
    provider = add_provider(rt, key="other")
    link(rt, user, provider)
    wait_for_account(rt, provider)
    removed = run("remove", "--yes", "other")
    assert removed["key"] == "other"
    assert count(rt, Identity) == count(rt, PendingIdentity) == 0
    assert [item["key"] for item in run("list")] == ["corp"]
    [entry] = audit_rows(rt, "admin_delete_external_auth_provider")
    assert (entry.entity_id, entry.entity_name) == (removed["id"], "other")


# --- the last way in -----------------------------------------------------------------------------


@pytest.mark.parametrize("last", ["auth_password_login_enabled", "auth_passkey_login_enabled"])
def test_the_last_built_in_way_stays_without_a_provider(rt, line, run, last):
    run(*HUB, "--disabled")
    [other] = {"auth_password_login_enabled", "auth_passkey_login_enabled"} - {last}
    configure(rt, **{other: False})
    line.refuses("bad_request", "config", "set", last, "false")
    run("enable", "hub")
    line.json("config", "set", last, "false")


# --- test ----------------------------------------------------------------------------------------


def test_a_test_works_for_disabled_providers(run, fake, corp):
    run("disable", "corp")
    run("test", "corp")


def test_a_test_says_that_a_client_secret_cannot_be_read(rt, refused, fake, corp, caplog):
    change_provider(rt, corp, client_secret="v1:gone:AAAA:AAAA")
    caplog.set_level(logging.WARNING)
    logging.getLogger().addHandler(caplog.handler)
    assert "the client secret cannot be decrypted" in refused("config.error", "test", "corp")
    logging.getLogger().removeHandler(caplog.handler)
    assert "external provider corp (oidc): the client secret cannot be decrypted" in caplog.text


def test_a_test_of_a_provider_that_is_removed_meanwhile(rt, refused, fake, corp, monkeypatch):
    real = OpenIdDriver.test

    def test(driver):
        result = real(driver)
        delete_provider(rt, corp)
        return result

    monkeypatch.setattr(OpenIdDriver, "test", test)
    refused("not_found", "test", "corp")
    assert audit_rows(rt, "admin_test_external_auth_provider") == []


# --- whose people they are -----------------------------------------------------------------------


@pytest.fixture
def notes(line):
    """Run a command of the group as a person does; return what it remarks."""

    def run(*words):
        first, *rest = line("external-auth", *words).text.split("\n")
        assert first.endswith((" was added", " was changed"))
        assert all(remark.startswith("Note: ") for remark in rest)
        return [remark.removeprefix("Note: ") for remark in rest]

    return run


def test_what_is_known_by_an_issuer_of_its_own_is_not_remarked_on(notes):
    assert notes(*OIDC, *ISSUER) == []
    assert notes(*HUB) == []
    assert notes("add", "qq", "--key", "qq", "--client-id", "id") == []
    assert notes("add", "microsoft", "--key", "ms", "--client-id", "id") == []
    assert notes(*GENERIC, *ENDPOINTS, "--issuer-url", "https://id.example.com/tenant") == []


def test_a_provider_without_issuer_is_known_by_its_origin(rt, notes, user):
    [remark] = notes(*GENERIC, *ENDPOINTS)
    assert "by https://id.example.com." in remark
    assert "set the issuer URL now" in remark
    # With links it is too late for the advice.
    provider = providers.list_all(rt)[0]
    assert len(notes("update", "any", "--name", "New")) == 1
    link(rt, user, provider)
    assert notes("update", "any", "--name", "New") == []


def test_providers_that_have_their_people_in_common(run, notes):
    """Subjects of two tenants at one address would be the same people."""
    run(*GENERIC, *ENDPOINTS)
    second = ("add", "generic_oauth2", "--key", "two", "--name", "Two", "--client-id", "id")
    remarks = notes(*second, *ENDPOINTS)
    assert "generic_oauth2/any also identifies people by https://id.example.com" in remarks[0]
    assert len(remarks) == 2
    assert notes("update", "two", *ISSUER[:1], "https://id.example.com/two") == []
    # What OpenID Connect signs, another can only claim.
    [remark] = notes(*OIDC, *ISSUER)
    assert remark.startswith("generic_oauth2/any also identifies people")
    # Two clients of one issuer are told the truth about the same people.
    run("remove", "--yes", "any")
    assert notes("add", "oidc", "--key", "more", "--name", "x", "--client-id", "y", *ISSUER) == []


@pytest.mark.both_databases
def test_links_of_another_issuer_than_now_sign_nobody_in(rt, api, run, line, notes, fake, user):
    run("add", "oidc", "--key", "corp", "--name", "Corp", "--client-id", "id", *ISSUER)
    [provider] = providers.list_all(rt)
    link(rt, user, provider, identity_namespace="https://id.example.com/", subject=SUBJECT)
    assert notes("update", "corp", "--name", "Corporate") == []
    assert finding(line)[0] == "ok"
    [remark] = notes("update", "corp", "--issuer-url", fake.issuer)
    assert remark == (
        "Links that sign nobody in because no enabled provider has their issuer:"
        " https://id.example.com/ (1)."
    )
    change_provider(rt, provider, client_id=fake.client_id)
    asks_for_address(sign_in(api, fake))
    assert finding(line) == ("warn", f"oidc/corp: {remark}")
    run("disable", "corp")
    assert finding(line)[0] == "ok"


# --- doctor --------------------------------------------------------------------------------------


def finding(line):
    checks = json.loads(line("doctor", "--json").stdout)["checks"]
    [found] = [check for check in checks if check["check"] == "external sign-in"]
    return found["level"], f"{found['message']} {found['remedy']}".rstrip()


def test_doctor_tells_whether_providers_can_be_used(rt, run, line):
    assert finding(line) == ("ok", "No provider is enabled.")
    run(*HUB, "--client-secret", SECRET)
    run(*OIDC, *ISSUER, "--disabled")
    assert finding(line) == ("ok", "Hub. Try them with `flask external-auth test KEY`.")
    configure(rt, public_site_url=[])
    level, message = finding(line)
    assert level == "warn"
    assert "public_site_url" in message
    provider = next(p for p in providers.list_all(rt) if p.key == "hub")
    change_provider(rt, provider, client_secret="v1:gone:AAAA:AAAA")
    level, message = finding(line)
    assert level == "fail"
    assert "external-auth update KEY --client-secret -" in message


@pytest.mark.parametrize("key", ["auth_local_email_allowlist", "auth_local_email_blocklist"])
def test_doctor_warns_that_lists_of_addresses_are_not_for_providers(rt, line, user, key):
    provider = add_provider(rt, auto_provision_enabled=True)
    assert finding(line)[0] == "ok"
    configure(rt, **{key: ["example.com"]})
    level, message = finding(line)
    assert (level, key in message, "oidc/corp" in message) == ("warn", True, True)
    for columns in (
        {"allowed_domains": ["example.com"]},
        {"allowed_domains": None, "auto_provision_enabled": False},
        {"auto_provision_enabled": True, "enabled": False},
    ):
        change_provider(rt, provider, **columns)
        assert finding(line)[0] == "ok"


def test_doctor_tells_all_that_is_wrong_with_providers(make_app, rt, user):
    """No warning hides another one."""
    provider = add_provider(rt)
    link(rt, user, provider, identity_namespace="https://former.example")
    configure(rt, public_site_url=[])
    level, message = finding(CommandLine(make_app(allow_loopback_http=True)))
    assert level == "warn"
    for part in ("Links that sign nobody in", "public_site_url", "GATEHOUSE_ALLOW_LOOPBACK_HTTP"):
        assert part in message
