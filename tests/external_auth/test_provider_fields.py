"""What the fields of a provider take, whether a command or a page sends them."""

import pytest

from app.external_auth.errors import ProviderInvalid, ProviderKeyInvalid
from app.external_auth.models import ProviderKind
from app.external_auth.providers.schemas import load
from app.external_auth.providers.service import checked_key, named_kind

OIDC, MICROSOFT, GITHUB = ProviderKind.OIDC, ProviderKind.MICROSOFT, ProviderKind.GITHUB
GENERIC = ProviderKind.GENERIC_OAUTH2
# Their addresses are fixed: whether they insist on a verified address, and what they ask for.
DEDICATED = {
    GITHUB: (True, "read:user user:email"),
    ProviderKind.GOOGLE: (True, "openid profile email"),
    MICROSOFT: (False, "openid profile email"),
    ProviderKind.QQ: (False, "get_user_info"),
}
ENDPOINTS = ("authorization_url", "token_url", "userinfo_url")
NEEDED = {
    OIDC: {"display_name": "Corporate", "issuer_url": "https://id.example.com"},
    GENERIC: {
        "display_name": "Any",
        **dict.fromkeys(ENDPOINTS, "https://id.example.com/x"),
    },
}


def loaded(kind: ProviderKind, **typed: object) -> dict[str, object]:
    return load(kind, {"client_id": "id", **NEEDED.get(kind, {}), **typed})


@pytest.mark.parametrize(
    ("kind", "field", "typed", "kept"),
    [
        (OIDC, "issuer_url", " https://id.example.com/ ", "https://id.example.com"),
        (OIDC, "issuer_url", "https://id.example.com/a//", "https://id.example.com/a"),
        (OIDC, "issuer_url", "http://localhost:8080", "http://localhost:8080"),
        (OIDC, "issuer_url", "http://[::1]:8080", "http://[::1]:8080"),
        (GITHUB, "icon_url", "https://x.example/i.svg", "https://x.example/i.svg"),
        (GITHUB, "icon_url", "http://localhost/i.svg", "http://localhost/i.svg"),
        (GITHUB, "icon_url", "/i.svg?v=2", "/i.svg?v=2"),
        (OIDC, "scopes", "email", "openid email"),
        (OIDC, "scopes", "email openid", "email openid"),
        (OIDC, "scopes", "", "openid"),
        (GENERIC, "scopes", "", ""),
    ],
)
def test_what_is_typed_is_kept_in_one_spelling(kind, field, typed, kept):
    assert loaded(kind, **{field: typed})[field] == kept


@pytest.mark.parametrize(
    ("typed", "tenant"),
    [
        ("  ", "common"),
        (" Organizations ", "organizations"),
        ("consumers", "consumers"),
        ("9188040D-6C67-4C5B-B112-36A304B66DAD", "9188040d-6c67-4c5b-b112-36a304b66dad"),
        ("https://login.microsoftonline.com/Common/v2.0", "common"),
        ("https://login.microsoftonline.com/consumers/v2.0/", "consumers"),
    ],
)
def test_a_tenant_has_three_spellings(typed, tenant):
    stored = loaded(MICROSOFT, tenant=typed)
    assert stored["options"] == {"microsoft": {"tenant": tenant}}
    assert stored["issuer_url"] is None


def test_without_a_tenant_all_of_them_may_come():
    assert loaded(MICROSOFT)["options"] == {"microsoft": {"tenant": "common"}}


@pytest.mark.parametrize(
    ("kind", "field", "values"),
    [
        (
            OIDC,
            "issuer_url",
            [
                "id.example.com",
                "//id.example.com",
                "http://id.example.com",
                "http://localhost.evil.example",
                "javascript:alert(1)",
                "https://",
                "https://user@id.example.com",
                "https://id.example.com?x=y",
                "https://id.example.com#x",
                "https://id.example.com\\x",
                "https://id example.com",
                "https://[::1",
                "https://id.example.com/" + "x" * 500,
            ],
        ),
        (
            GITHUB,
            "icon_url",
            ["//x.example/i", "http://x.example/i", "/a b", "/a#b", "/\\x", "i.svg", "data:,x"],
        ),
        (
            MICROSOFT,
            "tenant",
            ["contoso.com", "any", "https://evil.example/common/v2.0", "9188040d", "common/x"],
        ),
        (OIDC, "display_name", ["", "x" * 129, "ü" * 65, "a\x07b"]),
        (OIDC, "client_id", ["", "x" * 513]),
        (OIDC, "client_secret", ["x" * 4097]),
        (OIDC, "scopes", ["x" * 129]),
        (GENERIC, "subject_claim", ["x" * 129]),
        (OIDC, "subject_claim", ["uid"]),
        (
            OIDC,
            "allowed_domains",
            [["localhost"], ["*.example.com"], ["a@example.com"], ["x" * 250 + ".com"]],
        ),
        (GITHUB, "tenant", ["common"]),
        (OIDC, "issuer_url", [""]),
        *((OIDC, field, ["https://id.example.com/x"]) for field in ENDPOINTS),
        *((GENERIC, field, [""]) for field in ENDPOINTS),
        *(
            (kind, field, ["https://evil.example"])
            for kind in DEDICATED
            for field in ("issuer_url", *ENDPOINTS)
        ),
    ],
)
def test_what_breaks_a_rule_names_the_field(kind, field, values):
    for value in values:
        with pytest.raises(ProviderInvalid, match=f"^{field} "):
            loaded(kind, **{field: value})


@pytest.mark.parametrize("kind", DEDICATED)
def test_dedicated_kinds_need_a_client_id_only(kind):
    stored = load(kind, {"client_id": "id"})
    assert (stored["require_email_verified"], stored["scopes"]) == DEDICATED[kind]
    assert stored["display_name"].lower() == kind
    assert {stored[field] for field in ("issuer_url", *ENDPOINTS)} == {None}


@pytest.mark.parametrize(
    ("kind", "field"), [(OIDC, "issuer_url"), *((GENERIC, field) for field in ENDPOINTS)]
)
def test_addresses_without_which_a_kind_does_not_work(kind, field):
    given = {name: value for name, value in NEEDED[kind].items() if name != field}
    with pytest.raises(ProviderInvalid, match=f"^{field} "):
        load(kind, {"client_id": "id", **given})


def test_generic_oauth2_has_an_old_name():
    assert named_kind("oauth2") is GENERIC


def test_an_invalid_key_is_refused():
    for key in ("a", "-a-", "a_b", "a/b", "x" * 65, "ü1", "new"):
        with pytest.raises(ProviderKeyInvalid):
            checked_key(key)
    assert checked_key(" Hub-1 ") == "hub-1"
