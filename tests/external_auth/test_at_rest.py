"""What database, Redis, outbox and log keep of external sign-ins."""

import logging

from tests.support.external import (
    add_provider,
    asks_for_address,
    change_provider,
    come_back,
    sign_in,
    signs_in,
    start,
)
from tests.support.stores import everything_at, everything_in

MAIL = "/auth/external-auth/email-verification"


def test_no_store_and_no_log_holds_what_opens_anything(
    rt, app, api, admin, fake, corp, redis_url, mailbox, caplog
):
    """A sign-in in every state: under way, waiting for an account, waiting for a click, done."""
    logging.getLogger().addHandler(caplog.handler)
    caplog.set_level(logging.DEBUG)
    under_way = start(api)
    flow_token = asks_for_address(sign_in(api, fake))
    change_provider(rt, corp, auto_provision_enabled=True)
    api.post(f"{MAIL}/start", {"flow_token": flow_token, "email": "jane@example.com"}).ok()
    kept = "\n".join([*everything_in(rt.database.engine), *everything_at(redis_url)])
    token = mailbox.token(mailbox.only())
    add_provider(rt, key="second", client_secret="another secret")
    back = fake.sign_in(under_way.url)
    signs_in(come_back(api, back))
    path = f"{MAIL}/confirm?token={token}"
    api.get(path)
    kept += "\n".join([*everything_in(rt.database.engine), *everything_at(redis_url)])
    logging.getLogger().removeHandler(caplog.handler)
    told = "\n".join(
        record.getMessage() for record in caplog.records if record.name != "app.mail.delivery"
    )
    secrets = {
        "state": under_way.state,
        "nonce": under_way.query["nonce"],
        "cookie": under_way.cookie,
        "verifier": fake.seen("/token")[-1].form["code_verifier"],
        "code": back["code"],
        "flow token": flow_token,
        "mail token": token,
        "client secret": fake.client_secret,
        "another client secret": "another secret",
        "access token": api.access_token,
        "refresh token": api.refresh_token,
        "provider's access token": "an-access-token",
    }
    assert "external-sign-in" in kept
    assert "external_auth_email_verification" in kept
    assert "/auth/external-auth/callback" in told
    for text in (kept, told):
        assert [name for name, secret in secrets.items() if secret in text] == []
