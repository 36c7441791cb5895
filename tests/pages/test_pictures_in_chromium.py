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
    expect(
        page.get_by_role("alert").filter(has_text="Another change was made first")
    ).to_be_visible()
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
    expect(page.locator(".toast")).to_contain_text("Your picture has been changed.")
    assert is_upright(stored_colours(page))


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


# --- browsers that give no pictures of what was drawn ---------------------------------------------

WHITE_BLOB = """
const make = HTMLCanvasElement.prototype.toBlob;
HTMLCanvasElement.prototype.toBlob = function (done, ...how) {
  const white = document.createElement("canvas");
  [white.width, white.height] = [this.width, this.height];
  const context = white.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, white.width, white.height);
  make.call(white, done, ...how);
};
"""
WHITE_DATA = """
CanvasRenderingContext2D.prototype.getImageData = (x, y, width, height) =>
  new ImageData(new Uint8ClampedArray(width * height * 4).fill(255), width, height);
"""
NOISE = """
CanvasRenderingContext2D.prototype.getImageData = (x, y, width, height) =>
  new ImageData(crypto.getRandomValues(new Uint8ClampedArray(width * height * 4)), width, height);
"""
NO_BLOB = "HTMLCanvasElement.prototype.toBlob = (done) => done(null);"
NO_BLOB_BUT_SMALL = """
const make = HTMLCanvasElement.prototype.toBlob;
HTMLCanvasElement.prototype.toBlob = function (done, ...how) {
  if (this.width > 100) done(null); else make.call(this, done, ...how);
};
"""
REFUSED = """
CanvasRenderingContext2D.prototype.getImageData = () => {
  throw new DOMException("no", "SecurityError");
};
"""
NO_CONTEXT = "HTMLCanvasElement.prototype.getContext = () => null;"
RESISTANT = {
    "white": WHITE_BLOB + WHITE_DATA,
    "white pictures": WHITE_BLOB,
    "white pixels": WHITE_DATA,
    "noise": NOISE,
    "nothing": NO_BLOB,
    "a refusal": REFUSED,
    "no canvas": NO_CONTEXT,
}
SENT_AS_IT_IS = "so the whole file was sent"


def stored_colours(page: Page) -> list[tuple[int, ...]]:
    """Return the colours in the middle of each quarter of the account's picture."""
    answer = page.context.request.get("/api/v1/auth/profile/avatar/512")
    stored = Image.open(io.BytesIO(answer.body())).convert("RGB")
    return [stored.getpixel(place) for place in ((128, 128), (384, 128), (128, 384), (384, 384))]  # type: ignore[misc]


@pytest.mark.parametrize("script", RESISTANT.values(), ids=RESISTANT)
def test_where_nothing_that_is_drawn_comes_out_the_file_itself_is_sent(
    page: Page, site: Site, tmp_path: Path, script: str
) -> None:
    page.add_init_script(script)
    open_as(page, site.ada, "/settings/profile")
    file = tmp_path / "picture.png"
    file.write_bytes(encoded(quarters((500, 500))))
    page.locator("#picture-file").set_input_files(file)
    expect(page.get_by_role("alert").filter(has_text=SENT_AS_IT_IS)).to_be_visible()
    expect(page.locator("#me img")).to_have_count(1)
    assert is_upright(stored_colours(page))
    # Which is not possible with any file, and then nothing is changed.
    file.write_bytes(encoded(quarters((1025, 100))))
    page.locator("#picture-file").set_input_files(file)
    expect(page.get_by_role("alert").filter(has_text="at most 1,024 pixels a side")).to_be_visible()
    assert is_upright(stored_colours(page))


def test_where_only_a_large_picture_does_not_come_out_the_file_itself_is_sent(
    page: Page, site: Site, picture: Path
) -> None:
    page.add_init_script(NO_BLOB_BUT_SMALL)
    open_as(page, site.ada, "/settings/profile")
    choose(page, picture)
    expect(page.get_by_role("alert").filter(has_text=SENT_AS_IT_IS)).to_be_visible()
    assert is_upright(stored_colours(page))


def test_a_little_noise_does_not_matter(page: Page, site: Site, picture: Path) -> None:
    """Some browsers change single bits, differently for each site."""
    page.add_init_script(
        """const read = CanvasRenderingContext2D.prototype.getImageData;
        CanvasRenderingContext2D.prototype.getImageData = function (...place) {
          const image = read.apply(this, place);
          image.data.forEach((part, index) => (image.data[index] = part ^ 1));
          return image;
        };"""
    )
    open_as(page, site.ada, "/settings/profile")
    choose(page, picture)
    expect(page.locator(".toast")).to_contain_text("Your picture has been changed.")
