"""docs/security.md names tests that are there, and every chapter of the standard."""

import re

import pytest

from tests.support.servers import ROOT

DOCUMENT = ROOT / "docs" / "security.md"
NAMED = re.compile(r"(?<![\w./-])(?:tests|docs|app|bin|deploy)/[\w./-]*\w")
CHAPTERS = {"4.0.3": 14, "5.0": 17}


def test_every_file_it_names_is_there():
    named = set(NAMED.findall(DOCUMENT.read_text()))
    assert len(named) > 60
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize(("edition", "last"), CHAPTERS.items())
def test_every_chapter_of_the_standard_is_there(edition, last):
    _, _, table = DOCUMENT.read_text().partition(f"| {edition} | Tested by")
    rows = table.partition("\n\n")[0].splitlines()[2:]
    assert [re.match(r"\| V(\d+) ", row)[1] for row in rows] == [
        str(number) for number in range(1, last + 1)
    ]
    silent = [row for row in rows if not NAMED.search(row) and "outside" not in row]
    assert silent == []
