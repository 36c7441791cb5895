"""The runtime settings of what frontends show: names, logos, offers."""

from urllib.parse import urlsplit

from app.core.setting_groups import Group
from app.core.setting_kinds import boolean, choice, text
from app.web import site

PRODUCT_TITLE = "Gatehouse"


def http_url(text: str) -> str:
    """Return an absolute http(s) URL; empty means the default."""
    parts = urlsplit(text)
    if text and parts.scheme not in {"http", "https"}:
        raise ValueError("must be an absolute http or https address")
    if text and not site.is_authority(parts.netloc.lower()):
        raise ValueError("must name a host, an internationalised one in punycode")
    return text


def _link(text: str) -> str:
    """Return an http(s) URL or an absolute path, so that no `javascript:` URL gets into a page."""
    if text.startswith("/") and not text.startswith(("//", "/\\")):
        return text
    if text and "://" not in text:
        raise ValueError("must be an http or https address, or a path that begins with /")
    return http_url(text)


BRANDING_TITLE = text(
    Group.FRONTEND,
    "branding_title",
    "What the site is called: in mails, authenticator apps, passkeys, pages and the frontend",
    PRODUCT_TITLE,
    max_length=120,
    is_public=True,
)

BRANDING_DESCRIPTION = text(
    Group.FRONTEND,
    "branding_description",
    "What the frontend says about the site",
    max_length=300,
    is_public=True,
)

BRANDING_FAVICON_URL = text(
    Group.FRONTEND,
    "branding_favicon_url",
    "Address of the icon in browser tabs, or a path of this site",
    "/favicon.svg",
    check=_link,
    is_public=True,
)

BRANDING_WORDMARK_DARK_URL = text(
    Group.FRONTEND,
    "branding_wordmark_dark_url",
    "Address of a logo for dark pages, or a path of this site",
    check=_link,
    is_public=True,
)

BRANDING_WORDMARK_LIGHT_URL = text(
    Group.FRONTEND,
    "branding_wordmark_light_url",
    "Address of a logo for light pages, or a path of this site",
    check=_link,
    is_public=True,
)

ARCHIVE_DOWNLOAD_USER = boolean(
    Group.FRONTEND,
    "archive_download_user_enabled",
    "Whether the frontend lets users download folders as archives",
    default=True,
)

ARCHIVE_DOWNLOAD_SHARE = boolean(
    Group.FRONTEND,
    "archive_download_share_enabled",
    "Whether the frontend lets shared folders be downloaded as archives",
    default=True,
)

IMAGE_PREVIEW_PREFERENCE = choice(
    Group.FRONTEND,
    "frontend_image_preview_preference",
    "What the frontend shows first: the picture itself or its preview",
    "original_first",
    ("original_first", "preview_first"),
)
