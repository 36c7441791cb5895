"""The fields of a provider, each declared once.

Requests and answers of the API (`external_auth/schemas.py`), the options of the commands (`cli.py`)
and the console's form, by way of the list of kinds, are made from this list. What a field may say
differs from kind to kind, and so does which kind has it: that is in `schemas.py`.
"""

from dataclasses import dataclass
from enum import StrEnum

from app.external_auth.models import TokenAuth


class Form(StrEnum):
    """How a field is typed."""

    TEXT = "text"
    URL = "url"
    SECRET = "secret"
    SWITCH = "switch"
    CHOICE = "choice"
    LIST = "list"


@dataclass(frozen=True)
class ProviderField:
    """One field; `help` is what the command line says of it.

    `option` is its option there, if that is not named after it. `is_clearable`: null clears it,
    whereas for others null leaves what is stored. `is_tested`: a test of a draft needs it.
    `is_advanced`: most providers do without it. `is_recorded`: the audit log has its value.
    """

    name: str
    help: str
    form: Form = Form.TEXT
    option: str = ""
    choices: type[StrEnum] | None = None
    is_clearable: bool = False
    is_tested: bool = False
    is_advanced: bool = False
    is_recorded: bool = False

    @property
    def is_member(self) -> bool:
        """Whether it is a member of the API by itself; a tenant is one of the options."""
        return self.name != TENANT

    @property
    def is_nullable(self) -> bool:
        """Whether answers may have null in its place."""
        return self.form is Form.CHOICE or (self.is_clearable and self.form is not Form.LIST)


def _endpoint(name: str, help_: str) -> ProviderField:
    return ProviderField(name, help_, Form.URL, is_clearable=True, is_tested=True)


def _switch(name: str, help_: str, option: str = "") -> ProviderField:
    return ProviderField(name, help_, Form.SWITCH, option, is_recorded=True)


def _claim(name: str) -> ProviderField:
    help_ = "A claim's name (generic_oauth2)."
    return ProviderField(f"{name}_claim", help_, is_clearable=True, is_advanced=True)


TENANT = "tenant"
FIELDS = (
    ProviderField("display_name", "The name that people see.", option="--name"),
    ProviderField(
        "issuer_url",
        "Where its discovery document is (oidc).",
        Form.URL,
        is_clearable=True,
        is_tested=True,
        is_recorded=True,
    ),
    ProviderField(TENANT, "common, organizations, consumers or a UUID (microsoft)."),
    _endpoint("authorization_url", "Where browsers sign in (generic_oauth2)."),
    _endpoint("token_url", "Where codes are exchanged (generic_oauth2)."),
    _endpoint("userinfo_url", "Where claims are read (generic_oauth2)."),
    ProviderField("client_id", "The client id that the provider gave you.", is_tested=True),
    ProviderField(
        "client_secret",
        "The client secret; - reads it from standard input, or asks for it.",
        Form.SECRET,
        is_clearable=True,
        is_tested=True,
    ),
    ProviderField("scopes", "The scopes to ask for, separated by spaces.", is_tested=True),
    _switch("enabled", "Whether it can be used.", "--enabled/--disabled"),
    _switch(
        "auto_provision_enabled",
        "Create an account for an identity that has none.",
        "--auto-provision/--no-auto-provision",
    ),
    _switch(
        "auto_link_verified_email_enabled",
        "Link an identity to the account with the same verified address.",
        "--auto-link/--no-auto-link",
    ),
    _switch("require_email_verified", "Refuse new identities without a verified address."),
    ProviderField(
        "allowed_domains",
        "Accept new identities only with addresses in this domain; may be repeated.",
        Form.LIST,
        "--allowed-domain",
        is_clearable=True,
    ),
    ProviderField(
        "icon_url",
        "An https address, or a path on this site.",
        is_clearable=True,
        is_advanced=True,
        is_recorded=True,
    ),
    ProviderField(
        "token_auth",
        "How it takes the client secret (oidc, generic_oauth2): by HTTP basic, in the form (post), "
        "or auto: as the discovery document says, else basic for oidc, post otherwise.",
        Form.CHOICE,
        choices=TokenAuth,
        is_tested=True,
        is_advanced=True,
    ),
    *map(_claim, ("subject", "username", "display_name", "email", "email_verified")),
)
