"""Every route of the administration has a control in the console that calls it."""

import posixpath
import re

from flask import Flask

from app.pages.files import STATIC, all_files
from app.pages.registry import MISSING, PAGES
from tests.contract.routes import routes
from tests.support.openapi import DOCUMENT

ADMIN = "/api/v1/admin"
CALL = re.compile(r'\bcall(?:ForFile)?\(\s*"(\w+)",\s*"([^"]+)"')
ON_DEMAND = re.compile(r'=>\s+import\("([^"]+)"\)')
# What no module calls by its path, and why.
NOT_CALLED = {
    "GET /admin/users/{id}/avatar/{size}": "an image, whose address is in what is told of a user",
    "GET /admin/mail/templates/{template}/preview.html": "a frame, whose address a preview tells",
    "GET /admin/config/export": "for scripts, which keep the settings of an instance in a file",
    "POST /admin/config/import": "for scripts, which keep the settings of an instance in a file",
    "PUT /admin/config/{key}": "the page saves all that was changed at once",
    "DELETE /admin/config/{key}": "the page saves all that was changed at once",
    "GET /admin/config/template-variables": "the list of templates has them, too",
    "POST /admin/policies": "only the file service knows where files can be kept",
    "GET /admin/policies/{id}": "the list has all of each",
    "GET /admin/remote-nodes": "for the product's own client; here there are none",
    "GET /admin/policies/storage-drivers": "for the product's own client; here there is one kind",
    "GET /admin/policies/storage-drivers/localizations": "its texts, for the same client",
    "GET /admin/users/{id}/tokens": "no page yet",
    "DELETE /admin/users/{id}/tokens": "no page yet",
    "DELETE /admin/users/{id}/tokens/{token_id}": "no page yet",
    "GET /admin/teams/{id}/audit-logs/export": "for scripts; the page shows it",
}


def modules() -> set[str]:
    """Return the modules that pages load, at once or on demand."""
    waiting = [page.module for page in (*PAGES, *MISSING.values())]
    found: set[str] = set()
    while waiting:
        new = set(all_files().graph(waiting.pop())) - found
        found |= new
        for name in new:
            paths = ON_DEMAND.findall((STATIC / name).read_text())
            waiting += [posixpath.normpath(posixpath.join(name, "..", path)) for path in paths]
    return found


def calls() -> set[str]:
    """Return method and path of all calls of the modules that pages load."""
    sources = [(STATIC / name).read_text() for name in modules()]
    found = [call for source in sources for call in CALL.findall(source)]
    return {f"{method.upper()} {path}" for method, path in found}


def existing(app: Flask) -> set[str]:
    """Return method and path of all routes, with the names of parameters as the description has."""
    return {f"{route.method} {route.template.removeprefix('/api/v1')}" for route in routes(app)}


def test_every_change_in_part_may_name_the_state_it_is_meant_for(app: Flask) -> None:
    document = app.test_client().get(DOCUMENT).json
    assert document is not None
    schemas = document["components"]["schemas"]
    bodies = {
        path: operations["patch"]["requestBody"]["content"]["application/json"]["schema"]
        for path, operations in document["paths"].items()
        if "patch" in operations and path.startswith(ADMIN)
    }
    assert len(bodies) >= 6
    for path, body in bodies.items():
        schema = schemas[body["$ref"].rpartition("/")[2]]
        assert "expected_updated_at" in schema["properties"], path


def test_every_admin_route_has_a_control_or_a_reason(app: Flask) -> None:
    known = {name for name in existing(app) if name.partition(" ")[2].startswith("/admin/")}
    assert len(known) > 70, known
    assert known - calls() == NOT_CALLED.keys()


def test_every_call_of_a_page_leads_to_a_route(app: Flask) -> None:
    assert calls() - existing(app) == set()


def test_every_call_is_found() -> None:
    """A path that is put together otherwise would be overlooked."""
    for file in STATIC.rglob("*.js"):
        if file.name not in {"api.js"}:
            source = file.read_text()
            some = re.findall(r"\bcall(?:ForFile)?\(", source)
            assert len(some) == len(CALL.findall(source)), file
