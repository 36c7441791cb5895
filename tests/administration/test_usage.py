"""What the command line says to who has misspelt something, and its help."""

import json

import click
import pytest

from app.core.parsing import format_size, parse_size
from app.web.cli import Command

WIDTH = 80


def complaint(line, *arguments):
    """Return the last line about a wrong usage."""
    ran = line(*arguments)
    assert (ran.exit_code, ran.stdout) == (2, ""), ran
    return ran.stderr.splitlines()[-1]


# --- commands --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("user", "list"), "Did you mean 'users'?"),
        (("docter",), "Did you mean 'doctor'?"),
        (("users", "lst"), "Did you mean 'list'?"),
        (("set-quota", "ada", "1"), "Did you mean 'users set-quota'?"),
        (("rotate",), "Did you mean 'keys rotate'?"),
        (("users", "list", "--jsno"), "Did you mean '--json'?"),
        (("config", "set", "branding_title", "--jsno"), "Did you mean '--json'?"),
        (("users", "list", "--role", "admim"), "Did you mean admin?"),
        (("external-auth", "add", "githb", "--key", "x", "--client-id", "x"), "mean github?"),
        (("audit", "list", "--action", "admin_create_team "), "Did you mean admin_create_team"),
    ],
)
def test_what_is_misspelt_is_told_what_may_be_meant(line, arguments, meant):
    assert meant in complaint(line, *arguments)


def test_what_is_like_nothing_is_told_so(line):
    assert complaint(line, "xyzzy") == "Error: No such command 'xyzzy'."
    assert complaint(line, "users", "list", "--role", "x").endswith("not one of admin, user.")


@pytest.mark.usefixtures("prepared")
def test_flask_itself_knows_what_may_be_meant(flask_process):
    """Its own group asks ours."""
    told = flask_process("flush")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.endswith("Error: No such command 'flush'. Did you mean 'mail flush'?\n")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("public_site_uri", " Did you mean public_site_url?"),
        ("smtp_port", " Did you mean mail_smtp_port or mail_smtp_host?"),
        ("reuse", " Did you mean auth_refresh_reuse_grace_secs?"),
        ("zz", ""),
    ],
)
def test_a_setting_that_is_not_there_is_told_what_may_be_meant(line, typed, meant):
    told = f"There is no setting {typed}.{meant}"
    for arguments in (("get", typed), ("describe", typed), ("set", typed, "1"), ("unset", typed)):
        assert line("config", *arguments).complains() == f"Error: {told}"
    assert line.refuses("not_found", "config", "get", typed) == told


def test_what_is_repeated_is_short_and_one_line(line):
    assert len(line("config", "get", "x\n" * 5000).complains()) < 200


# --- numbers and sizes -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("users", "list", "--limit", "0"), "0 is not in the range 1<=x<=2147483647."),
        (("users", "list", "--limit", "1e3"), "'1e3' is not a valid integer range."),
        (("audit", "list", "--limit", "10001"), "10001 is not in the range 1<=x<=10000."),
        (("events", "tail", "--count", "-1"), "-1 is not in the range x>=1."),
        (
            ("users", "set-quota", "nobody", "9PiB"),
            "10133099161583616 is not in the range 0<=x<=9007199254740992.",
        ),
        (
            ("users", "set-quota", "nobody", "-1"),
            "'-1' must be a whole number of bytes, or a size such as 5GB (5000 MB) or 5GiB "
            "(5120 MiB)",
        ),
        (
            ("invitations", "create", "x@example.com", "--ttl", "3d"),
            "'3d' is not a valid integer range.",
        ),
        (("users", "set-quota", "nobody", "5G"), "'5G' must say which unit: 5GB or 5GiB"),
    ],
)
def test_a_bad_number_is_told_what_it_may_be(line, arguments, told):
    assert complaint(line, *arguments).endswith(f": {told}")


@pytest.mark.parametrize(
    ("typed", "size"),
    [
        ("0", 0),
        ("1_000", 1000),
        ("12B", 12),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("5GB", 5 * 10**9),
        (" 5 gib ", 5 * 2**30),
        ("1.5TB", 15 * 10**11),
        ("0.5KiB", 512),
    ],
)
def test_a_size_may_have_a_unit(typed, size):
    assert parse_size(typed) == size


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("", "such as 5GB"),
        ("much", "such as 5GB"),
        ("-5GB", "such as 5GB"),
        ("1e9", "such as 5GB"),
        ("GB", "such as 5GB"),
        ("5 000", "such as 5GB"),
        ("\u0665GB", "such as 5GB"),
        ("9" * 5000, "such as 5GB"),
        ("5m", "5MB or 5MiB"),
        ("5XB", "units B, kB, MB"),
        ("1.5", "a whole number of bytes"),
        ("0.0001kB", "a whole number of bytes"),
        ("9007199254740991.0000000000000001", "a whole number of bytes"),
    ],
)
def test_what_is_no_size_is_told_why(typed, told):
    with pytest.raises(ValueError, match=r"^must ") as refusal:
        parse_size(typed)
    assert told in str(refusal.value)


