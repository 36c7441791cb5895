"""Draws the pictures of docs/images from the pages as they are: `python -m tests.pictures`.

It needs Chromium. `--to FOLDER` writes them elsewhere. Look at each before it is committed.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from PIL import Image
from playwright.sync_api import Browser, Page

from app.audit.models import Action, AuditEntry
from app.mail.models import MailStatus, OutboxMail
from app.users.models import User
from tests.support import company
from tests.support.browser import launched
from tests.support.challenge import give_totp
from tests.support.factories import KnownUser, add_passkeys
from tests.support.launcher import Service
from tests.support.pages import Site, is_complete, is_drawn, send, sign_in
from tests.support.servers import ROOT

IMAGES = ROOT / "docs" / "images"
WHITE, GREY = (255, 255, 255), (128, 136, 144)
DESK, WIDE, PHONE = (1280, 801), (1280, 850), (390, 844)
ACCOUNT = ("profile", "security", "sessions", "tokens")
ACCOUNT_ON_A_PHONE = (*ACCOUNT[1:], "connections", "teams", "preferences", "activity", "data")
CONSOLE = ("overview", "users", "users/{user}", "settings/site", "mail", "audit")
CONSOLE_ON_A_PHONE = (
    *("overview", "users", "audit", "settings/site"),
    *("external-auth", "policy-groups", "teams", "mail"),
)


@dataclass(frozen=True)
class Tile:
    """One view of a page: its address, whether it is dark, and what is done there first."""

    path: str
    is_dark: bool = False
    act: Callable[[Page], object] = lambda _page: None


@dataclass(frozen=True)
class Picture:
    """Views side by side: the screen of each in CSS pixels, its size in the picture, the gaps."""

    name: str
    tiles: Sequence[Tile]
    columns: int
    screen: tuple[int, int]
    size: tuple[int, int]
    gap: int = 16
    margin: int = 16
    ground: tuple[int, int, int] = GREY


def main() -> None:
    """Draw them all."""
    parser = argparse.ArgumentParser(prog="python -m tests.pictures", description=__doc__)
    parser.add_argument("--to", type=Path, default=IMAGES, metavar="FOLDER")
    folder = parser.parse_args().to
    with serving() as site, launched() as browser:
        with closing(browser.new_context(base_url=site.origin)) as context:
            ids = company.settle(site, context.new_page())
            signed_in = context.storage_state()
        tidy(site)
        for picture in of_consoles(ids):
            draw(browser, site, picture, folder, storage_state=signed_in)
        prepare_sign_in(site)
        for picture in of_sign_in(site):
            draw(browser, site, picture, folder)


@contextmanager
def serving() -> Iterator[Site]:
    """Run a service with an administrator, `ada`."""
    with tempfile.TemporaryDirectory() as name:
        service = Service(Path(name) / "instance")
        service.start(WORKERS="1", RATE_LIMITS="off", RESPONSE_FLOOR_MS="0")
        rt = service.observer(Path(name) / "observer")
        try:
            yield Site(service, rt)
        finally:
            rt.close()
            service.close()


def tidy(site: Site) -> None:
    """Make it a site in use: nobody sees what only the settling has left behind."""
    for name in ("branding_title", "mail_smtp_port"):
        site.flask("config", "unset", name)
    site.configure(mail_smtp_host="mail.example.com", mail_from_address="accounts@example.com")
    site.follows("Sign in to Gatehouse")
    with site.rt.reading() as session:
        people = session.execute(sa.select(User.id, User.username, User.email)).all()
    for person in people[1::2]:
        give_totp(site.rt, KnownUser(*person, password=""))
    for person in people[2::3]:
        add_passkeys(site.rt, KnownUser(*person, password=""), 1)
    settings = AuditEntry.action.in_((Action.CONFIG_UPDATE, Action.ADMIN_DELETE_CONFIG))
    with site.rt.transaction() as session:
        session.execute(sa.delete(AuditEntry).where(settings))
        session.execute(sa.update(OutboxMail).values(status=MailStatus.SENT))


def prepare_sign_in(site: Site) -> None:
    """Give `ada` a second factor, which mails may replace."""
    give_totp(site.rt, site.ada)
    site.configure(
        auth_email_code_login_enabled=True, auth_email_code_login_allow_totp_fallback=True
    )


def of_consoles(ids: dict[str, str]) -> Iterator[Picture]:
    """Yield the pictures of the account and of the administrators' console."""
    account, console = ("/settings/{}".format, "/admin/{}".format)
    admin = [console(name.format(**ids)) for name in CONSOLE]
    both = [Tile(account(name), dark) for dark in (False, True) for name in ACCOUNT]
    yield Picture("account", both, 2, DESK, (585, 366))
    overview = [Tile(admin[0], act=hide_first_steps), Tile(admin[1], is_dark=True)]
    yield Picture("admin", overview, 2, WIDE, (800, 531), margin=0, ground=WHITE)
    both = [Tile(path, dark, hide_first_steps) for dark in (False, True) for path in admin]
    yield Picture("console", both, 3, DESK, (580, 362))
    yield _in_turn("account-phone", map(account, ACCOUNT_ON_A_PHONE), (345, 747))
    yield _in_turn("console-phone", map(console, CONSOLE_ON_A_PHONE), (300, 649))


