"""Cells that a spreadsheet would take for a formula."""

import pytest

from app.core.spreadsheet import as_csv, head_of_csv


@pytest.mark.parametrize(
    "sign",
    ["=", "+", "-", "@", "\t", "\r", *"\uff1d\uff0b\uff0d\uff20", *"\ufe66\ufe62\ufe63\ufe6b"],
)
def test_a_cell_that_begins_like_a_formula_is_defused(sign):
    for before in ("", "a;", "a\n", "a\r\n"):
        assert f"{before}'{sign}1".encode() in as_csv([[f"{before}{sign}1"]])


@pytest.mark.parametrize(
    "cell", ["a=1", "1-1", "ada@example.com", "李娜\uff1d1", "'=1", -1, "", None]
)
def test_any_other_cell_stays_as_it_is(cell):
    assert as_csv([[cell, "x"]]) == f"{'' if cell is None else cell},x\r\n".encode()


def test_a_file_begins_with_the_mark_that_excel_needs():
    assert head_of_csv(["id", "name"]) == "\ufeffid,name\r\n".encode()
