"""What commands read from standard input: passwords and other text that arguments would expose."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from app.core.errors import BadRequest

F = TypeVar("F", bound=Callable[..., Any])


def is_at_terminal() -> bool:
    """Return whether the user can be prompted; standard input may be closed."""
    return sys.stdin is not None and sys.stdin.isatty()


def read_secret(label: str) -> str:
    """Return one line of standard input; at a terminal, prompt for it twice without echo.

    Raises: BadRequest if there is none.
    """
    if is_at_terminal():
        answer: str = click.prompt(label, hide_input=True, confirmation_prompt=True, err=True)
        return answer
    return _require_some(sys.stdin.readline() if sys.stdin else "").rstrip("\r\n")


def read_text() -> str:
    """Return all of standard input.

    Raises: BadRequest if it is empty: a file that could not be read must not clear anything.
    """
    return _require_some(sys.stdin.read() if sys.stdin else "")


def password_options(function: F) -> F:
    """Add `--password` and `--generate`; `chosen_password` reads them."""
    function = click.option(
        "--generate",
        is_flag=True,
        help="Generate a password, print it, and require a new one at the next login.",
    )(function)
    return click.option(
        "--password", metavar="PASSWORD", help="The password; - reads it from standard input."
    )(function)


def chosen_password(password: str | None, *, generate: bool) -> str | None:
    """Return the password to set; None to generate one.

    With neither option, prompt for it at a terminal; a script gets a generated one.
    """
    if password is not None and generate:
        raise click.UsageError("--password and --generate exclude each other")
    is_asked = password is None and not generate and is_at_terminal()
    if is_asked or password == "-":
        return read_secret("Password")
    return password


def _require_some(text: str) -> str:
    if not text:
        raise BadRequest("Nothing came on standard input.")
    return text
