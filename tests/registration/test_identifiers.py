"""Usernames and e-mail addresses as a rule."""

import pytest

from app.users import identifiers
from app.users.errors import EmailInvalid, UsernameInvalid


def test_usernames_within_the_rule_are_kept_as_typed():
    for typed in ("ab", "a" * 64, "A.b-c_d", "...", "-_", "123", "  trimmed  "):
        assert identifiers.username(typed) == typed.strip()


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "  ",
        "a",
        "a" * 65,
        "with space",
        "at@sign",
        "ümlaut",
        "\u212aelvin",  # the Kelvin sign, which lower-cases to an ASCII k
        "line\nbreak",
        "ada\r\nBcc: eve@example.com",
        "<b>ada</b>",
        "{{token}}",
        "ada' OR '1'='1",
        "ada\x00",
        "ada\u202e",
    ],
    ids=ascii,
)
def test_any_other_username_is_refused(typed):
    with pytest.raises(UsernameInvalid):
        identifiers.username(typed)


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("Name@Example.COM", "name@example.com"),
        ("  padded@example.com ", "padded@example.com"),
        ("first.last+tag@sub.example.com", "first.last+tag@sub.example.com"),
        ("a@bücher.example", "a@xn--bcher-kva.example"),
        ("a@XN--I-7IQ.ws", "a@xn--i-7iq.ws"),
        ("a@ab--cd.example", "a@ab--cd.example"),
        ("Taro..Yamada@docomo.ne.jp", "taro..yamada@docomo.ne.jp"),
        ('"taro..yamada"@docomo.ne.jp', "taro..yamada@docomo.ne.jp"),
        (".taro.@ezweb.ne.jp", ".taro.@ezweb.ne.jp"),
        ("o'brien+x/y=z!#$%&*?^_`{|}~-@example.com", "o'brien+x/y=z!#$%&*?^_`{|}~-@example.com"),
        (f"{'a' * 64}@example.com", f"{'a' * 64}@example.com"),
        ("admin@files.test", "admin@files.test"),
        ("admin@nas.local", "admin@nas.local"),
        ("admin@box.home.arpa", "admin@box.home.arpa"),
    ],
)
def test_an_address_is_kept_in_one_spelling(typed, stored):
    assert identifiers.email(typed) == stored


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "nobody",
        "@example.com",
        "=?utf-8?q?x=40evil.test=3e?=a@example.com",
        '"=?utf-8?q?x=2ceve=40evil.test?="@example.com',
        "=?utf-8?b?AA==?=@example.com",
        "a=?@example.com",
        "a@",
        "a@nodot",
        "a@b@example.com",
        "two words@example.com",
        "straße@example.com",
        '"two words"@example.com',
        '"open@example.com',
        "a@ example.com",
        "a@b@",
        "a@b_c.example",
        "a@-b.example",
        "a@b.example.",
        "a@[192.0.2.1]",
        "a@i❤.ws",
        f"{'a' * 65}@example.com",
        f"a@{'b.' * 126}example",
        "a@example.com\nbcc: b@example.com",
        "ada@example.com\r\nBcc: eve@example.com",
        "ada@example.com, eve@example.com",
        "Ada <ada@example.com>",
        '"<script>"@example.com',
        "<ada@example.com>",
        "ada@example.com\x00",
        "ada@exam\u2028ple.com",
    ],
    ids=ascii,
)
def test_what_is_no_address_or_could_be_read_as_more_than_one_is_refused(typed):
    with pytest.raises(EmailInvalid):
        identifiers.email(typed)


def test_an_address_is_listed_by_itself_or_by_its_exact_domain():
    entries = ("allowed.example", "one@exact.example")
    for address, is_listed in {
        "ada@allowed.example": True,
        "one@exact.example": True,
        "two@exact.example": False,
        "ada@sub.allowed.example": False,
    }.items():
        assert identifiers.is_listed(address, entries) is is_listed, address
