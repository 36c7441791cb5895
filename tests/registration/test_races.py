"""Registrations at the same time: one name or one address is had once."""

from functools import partial

import pytest

from app.contact_verification.models import ContactToken
from app.mail.models import OutboxMail
from app.setup import service as setup
from app.users.models import User
from tests.support.api import ApiClient
from tests.support.factories import (
    audit_rows,
    configure,
    count,
    make_user,
    remove_storage_route,
)
from tests.support.races import run_concurrently

pytestmark = pytest.mark.both_databases

PASSWORD = "correct horse battery"
MANY = 16


@pytest.fixture(autouse=True)
def ready(rt):
    make_user(rt, username="root", role="admin")
    configure(rt, auth_register_activation_enabled="true")


def registration(app, username, email):
    body = {"username": username, "email": email, "password": PASSWORD}
    client = ApiClient(app)
    return partial(client.post, "/auth/register", body)


def in_some_case(text, number):
    """Return one spelling of a text; the first letters are upper case as the bits say."""
    return "".join(c.upper() if number >> place & 1 else c for place, c in enumerate(text))


def insist_on_one(rt, answers, codes):
    winners = [answer for answer in answers if answer.status == 201]
    assert len(winners) == 1, [answer.code for answer in answers]
    for answer in answers:
        if answer is not winners[0]:
            assert (answer.status, answer.code) in {(400, code) for code in codes}, answer
    assert count(rt, User) == 2
    assert count(rt, OutboxMail) == count(rt, ContactToken) == 1
    assert len(audit_rows(rt, "user_register")) == 1


def test_one_name_in_any_case_is_had_once(app, rt):
    jobs = [
        registration(app, in_some_case("gadget", number), f"user{number}@example.com")
        for number in range(MANY)
    ]
    insist_on_one(rt, run_concurrently(jobs), {"auth.username_exists", "auth.identifier_exists"})


def test_one_address_in_any_case_is_had_once(app, rt):
    jobs = [
        registration(app, f"user{number}", in_some_case("gadget@example.com", number))
        for number in range(MANY)
    ]
    insist_on_one(rt, run_concurrently(jobs), {"auth.email_exists"})


def test_one_name_and_address_are_had_once(app, rt):
    jobs = [registration(app, "gadget", "gadget@example.com")] * MANY
    codes = {"auth.username_exists", "auth.email_exists", "auth.identifier_exists"}
    insist_on_one(rt, run_concurrently(jobs), codes)


def test_an_abandoned_account_gives_its_place_once(app, rt, clock):
    make_user(rt, username="gadget", email="gadget@example.com", activated=False)
    clock.advance(days=8)
    jobs = [registration(app, "gadget", "gadget@example.com")] * MANY
    codes = {"auth.username_exists", "auth.email_exists", "auth.identifier_exists"}
    insist_on_one(rt, run_concurrently(jobs), codes)


def test_different_accounts_do_not_hinder_each_other(app, rt):
    jobs = [registration(app, f"u{n}", f"u{n}@example.com") for n in range(MANY)]
    assert [answer.status for answer in run_concurrently(jobs)] == [201] * MANY


def test_an_address_is_either_registered_or_changed_to(app, rt):
    """The unique columns of both do not see each other."""
    jobs = []
    for number in range(MANY // 2):
        member = make_user(rt)
        client = ApiClient(app)
        client.login(member).ok()
        email = in_some_case("wanted@example.com", number)
        body = {"new_email": email}
        jobs.append(partial(client.post, "/auth/email/change", body))
        jobs.append(registration(app, f"new{number}", email))
    answers = run_concurrently(jobs)
    winners = [answer for answer in answers if answer.status in {200, 201}]
    assert len(winners) == 1, [answer.code for answer in answers]
    for answer in answers:
        if answer is not winners[0]:
            answer.fails(400, "auth.email_exists")
    wanted = "wanted@example.com"
    assert count(rt, User, (User.email == wanted) | (User.pending_email == wanted)) == 1
    assert count(rt, OutboxMail) == 1


def test_a_registration_overtaken_by_the_end_of_the_storage_route_is_refused(
    app, rt, api, monkeypatch
):
    real = setup.require_ready_now

    def overtaken(rt):
        real(rt)
        monkeypatch.undo()
        remove_storage_route(rt)

    monkeypatch.setattr(setup, "require_ready_now", overtaken)
    answer = registration(app, "late", "late@example.com")()
    answer.fails(400, "validation.system_not_initialized")
    assert count(rt, User) == 1
