"""What browsers are called, here and on the pages."""

import re
from pathlib import Path

import pytest

from app.browsers import names

SCRIPT = Path(__file__).parents[2] / "app/pages/static/console/agents.js"


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0",
            "Firefox on Windows",
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like "
            "Gecko) Version/18.0 Safari/605.1.15",
            "Safari on Mac",
        ),
        (
            "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) "
            "Chrome/130.0.0.0 Mobile Safari/537.36",
            "Chrome on Android",
        ),
        ("Mozilla/5.0 (X11; Linux x86_64) Chrome/130.0 Safari/537.36 Edg/130.0", "Edge on Linux"),
        ("curl/8.5.0", "curl"),
        ("something on Windows", "Windows"),
        ("", "Unknown browser"),
        (None, "Unknown browser"),
    ],
)
def test_a_browser_has_a_name(agent, name):
    assert names.name_of(agent) == name


def test_the_pages_know_the_same_browsers():
    """They have them to say it in the reader's language."""
    script = SCRIPT.read_text()
    known = re.findall(r'^  \[/(.+)/, "(.+)"\],$', script, re.MULTILINE)
    assert known == [*names.BROWSERS, *names.PLATFORMS]
