"""/admin/external-auth."""

import json
import uuid

import pytest

from app.core.access import COMMAND_LINE
from app.external_auth.models import Identity, Provider
from app.external_auth.providers import service
from app.external_auth.providers.schemas import SCHEMAS
from tests.support import outbox
from tests.support.api import ApiClient
from tests.support.external import change_provider
from tests.support.factories import (
    add_passkeys,
    audit_rows,
    bearer_of,
    change_user,
    configure,
    count,
    make_user,
)
from tests.support.races import run_concurrently

ROOT = "/admin/external-auth"
PROVIDERS = f"{ROOT}/providers"
SECRET = "client-secret-4711"
GITHUB = {"provider_kind": "github", "display_name": "Hub", "client_id": "files"}
URLS = {
    "authorization_url": "https://login.example.org/a",
    "token_url": "https://login.example.org/t",
    "userinfo_url": "https://login.example.org/u",
}
MICROSOFT = {"provider_kind": "microsoft", "display_name": "Work", "client_id": "files"}


@pytest.fixture
def path(boss):
    return f"{PROVIDERS}/{boss.post(PROVIDERS, {**GITHUB, 'client_secret': SECRET}).ok(201)['id']}"


def link(rt, provider_id, *users, namespace="https://github.com"):
    with rt.transaction() as session:
        for user in users:
            now = rt.clock.now()
            row = Identity(
                user_id=user.id,
                provider_id=provider_id,
                identity_namespace=namespace,
                subject=f"s{user.id}",
                created_at=now,
                updated_at=now,
                last_login_at=now,
            )
            session.add(row)


def id_of(path):
    return int(path.rpartition("/")[2])


def test_a_provider_is_set_up_and_shown(boss, admin, rt):
    made = boss.post(PROVIDERS, {**GITHUB, "client_secret": SECRET, "unknown": 1}).ok(201)
    assert uuid.UUID(made["key"]).version == 4
    assert made == {
        **made,
        "provider_kind": "github",
        "protocol": "oauth2",
        "display_name": "Hub",
        "icon_url": None,
        "options": {},
        "issuer_url": None,
        "client_id": "files",
        "client_secret": "***REDACTED***",
        "client_secret_configured": True,
        "enabled": True,
        "auto_provision_enabled": False,
        "allowed_domains": [],
        "redirect_uri": "http://localhost/api/v1/auth/external-auth/callback",
        "links": 0,
        "last_sign_in_at": None,
        "is_secret_readable": True,
        "created_at": "2026-03-02T09:30:00Z",
    }
    assert boss.get(f"{PROVIDERS}/{made['id']}").ok() == made
    assert boss.get(PROVIDERS).ok()["items"] == [made]
    [row] = audit_rows(rt, "admin_create_external_auth_provider")
    assert (row.user_id, row.entity_id, row.ip_address) == (admin.id, made["id"], "127.0.0.1")
    assert SECRET not in json.dumps(made) + row.details


def test_a_key_may_be_chosen_and_is_taken_once(boss):
    assert boss.post(PROVIDERS, {**GITHUB, "key": " Hub-1 "}).ok(201)["key"] == "hub-1"
    boss.post(PROVIDERS, {**GITHUB, "key": "hub-1"}).fails(409, "conflict")
    boss.post(PROVIDERS, {**GITHUB, "key": "no key"}).fails(400, "bad_request")


@pytest.mark.parametrize(
    "wrong",
    [
        {"provider_kind": "myspace"},
        {"provider_kind": None},
        {"key": "new"},
        {"display_name": " "},
        {"client_id": None},
        {"enabled": "yes"},
        {"options": {"microsoft": {"tenant": "common"}}},
        {"options": {"microsoft": "common"}},
        {"issuer_url": "https://github.com"},
        {"allowed_domains": ["nodots"]},
        {"allowed_domains": [7]},
        {"icon_url": "//evil.example"},
        {"scopes": ["user"]},
        {"client_secret": "x" * 5000},
    ],
)
def test_what_breaks_a_rule_is_refused(boss, rt, wrong):
    boss.post(PROVIDERS, GITHUB | wrong).fails(400, "bad_request")
    assert count(rt, Provider) == 0


