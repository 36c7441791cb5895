"""The panel of second factors: an app is fed by its QR code, used, renewed and removed."""

import time
from typing import Literal

import pyotp
import pytest
import segno
from playwright.sync_api import Locator, Page, expect

from tests.support.browser import PASSWORD, Complaints, Step, needs_chromium, widths
from tests.support.contrast import pale_texts
from tests.support.launcher import Service

pytestmark = needs_chromium
ADMIN = {"username": "admin", "email": "admin@example.com", "password": PASSWORD}
PROOF = "Code from the app, or a recovery code"
QUIET_ZONE = 4
# The middle of each square of a picture that has so many in a row.
DARK_SQUARES = """async (image, squares) => {
    await image.decode();
    const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const size = image.naturalWidth / squares;
    const places = [...Array(squares).keys()].map((place) => Math.floor((place + 0.5) * size));
    const isDark = (x, y) => context.getImageData(x, y, 1, 1).data[0] < 128;
    return places.map((y) => places.map((x) => isDark(x, y)));
}"""


@pytest.fixture
def panel(page: Page, service: Service) -> Page:
    """The page, signed in on the panel, at the start of the set-up."""
    service.post("/api/v1/auth/setup", **ADMIN)
    login = give_the_password(page)
    login.says("Signed in.")
    login.press("Next: Set up an authenticator app")
    return page


def give_the_password(page: Page) -> Step:
    login = Step(page, "Sign in to manage factors")
    login.open()
    login.fill("Username or e-mail", "admin")
    login.fill("Password", PASSWORD)
    login.press("Sign in")
    return login


def start(page: Page) -> tuple[Step, pyotp.TOTP]:
    """Start the set-up; return an app that was fed with the secret as a person types it."""
    setup = Step(page, "Set up an authenticator app")
    setup.press("Start the set-up")
    setup.says("Set up the app, then type its code within 5 minutes.")
    return setup, pyotp.TOTP(setup.node.locator(".secret").inner_text().replace(" ", ""))


def finish(setup: Step, app: pyotp.TOTP) -> list[str]:
    setup.fill("Code from the app", app.now())
    setup.press("Finish the set-up")
    setup.says("is a second factor of this account")
    return shown_codes(setup)


def shown_codes(step: Step) -> list[str]:
    codes = step.node.get_by_role("list", name="Recovery codes").get_by_role("listitem")
    expect(codes).to_have_count(10)
    return codes.all_inner_texts()


def picture_of(setup: Step) -> Locator:
    return setup.node.get_by_role("img", name="QR code")


def test_the_code_on_the_screen_is_the_link_of_the_answer(panel: Page) -> None:
    setup, app = start(panel)
    expect(setup.node).to_have_attribute("data-state", "halfway")
    expect(setup.field("Code from the app")).to_be_focused()
    link = setup.node.get_by_role("link", name="Open the link").get_attribute("href")
    assert link is not None
    assert pyotp.parse_uri(link).secret == app.secret
    expect(setup.answer).to_contain_text(link)

    matrix = segno.make_qr(link, error="l").matrix
    squares = len(matrix) + 2 * QUIET_ZONE
    picture = picture_of(setup)
    expect(picture).to_be_in_viewport(ratio=1)
    drawn = picture.evaluate(DARK_SQUARES, squares)
    inner = slice(QUIET_ZONE, -QUIET_ZONE)
    assert [[int(square) for square in row[inner]] for row in drawn[inner]] == [
        list(row) for row in matrix
    ]
    assert sum(map(sum, drawn)) == sum(map(sum, matrix))


