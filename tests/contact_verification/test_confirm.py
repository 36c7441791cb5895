"""GET /auth/contact-verification/confirm."""

from datetime import timedelta
from functools import partial
from unittest.mock import Mock

import pytest

from app.contact_verification.models import ContactToken, LinkPurpose
from app.core.access import COMMAND_LINE
from app.user_admin import service as accounts
from app.users.models import Status
from tests.support.api import ApiClient
from tests.support.factories import (
    audit_rows,
    change_user,
    column_of,
    configure,
    count,
    delete_user,
    issue_token,
    make_user,
)
from tests.support.races import run_concurrently

CONFIRM = "/auth/contact-verification/confirm"
NEW = "new+one@example.com"
OLD_MOMENT = "activated_at", "email_verified_at"


def addressee(message):
    [address] = message["To"].addresses
    return address.addr_spec


def follow(client, token=None, **options):
    path = CONFIRM if token is None else f"{CONFIRM}?token={token}"
    return client.get(path, **options)


def location(answer):
    """Insist on a redirect; return where to."""
    assert (answer.status, answer.body) == (302, b""), answer
    assert answer.headers.getlist("Referrer-Policy") == ["no-referrer"]
    assert answer.headers.getlist("Cache-Control") == ["no-store"]
    assert answer.set_cookies == {}
    [found] = answer.headers.getlist("Location")
    return found


def outcome(answer):
    return location(answer).partition("contact_verification=")[2]


@pytest.fixture
def waiting(rt):
    """An account that waits for its activation."""
    return make_user(rt, username="Ada", activated=False, verified=False)


@pytest.fixture
def changing(rt, user):
    """An account that asked for another address."""
    change_user(rt, user, pending_email=NEW)
    return user


# --- activation --------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_an_activation_opens_the_account(rt, api, waiting, clock):
    token = issue_token(rt, waiting, LinkPurpose.REGISTER_ACTIVATION)
    api.login(waiting).fails(403, "auth.pending_activation")
    clock.advance(hours=1)
    assert location(follow(api, token)) == "/login?contact_verification=register-activated"
    assert [column_of(rt, waiting, name) for name in OLD_MOMENT] == [clock.now()] * 2
    api.login(waiting).ok()


def test_an_activation_is_audited(rt, api, waiting):
    token = issue_token(rt, waiting, LinkPurpose.REGISTER_ACTIVATION)
    follow(api, token, headers={"User-Agent": "Firefox"})
    [entry] = audit_rows(rt, "user_confirm_registration")
    assert (entry.user_id, entry.entity_type, entry.entity_id) == (waiting.id, "user", waiting.id)
    assert (entry.entity_name, entry.user_agent) == ("Ada", "Firefox")
    assert token not in str(entry)


def test_what_was_activated_before_keeps_its_times(rt, api, waiting, clock):
    token = issue_token(rt, waiting, LinkPurpose.REGISTER_ACTIVATION)
    clock.advance(hours=1)
    change_user(rt, waiting, activated_at=clock.now(), email_verified_at=clock.now())
    before = [column_of(rt, waiting, name) for name in OLD_MOMENT]
    clock.advance(hours=1)
    assert outcome(follow(api, token)) == "register-activated"
    assert [column_of(rt, waiting, name) for name in OLD_MOMENT] == before


def test_an_activation_for_another_address_is_invalid(rt, api, waiting):
    token = issue_token(rt, waiting, LinkPurpose.REGISTER_ACTIVATION, "other@example.com")
    assert outcome(follow(api, token)) == "invalid"
    assert column_of(rt, waiting, "activated_at") is None


# --- change of address -------------------------------------------------------------------------


@pytest.mark.both_databases
def test_a_change_makes_the_new_address_the_accounts_own(rt, api, changing, mailbox, clock):
    change_user(rt, changing, email_verified_at=None)
    token = issue_token(rt, changing, LinkPurpose.CONTACT_CHANGE, NEW)
    expected = "/login?contact_verification=email-changed&email=new%2Bone%40example.com"
    assert location(follow(api, token)) == expected
    api.login(NEW, changing.password).ok()
    me = api.me().ok()
    assert (me["email"], me["pending_email"], me["email_verified"]) == (NEW, None, True)
    assert column_of(rt, changing, "email_verified_at") == clock.now()
    api.stranger().login(changing.email, changing.password).fails(401, "auth.credentials_failed")


