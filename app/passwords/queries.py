"""Statements for resetting a forgotten password."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam

from app.audit import queries as audit_queries
from app.contact_verification import queries as tokens_queries
from app.core.database.prepared import Step, constant
from app.users.models import Account, Status, User

# The account may have its password reset (decision E3) and still has the address it was found by.
_IS_OPEN = (
    (User.id == bindparam("account_id"))
    & (User.email == bindparam("address"))
    & (User.status == constant(Status.ACTIVE))
    & User.activated_at.is_not(None)
)
STORE_FOR_OPEN = tokens_queries.store_statement_for(_IS_OPEN, "account_id")
_RECORD_IF_OPEN = audit_queries.add_if(_IS_OPEN, "account_id", "address")


def entry_steps(account: Account, entry: Mapping[str, Any] | None) -> list[Step]:
    """Return the step that adds an audit entry if the account is still open; [] for None."""
    whom = {"account_id": account.id, "address": account.email}
    return audit_queries.entry_steps(_RECORD_IF_OPEN, entry, **whom)
