"""The account console: each section changes what the API then says."""

import json
import re
import zipfile
from pathlib import Path

from playwright.sync_api import Browser, Dialog, Locator, Page, Route, expect

from app.users.models import User
from tests.support import factories
from tests.support.authenticator import Authenticator
from tests.support.browser import Complaints, needs_chromium
from tests.support.images import encoded, quarters
from tests.support.launcher import eventually
from tests.support.mailbox import text_of
from tests.support.pages import (
    SMALL,
    Site,
    answered,
    barriers,
    demand_confirmation,
    fill,
    is_drawn,
    open_as,
    opened,
    sign_in_by_api,
    told,
)
from tests.support.virtual_authenticator import VirtualAuthenticator

pytestmark = needs_chromium

MARKUP = "<img src=x onerror=alert(1)>"


def section(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def toast(page: Page) -> Locator:
    return page.locator(".toast")


def test_address_and_password_are_changed(page: Page, site: Site, complaints: Complaints) -> None:
    site.add("eve")
    bob = site.add("bob", verified=False)
    sign_in_by_api(page, bob)
    # What came of an earlier link is said, and what holds is shown.
    page.goto(
        "/settings/security?contact_verification=email-changed&email=%3Cb%3Enew%40example.com"
    )
    expect(page.get_by_role("status")).to_have_text("Your address is now <b>new@example.com.")
    address = section(page, "E-mail address")
    expect(address).to_contain_text("bob@example.com")
    expect(address).to_contain_text("not confirmed")
    address.get_by_role("button", name="Change").click()
    field = address.get_by_label("New address")
    expect(field).to_be_focused()
    field.fill("nowhere")
    field.press("Enter")
    expect(field).to_have_accessible_description(re.compile("not a complete address"))
    field.fill("eve@example.com")
    field.press("Enter")
    expect(field).to_have_accessible_description(re.compile("There is already an account"))
    complaints.take_refusal(400)
    field.fill("bob@new.example")
    field.press("Enter")
    expect(toast(page)).to_contain_text("Check the mailbox of bob@new.example.")
    expect(address).to_contain_text("Not confirmed yet: bob@new.example")
    page.goto(site.mailed())
    page.wait_for_url("**/settings/security?*")
    expect(address).to_contain_text("bob@new.example")
    assert told(page, "/auth/me")["email"] == "bob@new.example"
    # The password.
    form = section(page, "Password")
    current = form.get_by_label("Current password", exact=True)
    new = form.get_by_label("New password", exact=True)
    current.fill("a wrong password")
    new.fill("short")
    new.press("Enter")
    expect(new).to_have_accessible_description(re.compile("too short"))
    new.fill("a new long password")
    new.press("Enter")
    expect(current).to_have_accessible_description("This is not your current password.")
    complaints.take_refusal(401)
    current.fill(bob.password)
    current.press("Enter")
    expect(toast(page)).to_contain_text("Your password has been changed.")
    expect(current).to_have_value("")
    login = {"identifier": "bob", "password": "a new long password"}
    assert site.post("/auth/login", login)["status"] == "authenticated"


def test_an_address_that_is_not_confirmed_gets_another_mail(
    page: Page, site: Site, complaints: Complaints
) -> None:
    bob = site.add("bob", verified=False)
    open_as(page, bob, "/settings/profile")
    expect(section(page, "Your account")).to_contain_text("not confirmed")
    page.goto("/settings/security")
    address = section(page, "E-mail address")
    send = address.get_by_role("button", name="Send the confirmation again")
    send.click()
    expect(toast(page)).to_contain_text("Check the mailbox of bob@example.com.")
    expect(address.get_by_role("button", name="Send again in")).to_be_visible()
    # Whoever asks too early is told how long to wait.
    page.reload()
    send.click()
    expect(address.get_by_role("button", name="Send again in")).to_be_visible()
    expect(page.locator("#said")).to_contain_text("Try again in")
    complaints.take_refusal(429)
    page.goto(site.mailed())
    expect(page.get_by_role("status")).to_have_text("Your e-mail address is confirmed.")
    expect(address).not_to_contain_text("not confirmed")
    # A new address that was mistyped is changed where it was typed.
    address.get_by_role("button", name="Change", exact=True).click()
    field = address.get_by_label("New address")
    field.fill("bbo@new.example")
    field.press("Enter")
    expect(address).to_contain_text("Not confirmed yet: bbo@new.example")
    address.get_by_role("button", name="Change it").click()
    expect(field).to_be_focused()
    expect(field).to_have_value("bbo@new.example")


def test_what_is_typed_is_not_left_unasked(page: Page, site: Site) -> None:
    asked: list[str] = []

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", answer)
    open_as(page, site.ada, "/settings/profile")
    name = section(page, "Name").get_by_label("Display name")
    name.fill("Ada")
    page.reload()
    assert asked == ["beforeunload"]
    name.fill("Ada L.")
    name.press("Enter")
    expect(page.locator("#me")).to_contain_text("Ada L.")
    page.goto("/settings/teams")
    page.get_by_role("button", name="New team").first.click()
    fill(page, name="Readers")
    page.goto("/settings/security")
    assert asked == ["beforeunload"] * 2
    # Passwords alone are soon typed again.
    fill(page, new_password="a new long password")
    page.reload()
    address = section(page, "E-mail address")
    address.get_by_role("button", name="Change", exact=True).click()
    address.get_by_label("New address").fill("ada@new.example")
    page.goto("/settings/profile")
    assert asked == ["beforeunload"] * 3


def test_a_button_is_busy_only_while_somebody_waits(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/settings/data")
    demand_confirmation(page, site)
    waiting: list[Route] = []
    page.route("**/auth/confirmation", lambda route: waiting.append(route))
    button = page.locator("#export button").first
    with page.expect_request("**/auth/confirmation"):
        button.click()
    expect(button).to_have_text("Collecting…")
    waiting.pop().continue_()
    dialog = page.get_by_role("dialog", name="Confirm that it is you")
    expect(dialog).to_be_visible()
    complaints.take_refusal(412)
    expect(button).to_have_text("Download archive")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(button).to_have_text("Download archive")
    expect(button).not_to_have_attribute("aria-disabled", "true")


def test_passkeys_are_added_renamed_and_deleted(
    page: Page, site: Site, complaints: Complaints
) -> None:
    device = VirtualAuthenticator(page)
    open_as(page, site.ada, "/settings/security")
    passkeys = section(page, "Passkeys")
    passkeys.get_by_role("button", name="Add a passkey").click()
    name = page.get_by_role("dialog").get_by_label("Name")
    expect(name).to_have_value(re.compile("^Chrome on (Linux|Mac|Windows)$"))
    name.fill(MARKUP)
    name.press("Enter")
    expect(passkeys.get_by_role("rowheader")).to_contain_text(MARKUP)
    rename = passkeys.get_by_role("button", name="Rename:")
    expect(rename).to_be_focused()
    expect(page.locator("#toasts")).to_contain_text("The passkey has been added.")
    eventually(lambda: len(device.passkeys) == 1, "the passkey")
    passkeys.get_by_role("button", name="Add a passkey").click()
    name.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("already has a passkey for this account")
    page.keyboard.press("Escape")
    passkeys.get_by_role("button", name=f"Rename: {MARKUP}").click()
    name.fill("My laptop")
    name.press("Enter")
    expect(passkeys.get_by_role("rowheader")).to_contain_text("My laptop")
    expect(rename).to_be_focused()
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    # Long after the sign-in the owner is asked for, and a passkey is proof enough.
    demand_confirmation(page, site)
    passkeys.get_by_role("button", name="Delete: My laptop").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete passkey").click()
    dialog = page.get_by_role("dialog", name="Confirm that it is you")
    expect(dialog).to_contain_text("To delete a passkey")
    complaints.take_refusal(412)
    dialog.get_by_role("button", name="Use a passkey").click()
    expect(passkeys).to_contain_text("No passkeys yet")
    expect(passkeys.get_by_role("heading")).to_be_focused()
    expect(page.locator("#toasts")).to_contain_text("The passkey has been deleted.")
    eventually(lambda: device.passkeys == [], "the browser to hide it")
    # At an address beside the first none is made.
    site.configure(public_site_url=["https://cloud.example.com", site.origin])
    site.follows('data-origin="https://cloud.example.com"')
    page.reload()
    passkeys.get_by_role("button", name="Add a passkey").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Continue").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Passkeys do not work at this address.")
    assert device.passkeys == []


def test_two_steps_are_set_up_and_turned_off(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/settings/security")
    steps = section(page, "Two-step sign-in")
    with page.expect_request("**/docs/qr-code") as drawn:
        steps.get_by_role("button", name="Set up").click()
    dialog = page.get_by_role("dialog", name="Two-step sign-in")
    expect(dialog.get_by_role("img", name="QR code")).to_have_js_property("complete", True)
    assert dialog.get_by_role("img").evaluate("(one) => one.naturalWidth") > 0
    secret = dialog.locator("code").inner_text().replace(" ", "")
    assert f"secret={secret}&" in drawn.value.post_data_json["otpauth_uri"]
    app = Authenticator(secret, site.rt.clock)
    assert barriers(page) == []
    to_app = dialog.get_by_role("link", name="Open in an authenticator app")
    expect(to_app).to_have_count(0)  # the camera of a phone sees the picture
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    dialog.get_by_role("button", name="Copy").click()
    expect(dialog.locator(".said")).to_have_text("Copied")
    code = dialog.get_by_label("Code from the app")
    code.fill(app.wrong_code())
    code.press("Enter")
    expect(code).to_have_accessible_description(re.compile("not right"))
    complaints.take_refusal(401)
    code.fill(app.code())
    code.press("Enter")
    codes = page.get_by_role("dialog", name="Recovery codes", exact=True)
    expect(codes).to_be_visible()
    shown = codes.locator("code").all_inner_texts()
    assert len(set(shown)) == 10
    # They are not shown again, so neither a key too many nor a double click closes them.
    expect(codes.get_by_role("button", name="Copy", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    kept = codes.get_by_role("button", name="I have kept a copy")
    page.keyboard.down("Enter")
    expect(codes.get_by_role("button", name="Copied")).to_be_focused()
    kept.focus()
    page.keyboard.down("Enter")  # the same, still held
    page.keyboard.up("Enter")
    kept.dispatch_event("click", {"detail": 2})
    codes.evaluate("node => node.close()")  # as the key "back" of a phone can
    with page.expect_download() as download:
        codes.get_by_role("link", name="Download").click()
    said = ["Gatehouse, account ada", "Made on ", "Each works once", *shown]
    assert [one for one in said if one not in download.value.path().read_text()] == []
    assert barriers(page) == []
    # On paper they are black on white, and alone.
    page.emulate_media(media="print", color_scheme="dark")
    expect(codes.get_by_text("Gatehouse, account ada")).to_be_visible()
    expect(page.locator("#main")).to_be_hidden()
    expect(kept).to_be_hidden()
    expect(codes).to_have_css("color", "rgb(0, 0, 0)")
    expect(codes).to_have_css("background-color", "rgb(255, 255, 255)")
    page.emulate_media(media="screen", color_scheme="light")
    codes.get_by_role("button", name="I have kept a copy").click()
    expect(steps).to_contain_text("Recovery codes left10")
    steps.get_by_role("button", name="New recovery codes").click()
    page.get_by_role("dialog").get_by_label("Code").fill(shown[0])
    page.keyboard.press("Enter")
    expect(codes).to_be_visible()
    fresh = codes.locator("code").all_inner_texts()
    assert set(fresh) & set(shown) == set()
    codes.get_by_role("button", name="I have kept a copy").click()
    steps.get_by_role("button", name="Turn off").click()
    page.get_by_role("dialog").get_by_label("Code").fill(fresh[0])
    page.keyboard.press("Enter")
    expect(steps.get_by_role("button", name="Set up")).to_be_visible()
    expect(steps.get_by_role("heading")).to_be_focused()
    assert told(page, "/auth/mfa")["enabled"] is False


def test_a_phone_opens_its_own_authenticator(
    site: Site, chromium: Browser, complaints: Complaints
) -> None:
    small = {"has_touch": True, "is_mobile": True, "viewport": SMALL}
    with opened(chromium, site.origin, complaints, **small) as phone:
        open_as(phone, site.ada, "/settings/security")
        section(phone, "Two-step sign-in").get_by_role("button", name="Set up").click()
        to_app = phone.get_by_role("link", name="Open in an authenticator app")
        expect(to_app).to_have_attribute("href", re.compile("^otpauth://totp/.*secret="))
        expect(phone.get_by_role("img", name="QR code")).to_be_visible()
        assert barriers(phone) == []


def test_name_and_picture_are_shown_at_once(
    page: Page, site: Site, complaints: Complaints, tmp_path: Path
) -> None:
    open_as(page, site.ada, "/settings/profile")
    is_drawn(page)
    form = section(page, "Name")
    name = form.get_by_label("Display name")
    # A change that is refused is explained, and nothing is lost.
    for status, code in ((503, "database.error"), (409, "conflict")):
        answered(page, "**/auth/profile", status, code)
        name.fill(f"Ada {status}")
        name.press("Enter")
        expect(page.get_by_role("alert").filter(has_text=re.compile("busy|No."))).to_be_focused()
        expect(name).to_have_value(f"Ada {status}")
        complaints.take_refusal(status)
    page.unroute("**/auth/profile")
    name.fill(MARKUP)
    form.get_by_role("button", name="Save").click()
    expect(page.locator("#me")).to_contain_text(MARKUP)
    name.fill("")
    name.press("Enter")
    expect(page.locator("#me")).not_to_contain_text(MARKUP)
    page.reload()
    is_drawn(page)
    expect(name).to_have_value("")
    file = tmp_path / "picture.png"
    file.write_bytes(encoded(quarters((600, 400))))
    picture = section(page, "Picture")
    picture.locator("input[type=file]").set_input_files(file)
    dialog = page.get_by_role("dialog", name="Choose what is shown")
    view = dialog.get_by_role("application")
    expect(view).to_be_focused()
    before = view.evaluate("(one) => one.toDataURL()")
    for key in ("+", "Shift+ArrowRight", "ArrowDown", "-", "+"):
        view.press(key)
    assert view.evaluate("(one) => one.toDataURL()") != before
    assert barriers(page) == []
    dialog.get_by_role("button", name="Use this").click()
    expect(toast(page)).to_contain_text("Your picture has been changed.")
    expect(page.locator("#me img")).to_have_attribute("src", re.compile("/avatar/512"))
    expect(picture.locator("img")).to_have_js_property("naturalWidth", 512)
    picture.get_by_role("button", name="Remove picture").click()
    expect(page.locator("#me img")).to_have_count(0)
    file.write_text("no picture")
    picture.locator("input[type=file]").set_input_files(file)
    expect(page.get_by_role("alert")).to_contain_text("not a picture we can read")
    # The focus stays where something was changed.
    page.get_by_role("button", name="Gravatar").press("Enter")
    expect(picture.locator(":focus")).to_have_count(1)
    # On a small screen the other sections are behind a button.
    page.set_viewport_size(SMALL)
    page.get_by_role("button", name="Menu", exact=True).click()
    page.get_by_role("link", name="Sessions").click()
    expect(page.get_by_role("heading", name="Sessions", level=1)).to_be_visible()


def test_sessions_end_here_and_elsewhere(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/settings/sessions")
    for _ in range(2):
        site.post("/auth/login", {"identifier": "ada", "password": site.ada.password})
    page.reload()
    rows = page.get_by_role("row")
    expect(rows).to_have_count(4)
    expect(rows.nth(1)).to_contain_text("This device")
    rows.nth(2).get_by_role("button", name="End").click()
    expect(rows).to_have_count(3)
    page.get_by_role("button", name="Sign out everywhere else").click()
    page.get_by_role("dialog").get_by_role("button", name="Sign out everywhere else").click()
    expect(rows).to_have_count(2)
    rows.nth(1).get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login?signed_out=1")


def test_preferences_are_saved_as_they_are_chosen(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/settings/preferences")
    files = section(page, "Files")
    files.get_by_label("View").select_option("grid")
    expect(toast(page)).to_contain_text("Saved.")
    files.get_by_role("switch", name="Show changes at once").click()
    look = section(page, "Language and look")
    look.get_by_label("Colours").select_option("dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    of_device = look.get_by_role("switch", name="Time zone of the device")
    expect(of_device).to_be_checked()
    of_device.click()
    zone = look.get_by_role("combobox", name="Time zone", exact=True)
    expect(zone).to_be_focused()
    zone.fill("Atlantis")
    zone.press("Enter")
    expect(zone).to_have_accessible_description(re.compile("not one time zone"))
    options = look.locator("datalist option")
    expect(options.and_(look.locator("[value*='Asia/Tokyo (UTC+9)']"))).to_have_count(1)
    zone.fill("berlin")
    zone.press("Enter")
    expect(zone).to_have_value(re.compile(r"^Europe/Berlin \(UTC\+[12]\)$"))
    look.get_by_label("Language").select_option("de")
    expect(page.get_by_role("heading", name="Einstellungen", level=1)).to_be_visible()
    expect(toast(page)).to_contain_text("Gespeichert.")
    preferences = told(page, "/auth/me")["preferences"]
    assert isinstance(preferences, dict)
    chosen = {
        "view_mode": "grid",
        "storage_event_stream_enabled": False,
        "theme_mode": "dark",
        "display_time_zone": "Europe/Berlin",
        "language": "de",
    }
    assert preferences | chosen == preferences


def test_activity_is_read_and_the_account_locked_down(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/settings/activity")
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="ada signed in")).to_have_count(1)
    # A date can be typed, however slowly.
    field = page.get_by_label("From")
    field.focus()
    page.keyboard.type("11262026", delay=400)
    expect(field).to_have_value("2026-11-26")
    expect(page.locator("#problem")).to_be_hidden()
    page.wait_for_url("**after=2026-11-26")
    fill(page, after="", before="2001-01-01")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    page.get_by_role("button", name="Clear the filters").click()
    page.get_by_label("Event").select_option("user_login")
    page.wait_for_url("**?action=user_login")
    is_drawn(page)
    expect(rows.filter(has_text="ada signed in")).to_have_count(1)
    # Who locks the account leaves nothing in other tabs.
    other = page.context.new_page()
    other.goto("/settings/security")
    expect(other.locator("#me")).to_contain_text("ada")
    is_drawn(other)
    page.get_by_role("button", name="Lock my account down").click()
    page.get_by_role("dialog").get_by_role("button", name="Lock my account down").click()
    for tab in (page, other):
        tab.wait_for_url("**/login?signed_out=1")
    assert eventually(
        lambda: any("/reset-password?token=" in text_of(mail) for mail in site.mailbox.read()),
        "the link",
    )


def test_data_is_taken_along_and_the_account_deleted(
    page: Page, site: Site, complaints: Complaints
) -> None:
    bob = site.add("bob")
    open_as(page, bob, "/settings/data")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download archive").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        data = json.loads(archive.read("export.json"))
    assert data["account"]["username"] == "bob"
    # Much later the owner has to be sure; a limit in the dialog says how long.
    demand_confirmation(page, site)
    page.get_by_role("button", name="JSON").click()
    confirmation = page.get_by_role("dialog", name="Confirm that it is you")
    expect(confirmation).to_be_visible()
    complaints.take_refusal(412)
    answered(page, "**/auth/confirmation", 429, "rate_limited", **{"Retry-After": "90"})
    fill(page, password="wrong")
    confirmation.get_by_role("button", name="Confirm").click()
    expect(confirmation.get_by_role("alert")).to_contain_text("Try again in 1:30.")
    complaints.take_refusal(429)
    page.unroute("**/auth/confirmation")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Delete account").click()
    dialog = page.get_by_role("dialog", name="Delete your account?")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    dialog.get_by_label("To continue, type bob").fill("bob")
    dialog.get_by_role("button", name="Delete account").click()
    expect(confirmation).to_contain_text("To delete your account")
    complaints.take_refusal(412)
    confirmation.get_by_label("Your password").fill(bob.password)
    confirmation.get_by_role("button", name="Confirm").click()
    page.wait_for_url("**/login?deleted=1")
    expect(page.get_by_text("Your account has been deleted.")).to_be_visible()
    assert factories.count(site.rt, User, User.username == "bob") == 0