def test_the_old_address_is_told(rt, api, changing, mailbox):
    follow(api, issue_token(rt, changing, LinkPurpose.CONTACT_CHANGE, NEW))
    message = mailbox.only()
    assert addressee(message) == changing.email
    told = message.get_body(("plain",)).get_content()
    assert changing.username in told
    assert NEW in told


def test_a_change_is_audited(rt, api, changing):
    follow(api, issue_token(rt, changing, LinkPurpose.CONTACT_CHANGE, NEW))
    [entry] = audit_rows(rt, "user_confirm_email_change")
    assert (entry.user_id, entry.entity_id) == (changing.id, changing.id)
    assert entry.entity_name == changing.username
    assert NEW in entry.details
    assert changing.email in entry.details


def test_sessions_go_on(rt, signed_in, changing):
    version = column_of(rt, changing, "session_version")
    follow(signed_in.stranger(), issue_token(rt, changing, LinkPurpose.CONTACT_CHANGE, NEW))
    assert signed_in.me().ok()["email"] == NEW
    signed_in.refresh().ok()
    assert column_of(rt, changing, "session_version") == version


def test_every_other_link_of_the_account_is_void(rt, api, changing):
    others = [
        issue_token(rt, changing, purpose) for purpose in LinkPurpose if purpose != "contact_change"
    ]
    follow(api, issue_token(rt, changing, LinkPurpose.CONTACT_CHANGE, NEW))
    assert count(rt, ContactToken) == 0
    assert outcome(follow(api, others[0])) == "invalid"


def test_links_of_other_accounts_are_not(rt, api, changing):
    other = make_user(rt)
    token = issue_token(rt, other, LinkPurpose.REGISTER_ACTIVATION)
    follow(api, issue_token(rt, changing, LinkPurpose.CONTACT_CHANGE, NEW))
    assert outcome(follow(api, token)) == "register-activated"


@pytest.mark.parametrize("pending", [None, "third@example.com"])
def test_a_change_to_what_is_not_pending_is_invalid(rt, api, changing, mailbox, pending):
    token = issue_token(rt, changing, LinkPurpose.CONTACT_CHANGE, NEW)
    change_user(rt, changing, pending_email=pending)
    assert outcome(follow(api, token)) == "invalid"
    assert column_of(rt, changing, "email") == changing.email
    assert mailbox.read() == []


@pytest.mark.both_databases
def test_an_address_taken_meanwhile_is_refused_and_the_token_kept(rt, api, changing, mailbox):
    token = issue_token(rt, changing, LinkPurpose.CONTACT_CHANGE, NEW)
    thief = make_user(rt, username="thief")
    change_user(rt, thief, email=NEW)  # behind the back of everything that prevents it
    follow(api, token).fails(400, "auth.email_exists")
    assert column_of(rt, changing, "email") == changing.email
    assert mailbox.read() == []
    delete_user(rt, thief)
    assert outcome(follow(api, token)).startswith("email-changed")


# --- whoever must not, and tokens that are no good ---------------------------------------------


@pytest.mark.parametrize("purpose", ["register_activation", "contact_change"])
def test_a_disabled_account_is_refused_and_the_token_kept(rt, api, changing, purpose):
    address = NEW if purpose == "contact_change" else changing.email
    token = issue_token(rt, changing, LinkPurpose(purpose), address)
    change_user(rt, changing, status="disabled")
    follow(api, token).fails(403, "auth.account_disabled")
    assert column_of(rt, changing, "email") == changing.email
    change_user(rt, changing, status="active")
    assert outcome(follow(api, token)) != "invalid"


def test_without_a_token_it_is_missing(api):
    for token in (None, "", "%20", "+", "%09%0A"):
        assert location(follow(api, token)) == "/login?contact_verification=missing", token


def test_an_unknown_token_is_invalid(rt, api, monkeypatch):
    # Who writes nonsense must not take turns with those who have something to write.
    monkeypatch.setattr(rt.database, "transaction", Mock(side_effect=AssertionError))
    for token in (
        "nonsense",
        "cv_",
        "cv_" + "A" * 43,
        "x" * 3000,
        "%00",
        "%FF%FE",
        "%F0%9F%98%80",
        "'%20OR%20'1'='1",
        "%0D%0ALocation:%20https://elsewhere.example",
    ):
        assert location(follow(api, token)) == "/login?contact_verification=invalid", token


