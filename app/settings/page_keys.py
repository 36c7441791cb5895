"""The runtime settings of the built-in pages."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from app.core.setting_groups import Group
from app.core.setting_kinds import choice, text, text_list
from app.core.texts import has_controls

SECTIONS = ("sign_in", "account", "admin")
LANGUAGES = ("en", "de", "zh-CN")
THEMES = ("system", "light", "dark")
MAX_FOOTER_LINKS = 5
MAX_PATH_LENGTH = 2048

_COLOR = re.compile(r"#[0-9a-f]{6}")


def _one_of(options: tuple[str, ...]) -> Callable[[str], str]:
    """Return a check that an entry is one of a few words."""

    def check(entry: str) -> str:
        if entry not in options:
            raise ValueError(f"{entry!r} must be one of {', '.join(options)}")
        return entry

    return check


def _color(typed: str) -> str:
    color = typed.lower()
    if not _COLOR.fullmatch(color):
        raise ValueError("must be a colour such as #2563eb")
    return color


def _path_of_site(typed: str) -> str:
    is_path = typed.startswith("/") and not typed.startswith("//") and "\\" not in typed
    if not is_path or has_controls(typed):
        raise ValueError("must be a path of this site, such as /settings/profile")
    return typed


def footer_link(entry: str) -> tuple[str, str]:
    """Return label and address of an entry.

    Raises: ValueError.
    """
    label, _, url = entry.rpartition(" ")
    if not label or has_controls(entry):
        raise ValueError(f"{entry!r} must be a label and an address")
    address = urlsplit(url)
    is_mail = address.scheme == "mailto" and "@" in address.path
    if not (is_mail or (address.scheme in {"http", "https"} and address.netloc)):
        raise ValueError(f"{entry!r} must end with an http, https or mailto address")
    return label.rstrip(), url


def _footer_entry(entry: str) -> str:
    label, url = footer_link(entry)
    return f"{label} {url}"


PAGES_SECTIONS = text_list(
    Group.PAGES,
    "pages_sections",
    "Which of the built-in pages there are; an empty list means none",
    _one_of(SECTIONS),
    example=SECTIONS,
    default=SECTIONS,
    options=SECTIONS,
    in_order=True,
)
PAGES_HOME_PATH = text(
    Group.PAGES,
    "pages_home_path",
    "Where / and a sign-in without a path of its own lead while there are pages",
    "/settings/profile",
    max_length=MAX_PATH_LENGTH,
    check=_path_of_site,
)
PAGES_THEME = choice(
    Group.PAGES,
    "pages_theme",
    "How the pages look; system lets each visitor choose",
    "system",
    THEMES,
)
PAGES_ACCENT_COLOR = text(
    Group.PAGES,
    "pages_accent_color",
    "Colour of buttons and links; made darker or lighter where it could not be read",
    "#2563eb",
    max_length=7,
    check=_color,
)
PAGES_MESSAGE = text(
    Group.PAGES,
    "pages_message",
    "What stands above the sign-in form, such as a legal notice",
    max_length=500,
    multiline=True,
)
PAGES_FOOTER_LINKS = text_list(
    Group.PAGES,
    "pages_footer_links",
    "Links at the foot of every page, each a label and an address",
    _footer_entry,
    example=("Imprint https://example.com/imprint",),
    in_order=True,
    most=MAX_FOOTER_LINKS,
)
PAGES_LANGUAGES = text_list(
    Group.PAGES,
    "pages_languages",
    "Languages of pages and mails; the first is for people who prefer none of them",
    _one_of(LANGUAGES),
    example=LANGUAGES,
    default=LANGUAGES,
    options=LANGUAGES,
    in_order=True,
    least=1,
    most=len(LANGUAGES),
)
