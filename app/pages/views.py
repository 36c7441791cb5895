"""The pages' addresses: documents, and the files they consist of.

They are no part of the API: other methods than GET and HEAD do nothing, and while the pages are
switched off, their addresses are as unknown as any other.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import gevent
from flask import Blueprint, Response, current_app, request
from flask.sansio.app import App
from flask.sansio.blueprints import BlueprintSetupState
from werkzeug.datastructures import Accept
from werkzeug.exceptions import MethodNotAllowed
from werkzeug.http import parse_accept_header
from werkzeug.routing import Rule

from app.pages import shells
from app.pages.files import Content, all_files
from app.pages.registry import FOLDERS, MISSING, PAGES, Page
from app.settings import page_keys
from app.web import languages
from app.web.errors import EndpointNotFound
from app.web.runtime import runtime

bp = Blueprint("pages", __name__)

THEME_COOKIE = "service_theme"
YEAR_SECONDS = 365 * 24 * 60 * 60
IMMUTABLE = f"public, max-age={YEAR_SECONDS}, immutable"
REVALIDATED = "no-cache"
# There are few of each, and they come with every request.
KEPT_ANSWERS = 256
LOOKS = "gatehouse_looks"
READING = ("GET", "HEAD")
# Of a query as it was sent, these stay as they are (RFC 3986, section 3.4).
QUERY_CHARACTERS = "%/?:@!$&'()*+,;="
# The note of templates/parts.html.
UNSENT = "unsent"
DROPPED_BODY_BYTES, DROPPING_SECONDS = 64 * 1024, 5

PERMISSIONS = (
    "publickey-credentials-get=(self), publickey-credentials-create=(self), "
    "clipboard-write=(self), camera=(), geolocation=(), microphone=()"
)
OWN_ORIGIN = ("Cross-Origin-Resource-Policy", "same-origin")
OF_DOCUMENTS = (
    OWN_ORIGIN,
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Permissions-Policy", PERMISSIONS),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "DENY"),
    ("Cache-Control", "no-cache"),
    ("Vary", "Accept-Language, Cookie, Accept-Encoding"),
)
OF_FILES = (OWN_ORIGIN, ("Vary", "Accept-Encoding"))
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; "
    "connect-src 'self'; font-src 'none'; manifest-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
FORMS = "form-action 'self'"
FRAMES = "; frame-src 'self'"
OWN_IMAGES = "'self' data: blob:"

View = Callable[..., Response]
Headers = tuple[tuple[str, str], ...]


@bp.record_once
def install(state: BlueprintSetupState) -> None:
    """Add the addresses, each for every method, and read the files."""
    app = state.app
    all_files()
    _add(app, "/", "home", _home)
    _add(app, "/pages/<version>/<path:name>", "file", _file)
    _add(app, "/pages/theme.css", "theme", _theme)
    _add(app, "/pages/site.webmanifest", "manifest", _manifest)
    for page in PAGES:
        _add(app, page.path, page.path, partial(_document, page))
    for section, folder in FOLDERS.items():
        first = next(page for page in PAGES if page.section == section)
        _add(app, folder, f"{section}_home", partial(_first, first))
        _add(app, f"{folder}/<path:name>", f"{section}_missing", partial(_missing, section))


def _add(app: App, path: str, name: str, view: View) -> None:
    """Add an address whatever the method: Flask's own would tell that it exists."""
    app.url_map.add(Rule(path, endpoint=f"{bp.name}.{name}"))
    app.view_functions[f"{bp.name}.{name}"] = partial(_guarded, view)


def _guarded(view: View, **arguments: Any) -> Response:
    """Call a view.

    Raises: EndpointNotFound, while there are no pages.
    """
    if not _sections():
        raise EndpointNotFound
    return view(**arguments)


def _home() -> Response:
    _require_reading()
    return _led_to(runtime().settings.get(page_keys.PAGES_HOME_PATH))


def _first(page: Page) -> Response:
    _require(page.section)
    _require_reading()
    return _led_to(page.path)


def _document(page: Page, **_arguments: str) -> Response:
    _require(page.section)
    if request.method == "POST":
        return _back_to_page()
    _require_reading("POST")
    return _drawn(page)


def _missing(section: str, **_arguments: str) -> Response:
    _require(section)
    _require_reading()
    return _drawn(MISSING[section], HTTPStatus.NOT_FOUND)


def _file(version: str, name: str) -> Response:
    """Send a file; a document of another version, as during an update, gets the current one."""
    files = all_files()
    if name not in files.contents:
        raise EndpointNotFound
    caching = IMMUTABLE if version == files.version else REVALIDATED
    _require_reading()
    return _sent(files.contents[name], (*OF_FILES, ("Cache-Control", caching)))


