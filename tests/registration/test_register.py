"""POST /auth/register."""

from datetime import timedelta

import pytest

from app.contact_verification.models import ContactToken
from app.mail.models import OutboxMail
from app.storage_policies import service as storage
from app.users.models import User
from tests.support.factories import (
    audit_rows,
    change_user,
    configure,
    count,
    delete_all_users,
    fresh_account,
    make_user,
    moment,
    remove_storage_route,
)
from tests.support.mailbox import text_of

PASSWORD = "correct horse battery"
SMTP = {"mail_smtp_host": "smtp.example.com", "mail_from_address": "files@example.com"}


def addressee(message):
    [address] = message["To"].addresses
    return address.addr_spec


@pytest.fixture(autouse=True)
def ready(rt):
    """An administrator, without whom nobody can register."""
    return make_user(rt, username="root", role="admin")


def register(client, username="Ada", email="Ada@Example.com", password=PASSWORD, **options):
    body = {"username": username, "email": email, "password": password}
    return client.post("/auth/register", body, **options)


def row_of(rt, username):
    with rt.transaction() as session:
        return session.query(User).filter_by(username=username).one()


def test_an_account_is_made_and_answered(rt, api, clock):
    configure(rt, default_storage_quota=5_000_000_000_000)
    answer = register(api)
    account = answer.ok(201)
    assert set(answer.set_cookies) == {"service_browser"}
    assert moment(account["created_at"]) == clock.now()
    assert account == fresh_account(
        account,
        username="Ada",
        email="ada@example.com",
        email_verified=False,
        role="user",
        storage_quota=5_000_000_000_000,
    )
    assert isinstance(account["policy_group_id"], int)


def test_nobody_makes_an_administrator_of_themselves(rt, api):
    body = {"username": "ada", "email": "ada@example.com", "password": PASSWORD, "role": "admin"}
    assert api.post("/auth/register", body).ok(201)["role"] == "user"
    assert row_of(rt, "ada").role == "user"


def test_a_registration_is_audited(rt, api):
    account = register(api, headers={"User-Agent": "curl/8"}).ok(201)
    [entry] = audit_rows(rt, "user_register")
    assert (entry.user_id, entry.entity_type, entry.entity_id) == (
        account["id"],
        "user",
        account["id"],
    )
    assert (entry.entity_name, entry.ip_address, entry.user_agent) == ("Ada", "127.0.0.1", "curl/8")
    assert PASSWORD not in str(entry)


def test_a_registration_takes_its_time(api, clock):
    for password in ("short", PASSWORD):
        register(api, password=password)
        assert 0.35 <= clock.slept[-1] <= 0.475
    assert len(clock.slept) == 2


# --- is activation needed? -------------------------------------------------------


@pytest.mark.parametrize(
    ("switch", "mail", "is_needed"),
    [
        ("auto", {}, False),
        ("auto", {"mail_smtp_host": "smtp.example.com"}, False),
        ("auto", {"mail_from_address": "files@example.com"}, False),
        ("auto", SMTP, True),
        ("true", {}, True),
        ("true", SMTP, True),
        ("false", {}, False),
        ("false", SMTP, False),
    ],
)
def test_whether_activation_is_needed(rt, api, clock, switch, mail, is_needed):
    configure(rt, auth_register_activation_enabled=switch, **mail)
    assert register(api).ok(201)["email_verified"] is False
    row = row_of(rt, "Ada")
    assert row.activated_at == (None if is_needed else clock.now())
    assert row.email_verified_at is None
    assert count(rt, OutboxMail) == count(rt, ContactToken) == int(is_needed)


def test_without_activation_one_can_sign_in_at_once(api, mailbox):
    register(api).ok(201)
    assert mailbox.read() == []
    assert api.login("ada", PASSWORD).ok()["status"] == "authenticated"
    assert api.me().ok()["email_verified"] is False


@pytest.mark.both_databases
def test_with_activation_one_signs_in_after_following_the_link(rt, api, mailbox):
    configure(rt, auth_register_activation_enabled="true")
    register(api).ok(201)
    api.login("ada", PASSWORD).fails(403, "auth.pending_activation")
    api.login("ada", "not the password").fails(401, "auth.credentials_failed")
    message = mailbox.only()
    assert addressee(message) == "ada@example.com"
    link = mailbox.link(message)
    assert link.startswith("/api/v1/auth/contact-verification/confirm?token=cv_")
    assert api.get(link).headers["Location"] == "/login?contact_verification=register-activated"
    api.login("ada", PASSWORD).ok()
    assert api.me().ok()["email_verified"] is True


def test_the_mail_says_what_a_stranger_gets_who_registered_ones_address(rt, api, mailbox):
    """Who follows the link of such an account shares it with whoever chose its password."""
    configure(rt, auth_register_activation_enabled="true")
    register(api).ok(201)
    text = " ".join(text_of(mailbox.only()).split())
    assert "do not open the link: somebody else chose the password of this account" in text


def test_the_tokens_life_is_configured(rt, api, clock):
    configure(rt, auth_register_activation_enabled="true", auth_register_activation_ttl_secs=120)
    register(api).ok(201)
    with rt.transaction() as session:
        token = session.query(ContactToken).one()
    assert token.expires_at == clock.now() + timedelta(seconds=120)
    assert (token.purpose, token.address) == ("register_activation", "ada@example.com")


