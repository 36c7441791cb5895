"""No secret stands in a repr, which ends up in logs, tracebacks and error trackers.

Generic: whatever record of `app` has a field that is named like a secret must hide it, or be named
here as harmless.
"""

import dataclasses
import importlib
import inspect
import pkgutil

import pytest

import app
from app.core.access import TokenPair
from app.login.completion import LoginOutcome

TELLING = {
    *(
        "password",
        "secret",
        "secrets",
        "token",
        "tokens",
        "code",
        "codes",
        "hash",
        "key",
        "keys",
        "digest",
    ),
    *("url", "uri", "text", "texts", "html", "selector", "payload", "subject"),
}
HARMLESS = {
    "SecretKey.key_id",
    "Output.exit_code",
    "Runtime.secret_box",  # objects without a repr of their own
    "FirstFactor.password",  # hides its own
    "Setting.key",  # the name of a setting
    "Output.text",
    "Principal.token_expires_at",
    "KeyUse.secrets",  # how many of each key
    "KeyUse.unusable_key_ids",
    "Credentials.has_password",
    "Credentials.recovery_codes_remaining",
    "Draft.subject",
    "Draft.html",
    "TemplateText.subject",  # before anything is filled in
    "TemplateText.html",
    "Rendered.redacted_subject",  # without secrets
    "Config.password_threads",
    "Account.must_change_password",
    "PublicState.password_login_enabled",
    "Principal.is_limited_to_password_change",
    "Account.avatar_key",
    "Parts.secret_id",
    "SecondFactors.recovery_codes_remaining",
    # Addresses of providers and of the site, and names: those of claims, keys and identities.
    *("Callback.redirect_uri", "SignIn.redirect_uri"),
    *("Metadata.jwks_uri", "Metadata.token_endpoint", "Endpoints.token", "Header.key_id"),
    "ExternalProfile.subject",
    "Metadata.secret_methods",  # the names of ways to hand over a secret
    "Confirmation.needs_code",
    *("Look.site_url", "Look.has_password_login"),
    *("Look.has_email_code_sign_in", "PublicState.email_code_sign_in_enabled"),
    *("Look.token_days", "Client.token_id"),
    "Program.token",  # its name and scopes
    "Operation.during_password_change",
}


def records():
    """Yield every dataclass and named tuple of the application, with what its repr shows."""
    for module in pkgutil.walk_packages(app.__path__, "app."):
        for _, cls in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if cls.__module__ != module.name:
                continue
            if dataclasses.is_dataclass(cls):
                shown = [field.name for field in dataclasses.fields(cls) if field.repr]
                yield cls, [field.name for field in dataclasses.fields(cls)], shown
            elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
                yield cls, list(cls._fields), list(cls._fields)


RECORDS = list(records())


def is_telling(name):
    words = name.lower().split("_")
    return words[0] != "public" and bool(set(words) & TELLING)


@pytest.mark.parametrize(
    ("cls", "shown"),
    [pytest.param(cls, shown, id=cls.__qualname__) for cls, _, shown in RECORDS],
)
def test_a_record_hides_what_is_named_like_a_secret(cls, shown):
    told = [f"{cls.__name__}.{name}" for name in shown if is_telling(name)]
    assert set(told) <= HARMLESS


def test_nothing_is_called_harmless_that_is_not_there():
    there = {f"{cls.__name__}.{name}" for cls, names, _ in RECORDS for name in names}
    assert there >= HARMLESS
    assert all(is_telling(name.partition(".")[2]) for name in HARMLESS)


def test_a_hidden_field_is_in_no_repr():
    """Nor in that of a record which holds the record."""
    pair = TokenPair("an access token", 900, "a refresh token", 604_800)
    outcome = LoginOutcome(pair, is_limited=False)
    assert "900" in repr(outcome)
    for secret in (pair.access_token, pair.refresh_token):
        assert secret not in repr(outcome)
