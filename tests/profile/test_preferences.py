"""PATCH /auth/preferences."""

import json
from functools import partial

import pytest

from app.profile.preferences import BUILT_IN, MAX_CUSTOM_DEPTH
from tests.support.factories import audit_rows, change_user, column_of
from tests.support.races import run_concurrently

UNSET = dict.fromkeys(BUILT_IN)
EVERYTHING = {
    "theme_mode": "dark",
    "color_preset": "#16a34a",
    "view_mode": "grid",
    "browser_open_mode": "double_click",
    "sort_by": "updated_at",
    "sort_order": "desc",
    "language": "zh-Hans-CN",
    "display_time_zone": "Europe/Berlin",
    "storage_event_stream_enabled": False,
}


def patch(client, body):
    return client.patch("/auth/preferences", body)


def stored(rt, user):
    text = column_of(rt, user, "preferences")
    return None if text is None else json.loads(text)


def nested(levels, *, innermost=1):
    value = innermost
    for _ in range(levels):
        value = [value]
    return value


def test_every_key_can_be_set_and_is_shown(signed_in):
    assert patch(signed_in, EVERYTHING).ok() == EVERYTHING
    assert signed_in.me().ok()["preferences"] == EVERYTHING


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_key_is_set_alone_and_kept_by_null_and_absence(signed_in, name):
    expected = UNSET | {name: EVERYTHING[name]}
    assert patch(signed_in, {name: EVERYTHING[name]}).ok() == expected
    assert patch(signed_in, {name: None}).ok() == expected
    assert patch(signed_in, {}).ok() == expected


def test_nothing_set_is_null_in_me_and_whole_in_the_answer(rt, signed_in, user):
    assert patch(signed_in, {}).ok() == UNSET
    assert patch(signed_in, dict.fromkeys(BUILT_IN)).ok() == UNSET
    assert signed_in.me().ok()["preferences"] is None
    assert column_of(rt, user, "preferences") is None


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("theme_mode", ["system", "light", "dark"]),
        ("view_mode", ["list", "grid"]),
        ("browser_open_mode", ["single_click", "double_click"]),
        ("sort_by", ["name", "size", "created_at", "updated_at", "type"]),
        ("sort_order", ["asc", "desc"]),
        ("storage_event_stream_enabled", [True, False]),
    ],
)
def test_documented_values_are_taken(signed_in, name, values):
    for value in values:
        assert patch(signed_in, {name: value}).ok()[name] == value


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("#ABCDEF", "#abcdef"),
        ("  #2563eb ", "#2563eb"),
        ("blue", "#2563eb"),
        ("green", "#16a34a"),
        ("purple", "#9333ea"),
        (" orange ", "#f97316"),
    ],
)
def test_a_color_is_shown_in_one_form(signed_in, typed, shown):
    assert patch(signed_in, {"color_preset": typed}).ok()["color_preset"] == shown


def test_old_color_names_in_the_store_are_understood(rt, signed_in, user):
    change_user(rt, user, preferences='{"color_preset": "purple"}')
    assert signed_in.me().ok()["preferences"]["color_preset"] == "#9333ea"


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("zh-cn", "zh-CN"),
        (" EN-us ", "en-US"),
        ("zh-HANS-cn", "zh-Hans-CN"),
        ("de", "de"),
        ("es-419", "es-419"),
        ("de-ch-1901", "de-CH-1901"),
        ("DE-de-U-CO-phonebk", "de-DE-u-co-phonebk"),
        ("x-klingon", "x-klingon"),
        ("I-Klingon", "i-klingon"),
        ("en-gb-OED", "en-GB-oed"),
        ("tlh-a-b1c-x-foo", "tlh-a-b1c-x-foo"),
        ("ZH-yue-hant-hk", "zh-yue-Hant-HK"),
        ("x-1", "x-1"),
    ],
)
def test_a_language_is_shown_in_its_canonical_case(signed_in, typed, shown):
    assert patch(signed_in, {"language": typed}).ok()["language"] == shown


