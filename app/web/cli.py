"""What all commands of the `flask` command line share: `--json`, exit codes, refusals, tables.

A command returns an `Output`; how it and every refusal are printed is decided here. Text for people
never contains a control character from outside: a name typed at a login must not be able to control
the terminal of an operator who reads the audit log.
"""

import errno
import json
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import click
from click.exceptions import Exit
from flask.cli import AppGroup, ScriptInfo

from app.core import folders
from app.core.errors import AppError
from app.core.runtime import Runtime
from app.web import runtime as web_runtime
from app.web.cli_refusals import FAILURES, refusal_of

log = logging.getLogger(__name__)

REFUSED_EXIT_CODE = 1
# What a shell reports for a writer whose reader, such as `head`, has left: 128 plus SIGPIPE.
BROKEN_PIPE_EXIT_CODE = 141
HELP_OPTIONS = ["-h", "--help"]
# Longer than the first sentence of any command's help.
HELP_LIMIT = 500
_NEGATIVE = re.compile(r"-[0-9]")


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

    It requires an existing instance with its keys. `allows_missing_instance` is for one that makes
    an instance, `allows_missing_keys` for one that examines what is wrong with it.
    """

    def __init__(
        self,
        *args: Any,
        allows_missing_instance: bool = False,
        allows_missing_keys: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._needs_folder = not allows_missing_instance
        self._needs_keys = not (allows_missing_instance or allows_missing_keys)
        help_text = "Print JSON on standard output."
        self.params.append(click.Option(["--json", "as_json"], is_flag=True, help=help_text))
        self.context_settings.setdefault("help_option_names", HELP_OPTIONS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accept a negative number as a value instead of rejecting it as an unknown option."""
        ctx.ignore_unknown_options |= any(_NEGATIVE.match(typed) for typed in args)
        return super().parse_args(ctx, args)

    def make_parser(self, ctx: click.Context) -> Any:
        """Return a parser that takes -h only as a whole word: in -5h it is part of a value."""
        parser = super().make_parser(ctx)
        if (of_help := parser._short_opt.pop("-h", None)) is not None:
            parser._long_opt["-h"] = of_help
        return parser

    def get_short_help_str(self, limit: int = HELP_LIMIT) -> str:
        """Return the first sentence for a list of commands, never truncated."""
        return super().get_short_help_str(max(limit, HELP_LIMIT))

    def invoke(self, ctx: click.Context) -> None:
        """Run the callback and print what it returns, or why the command failed."""
        as_json = ctx.params.pop("as_json")
        exit_code = 0
        try:
            self._require_instance(web_runtime.of(ctx.ensure_object(ScriptInfo).load_app()))
            outcome: Output | Iterator[Output] = super().invoke(ctx)
            for shown in [outcome] if isinstance(outcome, Output) else outcome:
                _print(shown, as_json=as_json)
                exit_code = shown.exit_code
        except FAILURES as error:
            log.debug("the command failed", exc_info=True)
            exit_code = REFUSED_EXIT_CODE
            _print_refusal(refusal_of(error), as_json=as_json)
        ctx.exit(exit_code)

    def _require_instance(self, rt: Runtime) -> None:
        if self._needs_folder:
            folders.require_instance(rt.config.instance)
        if self._needs_keys:
            rt.keyring.require()


class Commands(AppGroup):
    """A group of such commands."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.context_settings.setdefault("help_option_names", HELP_OPTIONS)

    def get_short_help_str(self, limit: int = HELP_LIMIT) -> str:
        """Return the group's sentence for a list of commands, never truncated."""
        return super().get_short_help_str(max(limit, HELP_LIMIT))


class TopCommands(Commands):
    """All commands; for an unknown one it suggests others, including those within groups."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None.

        Flask's own group asks here last, and its error would suggest none but its own commands: so
        an unknown command is refused here.
        """
        command = super().get_command(ctx, cmd_name)
        if command is None and ctx.command is not self and not ctx.resilient_parsing:
            self._refuse(ctx, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command to call, or refuse an unknown one."""
        if args[0] not in self.commands:
            self._refuse(ctx, args[0])
        return super().resolve_command(ctx, args)

    def _refuse(self, ctx: click.Context, typed: str) -> NoReturn:
        meant = " or ".join(self._within_groups(typed))
        message = f"No such command {typed!r}. Did you mean {meant}?" if meant else None
        whole = ctx.command if isinstance(ctx.command, click.Group) else self
        known = [] if meant else whole.list_commands(ctx)
        raise click.NoSuchCommand(typed, message, known, ctx)

    def _within_groups(self, name: str) -> Iterator[str]:
        for title, group in self.commands.items():
            if isinstance(group, click.Group) and name in group.commands:
                yield f"'{title} {name}'"


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


def _print(shown: Output, *, as_json: bool) -> None:
    if as_json:
        _say(json.dumps(shown.data))
        return
    if shown.text:
        _say(shown.text)
    elif shown.data == [] and _is_read_by_people():  # scripts get no output at all
        click.echo("nothing to list", err=True)
    if shown.note:
        click.echo(shown.note, err=True)


def _is_read_by_people() -> bool:
    """Return whether standard output is a terminal; that of a job may even be closed."""
    return sys.stdout is not None and sys.stdout.isatty()


def _print_refusal(refusal: AppError, *, as_json: bool) -> None:
    if as_json:
        _say(json.dumps({"code": refusal.code.value, "msg": refusal.public_message}))
    else:
        click.echo(f"Error: {printable(refusal.public_message)}", err=True)


def _write_all(text: str) -> None:
    """Write all of `text` to standard output, or raise OSError.

    With PYTHONUNBUFFERED, which our image and systemd unit set, `print` issues a single write: if
    the disk fills up or the reader leaves during it, the rest is silently lost.
    """
    stream = sys.stdout
    if stream is None:  # closed by a job that wants no output
        return
    stream.flush()
    rest = text.encode(stream.encoding, stream.errors or "strict")
    while rest:
        written = stream.buffer.write(rest)
        if written is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        rest = rest[written:]
    stream.buffer.flush()


def _say(text: str) -> None:
    """Print to standard output, or end the command, saying why unless only the reader has left.

    This is not a refusal: whatever the command has changed stays changed.
    """
    try:
        _write_all(f"{text}\n")
    except OSError as error:
        # Otherwise the interpreter would retry the failed write at exit.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise Exit(BROKEN_PIPE_EXIT_CODE) from None
        click.echo(f"Error: The output could not be written: {error.strerror}", err=True)
        raise Exit(REFUSED_EXIT_CODE) from None
