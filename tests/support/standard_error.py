"""Reads what is logged to standard error, where background work of other tests may write, too."""

import pytest


def lines_of(capfd: pytest.CaptureFixture[str], words: str) -> list[str]:
    """Return the lines with these words that were written since the last look."""
    return [line for line in capfd.readouterr().err.splitlines() if words in line]
