"""An invitation leaves PENDING once, whoever comes at the same moment."""

from functools import partial

import pytest

from app.core.access import COMMAND_LINE
from app.core.errors import AppError
from app.invitations import service
from app.invitations.models import Invitation
from app.mail.models import OutboxMail
from app.users.errors import EmailExists
from app.users.models import User
from tests.invitations.conftest import GUEST
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

MANY = 16


def acceptance(guest, **changes):
    return partial(guest.elsewhere().accept, **changes)


def outcome_of(action):
    """Return what to call to get the result of an action, or its refusal."""

    def run():
        try:
            return action()
        except AppError as error:
            return error

    return run


def stored(rt, guest):
    with rt.reading() as session:
        return session.get(Invitation, guest.invitation_id)


@pytest.mark.parametrize("names", [["guest"], [f"guest{n}" for n in range(MANY)]], ids=len)
def test_of_parallel_acceptances_one_makes_an_account(rt, guest, names):
    jobs = [acceptance(guest, username=names[n % len(names)]) for n in range(MANY)]
    answers = run_concurrently(jobs)
    [winner] = [answer for answer in answers if answer.status == 201]
    for answer in answers:
        if answer is not winner:
            answer.fails(400, "auth.invitation_accepted")
    assert count(rt, User) == 2
    assert len(audit_rows(rt, "user_register")) == 1
    row = stored(rt, guest)
    assert (row.status, row.accepted_user_id) == ("accepted", winner.data["id"])


@pytest.mark.parametrize("attempt", range(2))
def test_it_is_accepted_or_revoked_but_not_both(rt, guest, attempt):
    revocation = outcome_of(partial(service.revoke, rt, COMMAND_LINE, str(guest.invitation_id)))
    jobs = [acceptance(guest, username=f"guest{n}") for n in range(4)] + [revocation] * 4
    results = run_concurrently(jobs)
    answers, revoked = results[:4], results[4:]
    accepted = [answer for answer in answers if answer.status == 201]
    took_back = [result for result in revoked if not isinstance(result, AppError)]
    assert len(accepted) + len(took_back) == 1
    code = f"auth.invitation_{'accepted' if accepted else 'revoked'}"
    assert stored(rt, guest).status == code.rpartition("_")[2]
    for answer in answers:
        if answer not in accepted:
            answer.fails(400, code)
    assert {result.code for result in revoked if result not in took_back} == {code}
    assert count(rt, User) == 1 + len(accepted)
    assert len(audit_rows(rt, "admin_revoke_invitation")) == len(took_back)


def test_a_new_invitation_and_an_acceptance_never_wait_for_each_other(rt, guest):
    """Both need the address and the earlier invitation's row."""
    creation = outcome_of(partial(service.create, rt, COMMAND_LINE, email="guest@example.com"))
    jobs = [acceptance(guest, username=f"guest{n}") for n in range(4)] + [creation] * 4
    results = run_concurrently(jobs)
    answers, created = results[:4], results[4:]
    accepted = [answer for answer in answers if answer.status == 201]
    assert len(accepted) <= 1
    for answer in answers:
        if answer not in accepted:
            assert answer.status == 400
            assert answer.code in {
                "auth.invitation_accepted",
                "auth.invitation_revoked",
                "auth.email_exists",
            }
    for result in created:
        assert isinstance(result, service.CreatedInvitation | EmailExists), result
    pending = count(rt, Invitation, Invitation.status == "pending")
    # An invitation made after the acceptance was refused, for the address was taken.
    assert pending == 1 - len(accepted)
    assert count(rt, User) == 1 + len(accepted)


def test_of_parallel_invitations_of_one_address_one_is_open(rt):
    spellings = [f"{'G' if n % 2 else 'g'}uest@example.com" for n in range(MANY)]
    created = run_concurrently(
        [partial(service.create, rt, COMMAND_LINE, email=email) for email in spellings]
    )
    assert len({made.token for made in created}) == MANY
    assert count(rt, Invitation, Invitation.status == "pending") == 1
    assert count(rt, Invitation, Invitation.status == "revoked") == MANY - 1
    assert count(rt, OutboxMail) == MANY


def test_an_address_is_registered_or_accepted_but_not_both(app, rt, guest):
    configure(rt, auth_register_activation_enabled="false")
    body = GUEST | {"email": "Guest@example.com"}
    jobs = [acceptance(guest, username=f"guest{n}") for n in range(4)]
    for number in range(4):
        registration = {**body, "username": f"new{number}"}
        jobs.append(partial(ApiClient(app).post, "/auth/register", registration))
    answers = run_concurrently(jobs)
    assert [answer.status for answer in answers].count(201) == 1
    for answer in answers:
        if answer.status != 201:
            assert answer.code in {"auth.email_exists", "auth.invitation_accepted"}, answer
    assert count(rt, User) == 2


def test_a_username_is_had_once(rt, invite):
    guests = [invite(f"guest{n}@example.com") for n in range(8)]
    answers = run_concurrently([acceptance(guest, username="wanted") for guest in guests])
    assert [answer.status for answer in answers].count(201) == 1
    for guest, answer in zip(guests, answers, strict=True):
        if answer.status != 201:
            answer.fails(400, "auth.username_exists")
            assert stored(rt, guest).status == "pending"


# --- what happens while the password is computed -------------------------------------------------


@pytest.fixture
def while_hashing(rt, monkeypatch):
    """Have something happen when an acceptance has passed every first check."""
    real = rt.passwords.hash

    def arrange(event):
        def overtaken(password):
            monkeypatch.setattr(rt.passwords, "hash", real)
            event()
            return real(password)

        monkeypatch.setattr(rt.passwords, "hash", overtaken)

    return arrange


def test_the_end_that_comes_meanwhile_counts_and_is_kept(rt, guest, clock, while_hashing):
    while_hashing(lambda: clock.advance(days=3))
    guest.accept().fails(400, "auth.invitation_expired")
    assert stored(rt, guest).status == "expired"
    assert count(rt, User) == 1


def test_a_revocation_that_comes_meanwhile_counts(rt, guest, while_hashing):
    while_hashing(lambda: service.revoke(rt, COMMAND_LINE, str(guest.invitation_id)))
    guest.accept().fails(400, "auth.invitation_revoked")
    assert count(rt, User) == 1


def test_an_acceptance_that_comes_meanwhile_counts(rt, guest, while_hashing):
    while_hashing(lambda: guest.elsewhere().accept(username="first").ok(201))
    guest.accept(username="second").fails(400, "auth.invitation_accepted")
    assert count(rt, User) == 2


def test_names_and_addresses_taken_meanwhile_are_taken(rt, guest, while_hashing):
    while_hashing(lambda: make_user(rt, username="GUEST"))
    guest.accept().fails(400, "auth.username_exists")
    while_hashing(lambda: make_user(rt, email="guest@example.com"))
    guest.accept(username="other").fails(400, "auth.email_exists")
    assert stored(rt, guest).status == "pending"


def test_the_end_of_the_storage_route_meanwhile_leaves_it_open(rt, guest, while_hashing):
    while_hashing(lambda: remove_storage_route(rt))
    guest.accept().fails(400, "validation.system_not_initialized")
    assert stored(rt, guest).status == "pending"
