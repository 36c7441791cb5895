"""CSV as RFC 4180 has it, safe to open in a spreadsheet.

Spreadsheets take a cell that begins like a formula for one, and what strangers typed may be in
here: such a cell gets an apostrophe in front (CWE-1236). So does what follows a semicolon or a line
break, where a spreadsheet of some languages begins a cell. Excel understands the signs in
other widths, too.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Sequence

# Each as it is, in full width and in small form.
SIGNS = "=\uff1d\ufe66+\uff0b\ufe62\\-\uff0d\ufe63@\uff20\ufe6b\t\r"
FORMULA_START = re.compile(rf"(?:^|(?<=[;\r\n]))(?=[{SIGNS}])")


def head_of_csv(columns: Sequence[str]) -> bytes:
    """Return the beginning of a file: the mark that Excel needs to read UTF-8, and the names."""
    return codecs.BOM_UTF8 + as_csv([columns])


def as_csv(rows: Iterable[Sequence[object]]) -> bytes:
    """Return the lines of these rows."""
    file = io.StringIO(newline="")
    csv.writer(file).writerows([[_defused(cell) for cell in row] for row in rows])
    return file.getvalue().encode()


def _defused(cell: object) -> object:
    return FORMULA_START.sub("'", cell) if isinstance(cell, str) else cell