def test_sizes_are_told_in_the_largest_unit_that_fits():
    told = {
        0: "0 bytes",
        1: "1 byte",
        1500: "1500 bytes",
        10**9: "1000000000 bytes (1 GB)",
        1536 * 2**20: "1610612736 bytes (1536 MiB)",
        1024000: "1024000 bytes (1000 KiB)",
    }
    assert {size: format_size(size) for size in told} == told


def test_a_quota_is_told_in_its_unit(line, user):
    name = user.username
    assert line.json("users", "set-quota", name, "1.5GiB")["storage_quota"] == 1610612736
    told = line("users", "set-quota", name, "5GB").text
    assert told == f"{name} (id {user.id}) has a quota of 5000000000 bytes (5 GB)"
    assert "storage_quota         5000000000 bytes (5 GB)" in line("users", "show", name).text
    assert line("users", "set-quota", name, "0").text.endswith("has no quota")
    assert "storage_quota         no limit" in line("users", "show", name).text


def test_settings_in_bytes_take_units_too(line):
    changed = line.json("config", "set", "default_storage_quota", "5GB")
    assert changed == {"key": "default_storage_quota", "value": "5000000000"}
    told = line.refuses("bad_request", "config", "set", "default_storage_quota", "5G")
    assert told == "default_storage_quota must say which unit: 5GB or 5GiB"
    told = line.refuses("bad_request", "config", "set", "avatar_max_upload_size_bytes", "1GB")
    assert told == "avatar_max_upload_size_bytes must be from 1 to 16777216"
    told = line.refuses("bad_request", "config", "set", "default_storage_quota", "-1")
    assert told == "default_storage_quota must be from 0 to 9007199254740992"
    line.refuses("bad_request", "config", "set", "auth_access_token_ttl_secs", "5GB")


@pytest.mark.parametrize("typed", ["-5", "-5h", "-5 hours --json", "-0=h"])
def test_a_value_may_begin_with_a_hyphen_and_a_digit(line, typed):
    """Whatever letters follow: help is asked for by -h alone."""
    assert line.json("config", "set", "branding_title", typed)["value"] == typed
    assert line("config", "set", "branding_title", typed, "-h").text.startswith("Usage:")


# --- lists -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("https://a.example", '["https://a.example"]'),
        ("https://a.example, https://b.example", '["https://a.example", "https://b.example"]'),
        ("[https://a.example]", '["https://a.example"]'),
        ("['https://a.example']", '["https://a.example"]'),
    ],
)
def test_a_list_that_is_no_json_is_shown_as_it_may_be_meant(line, typed, meant):
    """Without quotes, a shell takes those of the JSON."""
    told = line("config", "set", "public_site_url", typed).complains()
    assert told.endswith(f"Did you mean '{meant}'?")
    assert line.json("config", "set", "public_site_url", meant)["value"] == json.loads(meant)


@pytest.mark.parametrize("typed", ["nonsense", '["ftp://a.example"]', '{"a": 1}', "", "[" * 100])
def test_what_is_no_list_either_way_is_shown_none(line, typed):
    assert "Did you mean" not in line("config", "set", "public_site_url", typed).complains()


# --- help ------------------------------------------------------------------------------------


def walk(group, *names):
    """Yield our commands and groups with their names; `db` is Flask-Migrate's."""
    yield names, group
    for name, command in getattr(group, "commands", {}).items():
        if name != "db":
            yield from walk(command, *names, name)


def test_help_fits_a_terminal_and_cuts_nothing_off(app, line):
    """A word that a line cannot hold, such as ten choices in one, is broken anywhere."""
    for names, _ in walk(app.cli):
        text = line(*names, "--help").text
        assert text == line(*names, "-h").text
        assert "..." not in text.replace("[ARGS]...", ""), names
        assert max(map(len, text.splitlines())) <= WIDTH, names
        usage = text.partition("\n\n")[0].splitlines()
        assert len(usage) == 1, usage


def test_every_option_says_what_it_is_for(app):
    for names, command in walk(app.cli):
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, (names, parameter.name)


def test_every_command_takes_json_and_tells_what_it_does(app):
    for names, command in walk(app.cli):
        if not isinstance(command, click.Group):
            assert isinstance(command, Command), names
            assert command.help, names
