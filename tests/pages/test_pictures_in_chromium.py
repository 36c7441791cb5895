"""A picture of one's own: turned as its camera said, sent with its progress shown, and replaced."""

import io
import re
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, Route, expect

from tests.support.browser import needs_chromium
from tests.support.images import BLUE, GREEN, RED, YELLOW, encoded, is_near, photo, quarters
from tests.support.pages import Site, answered, open_as, told

pytestmark = needs_chromium

ORIENTATION = 0x0112  # in EXIF
TURN_RIGHT = 6
UPLOAD_BYTES_PER_SECOND = 50_000
# The colours in the middle of each quarter.
COLOURS = """(one) => [[1, 1], [3, 1], [1, 3], [3, 3]].map(([x, y]) => {
  const { width, height } = one;
  const place = [Math.floor((x * width) / 4), Math.floor((y * height) / 4), 1, 1];
  return [...one.getContext("2d").getImageData(...place).data].slice(0, 3);
})"""


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    file = tmp_path / "picture.png"
    file.write_bytes(encoded(quarters((600, 400))))
    return file


def choose(page: Page, picture: Path) -> None:
    page.locator("#picture-file").set_input_files(picture)
    page.get_by_role("dialog").get_by_role("button", name="Use this").click()


def is_upright(colours: list[tuple[int, ...]]) -> bool:
    wanted = zip(colours, (RED, GREEN, BLUE, YELLOW), strict=True)
    return all(is_near(tuple(one), other, most=24) for one, other in wanted)


def test_a_picture_is_sent_unless_it_is_cancelled_or_replaced(
    page: Page, site: Site, picture: Path, tmp_path: Path
) -> None:
    open_as(page, site.ada, "/settings/profile")
    held: list[Route] = []
    page.route("**/avatar/upload", lambda route: held.append(route))
    choose(page, picture)
    page.get_by_role("region", name="Picture").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(page.get_by_role("button", name="Choose a picture")).to_be_focused()
    assert held
    profile = told(page, "/auth/me")["profile"]
    assert isinstance(profile, dict)
    assert profile["avatar"]["source"] == "none"
    # One that a later one replaced.
    answered(page, "**/avatar/upload", 200, "success", {"applied": False, "profile": profile})
    choose(page, picture)
    expect(page.get_by_role("alert")).to_contain_text("Another change came first")
    expect(page.locator("#me img")).to_have_count(0)
    page.unroute("**/avatar/upload")
    # One that the camera turned is upright where it is chosen and afterwards.
    exif = Image.Exif()
    exif[ORIENTATION] = TURN_RIGHT
    turned = quarters((400, 600)).rotate(90, expand=True)
    file = tmp_path / "photo.jpg"
    file.write_bytes(encoded(turned, "JPEG", quality=95, exif=exif))
    page.locator("#picture-file").set_input_files(file)
    view = page.get_by_role("dialog").get_by_role("application")
    expect(view).to_be_focused()
    assert is_upright(view.evaluate(COLOURS))
    page.get_by_role("button", name="Use this").click()
    expect(page.locator(".toast")).to_contain_text("Your picture is changed.")
    answer = page.context.request.get("/api/v1/auth/profile/avatar/512")
    stored = Image.open(io.BytesIO(answer.body())).convert("RGB")
    assert stored.size == (512, 512)
    middles = [(128, 128), (384, 128), (128, 384), (384, 384)]
    assert is_upright([stored.getpixel(place) for place in middles])  # type: ignore[misc]


def test_a_slow_upload_shows_how_far_it_is_and_can_be_cancelled(
    page: Page, site: Site, tmp_path: Path
) -> None:
    file = tmp_path / "photo.png"
    file.write_bytes(encoded(photo()))
    open_as(page, site.ada, "/settings/profile")
    page.wait_for_load_state("networkidle")
    devtools = page.context.new_cdp_session(page)
    slow = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": UPLOAD_BYTES_PER_SECOND}
    devtools.send("Network.enable")
    devtools.send("Network.emulateNetworkConditions", {"offline": False, **slow})
    choose(page, file)
    bar = page.get_by_role("progressbar")
    expect(bar).to_have_attribute("value", re.compile("[1-9]"))
    first = bar.get_attribute("value") or ""
    expect(bar).not_to_have_attribute("value", first)
    assert int(first) < int(bar.get_attribute("value") or 0) < 100
    page.get_by_role("region", name="Picture").get_by_role("button", name="Cancel").click()
    expect(bar).to_have_count(0)
    assert told(page, "/auth/me")["profile"]["avatar"]["source"] == "none"  # type: ignore[index]
