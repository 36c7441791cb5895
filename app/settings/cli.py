"""`flask config`: the runtime settings."""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from app.core.access import COMMAND_LINE
from app.core.setting_kinds import Key
from app.core.texts import pluralized
from app.settings import changes, keys, service, upkeep
from app.settings.errors import SettingInvalid
from app.settings.schemas import KeyData, SettingData
from app.settings.upkeep import Setting, default_of, page
from app.web.cli import Commands, Output, ValueCommand, printable, read_secret, read_text, table
from app.web.runtime import runtime

EXAMPLES = """\
\b
For example:
  flask config set branding_title "Our files"
  flask config set public_site_url '["https://files.example.com"]'
  flask config set default_storage_quota 5GB
  flask config set mail_smtp_password -
"""


def complete_key(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """Return the settings whose names begin as typed."""
    return [name for name in keys.ALL if name.startswith(typed)]


group = Commands("config", help="Runtime settings; every change is in force within a second.")


@group.command("list")
def list_settings() -> Output:
    """List every setting with the value in force."""
    settings = upkeep.list_all(runtime())
    rows = [[s.key.name, _short(s.value), s.is_set] for s in settings]
    return Output(SettingData(many=True).dump(settings), table(["KEY", "VALUE", "SET"], rows))


@group.command("get")
@click.argument("key", shell_complete=complete_key)
def get(key: str) -> Output:
    """Show the value in force; what it means goes to standard error."""
    found = service.find_key(key)
    return replace(_shown(key), note=f"{found.description}; default: {default_of(found)}")


@group.command("describe")
@click.argument("key", required=False, shell_complete=complete_key)
@click.option("--markdown", is_flag=True, help="Print the page docs/settings.md.")
def describe(key: str | None, markdown: bool) -> Output:
    """Say what KEY, or every setting, means and takes."""
    if markdown and key is not None:
        raise click.UsageError("--markdown is about all settings; leave out KEY")
    if key is not None:
        found = service.find_key(key)
        entries = f"\n    possible entries: {', '.join(found.options)}"
        is_set = found.value_type == "string_enum_set"
        return Output(
            KeyData().dump(Setting(found)), _in_words(found) + (entries if is_set else "")
        )
    everything = [found for _, found in sorted(keys.ALL.items())]
    text = page().rstrip() if markdown else "\n".join(map(_in_words, everything))
    return Output([KeyData().dump(Setting(found)) for found in everything], text)


@group.command("set", cls=ValueCommand, epilog=EXAMPLES)
@click.argument("key", shell_complete=complete_key)
@click.argument("value")
def set_value(key: str, value: str) -> Output:
    """Set a value; a list is JSON, and - reads the value from standard input.

    `flask config get KEY` says which values KEY takes.
    """
    rt = runtime()
    found = service.find_key(key)
    if value == "-":
        value = read_text() if found.value_type == "multiline" else read_secret(key)
    try:
        return _shown(key, *changes.change(rt, COMMAND_LINE, {key: value}).others)
    except SettingInvalid as error:
        raise SettingInvalid(error.public_message + _list_meant(found, value)) from None


@group.command("unset")
@click.argument("key", shell_complete=complete_key)
def unset(key: str) -> Output:
    """Return a setting to its default, or remove one that this version does not have."""
    rt = runtime()
    if key not in keys.ALL:
        changes.remove_unknown(rt, COMMAND_LINE, key)
        return Output({"key": key, "value": None}, printable(f"{key} was removed"))
    return _shown(key, *changes.change(rt, COMMAND_LINE, {}, [key]).others)


@group.command("validate")
def validate() -> Output:
    """Check every stored value; exit 1 if one is not valid."""
    found = upkeep.problems(runtime())
    data = [{"key": key, "problem": problem} for key, problem in found]
    text = (
        "\n".join(printable(f"{key}: {problem}") for key, problem in found)
        or "all settings are valid"
    )
    return Output({"valid": not found, "problems": data}, text, exit_code=1 if found else 0)


@group.command("export")
def export() -> Output:
    """Print what was set as a JSON object, without secrets."""
    data = upkeep.export(runtime())
    return Output(data, json.dumps(data, indent=2))


@group.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
def import_file(file: str) -> Output:
    """Apply a JSON object of settings, all or none; - reads standard input."""
    rt = runtime()
    values = _settings_in(read_text() if file == "-" else Path(file).read_text("utf-8"))
    others = changes.change(rt, COMMAND_LINE, values).others
    data = [{"key": name, "value": upkeep.find(rt, name).value} for name in values]
    applied = pluralized(len(values), "setting was", "settings were")
    return Output(data, "\n".join([f"{applied} applied", *map(_line, others)]))


def _list_meant(key: Key[Any], typed: str) -> str:
    """Return a hint with the JSON probably meant by a list typed without quotes or brackets.

    The shell may have removed them. Empty if there is none, or if something else is wrong.
    """
    with suppress(ValueError, RecursionError):
        json.loads(typed)
        return ""
    if not isinstance(key.default, tuple) or not typed.strip("[] "):
        return ""
    entries = [entry.strip(" \"'") for entry in typed.strip("[] ").split(",")]
    meant = json.dumps(entries)
    try:
        key.render(meant)
    except ValueError:
        return ""
    return f". Did you mean '{meant}'?" if "'" not in meant else ""


def _settings_in(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise SettingInvalid("The file is not valid JSON.") from None
    if not isinstance(values, dict):
        raise SettingInvalid("The file must hold one JSON object of settings.")
    return values


def _shown(name: str, *others: str) -> Output:
    """Show the value in force; `others` are settings that changed along with it."""
    value = upkeep.find(runtime(), name).value
    return Output({"key": name, "value": value}, "\n".join(map(_line, [name, *others])))


def _line(name: str) -> str:
    return f"{name} = {_one_line(upkeep.find(runtime(), name).value)}"


def _in_words(key: Key[Any]) -> str:
    return f"{key.name} (default: {default_of(key)})\n    {key.description}"


def _one_line(value: upkeep.Wire) -> str:
    return printable(value) if isinstance(value, str) else json.dumps(value)


def _short(value: upkeep.Wire) -> str:
    line = _one_line(value)
    return line if len(line) <= 60 else f"{line[:57]}..."
