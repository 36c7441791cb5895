"""Which account a proven identity signs in to, row by row."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from app.external_auth.models import Identity, PendingIdentity
from app.external_auth.sign_in import linking
from app.sessions.models import LoginSession
from app.users import queries as users_queries
from app.users.models import User
from tests.support.api import ApiClient
from tests.support.external import (
    add_provider,
    asks_for_address,
    change_provider,
    fails,
    link,
    links,
    sign_in,
    signs_in,
)
from tests.support.factories import (
    audit_rows,
    change_user,
    configure,
    count,
    make_user,
    remove_storage_route,
)
from tests.support.fake_provider import DESCRIPTION, PERSON, REMOVED, SUBJECT, without_removed

DENIED = "external_auth.policy_denied"
JANE = PERSON["email"]


@pytest.fixture
def provisioning(rt, admin, corp):
    """The provider makes accounts, in an installation that is ready."""
    change_provider(rt, corp, auto_provision_enabled=True)


@pytest.fixture
def auto_link(rt, corp):
    change_provider(rt, corp, auto_link_verified_email_enabled=True)


@pytest.fixture
def owner(rt, admin):
    """An account with Jane's address."""
    return make_user(rt, email=JANE)


def user_named(rt, username):
    with rt.reading() as connection:
        columns = User.__table__.columns
        return connection.execute(sa.select(columns).where(User.username == username)).one()


def nothing_happened(rt, users):
    assert (count(rt, User), links(rt), count(rt, LoginSession)) == (users, [], 0)


# --- the identity is known -------------------------------------------------------------


@pytest.mark.both_databases
def test_a_known_identity_signs_in_and_is_brought_up_to_date(rt, api, user, fake, corp, clock):
    link(rt, user, corp, subject=SUBJECT, email_snapshot="old@example.com")
    later = clock.advance(days=3)
    signs_in(sign_in(api, fake))
    [row] = links(rt)
    assert (row.email_snapshot, row.display_name_snapshot) == (JANE, "Jane Doe")
    assert row.last_login_at == row.updated_at == later
    assert row.created_at == later - timedelta(days=3)
    assert audit_rows(rt, "user_external_auth_link") == []


def test_without_an_address_the_old_one_is_kept(rt, api, user, fake, corp):
    link(rt, user, corp, subject=SUBJECT, email_snapshot=JANE, display_name_snapshot="Jane")
    fake.claims |= {"email": REMOVED, "email_verified": REMOVED, "name": REMOVED}
    signs_in(sign_in(api, fake))
    [row] = links(rt)
    assert (row.email_snapshot, row.display_name_snapshot) == (JANE, "Jane")


def test_rules_for_new_identities_do_not_bind_known_ones(rt, api, user, fake, corp):
    link(rt, user, corp, subject=SUBJECT)
    change_provider(rt, corp, allowed_domains=["other.example"])
    fake.claims["email_verified"] = False
    configure(rt, auth_allow_user_registration=False)
    signs_in(sign_in(api, fake))


@pytest.mark.parametrize("email", [JANE, REMOVED])
def test_a_disabled_account_stays_out(rt, api, user, fake, corp, email):
    link(rt, user, corp, subject=SUBJECT)
    change_user(rt, user, status="disabled")
    fake.claims["email"] = email
    fails(sign_in(api, fake), "auth.account_disabled")


def test_an_identity_is_one_whichever_provider_vouches_for_it(rt, api, user, fake, corp):
    link(rt, user, corp, subject=SUBJECT)
    add_provider(rt, fake, key="second")
    signs_in(sign_in(api, fake, key="second"))
    assert api.me().ok()["id"] == user.id
    assert len(links(rt)) == 1


def test_an_identity_that_is_unlinked_this_moment_signs_nobody_in(
    rt, api, user, fake, corp, monkeypatch
):
    """Its owner removes the link while the account is waited for."""
    link(rt, user, corp, subject=SUBJECT)
    real = users_queries.lock_and_find

    def held(session, user_id):
        account = real(session, user_id)
        session.execute(sa.delete(Identity))
        return account

    monkeypatch.setattr(users_queries, "lock_and_find", held)
    asks_for_address(sign_in(api, fake))
    assert count(rt, LoginSession) == 0


