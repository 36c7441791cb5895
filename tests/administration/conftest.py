"""The command line: within the test's application, and as a process."""

import os
import subprocess
import sys

import pytest
from flask import Flask

from tests.support.commands import CommandLine
from tests.support.servers import ROOT


@pytest.fixture
def line(app: Flask) -> CommandLine:
    return CommandLine(app)


@pytest.fixture
def flask(tmp_path):
    """Run `flask ...` on an instance folder of its own, with these variables."""

    def run(*arguments, stdin="", **variables):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("GATEHOUSE_")}
        environment = kept | {"GATEHOUSE_INSTANCE": str(tmp_path / "instance")} | variables
        command = [sys.executable, "-m", "flask", "--app", "wsgi", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=environment, input=stdin, capture_output=True, text=True
        )

    return run
