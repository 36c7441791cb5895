"""Draws the documents of the pages; they know settings and no account."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.core.runtime import Runtime
from app.pages import theme
from app.pages.files import Content, all_files, catalogue_name
from app.pages.registry import PAGES, Page
from app.pages.texts import catalogues
from app.settings import frontend_keys, keys, page_keys
from app.settings import service as settings
from app.web import site

HTML = "text/html; charset=utf-8"
CSS = "text/css; charset=utf-8"
MANIFEST = "application/manifest+json"
OWN_ICON = "base/icon.svg"
# Where a home screen shows it: without round corners of its own.
TOUCH_ICON, LARGE_ICON = "base/touch-icon.png", "base/icon.png"
LANGUAGE_NAMES = {"en": "English", "de": "Deutsch", "zh-CN": "简体中文"}
# Pages in all languages and themes, for several states of the settings.
KEPT_DOCUMENTS = 256


@dataclass(frozen=True)
class Look:
    """What settings say about the pages.

    `token_days` is how long a token may be valid, 0 for any time; None while there are none.
    """

    title: str
    icon: str
    wordmark_light: str
    wordmark_dark: str
    accent: str
    theme: str
    languages: tuple[str, ...]
    message: str
    footer_links: tuple[tuple[str, str], ...]
    home_path: str
    site_url: str
    has_password_login: bool
    has_passkey_login: bool
    has_email_code_sign_in: bool
    has_registration: bool
    has_own_teams: bool
    token_days: int | None
    trusts_browsers: bool
    sections: tuple[str, ...]

    @classmethod
    def of(cls, rt: Runtime) -> "Look":
        """Return what the settings in force say."""
        get = rt.settings.get
        icon = get(frontend_keys.BRANDING_FAVICON_URL)
        days = get(keys.ACCESS_TOKEN_MAX_DAYS)
        links, origins = get(page_keys.PAGES_FOOTER_LINKS), get(site.PUBLIC_SITE_URL)
        return cls(
            title=get(frontend_keys.BRANDING_TITLE) or frontend_keys.PRODUCT_TITLE,
            # The default is a path of the frontend, which these pages stand in for.
            icon="" if icon == frontend_keys.BRANDING_FAVICON_URL.default else icon,
            wordmark_light=get(frontend_keys.BRANDING_WORDMARK_LIGHT_URL),
            wordmark_dark=get(frontend_keys.BRANDING_WORDMARK_DARK_URL),
            accent=get(page_keys.PAGES_ACCENT_COLOR),
            theme=get(page_keys.PAGES_THEME),
            languages=get(page_keys.PAGES_LANGUAGES),
            message=get(page_keys.PAGES_MESSAGE).strip(),
            footer_links=tuple(page_keys.footer_link(link) for link in links),
            home_path=get(page_keys.PAGES_HOME_PATH),
            site_url=origins[0] if origins else "",
            has_password_login=get(keys.PASSWORD_LOGIN_ENABLED),
            has_passkey_login=get(keys.PASSKEY_LOGIN_ENABLED),
            has_email_code_sign_in=settings.is_email_code_sign_in_open(rt),
            has_registration=get(keys.ALLOW_USER_REGISTRATION),
            has_own_teams=get(keys.TEAMS_SELF_SERVICE),
            token_days=days if get(keys.ACCESS_TOKENS_ENABLED) else None,
            trusts_browsers=get(keys.TRUSTED_DEVICE_SECONDS) > 0,
            sections=get(page_keys.PAGES_SECTIONS),
        )

    @cached_property
    def image_origins(self) -> tuple[str, ...]:
        """The other origins from which its pictures come.

        They go into a header, and older versions stored what is no host.
        """
        parts = map(urlsplit, (self.icon, self.wordmark_light, self.wordmark_dark))
        hosts = [part for part in parts if site.is_authority(part.netloc.lower())]
        return tuple(dict.fromkeys(f"{part.scheme}://{part.netloc}" for part in hosts))


class Looks:
    """The look of one application; it is made anew only when a setting has changed."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._made_of: Mapping[str, str] | None = None

    def current(self) -> Look:
        """Return what the settings in force say."""
        texts, _ = self._rt.settings.renew()
        if texts is not self._made_of:
            self._look = Look.of(self._rt)
            self._made_of = texts
        return self._look


@lru_cache(KEPT_DOCUMENTS)
def document(page: Page, look: Look, language: str, chosen_theme: str) -> Content:
    """Return the HTML of a page."""
    return drawn(page, look, language, chosen_theme)


def drawn(page: Page, look: Look, language: str, chosen_theme: str, **others: Any) -> Content:
    """Return the HTML of a page whose template knows what is in `others`, too."""
    files, texts = all_files(), catalogues()[language].of(page.family)

    def t(key: str, **values: str) -> str:
        return texts[key].format_map(values)

    values: dict[str, Any] = {
        "page": page,
        "navigation": [one for one in PAGES if one.icon and one.section == page.section],
        "look": look,
        "language": language,
        "language_names": LANGUAGE_NAMES,
        "theme": chosen_theme,
        "t": t,
        "url": files.url,
        "icon": look.icon or files.url(OWN_ICON),
        "touch_icon": look.icon or files.url(TOUCH_ICON),
        "bar_colors": theme.bar_colors(chosen_theme),
        "modules": [] if page.is_static else files.graph(page.module),
        "catalogue": files.url(catalogue_name(language, page.family)),
        "theme_sheet": theme_url(look.accent),
        **others,
    }
    html = _templates().get_template(page.template).render(values)
    return Content.of(HTML, html.encode())


@lru_cache(8)
def manifest(look: Look) -> Content:
    """Return what a browser needs to put the pages on a home screen (W3C Web App Manifest)."""
    files = all_files()
    icons = (
        [{"src": look.icon, "sizes": "any"}]
        if look.icon
        else [
            {"src": files.url(OWN_ICON), "sizes": "any", "type": "image/svg+xml"},
            {"src": files.url(LARGE_ICON), "sizes": "512x512", "type": "image/png"},
        ]
    )
    colors = theme.LIGHT
    text = json.dumps(
        {
            "name": look.title,
            "start_url": "/",
            "scope": "/",
            "display": "minimal-ui",
            "theme_color": colors["card"],
            "background_color": colors["page"],
            "icons": icons,
        }
    )
    return Content.of(MANIFEST, text.encode())


@lru_cache(8)
def theme_sheet(accent: str) -> tuple[str, Content]:
    """Return the style sheet of the colours, and the name of this version of it."""
    css = theme.style_sheet(accent).encode()
    return sha256(css).hexdigest()[:12], Content.of(CSS, css)


def theme_url(accent: str) -> str:
    """Return the address of the style sheet of the colours."""
    return f"/pages/theme.css?v={theme_sheet(accent)[0]}"


@cache
def _templates() -> Environment:
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