def test_another_namespace_is_another_identity(rt, api, user, fake, corp):
    link(rt, user, corp, subject=SUBJECT, identity_namespace="https://other.example")
    asks_for_address(sign_in(api, fake))


def test_subjects_are_compared_exactly(rt, api, user, fake, corp):
    link(rt, user, corp, subject="abc")
    for subject in ("ABC", "abc ", "ab"):
        fake.claims["sub"] = subject
        asks_for_address(sign_in(api, fake))


# --- no address ------------------------------------------------------------------------


def test_without_an_address_one_is_asked_for(rt, api, fake, corp, provisioning, auto_link):
    fake.claims["email"] = REMOVED
    asks_for_address(sign_in(api, fake))
    nothing_happened(rt, 1)


def test_an_address_that_only_user_info_tells_is_as_good(rt, api, fake, corp, provisioning):
    fake.not_in_id_token = DESCRIPTION
    signs_in(sign_in(api, fake))
    me = api.me().ok()
    assert (me["email"], me["email_verified"], me["username"]) == (JANE, True, "jane")


def test_an_address_that_mail_programs_may_misread_counts_as_none(
    rt, api, fake, corp, provisioning, auto_link
):
    fake.claims["email"] = "=?utf-8?q?x=40evil.test=3e?=jane@example.com"
    asks_for_address(sign_in(api, fake))
    nothing_happened(rt, 1)


@pytest.mark.parametrize("sub", ["somebody else", REMOVED])
def test_user_info_of_somebody_else_tells_nothing(rt, api, fake, corp, owner, auto_link, sub):
    fake.not_in_id_token = DESCRIPTION
    fake.reply("/userinfo", without_removed(PERSON | {"sub": sub}))
    asks_for_address(sign_in(api, fake))
    nothing_happened(rt, 2)


def test_who_is_known_signs_in_whatever_becomes_of_user_info(rt, api, user, fake, corp):
    link(rt, user, corp, subject=SUBJECT)
    fake.not_in_id_token = DESCRIPTION
    fake.reply("/userinfo", {"error": "server_error"}, status=500)
    signs_in(sign_in(api, fake))
    assert api.me().ok()["id"] == user.id


def test_github_without_a_verified_address_is_refused(rt, api, fake, admin):
    urls = {n: f"{fake.issuer}/{n}" for n in ("authorize", "token", "user")}
    provider = add_provider(rt, fake, kind="github")
    change_provider(
        rt,
        provider,
        authorization_url=urls["authorize"],
        token_url=urls["token"],
        userinfo_url=urls["user"],
    )
    fake.reply("/user", {"id": 7, "login": "jane", "email": JANE})
    unverified = {"email": JANE, "primary": True, "verified": False}
    fake.reply("/user/emails", [unverified])
    fails(sign_in(api, fake, "github"), DENIED)
    change_provider(rt, provider, require_email_verified=False)
    asks_for_address(sign_in(api, fake, "github"))
    fake.reply("/user/emails", [unverified | {"verified": True}])
    change_provider(rt, provider, require_email_verified=True, auto_provision_enabled=True)
    signs_in(sign_in(api, fake, "github"))
    [row] = links(rt)
    assert (row.identity_namespace, row.subject) == ("https://github.com", "7")


# --- the provider's rules ---------------------------------------------------------------


@pytest.mark.parametrize("verified", [False, REMOVED])
def test_an_unverified_address_is_refused(rt, api, fake, corp, provisioning, auto_link, verified):
    fake.claims["email_verified"] = verified
    fails(sign_in(api, fake), DENIED)
    nothing_happened(rt, 1)
    assert count(rt, PendingIdentity) == 0


