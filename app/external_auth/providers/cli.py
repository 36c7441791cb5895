"""`flask external-auth`: administer providers. KEY is a provider's key, or KIND/KEY."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from app.core.access import COMMAND_LINE
from app.core.addresses import is_loopback_name
from app.external_auth.errors import ProviderInvalid
from app.external_auth.models import Provider
from app.external_auth.providers import service, testing
from app.external_auth.providers.fields import FIELDS, Form, ProviderField
from app.external_auth.providers.remarks import list_remarks
from app.external_auth.providers.schemas import SCHEMAS, show
from app.external_auth.providers.service import ALIASES
from app.external_auth.sign_in.service import callback_addresses
from app.web.cli import (
    Commands,
    Output,
    Word,
    confirm,
    details,
    printable,
    progress,
    read_secret,
    table,
    yes_option,
)
from app.web.runtime import runtime

F = TypeVar("F", bound=Callable[..., Any])

NOTHING_GIVEN = "is unchanged: say what to change, such as --name"
SECRET_VARIABLE = "GATEHOUSE_CLIENT_SECRET"

group = Commands(
    "external-auth", help="Sign-in with other services; KEY is a provider's key, or KIND/KEY."
)
KINDS = list(SCHEMAS)


def _option_name(field: ProviderField) -> str:
    name = field.name.replace("_", "-")
    is_switch = field.form is Form.SWITCH
    return field.option or (f"--{name}/--no-{name}" if is_switch else f"--{name}")


def _option(field: ProviderField, *, is_new: bool) -> Callable[[F], F]:
    """Return the option of a field; one left out keeps the stored or default value."""
    how: dict[str, Any] = {"help": field.help}
    match field.form:
        case Form.SWITCH:
            how["default"] = None
        case Form.LIST:
            how["multiple"] = True
        case Form.CHOICE:
            how["type"] = Word(list(field.choices or ()))
        case Form.SECRET:
            # A variable left over from one provider must not become the secret of another.
            how["envvar"] = SECRET_VARIABLE if is_new else None
            how["help"] += (
                f" Arguments show in process lists: prefer -{f' or {SECRET_VARIABLE}' * is_new}."
            )
    is_required = is_new and field.name == "client_id"
    return click.option(_option_name(field), field.name, required=is_required, **how)


def _fields(*, is_new: bool) -> Callable[[F], F]:
    """Add the options of a provider's fields."""

    def decorate(function: F) -> F:
        for field in reversed(FIELDS):
            function = _option(field, is_new=is_new)(function)
        return function

    return decorate


@group.command("kinds")
def kinds() -> Output:
    """List the kinds of provider and what each takes."""
    data = [schema.describe() for schema in SCHEMAS.values()]
    rows = [[k["kind"], k["display_name"], k["protocol"], k["description"]] for k in data]
    return Output(data, table(["KIND", "NAME", "PROTOCOL", "FOR"], rows))


@group.command("list")
def list_providers() -> Output:
    """List the providers by display name."""
    data = [show(provider) for provider in service.list_all(runtime())]
    rows = [[p["key"], p["provider_kind"], p["display_name"], p["enabled"]] for p in data]
    return Output(data, table(["KEY", "KIND", "NAME", "ENABLED"], rows))


@group.command(
    "add",
    epilog=f"KIND is one of {', '.join(KINDS)}; `flask external-auth kinds` describes them.",
)
@click.argument("kind", metavar="KIND", type=Word([*KINDS, *ALIASES]))
@click.option("--key", required=True, help="Its name in URLs: letters, digits, hyphens.")
@_fields(is_new=True)
def add(kind: str, key: str, **typed: Any) -> Output:
    """Set up a provider of KIND."""
    given = _given(typed)
    with _in_options():
        made = service.add(runtime(), COMMAND_LINE, kind=kind, key=key, **given)
    return replace(_shown(made, "was added", remarks=True), note=_callback_note(made))


@group.command("update")
@click.argument("key")
@_fields(is_new=False)
def update(key: str, **typed: Any) -> Output:
    """Change the given options of a provider; an empty text clears an optional one."""
    given = _given(typed)
    with _in_options():
        changed = service.update(runtime(), COMMAND_LINE, key, **given)
    return _shown(changed, "was changed" if given else NOTHING_GIVEN, remarks=True)


@group.command("enable")
@click.argument("key")
def enable(key: str) -> Output:
    """Let people sign in with a provider."""
    return _shown(service.update(runtime(), COMMAND_LINE, key, enabled=True), "is enabled")


@group.command("disable")
@click.argument("key")
def disable(key: str) -> Output:
    """Stop people from signing in with a provider; links and sessions stay."""
    return _shown(service.update(runtime(), COMMAND_LINE, key, enabled=False), "is disabled")


@group.command("test")
@click.argument("key")
def test(key: str) -> Output:
    """Check a provider as far as that is possible without a sign-in."""
    progress("asking the provider")
    return _tested(testing.test(runtime(), COMMAND_LINE, key))


@group.command("test-draft")
@click.argument("kind", metavar="KIND", type=Word([*KINDS, *ALIASES]))
@_fields(is_new=True)
def test_draft(kind: str, **typed: Any) -> Output:
    """Check a provider of KIND that is not set up yet, like `test`."""
    given = _given(typed)
    progress("asking the provider")
    with _in_options():
        return _tested(testing.test_draft(runtime(), COMMAND_LINE, kind, **given))


@group.command("remove")
@click.argument("key")
@yes_option
def remove(key: str, is_sure: bool) -> Output:
    """Delete a provider with its links; the accounts stay."""
    confirm(f"Delete the provider {key} with its links?", is_sure=is_sure)
    return _shown(service.remove(runtime(), COMMAND_LINE, key, is_forced=True), "was removed")


def _callback_note(provider: Provider) -> str:
    """Return what remains to be done at the provider, with each URL on a line of its own."""
    addresses = callback_addresses(runtime(), provider.provider_kind, provider.key)
    if not addresses:
        return "Nobody can sign in with it until public_site_url is set: see `flask config set -h`"
    told = ["Register at the provider, as the callback or redirect address:", *addresses]
    if is_loopback_name(urlsplit(addresses[0]).hostname or ""):
        told.append(
            "Only browsers on this machine can return to that address; set public_site_url before "
            "others use the site."
        )
    return "\n".join(told)


@contextmanager
def _in_options() -> Iterator[None]:
    """Add the option's name to an error about a field, if the option is named differently."""
    try:
        yield
    except ProviderInvalid as error:
        name, _, complaint = error.public_message.partition(" ")
        option = next((field.option for field in FIELDS if field.name == name), "")
        if not option:
            raise
        raise ProviderInvalid(f"{name} ({option}) {complaint}") from None


def _given(typed: dict[str, Any]) -> dict[str, Any]:
    """Return only the options that were given, with a secret that is to be read."""
    given = {name: value for name, value in typed.items() if value is not None and value != ()}
    if given.get("client_secret") == "-":
        given["client_secret"] = read_secret("Client secret")
    return given


def _tested(data: dict[str, Any]) -> Output:
    facts = {name: value for name, value in data.items() if name != "checks"}
    checks = {check["name"]: check["message"] for check in data["checks"]}
    return Output(data, details(facts | checks))


def _shown(provider: Provider, what: str, *, remarks: bool = False) -> Output:
    told = [f"{provider.name} {what}"]
    if remarks:
        told += (f"Note: {remark}" for remark in list_remarks(runtime(), provider))
    return Output(show(provider), "\n".join(map(printable, told)))