def test_a_token_works_once(rt, api, waiting):
    token = issue_token(rt, waiting, LinkPurpose.REGISTER_ACTIVATION)
    assert outcome(follow(api, token)) == "register-activated"
    assert outcome(follow(api, token)) == "invalid"


def test_the_token_is_trimmed(rt, api, waiting):
    token = issue_token(rt, waiting, LinkPurpose.REGISTER_ACTIVATION)
    assert outcome(follow(api, f"%20{token}%20")) == "register-activated"


def test_a_replaced_token_is_invalid(rt, api, waiting):
    old = issue_token(rt, waiting, LinkPurpose.REGISTER_ACTIVATION)
    new = issue_token(rt, waiting, LinkPurpose.REGISTER_ACTIVATION)
    assert outcome(follow(api, old)) == "invalid"
    assert outcome(follow(api, new)) == "register-activated"


def test_a_token_expires_to_the_second(rt, api, waiting, clock):
    token = issue_token(rt, waiting, LinkPurpose.REGISTER_ACTIVATION, life=timedelta(seconds=300))
    other = make_user(rt, activated=False)
    in_time = issue_token(rt, other, LinkPurpose.REGISTER_ACTIVATION, life=timedelta(seconds=301))
    clock.advance(seconds=300)
    assert location(follow(api, token)) == "/login?contact_verification=expired"
    assert location(follow(api, token)) == "/login?contact_verification=expired"
    assert column_of(rt, waiting, "activated_at") is None
    assert outcome(follow(api, in_time)) == "register-activated"


def test_a_reset_token_is_invalid_here_and_not_used_up(rt, api, user):
    issue_token(rt, user, LinkPurpose.PASSWORD_RESET)
    token = issue_token(rt, user, LinkPurpose.PASSWORD_RESET)
    assert outcome(follow(api, token)) == "invalid"
    assert count(rt, ContactToken) == 1


def test_the_token_of_a_deleted_account_is_invalid(rt, api, waiting):
    token = issue_token(rt, waiting, LinkPurpose.REGISTER_ACTIVATION)
    delete_user(rt, waiting)
    assert outcome(follow(api, token)) == "invalid"


def test_the_first_of_several_tokens_counts(rt, api, waiting):
    token = issue_token(rt, waiting, LinkPurpose.REGISTER_ACTIVATION)
    assert outcome(follow(api, f"{token}&token=x")) == "register-activated"


# --- where to ----------------------------------------------------------------------------------


def test_whoever_is_signed_in_goes_to_the_security_page(signed_in):
    for client in (signed_in, signed_in.bearer(), signed_in.browser()):
        assert location(follow(client)) == "/settings/security?contact_verification=missing"
        assert location(follow(client, "x")) == "/settings/security?contact_verification=invalid"


def test_a_session_that_changes_its_address_goes_to_the_security_page(rt, signed_in, changing):
    token = issue_token(rt, changing, LinkPurpose.CONTACT_CHANGE, NEW)
    path, _, query = location(follow(signed_in, token)).partition("?")
    assert path == "/settings/security"
    assert query == "contact_verification=email-changed&email=new%2Bone%40example.com"


ENDED = {
    "logged out": lambda api, rt, user: api.twin().post("/auth/logout"),
    "expired": lambda api, rt, user: rt.clock.advance(hours=1),
    "revoked": lambda api, rt, user: accounts.revoke_sessions(rt, COMMAND_LINE, user.username),
    "disabled": lambda api, rt, user: change_user(rt, user, status="disabled"),
    "deleted": lambda api, rt, user: delete_user(rt, user),
    "garbage": lambda api, rt, user: api.set_cookie("service_access", "garbage"),
    "empty": lambda api, rt, user: api.set_cookie("service_access", ""),
}


@pytest.mark.parametrize("event", ENDED)
def test_whose_session_is_over_goes_to_the_login_page(rt, signed_in, user, event):
    ENDED[event](signed_in, rt, user)
    assert location(follow(signed_in, "x")) == "/login?contact_verification=invalid"


