"""What an OpenID provider says of itself (OpenID Connect Discovery 1.0)."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.core.texts import Sentence
from app.external_auth.errors import DiscoveryFailed

BASIC, POST = "client_secret_basic", "client_secret_post"

Document = Mapping[str, Any]
# Whether the text of a URL permits a request.
Allows = Callable[[str], bool]


@dataclass(frozen=True)
class Metadata:
    """The part of a discovery document that a sign-in needs.

    `token_endpoint` may be missing until a code is exchanged. With `promises_callback_iss`
    every callback names the issuer (RFC 9207). `secret_methods` are the ways in which the token
    endpoint takes a client secret; if it does not say so, it is HTTP Basic.
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str | None
    userinfo_endpoint: str | None
    jwks_uri: str
    algorithms: tuple[str, ...]
    promises_callback_iss: bool
    secret_methods: tuple[str, ...]
    document: Document = field(repr=False)

    @property
    def takes_basic(self) -> bool:
        """Whether to send a client secret by HTTP Basic rather than in the form."""
        return BASIC in self.secret_methods or POST not in self.secret_methods


def read(document: Document, allows: Allows, supported: Collection[str]) -> Metadata:
    """Return the metadata of a provider that signs with one of the supported algorithms.

    Raises: DiscoveryFailed.
    """
    if "code" not in _texts(document, "response_types_supported"):
        raise DiscoveryFailed("the response type code is not supported")
    _texts(document, "subject_types_supported")
    algorithms = _texts(document, "id_token_signing_alg_values_supported")
    if not set(algorithms).intersection(supported):
        raise DiscoveryFailed("all its algorithms for ID tokens are unsupported")
    return Metadata(
        issuer=text(document, "issuer"),
        authorization_endpoint=_url(document, "authorization_endpoint", allows),
        token_endpoint=_optional_url(document, "token_endpoint", allows),
        userinfo_endpoint=_optional_url(document, "userinfo_endpoint", allows),
        jwks_uri=_url(document, "jwks_uri", allows),
        algorithms=algorithms,
        promises_callback_iss=document.get("authorization_response_iss_parameter_supported")
        is True,
        secret_methods=listed(document, "token_endpoint_auth_methods_supported") or (BASIC,),
        document=document,
    )


def shortcomings(known: Metadata, scopes: Collection[str]) -> dict[str, Sentence]:
    """Return what the provider says that it cannot do, by the name of a check.

    Only what it lists counts: what a list leaves out is missing, what has no list is unknown.
    """
    found = {}
    if not {BASIC, POST}.intersection(known.secret_methods):
        found["token_auth"] = Sentence(
            "The token endpoint takes neither {basic} nor {post}.", basic=BASIC, post=POST
        )
    if known.userinfo_endpoint is None:
        found["userinfo"] = Sentence(
            "There is no user info: address and names have to be in the ID token."
        )
    for check, name, needed, problem in (
        (
            "pkce",
            "code_challenge_methods_supported",
            ["S256"],
            Sentence("PKCE does not offer {missing}."),
        ),
        ("scopes", "scopes_supported", scopes, Sentence("The scopes do not include {missing}.")),
        (
            "claims",
            "claims_supported",
            ["email", "email_verified"],
            Sentence(
                "The claims do not include {missing}: people may have to prove an address by mail."
            ),
        ),
    ):
        offered = listed(known.document, name)
        missing = [word for word in needed if word not in offered]
        if offered and missing:
            found[check] = Sentence(problem.template, missing=", ".join(missing))
    return found


def text(document: Document, name: str) -> str:
    """Return a required text.

    Raises: DiscoveryFailed.
    """
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise DiscoveryFailed(f"{name} is missing")
    return value


def listed(document: Document, name: str) -> tuple[str, ...]:
    """Return the texts of an optional list, none if it is missing."""
    values = document.get(name)
    return tuple(v for v in values if isinstance(v, str)) if isinstance(values, list) else ()


def _texts(document: Document, name: str) -> tuple[str, ...]:
    values = listed(document, name)
    if not values or len(values) != len(document[name]):
        raise DiscoveryFailed(f"{name} is missing")
    return values


def _optional_url(document: Document, name: str, allows: Allows) -> str | None:
    return None if document.get(name) is None else _url(document, name, allows)


def _url(document: Document, name: str, allows: Allows) -> str:
    url = text(document, name)
    if not allows(url):
        raise DiscoveryFailed(f"{name} may not be asked")
    return url