def _theme() -> Response:
    accent = runtime().settings.get(page_keys.PAGES_ACCENT_COLOR)
    version, content = shells.theme_sheet(accent)
    caching = IMMUTABLE if request.args.get("v") == version else REVALIDATED
    _require_reading()
    return _sent(content, (*OF_FILES, ("Cache-Control", caching)))


def _manifest() -> Response:
    _require_reading()
    caching = ("Cache-Control", REVALIDATED)
    return _sent(shells.manifest(_looks().current()), (*OF_FILES, caching))


def _sections() -> tuple[str, ...]:
    return runtime().settings.get(page_keys.PAGES_SECTIONS)


def _require(section: str) -> None:
    """Refuse a page of a section that is switched off."""
    if section not in _sections():
        raise EndpointNotFound


def _require_reading(*others: str) -> None:
    """Refuse a method that does nothing here."""
    if request.method not in READING:
        raise MethodNotAllowed([*READING, *others])


def _back_to_page() -> Response:
    """Lead a form that was sent before its script ran back to the page, which then says so.

    Nothing of it is kept. The fragment has the document show a note of its own.
    """
    with suppress(Exception), gevent.Timeout(DROPPING_SECONDS, TimeoutError):
        request.stream.read(DROPPED_BODY_BYTES)
    path, query = quote(request.path), quote(request.query_string, safe=QUERY_CHARACTERS)
    address = f"{path}?{query}" if query else path
    return _led_to(f"{address}#{UNSENT}", HTTPStatus.SEE_OTHER)


def _led_to(path: str, status: HTTPStatus = HTTPStatus.FOUND) -> Response:
    response = Response(status=status, headers={"Location": path})
    response.headers["Cache-Control"] = "no-store"
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def _drawn(page: Page, status: HTTPStatus = HTTPStatus.OK) -> Response:
    look = _looks().current()
    content = shells.document(page, look, _language(look), _chosen_theme(look))
    images = " ".join((OWN_IMAGES, *look.image_origins))
    policy = POLICY.format(images=images) + (FRAMES if page.has_frames else "")
    return _sent(content, (*OF_DOCUMENTS, ("Content-Security-Policy", policy)), status)


def question(page: Page, **values: Any) -> Response:
    """Answer with a page that another area fills in, whichever sections are switched on.

    Its form may lead on to the site's first address. The address of this request has a token, which
    nobody may see in a Referer; yet with none at all, browsers do not name the origin of a form.
    """
    look = _looks().current()
    content = shells.drawn(page, look, _language(look), _chosen_theme(look), **values)
    images = " ".join((OWN_IMAGES, *look.image_origins))
    policy = POLICY.format(images=images).replace(FORMS, f"{FORMS} {look.site_url}".strip())
    own = {"Content-Security-Policy": policy, "Referrer-Policy": "strict-origin"}
    headers = {**dict(OF_DOCUMENTS), **own, "Cache-Control": "no-store"}
    return _sent(content, tuple(headers.items()))


def _looks() -> shells.Looks:
    """Return the looks of this application."""
    found: shells.Looks | None = current_app.extensions.get(LOOKS)
    if found is None:
        found = current_app.extensions[LOOKS] = shells.Looks(runtime())
    return found


def _sent(content: Content, headers: Headers, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Return content, compressed if the browser takes that; 304 if it has this version."""
    coding = _coding(request.headers.get("Accept-Encoding", ""), tuple(content.packed))
    chosen = content.packed[coding] if coding else content.plain
    all_headers = [*headers, ("ETag", f'"{chosen.etag}"')]
    # Conditions are about what would succeed (RFC 9110, section 13.2.1).
    if status == HTTPStatus.OK and request.if_none_match.contains_weak(chosen.etag):
        return Response(status=HTTPStatus.NOT_MODIFIED, headers=all_headers)
    if coding:
        all_headers.append(("Content-Encoding", coding))
    return Response(chosen.body, status, all_headers, content_type=content.media_type)


@lru_cache(KEPT_ANSWERS)
def _coding(accept_encoding: str, offered: tuple[str, ...]) -> str:
    """Return the first coding offered that the browser takes; "" if it takes none."""
    taken = parse_accept_header(accept_encoding, Accept)
    return next((coding for coding in offered if taken[coding] > 0), "")


def _language(look: shells.Look) -> str:
    asked = request.args.get("lang")
    if asked in look.languages:
        return asked
    return languages.of_request(look.languages) or look.languages[0]


def _chosen_theme(look: shells.Look) -> str:
    theme = request.cookies.get(THEME_COOKIE, "")
    is_free = look.theme == "system" and theme in page_keys.THEMES
    return theme if is_free else look.theme