def test_the_sites_first_address_comes_before_the_path(rt, api):
    configure(rt, public_site_url=["https://files.example.com", "https://other.example.com"])
    expected = "https://files.example.com/login?contact_verification=missing"
    assert location(follow(api)) == expected
    headers = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    assert location(follow(api, headers=headers)) == expected


def test_no_source_is_asked_for(rt, api, waiting):
    """The link is followed from a mail program or a web mailer."""
    configure(rt, auth_strict_request_source=True)
    token = issue_token(rt, waiting, LinkPurpose.REGISTER_ACTIVATION)
    headers = {"Sec-Fetch-Site": "cross-site", "Referer": "https://mail.example/inbox"}
    assert outcome(follow(api, token, headers=headers)) == "register-activated"


def test_it_works_while_passwords_and_registration_are_off(rt, api, waiting):
    configure(rt, auth_password_login_enabled=False, auth_allow_user_registration=False)
    token = issue_token(rt, waiting, LinkPurpose.REGISTER_ACTIVATION)
    assert outcome(follow(api, token)) == "register-activated"


def test_a_look_by_head_uses_nothing_up_and_tells_nothing(rt, api, waiting):
    token = issue_token(rt, waiting, LinkPurpose.REGISTER_ACTIVATION)
    for presented in (token, "nonsense", ""):
        answer = api.call("HEAD", f"{CONFIRM}?token={presented}")
        assert location(answer) == "/login"
    assert column_of(rt, waiting, "activated_at") is None
    assert outcome(follow(api, token)) == "register-activated"


def test_the_redirect_is_described(api):
    document = api.get("/openapi.json").json
    described = document["paths"]["/api/v1/auth/contact-verification/confirm"]["get"]
    [parameter] = described["parameters"]
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("token", "query", False)
    assert "Location" in described["responses"]["302"]["headers"]
    assert "content" not in described["responses"]["302"]
    refusals = {status for status in described["responses"] if status != "302"}
    assert refusals == {"400", "403", "429", "500", "503"}


# --- races -------------------------------------------------------------------------------------


@pytest.mark.both_databases
@pytest.mark.parametrize("purpose", ["register_activation", "contact_change"])
def test_of_sixteen_clicks_at_once_one_succeeds(app, rt, changing, mailbox, purpose):
    address = NEW if purpose == "contact_change" else changing.email
    token = issue_token(rt, changing, LinkPurpose(purpose), address)
    answers = run_concurrently([partial(follow, ApiClient(app), token) for _ in range(16)])
    outcomes = sorted(outcome(answer).partition("&")[0] for answer in answers)
    success = "email-changed" if purpose == "contact_change" else "register-activated"
    assert outcomes == sorted(["invalid"] * 15 + [success])
    deed = "email_change" if purpose == "contact_change" else "registration"
    assert len(audit_rows(rt, f"user_confirm_{deed}")) == 1
    assert len(mailbox.read()) == (purpose == "contact_change")


@pytest.mark.both_databases
def test_a_click_and_the_accounts_end_do_not_break_each_other(app, rt):
    """Whatever is first, neither fails."""
    for _ in range(5):
        user = make_user(rt, activated=False)
        token = issue_token(rt, user, LinkPurpose.REGISTER_ACTIVATION)
        answers = run_concurrently(
            [partial(follow, ApiClient(app), token) for _ in range(4)]
            + [partial(accounts.delete, rt, COMMAND_LINE, user.username)]
        )
        assert {answer.status for answer in answers[:4]} == {302}


@pytest.mark.both_databases
def test_a_click_and_a_disabling_at_once(app, rt):
    for _ in range(5):
        user = make_user(rt, activated=False)
        token = issue_token(rt, user, LinkPurpose.REGISTER_ACTIVATION)
        [answer, _] = run_concurrently(
            [
                partial(follow, ApiClient(app), token),
                partial(accounts.update, rt, COMMAND_LINE, user.username, status=Status.DISABLED),
            ]
        )
        is_activated = column_of(rt, user, "activated_at") is not None
        assert is_activated == (answer.status == 302)
        if answer.status != 302:
            answer.fails(403, "auth.account_disabled")
