"""The command line."""

import pytest
from flask import Flask

from tests.support.commands import CommandLine


@pytest.fixture
def line(app: Flask) -> CommandLine:
    return CommandLine(app)