@pytest.mark.parametrize(
    "zone", ["browser", "UTC", "America/Argentina/Buenos_Aires", "Asia/Kolkata"]
)
def test_a_time_zone_is_an_exact_name(signed_in, zone):
    assert patch(signed_in, {"display_time_zone": f" {zone} "}).ok()["display_time_zone"] == zone


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("theme_mode", value) for value in ("", "DARK", " dark", "blue", 1, True, [])],
        *[
            ("color_preset", v)
            for v in (
                "",
                "#12345",
                "#1234567",
                "#12345g",
                "red",
                "#\uff11\uff11\uff11\uff11\uff11\uff11",
                7,
            )
        ],
        *[("view_mode", value) for value in ("table", False)],
        *[("browser_open_mode", value) for value in ("triple_click", {})],
        *[("sort_by", value) for value in ("owner", 0)],
        *[("sort_order", value) for value in ("up", "ASC")],
        *[
            ("language", v)
            for v in ("", "  ", "not_a_locale", "de_DE", "a", "abcd", "de--DE", "de-")
        ],
        *[("language", v) for v in ("a1", "123", "e2-GB", "zh-yu1", "zh-yue-ab1", "x", "x-")],
        *[("language", v) for v in ("en-u", "de-1996-1996", "en-a-bb-a-cc", "дe", "x" * 300, 5)],
        *[("display_time_zone", v) for v in ("", " ", "europe/berlin", "Mars/Olympus", "Browser")],
        *[
            ("display_time_zone", v)
            for v in ("../../etc/passwd", "Europe/", "posix/UTC", "/UTC", 1)
        ],
        *[("storage_event_stream_enabled", value) for value in ("true", 1, 0, "", [])],
    ],
    ids=repr,
)
def test_any_other_value_is_refused_and_nothing_is_stored(rt, signed_in, user, name, value):
    patch(signed_in, {name: value, "custom": {"a": 1}}).fails(400, "bad_request")
    assert column_of(rt, user, "preferences") is None


def test_all_wrong_values_are_named_at_once(signed_in):
    wrong = {"theme_mode": "blue", "language": "xx-yy-zz", "sort_order": "asc", "view_mode": "wall"}
    answer = patch(signed_in, wrong).fails(400, "bad_request")
    named = [fault.partition(" ")[0] for fault in answer.json["msg"].split("; ")]
    assert named == ["theme_mode", "view_mode", "language"]


# --- custom keys ------------------------------------------------------------------------------


def test_custom_values_are_any_json(signed_in):
    custom = {
        "number": 1.5,
        "large": 10**30,
        "text": "Grüße, 世界 😀",
        "null": None,
        "list": [1, [True, {"a": {}}]],
        "😀": {"nested": nested(20)},
    }
    answer = patch(signed_in, {"custom": custom}).ok()
    assert answer == {**UNSET, "custom": custom}
    assert signed_in.me().ok()["preferences"] == answer


def test_custom_keys_are_merged_key_by_key(rt, signed_in, user):
    patch(signed_in, {"custom": {"a": 1, "b": {"deep": 1}}, "view_mode": "list"}).ok()
    answer = patch(signed_in, {"custom": {" b ": {"other": 2}, "c": 3}}).ok()
    assert answer["custom"] == {"a": 1, "b": {"other": 2}, "c": 3}
    assert answer["view_mode"] == "list"
    # One flat object.
    assert stored(rt, user) == {"a": 1, "b": {"other": 2}, "c": 3, "view_mode": "list"}


def test_removing_the_last_key_leaves_nothing(rt, signed_in, user):
    patch(signed_in, {"custom": {"a": 1, "b": None}}).ok()
    body = {"remove_custom_keys": [" a ", "a", "unknown"]}
    assert patch(signed_in, body).ok() == {**UNSET, "custom": {"b": None}}
    assert patch(signed_in, {"remove_custom_keys": ["b"]}).ok() == UNSET
    assert signed_in.me().ok()["preferences"] is None
    assert column_of(rt, user, "preferences") is None


@pytest.mark.parametrize(
    "body",
    [
        {"custom": None},
        {"custom": []},
        {"custom": "text"},
        {"custom": {"": 1}},
        {"custom": {"  ": 1}},
        {"custom": {"a": 1, " a": 2}},
        {"custom": {"nul\x00": 1}},
        {"custom": {"\ud800": 1}},
        {"custom": {"a": "\ud800"}},
        {"custom": {"a": [{"b\x00": 1}]}},
        {"custom": {"a": nested(MAX_CUSTOM_DEPTH + 1)}},
        {"custom": {"a": nested(MAX_CUSTOM_DEPTH, innermost=[])}},
        {"custom": {"a": nested(MAX_CUSTOM_DEPTH, innermost={})}},
        *[{"custom": {f" {name} ": "dark"}} for name in BUILT_IN],
        {"remove_custom_keys": None},
        {"remove_custom_keys": "a"},
        {"remove_custom_keys": [None]},
        {"remove_custom_keys": [1]},
        {"remove_custom_keys": [""]},
        *[{"remove_custom_keys": [name]} for name in BUILT_IN],
        {"custom": {"a": 1}, "remove_custom_keys": [" a"]},
    ],
    ids=lambda body: repr(body)[:60],
)
def test_one_bad_custom_key_refuses_the_whole_request(rt, signed_in, user, body):
    patch(signed_in, {"theme_mode": "dark", **body}).fails(400, "bad_request")
    assert column_of(rt, user, "preferences") is None


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_a_number_that_has_no_json_form_is_refused(signed_in, number):
    patch(signed_in, f'{{"custom": {{"a": {number}}}}}'.encode()).fails(400, "bad_request")
    assert signed_in.me().ok()["preferences"] is None


