"""The style sheet with the colours of the pages, as custom properties for light and dark."""

from functools import cache

from app.pages.colors import contrast, mixed, readable, shifted

TEXT = 4.5
CONTROL = 3.0
WHITE, BLACK = "#ffffff", "#0b0d10"
INK = ("ink", "muted", "good", "warn", "bad")  # what is written in

LIGHT = {
    "page": "#f6f7f9",
    "card": "#ffffff",
    "field": "#ffffff",
    "ink": "#16191d",
    "muted": "#5a636e",
    "line": "#e1e5ea",
    "field-line": "#878f99",
    "good": "#12693a",
    "good-soft": "#e6f5ec",
    "warn": "#7a4a00",
    "warn-soft": "#fdf3dd",
    "bad": "#b3211b",
    "bad-soft": "#fdeceb",
    "shadow": "0 1px 2px rgb(16 24 40 / 5%), 0 12px 32px -8px rgb(16 24 40 / 10%)",
    "scrim": "rgb(16 24 40 / 45%)",
}
PAPER = LIGHT | dict.fromkeys(("page", "card", "field"), WHITE) | dict.fromkeys(INK, "#000000")
DARK = {
    "page": "#0c0e11",
    "card": "#15181c",
    "field": "#0f1215",
    "ink": "#eceef1",
    "muted": "#9ea7b2",
    "line": "#272c33",
    "field-line": "#69727d",
    "good": "#62cf95",
    "good-soft": "#12271c",
    "warn": "#f0bd66",
    "warn-soft": "#2b2112",
    "bad": "#ff948c",
    "bad-soft": "#311a1a",
    "shadow": "0 1px 2px rgb(0 0 0 / 40%), 0 12px 32px -8px rgb(0 0 0 / 50%)",
    "scrim": "rgb(0 0 0 / 60%)",
}


def palette(base: dict[str, str], accent: str, *, is_dark: bool) -> dict[str, str]:
    """Return all colours of one theme: `base` and those derived from the accent."""
    grounds = base["page"], base["card"]
    # Seen against the page, and with a text on it: white, unless only a dark one could be read.
    fill = readable(accent, *grounds, ratio=CONTROL, darken=not is_dark)
    on_fill = WHITE if contrast(fill, WHITE) >= CONTROL else BLACK
    fill = readable(fill, on_fill, ratio=TEXT, darken=on_fill == WHITE)
    fill = readable(fill, *grounds, ratio=CONTROL, darken=not is_dark)
    if contrast(fill, on_fill) < TEXT:
        on_fill = BLACK if on_fill == WHITE else WHITE
    soft = mixed(fill, base["card"], 0.16 if is_dark else 0.08)
    return {
        **base,
        "accent": fill,
        "accent-hover": shifted(fill, -0.05 if on_fill == WHITE else 0.05),
        "on-accent": on_fill,
        "accent-soft": soft,
        "link": readable(accent, *grounds, soft, ratio=TEXT, darken=not is_dark),
        "glow": mixed(fill, base["page"], 0.14 if is_dark else 0.09),
    }


@cache
def style_sheet(accent: str) -> str:
    """Return the CSS for an accent colour; `data-theme` of the root element chooses a theme.

    On paper everything is black on white.
    """
    light = _declarations(palette(LIGHT, accent, is_dark=False), "light")
    dark = _declarations(palette(DARK, accent, is_dark=True), "dark")
    paper = _declarations(PAPER, "light")
    return (
        f":root{{{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f":root[data-theme=dark]{{{dark}}}\n"
        f"@media print{{:root:root{{{paper}}}}}\n"
    )


def bar_colors(chosen_theme: str) -> dict[str, str]:
    """Return the colour of the browser's own bars by media query, "" for every screen."""
    colors = {"light": LIGHT["card"], "dark": DARK["card"]}
    if chosen_theme in colors:
        return {"": colors[chosen_theme]}
    return {f"(prefers-color-scheme: {scheme})": color for scheme, color in colors.items()}


def _declarations(colors: dict[str, str], scheme: str) -> str:
    return f"color-scheme:{scheme};" + "".join(f"--{name}:{c};" for name, c in colors.items())
