"""One change to many accounts, each in a transaction of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.core.access import ClosedToTokens, Operator
from app.core.errors import AppError, BadRequest, Conflict, NotFound
from app.core.runtime import Runtime
from app.storage_policies import service as storage
from app.user_admin import service as accounts
from app.user_admin.errors import GroupMisplaced
from app.users.models import Status

# What is wrong with one account; any other error is not about an account and ends the run.
REFUSALS = (BadRequest, Conflict, NotFound, ClosedToTokens)


class BulkAction(StrEnum):
    """What is done to each account."""

    DISABLE = "disable"
    ENABLE = "enable"
    REVOKE_SESSIONS = "revoke_sessions"
    REQUIRE_PASSWORD_CHANGE = "require_password_change"
    DELETE = "delete"
    ASSIGN_GROUP = "assign_group"


@dataclass(frozen=True)
class AccountRefusal:
    """An account that was left as it is, and why."""

    id: int
    error: AppError


@dataclass(frozen=True)
class BulkOutcome:
    """The accounts that were changed, and those that were refused."""

    done: Sequence[int]
    refused: Sequence[AccountRefusal]


def change(
    rt: Runtime,
    by: Operator,
    *,
    ids: Sequence[int],
    action: BulkAction,
    policy_group_id: int | None = None,
) -> BulkOutcome:
    """Change accounts; one that is refused does not keep back the others.

    `policy_group_id` is for ASSIGN_GROUP. Raises: errors.CHANGE_MANY.
    """
    if (action is BulkAction.ASSIGN_GROUP) != (policy_group_id is not None):
        raise GroupMisplaced
    if policy_group_id is not None:
        with rt.reading() as session:
            storage.get_assignable(session, policy_group_id)
    done, refused = [], []
    # The operator's own account comes last: its sessions may be what ends.
    for user_id in sorted(dict.fromkeys(ids), key=lambda user_id: user_id == by.user_id):
        try:
            _change_one(rt, by, user_id, action, policy_group_id)
        except REFUSALS as error:
            refused.append(AccountRefusal(user_id, error))
        else:
            done.append(user_id)
    return BulkOutcome(done, refused)


def _change_one(
    rt: Runtime, by: Operator, user_id: int, action: BulkAction, policy_group_id: int | None
) -> None:
    changes: dict[BulkAction, dict[str, Any]] = {
        BulkAction.DISABLE: {"status": Status.DISABLED},
        BulkAction.ENABLE: {"status": Status.ACTIVE},
        BulkAction.REQUIRE_PASSWORD_CHANGE: {"must_change_password": True},
        BulkAction.ASSIGN_GROUP: {"policy_group": policy_group_id},
    }
    if action is BulkAction.DELETE:
        accounts.delete(rt, by, user_id)
    elif action is BulkAction.REVOKE_SESSIONS:
        accounts.revoke_sessions(rt, by, user_id)
    else:
        accounts.update(rt, by, user_id, **changes[action])