def test_a_mail_server_out_of_order_keeps_nobody_from_registering(rt, api):
    configure(rt, **SMTP | {"mail_smtp_host": "127.0.0.1", "mail_smtp_port": 1})
    register(api).ok(201)
    assert count(rt, OutboxMail) == 1


# --- refusals in their order -------------------------------------------------------------------


def test_what_is_closed_comes_before_what_is_wrong(rt, api):
    """Everything is wrong; one refusal after the other is taken away."""
    configure(
        rt,
        auth_local_email_blocklist=["blocked.example"],
        auth_password_login_enabled=False,
        auth_allow_user_registration=False,
    )
    remove_storage_route(rt)

    def refused(status, code):
        register(api, "a", "ada@blocked.example", "short").fails(status, code)
        assert count(rt, User) == 1

    refused(400, "validation.system_not_initialized")
    storage.bootstrap(rt)
    refused(403, "auth.password_login_disabled")
    configure(rt, auth_password_login_enabled=True)
    refused(403, "auth.registration_disabled")
    configure(rt, auth_allow_user_registration=True)
    refused(400, "auth.email_blocked")


def test_without_an_administrator_nobody_registers(rt, api):
    delete_all_users(rt)
    register(api).fails(400, "validation.system_not_initialized")


def test_without_a_storage_route_nobody_registers(rt, api):
    remove_storage_route(rt)
    register(api).fails(400, "validation.system_not_initialized")
    assert count(rt, User) == 1


@pytest.mark.both_databases
def test_then_the_password_the_username_and_the_address(rt, api):
    make_user(rt, username="taken", email="taken@example.com")
    answer = register(api, "a", "no address", "short").fails(400, "bad_request")
    assert "password" in answer.json["msg"]
    answer = register(api, "a", "no address").fails(400, "bad_request")
    assert "username" in answer.json["msg"]
    answer = register(api, "Taken", "no address").fails(400, "bad_request")
    assert "address" in answer.json["msg"]
    register(api, "Taken", "taken@example.com").fails(400, "auth.username_exists")
    register(api, "free", "taken@example.com").fails(400, "auth.email_exists")
    register(api, "free", "free@example.com").ok(201)


@pytest.mark.both_databases
def test_a_name_is_taken_in_any_case(rt, api):
    make_user(rt, username="Taken")
    for username in ("TAKEN", "taken", " Taken "):
        register(api, username).fails(400, "auth.username_exists")
    for email in ("ROOT@example.com", " root@EXAMPLE.com ", "root@example.com"):
        register(api, email=email).fails(400, "auth.email_exists")


def test_an_address_somebody_changes_to_is_taken(rt, api, ready):
    change_user(rt, ready, pending_email="ada@example.com")
    register(api).fails(400, "auth.email_exists")


def test_a_refusal_leaves_nothing_behind(rt, api):
    configure(rt, auth_register_activation_enabled="true")
    register(api, email="root@example.com").fails(400, "auth.email_exists")
    assert count(rt, User) == 1
    assert count(rt, OutboxMail) == count(rt, ContactToken) == 0
    assert audit_rows(rt, "user_register") == []


def test_the_address_policy(rt, api):
    configure(
        rt,
        auth_local_email_allowlist=["allowed.example", "xn--bcher-kva.example"],
        auth_local_email_blocklist=["spam@allowed.example"],
    )
    register(api, "one", "ADA@Allowed.Example").ok(201)
    register(api, "two", "ada@bücher.example").ok(201)
    register(api, "three", "ada@other.example").fails(400, "auth.email_not_allowlisted")
    register(api, "three", "spam@allowed.example").fails(400, "auth.email_blocked")
    register(api, "three", "no address").fails(400, "bad_request")


def test_an_address_with_dots_anywhere_is_one_in_quotes_or_without(rt, api, mailbox):
    configure(rt, auth_register_activation_enabled="true")
    register(api, email="Taro..Yamada@docomo.ne.jp").ok(201)
    message = mailbox.only()
    assert addressee(message) == "taro..yamada@docomo.ne.jp"
    api.get(mailbox.link(message))
    quoted = '"taro..yamada"@docomo.ne.jp'
    register(api, "taro", quoted).fails(400, "auth.email_exists")
    api.login(quoted, PASSWORD).ok()


def test_a_refused_address_is_told_what_addresses_look_like(api):
    answer = register(api, email="straße@example.com").fails(400, "bad_request")
    assert "ada@example.com" in answer.json["msg"]


def test_what_could_be_read_as_more_than_a_name_is_refused(rt, api, mailbox):
    configure(rt, auth_register_activation_enabled="true")
    register(api, "<b>ada</b>").fails(400, "bad_request")
    register(api, email="ada@example.com\r\nBcc: eve@example.com").fails(400, "bad_request")
    register(api, email="ada@example.com\x00").fails(400, "bad_request")
    assert mailbox.read() == []


def test_addresses_full_of_signs_reach_the_mail_as_they_are(rt, api, mailbox):
    configure(rt, auth_register_activation_enabled="true")
    for number, local in enumerate(("ada'--", "{{token}}", "%0d%0abcc=x", "a/b&c", "$id`ls`")):
        register(api, f"user{number}", f"{local}@example.com").ok(201)
        message = mailbox.only()
        assert addressee(message) == f"{local}@example.com"
        assert message["Bcc"] is None