def test_every_field_is_stored(boss):
    whole = {
        "provider_kind": "generic_oauth2",
        "display_name": "Own",
        "client_id": "files",
        "issuer_url": "https://login.example.org/",
        **URLS,
        "token_auth": "basic",
        "icon_url": "/own.svg",
        "scopes": "b a b",
        "enabled": False,
        "auto_provision_enabled": True,
        "auto_link_verified_email_enabled": True,
        "require_email_verified": False,
        "subject_claim": "uid",
        "allowed_domains": ["@Example.org", "example.org"],
    }
    made = boss.post(PROVIDERS, whole).ok(201)
    kept = {
        **whole,
        "issuer_url": "https://login.example.org",
        "scopes": "b a",
        "allowed_domains": ["example.org"],
    }
    assert {name: made[name] for name in kept} == kept


@pytest.mark.both_databases
def test_a_change_is_all_or_nothing_and_one_entry(boss, admin, rt, path):
    wanted = {"display_name": "Git", "icon_url": "/git.svg", "allowed_domains": ["example.org"]}
    boss.patch(path, {**wanted, "scopes": "x" * 3000}).fails(400, "bad_request")
    assert boss.get(path).ok()["display_name"] == "Hub"
    changed = boss.patch(path, wanted).ok()
    assert {name: changed[name] for name in wanted} == wanted
    assert boss.patch(path, wanted).ok() == changed
    [row] = audit_rows(rt, "admin_update_external_auth_provider")
    assert (row.user_id, row.entity_id) == (admin.id, changed["id"])
    cleared = boss.patch(path, {"icon_url": None, "allowed_domains": None, "scopes": None}).ok()
    assert (cleared["icon_url"], cleared["allowed_domains"]) == (None, [])
    assert cleared["scopes"] == changed["scopes"]
    late = {"enabled": False, "expected_updated_at": "2020-01-01T00:00:00Z"}
    boss.patch(path, late).fails(409, "conflict")


def test_a_change_of_what_cannot_be_changed_changes_nothing(boss, path):
    for member in ({"key": "other"}, {"provider_kind": "qq"}, {"anything": 1}):
        boss.patch(path, {"display_name": "Git", **member}).fails(400, "bad_request")
    assert boss.get(path).ok()["display_name"] == "Hub"


def test_the_secret_is_kept_replaced_and_cleared(boss, rt, path):
    def sealed():
        with rt.reading() as session:
            return session.get(Provider, id_of(path)).client_secret

    before = sealed()
    assert SECRET not in before
    for body in ({"client_secret": "***REDACTED***"}, {"display_name": "Git"}):
        boss.patch(path, body).ok()
        assert sealed() == before
    boss.patch(path, {"client_secret": "another-secret-4712"}).ok()
    assert sealed() != before
    assert boss.patch(path, {"client_secret": None}).ok()["client_secret"] is None
    change_provider(rt, service_named(rt, path), client_secret="v1:gone:AAAA:AAAA")
    assert boss.get(path).ok()["is_secret_readable"] is False


def service_named(rt, path):
    with rt.reading() as session:
        return service.named(session, id_of(path))


def test_a_tenant_is_an_option_of_microsoft(boss):
    made = boss.post(PROVIDERS, MICROSOFT).ok(201)
    assert made["options"] == {"microsoft": {"tenant": "common"}}
    where = f"{PROVIDERS}/{made['id']}"
    wanted = {"options": {"microsoft": {"tenant": "Organizations"}}, "issuer_url": None}
    changed = boss.patch(where, wanted).ok()
    assert changed["options"] == {"microsoft": {"tenant": "organizations"}}
    boss.patch(where, {"options": {"microsoft": {"tenant": "!"}}}).fails(400, "bad_request")
    assert boss.patch(where, {"enabled": True, "options": None}).ok() == changed


@pytest.mark.both_databases
def test_pages_are_ordered_by_name(boss):
    for number in (3, 1, 2):
        boss.post(PROVIDERS, {**GITHUB, "display_name": f"P{number}"}).ok(201)
    pages = [boss.get(f"{PROVIDERS}?limit=2&offset={n}").ok() for n in (0, 2)]
    assert [one["display_name"] for page in pages for one in page["items"]] == ["P1", "P2", "P3"]
    assert {page["total"] for page in pages} == {3}


