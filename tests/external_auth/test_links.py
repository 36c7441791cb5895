"""GET and DELETE /auth/external-auth/links."""

import pytest

from app.core.access import COMMAND_LINE
from app.external_auth.drivers import openid
from app.external_auth.providers import service as providers
from tests.support.external import add_provider, change_provider, link, links, sign_in, signs_in
from tests.support.factories import audit_rows, change_user, configure, make_user
from tests.support.fake_provider import SUBJECT
from tests.support.mailbox import text_of
from tests.support.passkeys import Authenticator, register

PATH = "/auth/external-auth/links"
MICROSOFT = "https://login.microsoftonline.com"
TENANT = f"{MICROSOFT}/11111111-2222-3333-4444-555555555555/v2.0"
PRIVATE = f"{MICROSOFT}/{openid.CONSUMERS}/v2.0"


@pytest.fixture
def provider(rt, user):
    return add_provider(rt, icon_url="/icons/corp.svg")


@pytest.fixture
def second(rt):
    return add_provider(rt, kind="github", key="hub", display_name="GitHub")


@pytest.fixture
def only_external(rt, user):
    """The account has no password."""
    change_user(rt, user, password_hash=None)


def test_a_link_as_its_owner_sees_it(rt, signed_in, user, provider):
    link_id = link(rt, user, provider, email_snapshot="jane@example.com")
    assert signed_in.get(PATH).ok() == [
        {
            "id": link_id,
            "provider_id": provider.id,
            "provider_key": "corp",
            "provider_kind": "oidc",
            "provider_display_name": "Corporate",
            "provider_icon_url": "/icons/corp.svg",
            "issuer": "https://id.example.com",
            "subject": f"subject-{user.id}-{provider.id}",
            "email_snapshot": "jane@example.com",
            "display_name_snapshot": None,
            "created_at": "2026-03-02T09:30:00Z",
            "updated_at": "2026-03-02T09:30:00Z",
            "last_login_at": "2026-03-02T09:30:00Z",
        }
    ]


@pytest.mark.both_databases
def test_links_are_listed_by_last_use_with_those_of_disabled_providers(
    rt, signed_in, user, provider, second, clock
):
    third = add_provider(rt, kind="qq", key="qq", display_name="QQ")
    link(rt, user, provider, subject="a")
    later = clock.advance(minutes=1)
    link(rt, user, second, subject="b", last_login_at=later)
    link(rt, user, third, subject="c", created_at=rt.clock.now(), last_login_at=later)
    change_provider(rt, second, enabled=False)
    link(rt, make_user(rt), provider, subject="d")
    assert [item["subject"] for item in signed_in.get(PATH).ok()] == ["c", "b", "a"]


def test_without_links_the_list_is_empty(signed_in):
    assert signed_in.get(PATH).ok() == []


def test_the_owner_is_told_of_a_link_that_was_removed(rt, signed_in, user, provider, mailbox):
    link_id = link(rt, user, provider)
    signed_in.delete(f"{PATH}/{link_id}").ok()
    assert "A sign-in with Corporate was removed." in text_of(mailbox.only())


@pytest.mark.both_databases
def test_a_link_is_removed_and_sessions_go_on(rt, signed_in, user, provider):
    link_id = link(rt, user, provider)
    answer = signed_in.delete(f"{PATH}/{link_id}")
    assert answer.ok() is None
    assert links(rt) == []
    signed_in.me().ok()
    [entry] = audit_rows(rt, "user_external_auth_unlink")
    assert (entry.user_id, entry.entity_type) == (user.id, "external_auth_identity")
    assert (entry.entity_id, entry.entity_name) == (link_id, "corp")
    assert entry.details == (
        f'{{"provider_key": "corp", "provider_name": "{provider.display_name}", '
        '"issuer": "https://id.example.com", '
        f'"subject": "subject-{user.id}-{provider.id}"}}'
    )


def test_a_removed_identity_may_be_linked_again(rt, api, user, fake, corp):
    change_provider(rt, corp, auto_link_verified_email_enabled=True)
    change_user(rt, user, email="jane@example.com")
    for _ in range(2):
        signs_in(sign_in(api, fake))
        [item] = api.get(PATH).ok()
        assert item["subject"] == SUBJECT
        api.delete(f"{PATH}/{item['id']}").ok()


@pytest.mark.parametrize("link_id", ["0", "999", "-1", "x", "1.5", "9" * 40, "%20"])
def test_an_unknown_link_is_not_found(signed_in, link_id):
    signed_in.delete(f"{PATH}/{link_id}").fails(404, "not_found")


def test_another_accounts_link_is_not_found(rt, signed_in, user, provider):
    link_id = link(rt, make_user(rt), provider)
    signed_in.delete(f"{PATH}/{link_id}").fails(404, "not_found")
    assert len(links(rt)) == 1


# --- the last way to sign in -------------------------------------------------------------------


