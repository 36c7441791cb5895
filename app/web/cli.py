"""What all commands of the `flask` command line share: `--json`, exit codes, refusals, tables.

A command returns an `Output`; how it and every refusal are printed is decided here. Text for people
never contains a control character from outside: a name typed at a login must not be able to control
the terminal of an operator who reads the audit log.
"""

import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from click.exceptions import Exit
from flask.cli import AppGroup, ScriptInfo

from app.core import folders
from app.core.errors import AppError, BadRequest
from app.core.texts import did_you_mean
from app.web import runtime as web_runtime
from app.web.cli_refusals import FAILURES, refusal_of

W = TypeVar("W", bound=str)

log = logging.getLogger(__name__)

REFUSED_EXIT_CODE = 1
# What a shell reports for a writer whose reader, such as `head`, has left: 128 plus SIGPIPE.
BROKEN_PIPE_EXIT_CODE = 141
# Longer than the first sentence of any command's help.
HELP_LIMIT = 500


@dataclass(frozen=True)
class Output:
    """A command's output: `data` with `--json`, `text` without; an empty text prints nothing.

    A `note` is for people only: it goes to standard error, so that a script gets just the text.
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
        rt = web_runtime.of(ctx.ensure_object(ScriptInfo).load_app())
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
        told = f"{value!r} is not one of {', '.join(self.choices)}."
        return told + did_you_mean(str(value), self.choices)


def table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format rows in columns under their titles; "" without rows, so that nothing is printed."""
    cells = ([_cell(value) for value in row] for row in rows)
    return _columns([titles, *cells]) if rows else ""


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


def _require_some(text: str) -> str:
    if not text:
        raise BadRequest("Nothing came on standard input.")
    return text


# --- standard output ------------------------------------------------------------------------------


def _print(shown: Output, *, as_json: bool) -> None:
    if as_json:
        _say(json.dumps(shown.data))
        return
    if shown.text:
        _say(shown.text)
    elif shown.data == [] and sys.stdout is not None and sys.stdout.isatty():
        click.echo("nothing to list", err=True)  # scripts get no output at all
    if shown.note:
        click.echo(shown.note, err=True)


def _print_refusal(refusal: AppError, *, as_json: bool) -> None:
    if as_json:
        _say(json.dumps({"code": refusal.code.value, "msg": refusal.public_message}))
    else:
        click.echo(f"Error: {printable(refusal.public_message)}", err=True)


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
