"""/.well-known/: what password managers ask for."""

import pytest

from tests.support.factories import configure

SITE = "https://files.example"
SECURITY = "/settings/security"
CHANGE, PASSKEYS = "/.well-known/change-password", "/.well-known/passkey-endpoints"


@pytest.fixture
def web(app):
    """A client of no session, at a host that nobody configured."""
    client = app.test_client()
    return lambda method, path: client.open(path, method=method, headers={"Host": "other.example"})


@pytest.mark.parametrize(
    ("sections", "origins", "location"),
    [
        (["account"], [], SECURITY),
        (["account"], [SITE, "https://other.example"], SECURITY),
        (["sign_in", "admin"], [SITE, "https://other.example"], SITE),
        ([], [SITE], SITE),
        ([], [], None),
    ],
)
def test_where_a_password_is_changed(rt, web, sections, origins, location):
    configure(rt, pages_sections=sections, public_site_url=origins)
    for method in ("GET", "HEAD"):
        answer = web(method, CHANGE)
        assert answer.status_code == (302 if location else 404)
        assert answer.headers.get("Location") == location
        assert answer.headers["Cache-Control" if location else "Content-Type"] in (
            "no-store",
            "application/json",
        )


@pytest.mark.parametrize(
    ("sections", "origins", "address"),
    [
        (["account"], [SITE, "https://other.example"], SITE + SECURITY),
        (["sign_in"], [SITE], SITE),
        (["account"], [], None),
        ([], [], None),
    ],
)
def test_where_passkeys_are_managed(rt, web, sections, origins, address):
    configure(rt, pages_sections=sections, public_site_url=origins)
    answer = web("GET", PASSKEYS)
    if address is None:
        assert answer.status_code == 404
        return
    assert (answer.status_code, answer.mimetype) == (200, "application/json")
    assert answer.json == {"enroll": address, "manage": address}
    assert web("HEAD", PASSKEYS).status_code == 200


@pytest.mark.parametrize("path", [CHANGE, PASSKEYS])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_is_changed_there(rt, web, path, method):
    configure(rt, public_site_url=[SITE])
    answer = web(method, path)
    assert answer.status_code == 405
    assert "GET" in answer.headers["Allow"]
