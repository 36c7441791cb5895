"""What deletes asks the operator first who sits at a terminal."""

import pytest

from app.core.access import COMMAND_LINE
from app.external_auth.providers import service as providers

DELETING = {
    "users": ("users", "delete", "jane"),
    "teams": ("teams", "archive", "Crew"),
    "groups": ("storage", "delete-group", "Cold"),
    "providers": ("external-auth", "remove", "hub"),
}


@pytest.fixture
def there(line, rt, user):
    """What can be deleted; return what is left of it."""
    line.json("users", "create", "--username", "jane", "--email", "jane@example.com")
    line.json("teams", "create", "Crew", "--owner", user.username)
    line.json("storage", "create-policy", "Cold")
    line.json("storage", "create-group", "Cold", "--policy", "Cold")
    providers.add(rt, COMMAND_LINE, kind="github", key="hub", client_id="files")
    return lambda: [
        name
        for name, command, key in [
            ("users", ("users", "list"), "jane"),
            ("teams", ("teams", "list"), "Crew"),
            ("groups", ("storage", "groups"), "Cold"),
            ("providers", ("external-auth", "list"), "hub"),
        ]
        if key in str(line.json(*command))
    ]


@pytest.fixture
def terminal(line, monkeypatch):
    """Run a command at a terminal where this is typed."""
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True)
    return lambda typed, *arguments: line(*arguments, stdin=typed)


@pytest.mark.parametrize("what", DELETING)
@pytest.mark.parametrize("words", [(), ("--yes",)])
def test_a_script_is_asked_nothing(line, there, what, words):
    line.json(*DELETING[what], *words)
    assert there() == [name for name in DELETING if name != what]


@pytest.mark.parametrize("what", DELETING)
def test_nor_is_who_has_said_yes(there, terminal, what):
    assert terminal("", *DELETING[what], "--yes", "--json").exit_code == 0
    assert there() == [name for name in DELETING if name != what]


@pytest.mark.parametrize("what", DELETING)
def test_who_is_asked_may_say_no(there, terminal, what):
    for typed in ("n\n", "\n", ""):
        left = terminal(typed, *DELETING[what])
        assert (left.exit_code, left.stdout) == (1, "")
        assert left.stderr.endswith("Aborted!\n")
    assert there() == list(DELETING)


@pytest.mark.parametrize("what", DELETING)
def test_who_is_asked_and_says_yes_gets_it(there, terminal, what):
    assert terminal("y\n", *DELETING[what], "--json").exit_code == 0
    assert there() == [name for name in DELETING if name != what]


def test_the_question_names_what_was_meant_by_an_id(line, there, terminal):
    jane = line.json("users", "show", "jane")["id"]
    asked = terminal("n\n", "users", "delete", str(jane)).stderr
    assert f"Delete jane (id {jane}, jane@example.com) with everything" in asked
