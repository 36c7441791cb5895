"""docs/security.md names tests that are there, and every chapter of the standard."""

import re

from tests.support.servers import ROOT

DOCUMENT = ROOT / "docs" / "security.md"
NAMED = re.compile(r"(?<![\w./-])(?:tests|docs|app|bin|deploy)/[\w./-]*\w")
CHAPTERS = 17


def test_every_file_it_names_is_there():
    named = set(NAMED.findall(DOCUMENT.read_text()))
    assert len(named) > 50
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_every_chapter_of_the_standard_is_there():
    _, _, table = DOCUMENT.read_text().partition("| 5.0 | Tested by")
    rows = table.partition("\n\n")[0].splitlines()[2:]
    assert [re.match(r"\| V(\d+) ", row)[1] for row in rows] == [
        str(number) for number in range(1, CHAPTERS + 1)
    ]
    silent = [row for row in rows if not NAMED.search(row) and "outside" not in row]
    assert silent == []
