"""What all commands of the `flask` command line share: `--json`, exit codes, refusals, tables.

A command returns an `Output`; how it and every refusal are printed is decided here. Text for people
never contains a control character from outside: a name typed at a login must not be able to control
the terminal of an operator who reads the audit log.
"""

import json
import logging
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click
from click.exceptions import Exit
from flask.cli import AppGroup, ScriptInfo
from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from app.core import folders
from app.core.config import ConfigError
from app.core.errors import AppError, BadRequest, DatabaseUnavailable, ErrorCode, RedisUnavailable
from app.core.runtime import Runtime
from app.core.texts import did_you_mean
from app.store.sqlite import FileGone, kind_of
from app.web import runtime as web_runtime
from app.web.schema import timestamp

F = TypeVar("F", bound=Callable[..., Any])
W = TypeVar("W", bound=str)

log = logging.getLogger(__name__)

REFUSED_EXIT_CODE = 1
# What a shell reports for a writer whose reader, such as `head`, has left: 128 plus SIGPIPE.
BROKEN_PIPE_EXIT_CODE = 141
# Longer than the first sentence of any command's help.
HELP_LIMIT = 500
# The errors of a database that lacks migrations: SQLite's, then PostgreSQL's.
UNPREPARED = ("no such table", "no such column", "UndefinedTable", "UndefinedColumn")
# Everything else is a bug and deserves its traceback.
FAILURES = (AppError, ConfigError, RedisError, SQLAlchemyError, OSError, UnicodeError)


@dataclass(frozen=True)
class Output:
    """A command's output: `data` with `--json`, `text` without; an empty text prints nothing.

    Points in time stand in `data` as such. A `note` is for people only: it goes to standard error,
    so that a script gets just the text.
    """

    data: Any
    text: str = ""
    exit_code: int = 0
    note: str = ""


