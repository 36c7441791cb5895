"""Every refusal that an operation used by a page may answer has a text, or a rule."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from app.pages.files import STATIC
from tests.support.browser import Complaints, needs_chromium
from tests.support.pages import Site

pytestmark = needs_chromium

CALL = re.compile(r'\bcall\(\s*"(\w+)",\s*"([^"]+)"')
# base/api.js sends these itself.
OF_THE_SESSION = {("post", "/auth/refresh"), ("post", "/auth/logout")}
# A page of each family that needs nobody to be signed in.
OPEN_PAGES = {"signin": "/login", "account": "/settings/nothing", "admin": "/admin/nothing"}
# What says nothing but that something is wrong, with details for the administrator.
FAULTS = {"internal_server_error", "config.error", "storage.unknown", "endpoint.not_found"}


def operations(family: str) -> set[tuple[str, str]]:
    """Return method and path of what the modules of a family call."""
    folders = (STATIC / "base", STATIC / family)
    modules = [file.read_text() for folder in folders for file in folder.glob("*.js")]
    return {call for text in modules for call in CALL.findall(text)} | OF_THE_SESSION


def codes(document: Any, schema: Any) -> Iterator[str]:
    """Yield the codes that an answer described by a schema may have."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for name in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(name, ()):
            yield from codes(document, part)
    code = schema.get("properties", {}).get("code", {})
    yield from code.get("enum", [])
    if "const" in code:
        yield code["const"]


def refusals(document: Any, family: str) -> set[tuple[str, int]]:
    """Return all codes with their statuses."""
    found = set()
    for method, path in operations(family):
        responses = document["paths"][f"/api/v1{path}"][method]["responses"]
        for status, response in responses.items():
            if "$ref" in response:
                name = response["$ref"].rpartition("/")[2]
                response = document["components"]["responses"][name]
            schema = response.get("content", {}).get("application/json", {}).get("schema", {})
            if int(status) >= 400:
                found |= {(code, int(status)) for code in codes(document, schema)}
    return found


@pytest.mark.parametrize("family", OPEN_PAGES)
def test_every_refusal_has_a_text_or_a_rule(
    page: Page, site: Site, complaints: Complaints, family: str
) -> None:
    page.goto(OPEN_PAGES[family])
    complaints.texts.clear()  # one of the pages says that there is none
    page.wait_for_load_state("networkidle")
    document = json.loads(page.evaluate("fetch('/api/v1/openapi.json').then((a) => a.text())"))
    expected = sorted(refusals(document, family))
    assert len(expected) > 10
    said = page.evaluate(
        """async (all) => {
            const { keyOf } = await window.module("errors");
            const { hasText } = await window.module("i18n");
            return all.map(([code, status]) => {
                const key = keyOf(code, status);
                return [key, key === "" || hasText(key)];
            });
        }""",
        expected,
    )
    pairs = list(zip(expected, said, strict=True))
    assert [code for (code, _), (_, is_there) in pairs if not is_there] == []
    assert {code for (code, _), (key, _) in pairs if key == "error.fault"} <= FAULTS
