"""A run of the bed detects rows that contradict what its clients were told."""

from types import SimpleNamespace

import pytest

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.contact_verification.models import ContactToken
from app.core.client import Client
from app.mail.models import OutboxMail
from deploy.bed.actors.registrar import Registrar
from deploy.bed.ledger import ALARM, Ledger
from tests.support.api import ApiClient
from tests.support.factories import configure, make_user

pytestmark = pytest.mark.postgres

LOGIN = Action.USER_LOGIN


def write(rt, *tags, user_id=1, action=LOGIN):
    with rt.transaction() as session:
        for tag in tags:
            client = Client(user_agent=tag)
            audit.record(
                rt, session, Event(action, EntityType.USER, client=client, user_id=user_id)
            )


def told(**certain):
    """Return a ledger with an attempt under each tag; the value is whether it is certain."""
    ledger = Ledger(phase="phase")
    for tag, is_certain in certain.items():
        ledger.record_change(tag, LOGIN, is_certain=is_certain, user_id=1)
    return ledger


def violations(ledger, rt):
    ledger.compare(rt)
    return [what.split(":")[1].strip() for what in ledger.violations]


@pytest.mark.parametrize(
    ("attempts", "rows", "kinds"),
    [
        ({"a": True, "b": True}, "ab", []),
        ({"a": True, "b": True}, "a", ["lost"]),
        ({"a": True}, "aa", ["doubled"]),
        ({"a": True}, "ab", ["not asked for, or refused"]),
        ({"a": False}, "", []),
        ({"a": False}, "a", []),
        ({"a": False}, "aa", ["doubled"]),
        # A doubled change does not make up for a lost one.
        ({"a": True, "b": False}, "b", ["lost"]),
        ({"a": True, "b": False}, "aa", ["doubled"]),
    ],
)
def test_rows_are_compared_with_answers(rt, attempts, rows, kinds):
    write(rt, *rows)
    assert violations(told(**attempts), rt) == kinds


def test_a_change_for_somebody_else_is_found(rt):
    write(rt, "a", user_id=2)
    ledger = told(a=True)
    assert ledger.compare(rt) == 1
    assert "somebody else's" in ledger.violations[0]


def test_an_alarm_is_found_though_nobody_attempted_anything_like_it(rt):
    write(rt, "a", action=ALARM)
    assert violations(Ledger(), rt) == ["not asked for, or refused"]


def test_what_is_no_change_of_a_client_is_left_alone(rt):
    write(rt, "a", action=Action.USER_MFA_CHALLENGE_FAILED)
    write(rt, None, user_id=0, action=Action.SERVER_START)
    assert violations(Ledger(), rt) == []


@pytest.fixture
def registrar(rt, app):
    """A registrar whose accounts are pending activation."""
    make_user(rt, role="admin")
    configure(rt, auth_register_activation_enabled="true")
    registrar = Registrar(SimpleNamespace(rt=rt, client=lambda: ApiClient(app)), Ledger(), 1)
    registrar.step()
    assert registrar.made == {"new1x0"}
    return registrar


def compared(registrar):
    registrar.compare()
    return registrar.ledger.violations


def test_accounts_are_compared_with_answers(rt, registrar):
    assert compared(registrar) == []
    registrar.made = {"new1x7"}
    [lost, extra] = compared(registrar)
    assert "lost: {'new1x7'}" in lost
    assert "not answered" in extra


def test_an_account_whose_answer_was_unclear_may_be_there(registrar):
    registrar.made, registrar.unclear = set(), {"new1x0", "new1x7"}
    assert compared(registrar) == []


@pytest.mark.parametrize("what", [OutboxMail, ContactToken])
def test_a_registration_that_lost_a_part_is_found(rt, registrar, what):
    with rt.transaction() as session:
        session.query(what).delete()
    [lost] = compared(registrar)
    assert "of new1x0: (1, " in lost


def test_a_registration_that_is_recorded_twice_is_found(rt, registrar):
    write(rt, "another", user_id=2, action=Action.USER_REGISTER)
    [doubled] = compared(registrar)
    assert "of new1x0: (2, 1, 1)" in doubled