@pytest.mark.parametrize(
    ("domains", "email", "is_taken"),
    [
        ("example.com", "jane@example.com", True),
        ("example.com", "jane@EXAMPLE.com", True),
        ("other.example,example.com", "jane@example.com", True),
        ("example.com", "jane@sub.example.com", False),
        ("example.com", "jane@badexample.com", False),
        ("sub.example.com", "jane@example.com", False),
        ("example.com", "jane@example.com.evil.example", False),
        ("xn--bcher-kva.example", "jane@bücher.example", True),
    ],
)
def test_only_listed_domains_are_taken(
    rt, api, fake, admin, corp, provisioning, domains, email, is_taken
):
    listed = domains.split(",")
    change_provider(rt, corp, allowed_domains=listed)
    fake.claims["email"] = email
    answer = sign_in(api, fake)
    if is_taken:
        signs_in(answer)
    else:
        fails(answer, DENIED)
        nothing_happened(rt, 1)


# --- the account of a verified address -------------------------------------------------------


@pytest.mark.both_databases
@pytest.mark.parametrize("email", [JANE, "Jane@Example.COM"])
def test_a_verified_address_links_its_account(rt, api, fake, corp, owner, auto_link, email):
    configure(rt, auth_allow_user_registration=False)
    fake.claims["email"] = email
    signs_in(sign_in(api, fake))
    assert api.me().ok()["id"] == owner.id
    [row] = links(rt)
    assert (row.user_id, row.key) == (owner.id, "corp")
    assert (row.identity_namespace, row.subject) == (fake.issuer, SUBJECT)
    assert row.created_at == row.last_login_at
    [entry] = audit_rows(rt, "user_external_auth_link")
    assert (entry.user_id, entry.entity_name) == (owner.id, "corp")
    assert '"linked": true, "auto_provisioned": false' in entry.details


def test_an_address_is_kept_as_registration_keeps_it(rt, api, fake, corp, provisioning):
    fake.claims["email"] = " Name@EXAMPLE.com"
    for _ in range(2):
        signs_in(sign_in(api, fake))
        [row] = links(rt)
        assert row.email_snapshot == api.me().ok()["email"] == "name@example.com"
    body = {"username": "another", "email": "NAME@example.COM", "password": "a good long password"}
    ApiClient(api.app).post("/auth/register", body).fails(400, "auth.email_exists")


def test_only_when_it_is_switched_on(rt, api, fake, corp, owner):
    asks_for_address(sign_in(api, fake))
    assert links(rt) == []


@pytest.mark.parametrize("column", ["email_verified_at", "activated_at"])
def test_an_account_that_has_not_proven_its_address_is_never_linked(
    rt, api, fake, corp, owner, auto_link, provisioning, column
):
    """Who registered with somebody else's address must not be given that person's identity."""
    change_user(rt, owner, **{column: None})
    asks_for_address(sign_in(api, fake))
    nothing_happened(rt, 2)


def test_an_address_the_provider_has_not_proven_never_links(
    rt, api, fake, corp, owner, auto_link, provisioning
):
    """Those who claim somebody else's address at a provider must not get that account."""
    change_provider(rt, corp, require_email_verified=False)
    for verified in (False, REMOVED):
        fake.claims["email_verified"] = verified
        asks_for_address(sign_in(api, fake))
    nothing_happened(rt, 2)


def test_a_disabled_account_is_not_linked(rt, api, fake, corp, owner, auto_link):
    change_user(rt, owner, status="disabled")
    fails(sign_in(api, fake), "auth.account_disabled")
    nothing_happened(rt, 2)


def test_a_pending_address_is_nobodys(rt, api, fake, corp, admin, auto_link):
    make_user(rt, pending_email=JANE)
    asks_for_address(sign_in(api, fake))
    nothing_happened(rt, 2)


def test_an_address_that_was_given_up_this_moment_links_nothing(
    rt, api, fake, corp, owner, auto_link, monkeypatch
):
    """Between being found and being held the account may get another address."""
    change_user(rt, owner, email="moved@example.com")
    real = linking.find_account_by_email
    monkeypatch.setattr(
        linking, "find_account_by_email", lambda reader, _: real(reader, "moved@example.com")
    )
    asks_for_address(sign_in(api, fake))
    nothing_happened(rt, 2)