def hide_first_steps(page: Page) -> None:
    """Hide the card that a new installation has on its overview."""
    for button in page.get_by_role("button", name="Hide", exact=True).all():
        button.click()


def _in_turn(name: str, paths: Iterator[str], size: tuple[int, int]) -> Picture:
    tiles = [Tile(path, bool(number % 2), hide_first_steps) for number, path in enumerate(paths)]
    return Picture(name, tiles, 4, PHONE, size)


def of_sign_in(site: Site) -> Iterator[Picture]:
    """Yield the pictures of the sign-in pages."""

    def wait(page: Page) -> None:
        page.get_by_text("Single sign-on of the company").wait_for()

    signs = 24, 0, WHITE  # gap, margin, ground
    tiles = [Tile("/login", act=wait), Tile("/login", is_dark=True, act=wait)]
    yield Picture("sign-in", tiles, 2, (704, 880), (640, 800), *signs)

    def reset(page: Page) -> None:
        page.locator("[name=email]:visible").fill("ada@example.com")
        send(page)
        page.get_by_role("heading", name="Check your mailbox").wait_for()

    def enter(page: Page) -> None:
        sign_in(page, site.ada)
        page.get_by_role("heading", name="Second step").wait_for()

    tiles = [
        Tile("/login", act=enter),
        Tile("/register", act=lambda page: page.get_by_label("Password", exact=True).fill("abc")),
        Tile("/reset-password", is_dark=True, act=reset),
        Tile("/login", act=wait),
    ]
    yield Picture("phone", tiles, 4, PHONE, PHONE, *signs)


def draw(browser: Browser, site: Site, picture: Picture, folder: Path, **options: Any) -> None:
    """Draw and write a picture."""
    width, height = picture.size
    rows = -(-len(picture.tiles) // picture.columns)
    extent = [
        number * (side + picture.gap) - picture.gap + 2 * picture.margin
        for number, side in ((picture.columns, width), (rows, height))
    ]
    image = Image.new("RGB", (extent[0], extent[1]), picture.ground)
    for number, tile in enumerate(picture.tiles):
        row, column = divmod(number, picture.columns)
        place = [
            picture.margin + index * (side + picture.gap)
            for index, side in ((column, width), (row, height))
        ]
        shown = shoot(browser, site, picture, tile, **options)
        image.paste(shown, (place[0], place[1]))
    image.save(folder / f"{picture.name}.webp", lossless=True, method=6)


def shoot(
    browser: Browser, site: Site, picture: Picture, tile: Tile, **options: Any
) -> Image.Image:
    """Return what one tile shows; `options` are those of Playwright's contexts."""
    (width, height), size = picture.screen, picture.size
    options |= {
        "base_url": site.origin,
        "viewport": {"width": width, "height": height},
        "device_scale_factor": size[0] / width,
        "color_scheme": "dark" if tile.is_dark else "light",
        "reduced_motion": "reduce",
    }
    with closing(browser.new_context(**options)) as context:
        page = context.new_page()
        page.goto(tile.path)
        is_complete(page)
        is_drawn(page)
        tile.act(page)
        shot = Image.open(BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    # A scale that is no whole number may miss the size by a pixel.
    return shot if shot.size == size else shot.crop((0, 0, *size))


if __name__ == "__main__":
    main()