def test_kinds_are_described(boss):
    found = boss.get(f"{ROOT}/provider-kinds").ok()
    assert [one["kind"] for one in found] == sorted(SCHEMAS)
    [microsoft] = [one for one in found if one["kind"] == "microsoft"]
    assert microsoft["create_defaults"]["options"] == {"microsoft": {"tenant": "common"}}


@pytest.mark.parametrize(
    ("is_legacy", "path"), [(False, "callback"), (True, "oidc/{key}/callback")]
)
def test_a_kind_tells_what_to_register_for_a_new_provider(make_app, admin, is_legacy, path):
    app = make_app(external_auth_legacy_callback=is_legacy)
    boss = ApiClient(app)
    boss.login(admin).ok()
    address = f"https://files.example/api/v1/auth/external-auth/{path}"
    for origins, expected in ([], None), (["https://files.example", "https://b.example"], address):
        configure(app.extensions["gatehouse"], public_site_url=origins)
        kinds = {one["kind"]: one for one in boss.get(f"{ROOT}/provider-kinds").ok()}
        assert kinds["oidc"]["redirect_uri"] == expected


def test_a_kind_names_the_fields_that_it_takes_and_no_others(boss):
    usual = {"display_name", "client_id", "client_secret", "scopes", "icon_url", "allowed_domains"}
    usual |= {"enabled", "auto_provision_enabled", "auto_link_verified_email_enabled"}
    usual |= {"require_email_verified"}
    claims = {f"{name}_claim" for name in ("subject", "username", "display_name", "email")}
    endpoints = {"authorization_url", "token_url", "userinfo_url"}
    own = {
        "generic_oauth2": {"issuer_url", "token_auth", "email_verified_claim", *claims, *endpoints},
        "github": set(),
        "google": set(),
        "microsoft": {"tenant"},
        "oidc": {"issuer_url", "token_auth"},
        "qq": set(),
    }
    kinds = {one["kind"]: one["fields"] for one in boss.get(f"{ROOT}/provider-kinds").ok()}
    assert {kind: {f["name"] for f in of} for kind, of in kinds.items()} == {
        kind: usual | more for kind, more in own.items()
    }
    needed = {kind: {f["name"] for f in of if f["required"]} for kind, of in kinds.items()}
    assert needed["oidc"] == {"display_name", "client_id", "issuer_url"}
    assert needed["generic_oauth2"] == {"display_name", "client_id", *endpoints}


def test_a_claim_is_refused_by_a_kind_that_reads_none(boss, path):
    answer = boss.patch(path, {"subject_claim": "uid"}).fails(400, "bad_request")
    assert answer.json["msg"] == "subject_claim cannot be set for the kind github"
    boss.patch(path, {"subject_claim": None}).ok()


def test_claims_that_only_the_products_client_knows_are_taken_if_they_say_nothing(boss, path):
    shown = boss.patch(path, {"groups_claim": None, "avatar_url_claim": ""}).ok()
    assert shown["groups_claim"] is shown["avatar_url_claim"] is None
    boss.patch(path, {"groups_claim": "groups"}).fails(400, "bad_request")


# --- guards --------------------------------------------------------------------------------------


def test_the_last_provider_stays_while_nothing_else_is_open(boss, rt, path):
    configure(rt, auth_password_login_enabled=False, auth_passkey_login_enabled=False)
    boss.patch(path, {"enabled": False}).fails(403, "forbidden")
    boss.delete(f"{path}?force=true").fails(403, "forbidden")
    assert boss.patch(path, {"enabled": True, "display_name": "Git"}).ok()["enabled"] is True


