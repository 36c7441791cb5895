"""PATCH /auth/preferences."""

import json
import math
from functools import partial

import pytest
from marshmallow import ValidationError

from app.profile import preferences
from app.profile.errors import CustomPreferencesInvalid, PreferenceInvalid, PreferencesTooLarge
from app.profile.preferences import BUILT_IN, CHOICES, MAX_CUSTOM_DEPTH
from app.profile.schemas import UpdatePreferencesSchema
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


def allowed(body):
    """Return the change that a request asks for."""
    return preferences.validate_change(**UpdatePreferencesSchema().load(body))


def is_allowed(body):
    try:
        allowed(body)
    except (ValidationError, PreferenceInvalid, CustomPreferencesInvalid):
        return False
    return True


def nested(levels, *, innermost=1):
    value = innermost
    for _ in range(levels):
        value = [value]
    return value


def test_every_key_can_be_set_and_is_shown(signed_in):
    assert patch(signed_in, EVERYTHING).ok() == EVERYTHING
    assert signed_in.me().ok()["preferences"] == EVERYTHING


def test_null_and_absence_keep_what_is_set(signed_in):
    patch(signed_in, EVERYTHING).ok()
    assert patch(signed_in, UNSET).ok() == EVERYTHING
    assert patch(signed_in, {}).ok() == EVERYTHING


def test_one_key_is_set_alone():
    for name, value in EVERYTHING.items():
        assert allowed({name: value}).built_in == {name: value}


def test_nothing_set_is_null_in_me_and_whole_in_the_answer(rt, signed_in, user):
    assert patch(signed_in, {}).ok() == UNSET
    assert patch(signed_in, dict.fromkeys(BUILT_IN)).ok() == UNSET
    assert signed_in.me().ok()["preferences"] is None
    assert column_of(rt, user, "preferences") is None


def test_documented_values_are_taken():
    documented = CHOICES | {"storage_event_stream_enabled": (True, False)}
    for name, value in [(name, value) for name, values in documented.items() for value in values]:
        assert allowed({name: value}).built_in == {name: value}


@pytest.mark.parametrize(
    ("name", "typed", "shown"),
    [
        ("color_preset", "#ABCDEF", "#abcdef"),
        ("color_preset", "  #2563eb ", "#2563eb"),
        ("color_preset", "blue", "#2563eb"),
        ("color_preset", "green", "#16a34a"),
        ("color_preset", "purple", "#9333ea"),
        ("color_preset", " orange ", "#f97316"),
        ("language", "zh-cn", "zh-CN"),
        ("language", " EN-us ", "en-US"),
        ("language", "zh-HANS-cn", "zh-Hans-CN"),
        ("language", "de", "de"),
        ("language", "es-419", "es-419"),
        ("language", "de-ch-1901", "de-CH-1901"),
        ("language", "DE-de-U-CO-phonebk", "de-DE-u-co-phonebk"),
        ("language", "x-klingon", "x-klingon"),
        ("language", "I-Klingon", "i-klingon"),
        ("language", "en-gb-OED", "en-GB-oed"),
        ("language", "tlh-a-b1c-x-foo", "tlh-a-b1c-x-foo"),
        ("language", "ZH-yue-hant-hk", "zh-yue-Hant-HK"),
        ("language", "x-1", "x-1"),
        ("display_time_zone", " browser ", "browser"),
        ("display_time_zone", " UTC ", "UTC"),
        ("display_time_zone", "America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"),
    ],
)
def test_a_color_a_language_and_a_zone_have_one_form(name, typed, shown):
    assert allowed({name: typed}).built_in == {name: shown}


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


WRONG = {
    "theme_mode": ["", "DARK", " dark", "blue", 1, True, []],
    "color_preset": ["", "#12345", "#1234567", "#12345g", "red", "#" + "\uff11" * 6, 7],
    "view_mode": ["table", False],
    "browser_open_mode": ["triple_click", {}],
    "sort_by": ["owner", 0],
    "sort_order": ["up", "ASC"],
    "language": [
        *("", "  ", "not_a_locale", "de_DE", "a", "abcd", "de--DE", "de-", "a1", "123", "e2-GB"),
        *("zh-yu1", "zh-yue-ab1", "x", "x-", "en-u", "de-1996-1996", "en-a-bb-a-cc", "дe"),
        *("x" * 300, 5),
    ],
    "display_time_zone": [
        *("", " ", "europe/berlin", "Mars/Olympus", "Browser", "../../etc/passwd", "Europe/"),
        *("posix/UTC", "/UTC", 1),
    ],
    "storage_event_stream_enabled": ["true", 1, 0, "", []],
}


def test_any_other_value_is_refused():
    bodies = [{name: value} for name, values in WRONG.items() for value in values]
    assert [body for body in bodies if is_allowed(body)] == []


@pytest.mark.parametrize("wrong", [{"theme_mode": "blue"}, {"custom": {"nul\x00": 1}}])
def test_one_wrong_value_refuses_the_whole_request(rt, signed_in, user, wrong):
    patch(signed_in, {"sort_by": "size", "custom": {"a": 1}, **wrong}).fails(400, "bad_request")
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


@pytest.mark.both_databases
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


WRONG_CUSTOM = [
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
    *[{"custom": {"a": number}} for number in (math.inf, -math.inf)],
]


def test_a_custom_key_or_value_that_cannot_be_kept_is_refused():
    assert [body for body in WRONG_CUSTOM if is_allowed(body)] == []


def test_a_number_that_has_no_json_form_is_refused(signed_in):
    patch(signed_in, b'{"custom": {"a": 1e999}}').fails(400, "bad_request")


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


def test_a_letter_of_any_script_takes_the_room_it_took_on_its_way():
    """Written with escapes each of these would need twice as much."""
    stored = allowed({"custom": {"a": "\u4e16" * 349_000}}).merged_into(None)
    assert 1_000_000 < len(stored.encode()) < 2**20
    with pytest.raises(PreferencesTooLarge):
        allowed({"custom": {"b": "x" * 2000}}).merged_into(stored)


# --- what is stored -----------------------------------------------------------------------------


def test_what_cannot_be_read_counts_as_nothing():
    texts = ["", "{", "[]", "null", "1", '"text"', "[" * 100_000, "{}"]
    assert [text[:9] for text in texts if preferences.to_wire(text) is not None] == []


def test_what_cannot_be_read_can_be_written_over(rt, signed_in, user):
    change_user(rt, user, preferences="{")
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


@pytest.mark.both_databases
def test_changes_at_the_same_moment_lose_no_key(signed_in):
    jobs = [
        partial(patch, signed_in.twin(), {"custom": {f"key{n}": n}, "sort_by": "size"})
        for n in range(16)
    ]
    for answer in run_concurrently(jobs):
        answer.ok()
    custom = signed_in.me().ok()["preferences"]["custom"]
    assert custom == {f"key{n}": n for n in range(16)}