class Command(click.Command):
    """A command whose callback returns an `Output`, or yields several while it runs.

    It requires an existing instance with its keys, unless `requires_instance` is false: for one
    that makes an instance, or examines what is wrong with it.
    """

    def __init__(self, *args: Any, requires_instance: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._requires_instance = requires_instance
        help_text = "Print JSON on standard output."
        self.params.append(click.Option(["--json", "as_json"], is_flag=True, help=help_text))

    def get_short_help_str(self, limit: int = HELP_LIMIT) -> str:
        """Return the first sentence for a list of commands, never truncated."""
        return super().get_short_help_str(max(limit, HELP_LIMIT))

    def invoke(self, ctx: click.Context) -> None:
        """Run the callback and print what it returns, or why the command failed."""
        as_json = ctx.params.pop("as_json")
        exit_code = 0
        rt = runtime_of(ctx)
        try:
            if self._requires_instance:
                folders.require_instance(rt.config.instance)
                rt.keyring.require()
            outcome: Output | Iterator[Output] = super().invoke(ctx)
            for shown in [outcome] if isinstance(outcome, Output) else outcome:
                _print(shown, as_json=as_json)
                exit_code = shown.exit_code
        except FAILURES as error:
            log.debug("the command failed", exc_info=True)
            exit_code = REFUSED_EXIT_CODE
            _print_refusal(refusal_of(rt, error), as_json=as_json)
        ctx.exit(exit_code)


def runtime_of(context: click.Context) -> Runtime:
    """Return the runtime of the application that a command is for."""
    return web_runtime.of(context.ensure_object(ScriptInfo).load_app())


class Commands(AppGroup):
    """A group of such commands."""

    command_class = Command

    def get_short_help_str(self, limit: int = HELP_LIMIT) -> str:
        """Return the group's sentence for a list of commands, never truncated."""
        return super().get_short_help_str(max(limit, HELP_LIMIT))


class TopCommands(Commands):
    """All commands; for an unknown one it suggests others, including those within groups."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or refuse an unknown one.

        Flask's own group asks here last, and its error would suggest none but its own commands.
        """
        command = super().get_command(ctx, cmd_name)
        if command is None and not ctx.resilient_parsing:
            whole = ctx.command if isinstance(ctx.command, click.Group) else self
            raise click.NoSuchCommand(cmd_name, possibilities=self._known(whole, ctx), ctx=ctx)
        return command

    def _known(self, whole: click.Group, ctx: click.Context) -> Iterator[str]:
        yield from whole.list_commands(ctx)
        for title, group in self.commands.items():
            if isinstance(group, click.Group):
                yield from (f"{title} {name}" for name in group.commands)


class Word(click.Choice[W]):
    """One of several words; the error for a misspelt one suggests which may be meant.

    If there are many, give the parameter a metavar, or its usage line lists them all.
    """

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:  # noqa: ARG002
        """Return how it is typed: an enumeration's value, where click takes its name."""
        return str(choice)

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:  # noqa: ARG002
        """Return the valid words and last, where it is noticed, the one that may be meant."""
        message = f"{value!r} is not one of {', '.join(self.choices)}."
        return message + did_you_mean(str(value), self.choices)


class ValueCommand(Command):
    """Takes -5h as a value: what begins with a hyphen and a digit is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move such a value behind `--`."""
        values = [typed for typed in args if re.match("-[0-9]", typed)]
        if values and "--" not in args:
            args = [*(typed for typed in args if typed not in values), "--", *values]
        return super().parse_args(ctx, args)


def limit_option(usual: int, what: str) -> Callable[[F], F]:
    """Add `--limit` to a command that lists the newest of something."""
    return click.option(
        "--limit",
        type=click.IntRange(1, 10_000),
        default=usual,
        show_default=True,
        help=f"How many of the newest {what} to show, at most 10000.",
    )


def sentence(data: Any, name: str, number: int, what: str) -> Output:
    """Show one object with --json, else say in a sentence what became of it."""
    return Output(data, printable(f"{name} (id {number}) {what}"))


def table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format rows in columns under their titles; "" without rows, so that nothing is printed."""
    cells = ([_cell(value) for value in row] for row in rows)
    if not rows:
        return ""
    head, line, rest = _columns([titles, *cells]).partition("\n")
    return colored(head, bold=True) + line + rest


def colored(text: str, **style: Any) -> str:
    """Give a text a colour or weight for people; not in pipes, and not against `NO_COLOR`."""
    is_wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return click.style(text, **style) if is_wanted and is_terminal else text


def progress(what: str) -> None:
    """Say what takes a while to somebody waiting at a terminal, and nothing to scripts."""
    if sys.stderr is not None and sys.stderr.isatty():
        click.echo(f"{what} ...", err=True)


def details(fields: Mapping[str, object]) -> str:
    """Format one object as lines of name and value."""
    return _columns([[name, _cell(value)] for name, value in fields.items()])


def _columns(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def printable(text: str) -> str:
    """Replace every character that could control a terminal or break the line."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{timestamp(value)}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value)) or "-"
    return printable(str(value))


# --- standard input: passwords and other text that arguments would expose ------------------------


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


def write_new(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file that only its owner may read, and that must not exist yet."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.writelines(pieces)
    except OSError as error:
        raise click.FileError(str(path), error.strerror) from error


def _require_some(text: str) -> str:
    if not text:
        raise BadRequest("Standard input was empty.")
    return text


yes_option = click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask whether to go on, unless `--yes` was given; without a terminal, a script has decided.

    Raises: click.Abort.
    """
    if not is_sure and is_at_terminal():
        click.confirm(printable(question), abort=True, err=True)


# --- refusals: one line that says what stopped a command, or a check of `flask doctor` ------------


class LocalFailure(AppError):
    """Something on this machine, such as a file's permissions, prevents it."""

    code = ErrorCode.CONFIG_ERROR
    message = "The configuration cannot be used."


def refusal_of(rt: Runtime, error: Exception) -> AppError:
    """Return a documented refusal for whatever stopped a command."""
    if isinstance(error, AppError):
        return error
    if isinstance(error, RedisError):
        reason = _first_line(error).rstrip(".")
        return RedisUnavailable(
            f"Redis does not answer: {reason}. Start it, or correct GATEHOUSE_REDIS_URL."
        )
    if isinstance(error, SQLAlchemyError):
        cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
        which = f" {rt.database.file.path}" if rt.database.file else ""
        message = f"The database{which} failed: {_first_line(cause).rstrip('.')}."
        return DatabaseUnavailable(message, remedy=_remedy(rt, error, cause))
    if isinstance(error, UnicodeError):
        return BadRequest("The text is not valid UTF-8.")
    if isinstance(error, OSError) and error.filename:
        return LocalFailure(f"{error.filename}: {error.strerror}")
    return LocalFailure(_first_line(error))


def _remedy(rt: Runtime, error: SQLAlchemyError, cause: BaseException) -> str:
    if any(sign in f"{type(cause).__name__}: {cause}" for sign in UNPREPARED):
        return "Run `flask prepare` first."
    if isinstance(cause, FileGone):
        return (
            "Check that its disk is mounted, put the file or a backup back, or correct "
            "GATEHOUSE_DATABASE_URL; only for a new installation, `flask prepare` creates one."
        )
    if kind_of(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return "Put a backup in its place, or correct GATEHOUSE_DATABASE_URL."
    if rt.database.is_sqlite:
        return (
            "Check that its folder exists, has room and belongs to the user the service runs "
            "as, or correct GATEHOUSE_DATABASE_URL."
        )
    if isinstance(error, OperationalError) and getattr(cause, "pgcode", None) is None:
        # The connection failed or was lost.
        return "Start it, or correct GATEHOUSE_DATABASE_URL."
    return ""


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


# --- standard output ------------------------------------------------------------------------------


def _print(shown: Output, *, as_json: bool) -> None:
    if as_json:
        _say(json.dumps(shown.data, default=timestamp))
        return
    if shown.text:
        _say(shown.text)
    elif shown.data == [] and sys.stdout is not None and sys.stdout.isatty():
        click.echo("nothing to list", err=True)  # scripts get no output at all
    if shown.note:
        click.echo(shown.note, err=True)


def _print_refusal(refusal: AppError, *, as_json: bool) -> None:
    if as_json:
        _say(json.dumps({"code": refusal.code.value, "msg": refusal.message_with_remedy}))
    else:
        error = colored("Error:", fg="red")
        click.echo(f"{error} {printable(refusal.message_with_remedy)}", err=True)


def _say(text: str) -> None:
    """Print to standard output, or end the command, saying why unless only the reader has left.

    This is not a refusal: whatever the command has changed stays changed.
    """
    if sys.stdout is None:  # closed by a job that wants no output
        return
    try:
        _write(f"{text}\n")
    except OSError as error:
        # Otherwise the interpreter would retry the failed write at exit.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise Exit(BROKEN_PIPE_EXIT_CODE) from None
        click.echo(f"Error: The output could not be written: {error.strerror}", err=True)
        raise Exit(REFUSED_EXIT_CODE) from None


def _write(text: str) -> None:
    """Write all of `text`, or raise OSError.

    With PYTHONUNBUFFERED, which our image and systemd unit set, `print` issues a single write: if
    the disk fills up or the reader leaves during it, the rest is silently lost.
    """
    stream = sys.stdout
    stream.flush()
    rest = text.encode(stream.encoding, stream.errors or "strict")
    while rest:
        rest = rest[stream.buffer.write(rest) :]
    stream.buffer.flush()