def test_the_last_way_in_cannot_be_removed(rt, signed_in, user, provider, only_external):
    link_id = link(rt, user, provider)
    signed_in.delete(f"{PATH}/{link_id}").fails(409, "conflict")
    assert len(links(rt)) == 1
    assert audit_rows(rt, "user_external_auth_unlink") == []


def test_another_link_is_a_way_in(rt, signed_in, user, provider, second, only_external):
    first, last = link(rt, user, provider), link(rt, user, second)
    signed_in.delete(f"{PATH}/{first}").ok()
    signed_in.delete(f"{PATH}/{last}").fails(409, "conflict")


def test_a_link_at_a_disabled_provider_is_none(
    rt, signed_in, user, provider, second, only_external
):
    first, other = link(rt, user, provider), link(rt, user, second)
    change_provider(rt, second, enabled=False)
    signed_in.delete(f"{PATH}/{first}").fails(409, "conflict")
    signed_in.delete(f"{PATH}/{other}").ok()


def test_a_link_of_an_issuer_that_the_provider_had_before_is_none(
    rt, signed_in, user, provider, second, only_external
):
    """It signs nobody in any more."""
    stale, other = link(rt, user, provider), link(rt, user, second)
    change_provider(rt, provider, issuer_url="https://moved.example.com")
    signed_in.delete(f"{PATH}/{other}").fails(409, "conflict")
    signed_in.delete(f"{PATH}/{stale}").ok()


def test_a_link_whose_issuer_ends_in_a_slash_is_a_way_in(
    rt, signed_in, user, provider, second, only_external
):
    """The provider's is stored without."""
    link(rt, user, provider, identity_namespace=f"{provider.issuer_url}/")
    other = link(rt, user, second)
    signed_in.delete(f"{PATH}/{other}").ok()


@pytest.mark.both_databases
def test_every_issuer_of_a_provider_of_many_is_a_way_in(rt, signed_in, user, second, only_external):
    """Microsoft's alias stands for all tenants."""
    many = add_provider(rt, kind="microsoft", key="ms")
    link(rt, user, many, identity_namespace=TENANT)
    other = link(rt, user, second)
    signed_in.delete(f"{PATH}/{other}").ok()


def test_an_issuer_that_a_provider_of_many_left_out_since_is_none(
    rt, signed_in, user, second, only_external
):
    """A private account signs nobody in at an alias of organizations."""
    many = add_provider(rt, kind="microsoft", key="ms")
    stale = link(rt, user, many, identity_namespace=PRIVATE)
    other = link(rt, user, second)
    providers.update(rt, COMMAND_LINE, many.key, tenant="organizations")
    signed_in.delete(f"{PATH}/{other}").fails(409, "conflict")
    signed_in.delete(f"{PATH}/{stale}").ok()


def test_a_link_whose_issuer_another_provider_has_now_is_a_way_in(
    rt, signed_in, user, provider, second, only_external
):
    """Who somebody is does not depend on the provider that says so."""
    link(rt, user, provider)
    add_provider(rt, key="same", issuer_url=provider.issuer_url)
    change_provider(rt, provider, issuer_url="https://moved.example.com")
    other = link(rt, user, second)
    signed_in.delete(f"{PATH}/{other}").ok()


def test_a_password_is_none_while_passwords_are_switched_off(rt, signed_in, user, provider):
    link_id = link(rt, user, provider)
    configure(rt, auth_password_login_enabled=False)
    signed_in.delete(f"{PATH}/{link_id}").fails(409, "conflict")
    configure(rt, auth_password_login_enabled=True)
    signed_in.delete(f"{PATH}/{link_id}").ok()


def test_removing_the_link_does_not_remove_a_forced_change(rt, api, user, provider):
    link_id = link(rt, user, provider)
    change_user(rt, user, must_change_password=True)
    api.login(user).ok()
    api.delete(f"{PATH}/{link_id}").fails(403, "auth.password_change_required")
    api.get(PATH).fails(403, "auth.password_change_required")


def test_a_passkey_and_a_link_are_ways_in_for_each_other(rt, signed_in, user, provider):
    passkey = register(signed_in, Authenticator()).ok()
    first = link(rt, user, provider)
    change_user(rt, user, password_hash=None)
    signed_in.delete(f"{PATH}/{first}").ok()
    signed_in.delete(f"/auth/passkeys/{passkey['id']}").fails(409, "conflict")
    second = link(rt, user, provider)
    signed_in.delete(f"/auth/passkeys/{passkey['id']}").ok()
    signed_in.delete(f"{PATH}/{second}").fails(409, "conflict")


@pytest.mark.parametrize(
    "values",
    [
        {"auth_passkey_login_enabled": False},
        {"public_site_url": []},
        {"public_site_url": ["https://192.0.2.7"]},
    ],
)
def test_a_passkey_is_none_while_it_cannot_be_used(rt, signed_in, user, provider, values):
    register(signed_in, Authenticator()).ok()
    link_id = link(rt, user, provider)
    change_user(rt, user, password_hash=None)
    configure(rt, **values)
    signed_in.delete(f"{PATH}/{link_id}").fails(409, "conflict")
