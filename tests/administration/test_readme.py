"""The README's calls of administration and its commands do the same."""

import json
import re
import shlex

from tests.support.servers import ROOT

SECTION = re.compile(r"^## Administration\n.*?```console\n(.*?)```", re.MULTILINE | re.DOTALL)


def typed():
    """Return the words of each call of curl, and those of each command."""
    text = SECTION.search((ROOT / "README.md").read_text())[1].replace("\\\n", " ")
    lines = [shlex.split(line.removeprefix("$ ")) for line in text.splitlines() if line]
    curl = [words for words in lines if words[0] == "curl"]
    flask = [words[1:] for words in lines if words[0] == ".venv/bin/flask"]
    assert len(curl) + len(flask) == len(lines)
    return curl, flask


def call(api, words):
    """Send what curl would, with the cookies of `api`."""
    [where] = [word.removeprefix("$api") for word in words if word.startswith("$api")]
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
    return api.call(method, where, body).ok(201 if method == "POST" else 200)


def test_three_calls_and_three_commands_do_the_same(api, admin, line):
    api.login(admin).ok()
    curl, flask = typed()
    listed, made, logged = (call(api, words) for words in curl)
    listed_too, made_too, logged_too = (line.json(*words) for words in flask)
    assert [user["id"] for user in listed["items"]] == [user["id"] for user in listed_too]
    assert made["user"]["username"] == "bob"
    assert made["generated_password"]
    assert made_too["user"]["username"] == "eve"
    assert made_too["generated_password"]
    assert [entry["entity_id"] for entry in logged["items"]] == [made["user"]["id"]]
    by_command, by_call = logged_too
    assert (by_command["entity_id"], by_command["user_id"]) == (made_too["user"]["id"], 0)
    assert (by_call["entity_id"], by_call["user_id"]) == (made["user"]["id"], admin.id)
