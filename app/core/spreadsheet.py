"""CSV as RFC 4180 has it, safe to open in a spreadsheet.

Spreadsheets take a cell that begins like a formula for one, and what strangers typed may be in
here: such a cell gets an apostrophe in front (CWE-1236). So does what follows a semicolon or a line
break, where a spreadsheet of some languages begins a cell.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence

FORMULA_START = re.compile(r"(?:^|(?<=[;\n]))(?=[=+\-@\t\r])")


def as_csv(rows: Iterable[Sequence[object]]) -> bytes:
    """Return the lines of these rows."""
    file = io.StringIO(newline="")
    csv.writer(file).writerows([[_defused(cell) for cell in row] for row in rows])
    return file.getvalue().encode()


def _defused(cell: object) -> object:
    return FORMULA_START.sub("'", cell) if isinstance(cell, str) else cell