def test_an_account_has_one_identity_per_provider(rt, api, fake, corp, owner, auto_link):
    link(rt, owner, corp, subject="another")
    fails(sign_in(api, fake), "conflict")
    assert [row.subject for row in links(rt)] == ["another"]
    assert count(rt, LoginSession) == 0


def test_a_subject_has_one_account_per_provider(rt, api, fake, corp, owner, auto_link, user):
    link(rt, user, corp, subject=SUBJECT, identity_namespace="https://former.example")
    fails(sign_in(api, fake), "conflict")


# --- an account of its own -------------------------------------------------------------


@pytest.mark.both_databases
def test_an_account_is_made(rt, api, fake, corp, provisioning, clock):
    configure(rt, default_storage_quota=5000)
    signs_in(sign_in(api, fake, return_path="/files"), "/files")
    row = user_named(rt, "jane")
    assert (row.email, row.role, row.status) == (JANE, "user", "active")
    assert row.activated_at == row.email_verified_at == clock.now()
    assert (row.password_hash, row.must_change_password) == (None, False)
    assert (row.storage_used, row.storage_quota) == (0, 5000)
    assert row.policy_group_id is not None
    me = api.me().ok()
    assert (me["id"], me["profile"]["display_name"]) == (row.id, None)
    [linked] = links(rt)
    assert (linked.email_snapshot, linked.display_name_snapshot) == (JANE, "Jane Doe")
    for action in ("user_external_auth_link", "user_external_auth_login"):
        [entry] = audit_rows(rt, action)
        assert '"linked": true, "auto_provisioned": true' in entry.details
        assert entry.user_id == row.id


def test_the_account_cannot_be_entered_by_a_password(rt, api, fake, corp, provisioning):
    signs_in(sign_in(api, fake))
    for password in ("", "password", "None"):
        api.stranger().login("jane", password).fails(401, "auth.credentials_failed")


def test_signing_in_again_makes_no_second_one(rt, api, fake, corp, provisioning):
    for _ in range(3):
        signs_in(sign_in(api, fake))
        api.post("/auth/logout").ok()
    assert count(rt, User) == 2


def test_an_unverified_address_makes_an_unverified_account(rt, api, fake, corp, provisioning):
    change_provider(rt, corp, require_email_verified=False)
    fake.claims["email_verified"] = False
    signs_in(sign_in(api, fake))
    row = user_named(rt, "jane")
    assert (row.email_verified_at, row.activated_at is None) == (None, False)
    assert api.me().ok()["email_verified"] is False


def test_the_local_email_policy_does_not_apply(rt, api, fake, corp, provisioning):
    configure(rt, auth_local_email_blocklist=["example.com"])
    signs_in(sign_in(api, fake))


def test_works_while_passwords_are_switched_off(rt, api, fake, corp, provisioning):
    configure(rt, auth_password_login_enabled=False)
    signs_in(sign_in(api, fake))


def test_needs_an_installation_that_is_ready(rt, api, fake, corp, provisioning):
    remove_storage_route(rt)
    fails(sign_in(api, fake), "validation.system_not_initialized")
    nothing_happened(rt, 1)


def test_an_address_somebody_is_changing_to_is_taken(rt, api, fake, corp, provisioning):
    make_user(rt, pending_email=JANE)
    fails(sign_in(api, fake), "auth.email_exists")
    nothing_happened(rt, 2)


def test_a_taken_username_gets_a_random_end(rt, api, fake, corp, provisioning):
    make_user(rt, username="Jane", email="first@example.com")
    signs_in(sign_in(api, fake))
    assert api.me().ok()["username"].startswith("jane-")


