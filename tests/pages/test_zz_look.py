import pytest
from playwright.sync_api import expect
from tests.support.browser import needs_chromium
from tests.support.authenticator import Authenticator
from tests.support.pages import *
from tests.support.virtual_authenticator import VirtualAuthenticator

pytestmark = needs_chromium


@pytest.mark.parametrize("kind", ["wide", "phone"])
def test_look(site, chromium, complaints, kind):
    opts = (
        {"viewport": {"width": 1280, "height": 900}}
        if kind == "wide"
        else {
            "viewport": {"width": 390, "height": 844},
            "has_touch": True,
            "is_mobile": True,
            "color_scheme": "dark",
        }
    )

    def shot(name):
        page.screenshot(path=f"/tmp/shots-account/{kind}-{name}.png", full_page=True)

    with opened(chromium, site.origin, complaints, **opts) as page:
        VirtualAuthenticator(page)
        site.configure(auth_register_activation_enabled="true")
        page.goto("/login")
        is_ready(page)
        shot("login")
        page.goto("/register")
        fill(
            page,
            username="bobby",
            email="bobby.tables@example.com",
            password="a good long password",
        )
        send(page)
        expect(page.get_by_role("heading", name="Check your mailbox")).to_be_visible()
        shot("pending")
        page.get_by_role("button", name="Change it").click()
        send(page)
        expect(page.locator(".field-error")).to_be_visible()
        shot("register-again")
        page.goto("/reset-password")
        fill(page, email="bobby.tables@example.com")
        send(page)
        expect(page.get_by_role("heading", name="Check your mailbox")).to_be_visible()
        shot("reset")
        bob = site.add("bob", verified=False)
        open_as(page, bob, "/settings/security")
        is_drawn(page)
        shot("security")
        page.get_by_role("button", name="Send the conf").click()
        expect(page.get_by_role("button", name="Send again in")).to_be_visible()
        shot("security-sent")
        page.get_by_role("button", name="Set up").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.locator("img")).to_be_visible()
        shot("setup")
        app = Authenticator(dialog.locator("code").inner_text().replace(" ", ""), site.rt.clock)
        dialog.get_by_label("Code from the app").fill(app.code())
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="I have kept")).to_be_visible()
        shot("codes")
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 700, "height": 900})
        shot("print")
        page.emulate_media(media="screen")
        page.set_viewport_size(opts["viewport"])
        page.get_by_role("button", name="I have kept").click()
        for path in ("profile", "sessions", "connections", "teams", "preferences"):
            page.goto(f"/settings/{path}")
            is_drawn(page)
            if path == "preferences":
                page.get_by_role("switch", name="Time zone").click()
                expect(page.get_by_role("combobox", name="Time zone", exact=True)).to_be_visible()
            shot(path)
        complaints.forgive()