def test_the_deepest_value_that_is_taken_can_be_shown(signed_in):
    custom = {"a": nested(MAX_CUSTOM_DEPTH)}
    patch(signed_in, {"custom": custom}).ok()
    assert signed_in.me().ok()["preferences"]["custom"] == custom


def test_one_large_value_fits_but_not_any_number_of_them(rt, signed_in, user):
    large = "x" * 600_000
    patch(signed_in, {"custom": {"a": large}}).ok()
    patch(signed_in, {"custom": {"b": large}}).fails(400, "bad_request")
    assert set(stored(rt, user)) == {"a"}
    patch(signed_in, {"custom": {"b": large}, "remove_custom_keys": ["a"]}).ok()
    assert set(stored(rt, user)) == {"b"}


def test_a_letter_of_any_script_takes_the_room_it_took_on_its_way(rt, signed_in, user):
    """Written with escapes each of these would need twice as much."""
    value = "\u4e16" * 349_000
    body = json.dumps({"custom": {"a": value}}, ensure_ascii=False).encode()
    assert 1_000_000 < len(body) < 2**20
    patch(signed_in, body).ok()
    assert signed_in.me().ok()["preferences"]["custom"] == {"a": value}
    patch(signed_in, {"custom": {"b": "x" * 2000}}).fails(400, "bad_request")
    assert set(stored(rt, user)) == {"a"}


# --- what is stored -----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"text"', "[" * 100_000])
def test_what_cannot_be_read_counts_as_nothing_and_can_be_written_over(rt, signed_in, user, text):
    change_user(rt, user, preferences=text)
    assert signed_in.me().ok()["preferences"] is None
    assert patch(signed_in, {"sort_by": "size"}).ok() == UNSET | {"sort_by": "size"}


def test_what_could_not_be_stored_as_it_is_does_not_keep_anything_else_out(rt, signed_in, user):
    change_user(rt, user, preferences='{"a": "half of a pair: \\ud800"}')
    patch(signed_in, {"sort_by": "size"}).ok()
    assert signed_in.me().ok()["preferences"]["sort_by"] == "size"


def test_updated_at_moves_only_with_a_change(signed_in, clock):
    patch(signed_in, {"theme_mode": "dark", "custom": {"a": 1}}).ok()
    before = signed_in.me().ok()["updated_at"]
    clock.advance(seconds=5)
    patch(signed_in, {"theme_mode": "dark", "custom": {"a": 1}, "remove_custom_keys": ["b"]}).ok()
    assert signed_in.me().ok()["updated_at"] == before
    # In Python 1 == True; in JSON they differ.
    patch(signed_in, {"custom": {"a": True}}).ok()
    assert signed_in.me().ok()["updated_at"] > before
    assert signed_in.me().ok()["preferences"]["custom"] == {"a": True}


def test_changes_are_audited_by_name_and_number_not_by_value(rt, signed_in, user):
    body = {
        "theme_mode": "dark",
        "language": None,
        "sort_by": "size",
        "custom": {"a": "a secret", "b": 1},
        "remove_custom_keys": ["c", "c "],
    }
    patch(signed_in, body).ok()
    [row] = audit_rows(rt, "user_update_preferences")
    assert json.loads(row.details) == {
        "changed_fields": ["theme_mode", "sort_by"],
        "custom_upsert_count": 2,
        "custom_remove_count": 1,
    }
    assert (row.user_id, row.entity_type, row.entity_id) == (user.id, "user", user.id)


def test_changes_at_the_same_moment_lose_no_key(signed_in):
    jobs = [
        partial(patch, signed_in.twin(), {"custom": {f"key{n}": n}, "sort_by": "size"})
        for n in range(16)
    ]
    for answer in run_concurrently(jobs):
        answer.ok()
    custom = signed_in.me().ok()["preferences"]["custom"]
    assert custom == {f"key{n}": n for n in range(16)}


def test_nobody_else_sees_them(rt, signed_in, admin):
    patch(signed_in, {"theme_mode": "dark"}).ok()
    theirs = signed_in.stranger()
    theirs.login(admin).ok()
    assert theirs.me().ok()["preferences"] is None
