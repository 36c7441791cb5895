"""Runs commands of the `flask` command line within the test's own application."""

import json
from dataclasses import dataclass
from typing import Any, cast

from flask import Flask


@dataclass(frozen=True)
class CommandResult:
    """The result of one command."""

    arguments: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """Assert success; return the text output."""
        assert self.exit_code == 0, self
        return self.stdout.strip()

    @property
    def json(self) -> Any:
        """Assert success and that the only output is JSON; return it parsed."""
        assert (self.exit_code, self.stderr) == (0, ""), self
        return json.loads(self.stdout)

    def refuses(self, code: str) -> str:
        """Assert failure with a JSON error of this code; return its message."""
        assert (self.exit_code, self.stderr) == (1, ""), self
        body = json.loads(self.stdout)
        assert list(body) == ["code", "msg"], self
        assert body["code"] == code, self
        return cast("str", body["msg"])

    def complains(self) -> str:
        """Assert failure with one line of text on stderr; return it."""
        assert (self.exit_code, self.stdout) == (1, ""), self
        assert self.stderr.startswith("Error: "), self
        assert self.stderr.count("\n") == 1, self
        return self.stderr.strip()


class CommandLine:
    """`line("users", "list")` runs `flask users list`; `line.json(...)` adds --json."""

    def __init__(self, app: Flask) -> None:
        self._runner = app.test_cli_runner()

    def __call__(self, *arguments: str, stdin: str | None = None) -> CommandResult:
        result = self._runner.invoke(args=list(arguments), input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return CommandResult(arguments, result.exit_code, result.stdout, result.stderr)

    def json(self, *arguments: str, stdin: str | None = None) -> Any:
        """Run it with --json; assert success and return the data."""
        return self(*arguments, "--json", stdin=stdin).json

    def refuses(self, code: str, *arguments: str, stdin: str | None = None) -> str:
        """Run it with --json; assert this error and return its message."""
        return self(*arguments, "--json", stdin=stdin).refuses(code)
