"""Colours derived from any accent can be read (WCAG 2.2, 1.4.3 and 1.4.11)."""

import itertools
import re

import pytest

from app.pages.colors import contrast
from app.pages.theme import CONTROL, DARK, LIGHT, TEXT, palette, style_sheet
from tests.support.factories import configure

ACCENTS = [
    "#{:02x}{:02x}{:02x}".format(*rgb) for rgb in itertools.product(range(0, 256, 85), repeat=3)
]
TEXTS = [
    ("ink", "page"), ("ink", "card"), ("ink", "field"), ("muted", "page"), ("muted", "card"),
    ("ink", "good-soft"), ("ink", "warn-soft"), ("ink", "bad-soft"), ("bad", "card"),
    ("link", "page"), ("link", "card"), ("link", "accent-soft"), ("on-accent", "accent"),
    ("on-accent", "accent-hover"), ("muted", "glow"), ("ink", "line"), ("ink", "accent-soft"),
]  # fmt: skip
CONTROLS = [
    ("accent", "page"), ("accent", "card"), ("field-line", "card"), ("field-line", "field"),
    ("link", "card"), ("good", "good-soft"), ("warn", "warn-soft"), ("bad", "bad-soft"),
]  # fmt: skip


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(("base", "is_dark"), [(LIGHT, False), (DARK, True)])
def test_everything_can_be_read_with_any_accent(base, is_dark):
    pale = []
    for accent in ACCENTS:
        colors = palette(base, accent, is_dark=is_dark)
        for pairs, enough in ((TEXTS, TEXT), (CONTROLS, CONTROL)):
            for ink, ground in pairs:
                if contrast(colors[ink], colors[ground]) < enough:
                    pale.append((accent, ink, ground))
    assert pale == []


@pytest.mark.parametrize("accent", ["#2563eb", "#0f766e", "#7c3aed"])
def test_a_colour_that_can_be_read_is_kept(accent):
    assert palette(LIGHT, accent, is_dark=False)["accent"] == accent


def test_the_accent_is_a_setting_and_has_an_address_of_its_own(web, rt):
    def sheet():
        html = web.get("/login").text
        return re.search(r'href="(/pages/theme\.css\?v=\w+)"', html)[1]

    before = sheet()
    configure(rt, pages_accent_color="#0F766E")
    assert sheet() != before
    assert web.get(sheet()).text == style_sheet("#0f766e")
    assert "--accent:#0f766e" in style_sheet("#0f766e")