@pytest.mark.both_databases
def test_of_the_last_two_providers_deleted_at_once_one_stays(app, rt, boss, admin, path):
    other = f"{PROVIDERS}/{boss.post(PROVIDERS, GITHUB).ok(201)['id']}"
    configure(rt, auth_password_login_enabled=False, auth_passkey_login_enabled=False)
    clients = [bearer_of(rt, app, admin) for _ in range(4)]
    jobs = [
        lambda client=client, which=which: client.delete(which)
        for client, which in zip(clients, [path, other, path, other], strict=True)
    ]
    statuses = sorted(answer.status for answer in run_concurrently(jobs))
    assert statuses[0] == 200
    assert statuses.count(200) == 1
    assert set(statuses) == {200, 403, 404} or statuses == [200, 403, 403, 404]
    assert count(rt, Provider) == 1


@pytest.mark.both_databases
def test_a_provider_deleted_twice_at_once_is_deleted_once(app, rt, admin, path):
    clients = [bearer_of(rt, app, admin) for _ in range(3)]
    answers = run_concurrently([lambda c=c: c.delete(path) for c in clients])
    assert sorted(answer.status for answer in answers) == [200, 404, 404]
    assert len(audit_rows(rt, "admin_delete_external_auth_provider")) == 1


@pytest.mark.both_databases
def test_a_provider_that_accounts_need_is_deleted_only_by_force(boss, rt, path):
    alone = [make_user(rt, password=None) for _ in range(2)]
    keyed, known = make_user(rt, password=None), make_user(rt)
    add_passkeys(rt, keyed, 1)
    link(rt, id_of(path), *alone, keyed, known)
    shown = boss.get(path).ok()
    assert (shown["links"], shown["last_sign_in_at"]) == (4, "2026-03-02T09:30:00Z")
    told = boss.delete(path).fails(409, "conflict").json["msg"]
    assert told == "2 accounts can sign in only with this provider."
    configure(rt, auth_passkey_login_enabled=False)
    assert boss.delete(path).fails(409, "conflict").json["msg"].startswith("3 accounts")
    assert boss.get(path).ok()["links"] == 4
    boss.delete(f"{path}?force=true").ok()
    boss.delete(path).fails(404, "not_found")
    assert count(rt, Identity) == 0


def test_another_link_is_a_way_in_while_its_provider_is_enabled(boss, rt, path):
    user = make_user(rt, password=None)
    other = boss.post(PROVIDERS, {"provider_kind": "google", "display_name": "G", "client_id": "x"})
    link(rt, id_of(path), user)
    link(rt, other.ok(201)["id"], user, namespace="https://accounts.google.com")
    boss.patch(f"{PROVIDERS}/{other.data['id']}", {"enabled": False}).ok()
    boss.delete(path).fails(409, "conflict")
    boss.patch(f"{PROVIDERS}/{other.data['id']}", {"enabled": True}).ok()
    boss.delete(path).ok()


def test_a_disabled_provider_is_nobodys_way_in(boss, rt, path):
    link(rt, id_of(path), make_user(rt, password=None))
    boss.patch(path, {"enabled": False}).ok()
    boss.delete(path).ok()


def test_the_other_administrators_hear_of_it(boss, rt, admin, path):
    other = make_user(rt, role="admin")
    for body in ({"display_name": "Git"}, {"enabled": False}, {"enabled": False}):
        boss.patch(path, body).ok()
    told = [row.recipient for row in outbox.rows(rt)]
    assert told == [other.email]
    assert admin.email not in told


def test_changes_ask_for_a_confirmation_if_the_setting_says_so(boss, rt, clock, path):
    configure(rt, auth_confirmation_max_age_secs=60)
    clock.advance(seconds=61)
    boss.post(PROVIDERS, GITHUB).fails(412, "precondition_failed")
    boss.patch(path, {"enabled": False}).fails(412, "precondition_failed")
    boss.delete(path).fails(412, "precondition_failed")
    boss.get(path).ok()


def test_a_demoted_administrator_changes_nothing(boss, rt, admin, path):
    change_user(rt, admin, role="user")
    boss.patch(path, {"enabled": False}).fails(403, "auth.admin_required")
    with rt.reading() as session:
        assert service.named(session, id_of(path)).enabled


def test_an_id_is_never_a_key(boss, rt):
    service.add(rt, COMMAND_LINE, kind="github", key="4711", display_name="Hub", client_id="x")
    where = f"/api/v1{PROVIDERS}/4711"
    for method, rest in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/test")):
        boss.call(method, where + rest, {}).fails(404, "not_found")


