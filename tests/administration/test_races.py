"""What two operators do at the same moment."""

import pytest

from app.administration import accounts
from app.administration.errors import AdministratorUndeletable, LastAdministrator
from app.users import service as users
from app.users.models import Role, Status
from tests.support.factories import make_user
from tests.support.races import run_concurrently


def outcome(action, rt, *arguments):
    """Return what it returns or raises."""
    try:
        return action(rt, *arguments)
    except Exception as error:
        return error


@pytest.mark.parametrize("attempt", range(5))
def test_two_administrators_cannot_put_each_other_out(rt, attempt):
    one, other = (make_user(rt, role="admin") for _ in range(2))
    results = run_concurrently(
        [
            lambda: outcome(accounts.set_status, rt, one.username, Status.DISABLED),
            lambda: outcome(accounts.set_role, rt, other.username, Role.USER),
        ]
    )
    assert sum(isinstance(result, LastAdministrator) for result in results) == 1


@pytest.mark.parametrize("attempt", range(5))
def test_an_account_is_promoted_or_deleted_but_not_both(rt, admin, attempt):
    user = make_user(rt)
    promoted, deleted = run_concurrently(
        [
            lambda: outcome(accounts.set_role, rt, user.username, Role.ADMIN),
            lambda: outcome(accounts.delete, rt, user.username),
        ]
    )
    if isinstance(deleted, AdministratorUndeletable):
        with rt.reading() as connection:
            assert users.get(connection, user.id).role == Role.ADMIN
    else:
        assert isinstance(promoted, users.UserNotFound)
