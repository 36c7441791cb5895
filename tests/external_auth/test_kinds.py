"""Every kind end to end, with answers in the shape the services give."""

import pytest

from tests.support.external import (
    add_provider,
    asks_for_address,
    change_provider,
    fails,
    links,
    sign_in,
    signs_in,
)
from tests.support.fake_provider import REMOVED, SUBJECT

TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"


@pytest.fixture(autouse=True)
def ready(admin):
    """An installation that takes accounts."""


def settled(rt, provider, **columns):
    change_provider(rt, provider, auto_provision_enabled=True, **columns)


def test_generic_oauth2(rt, api, fake):
    settled(rt, add_provider(rt, fake, kind="generic_oauth2"))
    signs_in(sign_in(api, fake, "generic_oauth2"))
    [row] = links(rt)
    assert (row.identity_namespace, row.subject) == (fake.issuer, SUBJECT)
    assert api.me().ok()["username"] == "jane"


def test_google(rt, api, fake):
    provider = add_provider(rt, fake, kind="google")
    settled(rt, provider, issuer_url=fake.issuer)
    fake.claims |= {"azp": fake.client_id, "at_hash": "x", "picture": "https://x", "hd": "x.com"}
    signs_in(sign_in(api, fake, "google"))
    [row] = links(rt)
    assert row.identity_namespace == fake.issuer


@pytest.mark.parametrize("verified", [True, REMOVED])
def test_microsoft_addresses_are_never_verified(rt, api, fake, verified):
    """Whoever administers a tenant may write any address into it."""
    provider = add_provider(rt, fake, kind="microsoft", auto_link_verified_email_enabled=True)
    settled(rt, provider, options={}, issuer_url=fake.issuer)
    fake.claims |= {"tid": TENANT, "ver": "2.0", "email_verified": verified}
    asks_for_address(sign_in(api, fake, "microsoft"))
    change_provider(rt, provider, require_email_verified=True)
    fails(sign_in(api, fake, "microsoft"), "external_auth.policy_denied")
    change_provider(
        rt, provider, require_email_verified=False, auto_link_verified_email_enabled=False
    )
    signs_in(sign_in(api, fake, "microsoft"))
    assert api.me().ok()["email_verified"] is False


def github(rt, fake, **columns):
    settled(
        rt,
        add_provider(rt, fake, kind="github"),
        authorization_url=f"{fake.issuer}/authorize",
        token_url=f"{fake.issuer}/token",
        userinfo_url=f"{fake.issuer}/user",
        **columns,
    )
    user = {"login": "octo.cat", "id": 583231, "name": "The Octocat", "email": "public@example.com"}
    fake.reply("/user", user | {"type": "User", "site_admin": False})


def test_github(rt, api, fake):
    github(rt, fake)
    addresses = [
        {"email": "old@example.com", "verified": True, "primary": False, "visibility": None},
        {"email": "Octo@Example.com", "verified": True, "primary": True, "visibility": "private"},
    ]
    fake.reply("/user/emails", addresses)
    signs_in(sign_in(api, fake, "github"))
    me = api.me().ok()
    assert (me["email"], me["username"]) == ("octo@example.com", "octo-cat")
    [row] = links(rt)
    assert (row.identity_namespace, row.subject) == ("https://github.com", "583231")
    [asked] = fake.seen("/user/emails")
    assert asked.headers["User-Agent"].startswith("Gatehouse/")


def qq(rt, fake):
    settled(
        rt,
        add_provider(rt, fake, kind="qq"),
        authorization_url=f"{fake.issuer}/authorize",
        token_url=f"{fake.issuer}/token",
        userinfo_url=f"{fake.issuer}/user/get_user_info",
    )
    fake.reply("/me", {"client_id": fake.client_id, "openid": "A1B2C3"})
    fake.reply("/user/get_user_info", {"ret": 0, "msg": "", "nickname": "小明", "gender": "男"})


def test_qq_tells_no_address(rt, api, fake, mailbox):
    qq(rt, fake)
    flow_token = asks_for_address(sign_in(api, fake, "qq"))
    body = {"flow_token": flow_token, "email": "ming@example.com"}
    api.post("/auth/external-auth/email-verification/start", body).ok()
    token = mailbox.token(mailbox.only())
    signs_in(api.get(f"/auth/external-auth/email-verification/confirm?token={token}"))
    [row] = links(rt)
    assert (row.identity_namespace, row.subject) == (f"qq:{fake.client_id}", "A1B2C3")
    assert row.display_name_snapshot == "小明"
    api.post("/auth/logout").ok()
    signs_in(sign_in(api, fake, "qq"))