# --- tests ---------------------------------------------------------------------------------------


def test_a_stored_provider_is_tested(boss, admin, rt, fake, corp, clock):
    clock.advance(minutes=1)
    found = boss.post(f"{PROVIDERS}/{corp.id}/test").ok()
    assert (found["provider"], found["issuer"]) == ("OpenID Connect", fake.issuer)
    assert [check["name"] for check in found["checks"]] == ["discovery", "jwks"]
    assert boss.get(f"{PROVIDERS}/{corp.id}").ok()["updated_at"] == "2026-03-02T09:31:00Z"
    [row] = audit_rows(rt, "admin_test_external_auth_provider")
    assert (row.user_id, row.entity_id) == (admin.id, corp.id)


def test_a_test_that_fails_says_why(boss, rt, fake, corp):
    fake.__exit__()
    told = boss.post(f"{PROVIDERS}/{corp.id}/test").fails(400, "bad_request").json["msg"]
    assert "OIDC discovery failed" in told
    change_provider(rt, corp, client_secret="v1:gone:AAAA:AAAA")
    told = boss.post(f"{PROVIDERS}/{corp.id}/test").fails(400, "bad_request").json["msg"]
    assert "cannot be decrypted" in told
    assert audit_rows(rt, "admin_test_external_auth_provider") == []


def test_a_draft_is_tested_and_stored_nowhere(boss, admin, rt, fake):
    draft = {"provider_kind": "oidc", "client_id": "files", "client_secret": SECRET}
    found = boss.post(f"{PROVIDERS}/test", {**draft, "issuer_url": fake.issuer}).ok()
    assert (found["issuer"], found["jwks_key_count"]) == (fake.issuer, 1)
    boss.post(f"{PROVIDERS}/test", draft).fails(400, "bad_request")
    fake.__exit__()
    failed = boss.post(f"{PROVIDERS}/test", {**draft, "issuer_url": f"{fake.issuer}/gone"})
    assert "OIDC discovery failed" in failed.fails(400, "bad_request").json["msg"]
    rows = audit_rows(rt, "admin_test_external_auth_provider")
    assert [json.loads(row.details) for row in rows] == [
        {"provider_kind": "oidc", "key": "draft", "success": True},
        {"provider_kind": "oidc", "key": "draft", "success": False},
    ]
    assert {(row.user_id, row.entity_id, row.entity_name) for row in rows} == {
        (admin.id, None, "draft")
    }
    assert count(rt, Provider) == 0


@pytest.mark.parametrize(
    ("draft", "issuer", "checks"),
    [
        (
            {"provider_kind": "generic_oauth2", **URLS},
            None,
            ["manual_endpoints", "authorization_code"],
        ),
        ({"provider_kind": "github"}, None, ["github_endpoints", "verified_primary_email"]),
        ({"provider_kind": "qq"}, "qq:files", ["qq_endpoints", "qq_openid"]),
    ],
)
def test_drafts_without_discovery_ask_nobody(boss, draft, issuer, checks):
    found = boss.post(f"{PROVIDERS}/test", {**draft, "client_id": "files"}).ok()
    assert found["issuer"] == issuer
    assert [check["name"] for check in found["checks"]] == checks


@pytest.mark.parametrize("kind", ["google", "microsoft"])
def test_a_draft_of_a_fixed_kind_may_have_another_issuer(boss, fake, kind):
    draft = {"provider_kind": kind, "client_id": "files", "issuer_url": fake.issuer}
    assert boss.post(f"{PROVIDERS}/test", draft).ok()["issuer"] == fake.issuer
    for wrong in ("ftp://x", "no issuer", "https://x?y"):
        asked = {**draft, "issuer_url": wrong}
        boss.post(f"{PROVIDERS}/test", asked).fails(400, "bad_request")


def test_one_administrator_tests_ten_times_a_minute(boss, path):
    statuses = [boss.post(f"{path}/test").status for _ in range(11)]
    assert statuses == [200] * 10 + [429]