def test_an_app_is_set_up_used_renewed_and_removed(panel: Page, complaints: Complaints) -> None:
    setup, app = start(panel)
    setup.fill("Code from the app", "000 000" if app.now() != "000000" else "000 001")
    setup.fill("Name", "Phone")
    panel.keyboard.press("Enter")
    setup.says("Refused with auth.mfa_code_invalid")
    complaints.take_refusal(401)
    codes = finish(setup, app)
    setup.says("“Phone” is a second factor of this account.")
    expect(picture_of(setup)).to_have_count(0)
    expect(setup.request).not_to_contain_text(app.now())

    panel.context.clear_cookies()
    panel.reload()
    login = give_the_password(panel)
    login.says("nobody is signed in yet")
    login.fill("Code", app.now())
    login.press("Verify")
    login.says("Signed in.")

    setup.open()
    setup.press("Start the set-up")
    setup.says("Refused with auth.mfa_factor_already_exists")
    complaints.take_refusal(403)
    renewal = Step(panel, "Make new recovery codes")
    renewal.open()
    renewal.fill(PROOF, codes[0])
    renewal.press("Make new codes")
    renewal.says("10 new codes. The old ones are void.")
    new_codes = shown_codes(renewal)
    assert not set(codes) & set(new_codes)
    renewal.fill(PROOF, codes[1])
    renewal.press("Make new codes")
    renewal.says("Refused with auth.mfa_code_invalid")
    complaints.take_refusal(401)
    expect(renewal.node.locator(".codes")).to_have_count(0)

    factors = Step(panel, "See and remove factors")
    factors.open()
    factors.press("List")
    factors.says("1 factor, and 10 recovery codes left.")
    expect(setup.node).to_have_attribute("data-state", "settled")
    factors.press("Remove Phone")
    factors.says("Refused with auth.mfa_code_invalid")
    complaints.take_refusal(401)
    # The next one, which the service lets a clock be ahead by.
    factors.fill(PROOF, app.at(int(time.time()), counter_offset=1))
    factors.press("Remove Phone")
    factors.says("“Phone” has been removed, and the recovery codes with it.")
    expect(factors.field(PROOF)).to_have_count(0)
    expect(setup.node).to_have_attribute("data-state", "todo")
    factors.press("List")
    factors.says("No second factor: the password alone signs in.")
    panel.context.clear_cookies()
    panel.reload()
    give_the_password(panel).says("Signed in.")


def test_recovery_codes_and_secret_can_be_copied(panel: Page) -> None:
    panel.context.grant_permissions(["clipboard-read", "clipboard-write"])
    setup, app = start(panel)
    setup.press("Copy the secret")
    expect(setup.node.get_by_text("Copied.")).to_be_visible()
    clipboard = "navigator.clipboard.readText()"
    assert panel.evaluate(clipboard) == app.secret
    codes = finish(setup, app)
    setup.press("Copy the codes")
    expect(setup.node.get_by_text("Copied.")).to_be_visible()
    assert panel.evaluate(clipboard) == "\n".join(codes)


def test_without_a_clipboard_they_are_selected(panel: Page) -> None:
    """As on a page of plain http."""
    setup, app = start(panel)
    panel.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    codes = finish(setup, app)
    setup.press("Copy the codes")
    expect(setup.node.get_by_text("Selected: copy it")).to_be_visible()
    assert panel.evaluate("String(getSelection())").split() == codes


def test_a_set_up_that_is_over_begins_anew(panel: Page, complaints: Complaints) -> None:
    setup, _ = start(panel)
    password = Step(panel, "Change the password")
    password.open()
    password.fill("Current password", PASSWORD)
    password.fill("New password", f"{PASSWORD} and more")
    password.press("Change")
    password.says("Changed.")
    setup.fill("Code from the app", "123456")
    setup.press("Finish the set-up")
    setup.says("Refused with auth.token_invalid")
    complaints.take_refusal(401)
    expect(setup.field("Code from the app")).to_have_count(0)
    _, app = start(panel)
    finish(setup, app)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_can_be_read(panel: Page, scheme: Literal["light", "dark"]) -> None:
    # A transition of what is folded meanwhile would never end.
    panel.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    panel.set_viewport_size({"width": 375, "height": 800})
    panel.reload()  # what is folded would keep its old width
    Step(panel, "Set up an authenticator app").open()
    setup, app = start(panel)
    expect(picture_of(setup)).to_be_in_viewport(ratio=1)
    assert max(widths(panel)) <= 375
    assert pale_texts(panel) == []
    finish(setup, app)
    setup.press("Next: Make new recovery codes")
    factors = Step(panel, "See and remove factors")
    factors.open()
    factors.press("List")
    factors.says("1 factor")
    assert max(widths(panel)) <= 375
    assert pale_texts(panel) == []
