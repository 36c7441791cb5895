"""What commands of several areas take: an account."""

from typing import Any

import click

from app.core.parsing import parse_size
from app.core.texts import folded
from app.users import queries
from app.users.models import User
from app.web.cli import FAILURES, runtime_of

MAX_OFFERED = 1000


def complete_user(context: click.Context, _: click.Parameter, typed: str) -> list[str]:
    """Return the usernames that begin as typed; none while the database does not answer."""
    try:
        with runtime_of(context).reading() as session:
            begins = User.username_key.startswith(folded(typed), autoescape=True)
            found = queries.list_matching(session, MAX_OFFERED, begins)
    except FAILURES:
        return []
    return [account.username for account in found]


user_argument = click.argument("user", shell_complete=complete_user)


class Size(click.IntRange):
    """A number of bytes, or a size with its unit."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number of bytes."""
        try:
            return super().convert(parse_size(value), param, ctx)
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)