def test_after_five_taken_usernames_it_gives_up(rt, api, fake, corp, provisioning, monkeypatch):
    monkeypatch.setattr(
        "app.external_auth.sign_in.new_accounts.random_alphanumerics", lambda count: "0" * count
    )
    make_user(rt, username="jane", email="first@example.com")
    make_user(rt, username="jane-000000", email="second@example.com")
    fails(sign_in(api, fake), "bad_request")
    nothing_happened(rt, 3)


@pytest.mark.parametrize(
    ("preferred", "username"),
    [
        ("Jane.Doe", "jane-doe"),
        (REMOVED, "jane"),
        (7, "jane"),
        (["jane.doe"], "jane"),
        ("名前", "jane"),
        ("\u202ejane\u0000", "jane"),
    ],
)
def test_the_username(rt, api, fake, corp, provisioning, preferred, username):
    """What is not text is ignored."""
    fake.claims["preferred_username"] = preferred
    signs_in(sign_in(api, fake))
    assert api.me().ok()["username"] == username


@pytest.mark.parametrize("switch", ["require_email_verified", "auto_link_verified_email_enabled"])
def test_an_unverified_address_makes_no_account(rt, api, fake, corp, provisioning, switch):
    other = {"require_email_verified": False, "auto_link_verified_email_enabled": False}
    change_provider(rt, corp, **(other | {switch: True}))
    fake.claims["email_verified"] = False
    if switch == "require_email_verified":
        fails(sign_in(api, fake), DENIED)  # the provider's rules come first
    else:
        asks_for_address(sign_in(api, fake))
    nothing_happened(rt, 1)


def test_while_registration_is_closed_no_account_is_made(rt, api, fake, corp, provisioning):
    configure(rt, auth_allow_user_registration=False)
    asks_for_address(sign_in(api, fake))
    nothing_happened(rt, 1)


def test_the_address_of_an_account_makes_no_second_one(rt, api, fake, corp, provisioning, owner):
    asks_for_address(sign_in(api, fake))
    nothing_happened(rt, 2)


def test_otherwise_an_address_is_asked_for(rt, api, fake, corp, owner, clock):
    asks_for_address(sign_in(api, fake, return_path="/x"), "/x")
    nothing_happened(rt, 2)
    with rt.reading() as connection:
        [row] = connection.execute(sa.select(PendingIdentity.__table__.columns)).all()
    assert (row.identity_namespace, row.subject) == (fake.issuer, SUBJECT)
    assert (row.display_name_snapshot, row.preferred_username_snapshot) == ("Jane Doe", "jane")
    assert row.target_email is None
    assert row.expires_at - row.created_at == timedelta(minutes=30)
    assert JANE not in str(row)


@pytest.mark.parametrize("email", ["jäne@example.com", '"jane doe"@example.com'])
def test_an_address_no_account_can_have_is_asked_for_anew(rt, api, fake, corp, provisioning, email):
    fake.claims["email"] = email
    answer = sign_in(api, fake)
    if '"' in email:
        fails(answer, "auth.credentials_failed")  # the driver takes it for no address at all
    else:
        asks_for_address(answer)
    nothing_happened(rt, 1)


# --- what was decided is what is stored ----------------------------------------------------------


@pytest.mark.both_databases
def test_a_link_ends_with_its_account(rt, api, line, user, fake, corp):
    link(rt, user, corp, subject=SUBJECT)
    line.json("users", "delete", "--yes", user.username)
    assert links(rt) == []
    asks_for_address(sign_in(api, fake))


def test_a_reset_gives_a_provisioned_account_a_password(rt, api, fake, corp, provisioning, mailbox):
    signs_in(sign_in(api, fake))
    user_id = api.me().ok()["id"]
    page = api.stranger()
    page.post("/auth/password/reset/request", {"email": JANE}).ok()
    body = {"token": mailbox.token(mailbox.only()), "new_password": "one of my own"}
    page.post("/auth/password/reset/confirm", body).ok()
    page.login(JANE, "one of my own").ok()
    assert page.me().ok()["id"] == user_id
    assert user_named(rt, "jane").password_hash
