"""What mails say beside their templates, in the languages of the pages."""

from collections.abc import Mapping
from dataclasses import dataclass

ENGLISH = "en"


@dataclass(frozen=True)
class Words:
    """The words of one language.

    `counted` has each unit of time for one and for more. `moment` is filled with a time,
    `device` with a browser and the system it runs on, `both` with two of the `methods` to
    sign in. `a_short_time` is for a mail queued by a version that stored no lifetime.
    """

    footer: str
    below_button: str
    counted: Mapping[str, tuple[str, str]]
    a_short_time: str
    moment: str
    device: str
    unknown_device: str
    unknown_address: str
    methods: Mapping[str, str]
    both: str
    more_sign_ins: str


WORDS = {
    ENGLISH: Words(
        footer="{{site_name}} sent this mail automatically.",
        below_button="If the button above does not work, open this address:",
        counted={
            "day": ("{} day", "{} days"),
            "hour": ("{} hour", "{} hours"),
            "minute": ("{} minute", "{} minutes"),
            "second": ("{} second", "{} seconds"),
        },
        a_short_time="a short time",
        moment="{0.day} {0:%B %Y, %H:%M} UTC",
        device="{} on {}",
        unknown_device="Unknown browser",
        unknown_address="unknown",
        methods={
            "password": "password",
            "external_auth": "another service",
            "passkey": "passkey",
            "totp": "authenticator app",
            "recovery_code": "recovery code",
            "email_code": "code by e-mail",
        },
        both="{} and {}",
        more_sign_ins="More than {} new browsers have signed in to your account within 24 hours. "
        "Until tomorrow, there are no more mails about new ones. See where it is signed in: {}",
    ),
    "de": Words(
        footer="Diese E-Mail wurde von {{site_name}} automatisch gesendet.",
        below_button="Wenn die Schaltfläche oben nicht funktioniert, öffnen Sie diese Adresse:",
        counted={
            "day": ("{} Tag", "{} Tage"),
            "hour": ("{} Stunde", "{} Stunden"),
            "minute": ("{} Minute", "{} Minuten"),
            "second": ("{} Sekunde", "{} Sekunden"),
        },
        a_short_time="kurze Zeit",
        moment="{0:%d.%m.%Y, %H:%M} UTC",
        device="{} auf {}",
        unknown_device="Unbekannter Browser",
        unknown_address="unbekannt",
        methods={
            "password": "Passwort",
            "external_auth": "Konto bei einem anderen Dienst",
            "passkey": "Passkey",
            "totp": "Authenticator-App",
            "recovery_code": "Wiederherstellungscode",
            "email_code": "Code per E-Mail",
        },
        both="{} und {}",
        more_sign_ins="In Ihrem Konto haben sich innerhalb von 24 Stunden mehr als {} neue Browser "
        "angemeldet. Bis morgen werden keine weiteren gemeldet. Wo Ihr Konto angemeldet ist, sehen "
        "Sie hier: {}",
    ),
    "zh-CN": Words(
        footer="此邮件由 {{site_name}} 自动发送。",
        below_button="如果上面的按钮无法使用，请打开此地址：",  # noqa: RUF001
        counted={
            "day": ("{} 天", "{} 天"),
            "hour": ("{} 小时", "{} 小时"),
            "minute": ("{} 分钟", "{} 分钟"),
            "second": ("{} 秒", "{} 秒"),
        },
        a_short_time="很短的时间",
        moment="{0.year}年{0.month}月{0.day}日 {0:%H:%M} UTC",
        device="{1} 上的 {0}",
        unknown_device="未知浏览器",
        unknown_address="未知",
        methods={
            "password": "密码",
            "external_auth": "其他服务",
            "passkey": "通行密钥",
            "totp": "身份验证器应用",
            "recovery_code": "恢复代码",
            "email_code": "邮件验证码",
        },
        both="{}和{}",
        more_sign_ins="24 小时内有超过 {} 个新浏览器登录了您的账户。"
        "在明天之前，不再发送有关新浏览器的邮件。在此查看账户的登录位置：{}",  # noqa: RUF001
    ),
}

DAY, HOUR, MINUTE = ("day", 86_400), ("hour", 3600), ("minute", 60)


def duration(seconds: int, language: str = ENGLISH) -> str:
    """Return a duration in words: "3 days", "1 hour", "90 minutes", "45 seconds".

    Whole days or hours if exact, else minutes rounded up; below a minute, seconds.
    """
    if exact := _in_whole(seconds, language, DAY, HOUR):
        return exact
    unit, length = MINUTE
    if seconds >= length:
        return _counted(-(-seconds // length), unit, language)
    return exact_duration(seconds, language)


def exact_duration(seconds: int, language: str = ENGLISH) -> str:
    """Return a duration in words without rounding: "5 minutes", "1 minute", "299 seconds"."""
    exact = _in_whole(seconds, language, DAY, HOUR, MINUTE)
    return exact or _counted(seconds, "second", language)


def rounded_duration(seconds: int, language: str = ENGLISH) -> str:
    """Return a duration in words, rounded down: "4 minutes" for 299 seconds.

    Uses the largest unit that fits at least twice, so that at most a third is lost.
    """
    if exact := _in_whole(seconds, language, DAY, HOUR, MINUTE):
        return exact
    for unit, length in (DAY, HOUR, MINUTE):
        if seconds >= 2 * length:
            return _counted(seconds // length, unit, language)
    return _counted(seconds, "second", language)


def _in_whole(seconds: int, language: str, *units: tuple[str, int]) -> str | None:
    """Return the span in the first unit that divides it; None if none does."""
    for unit, length in units:
        if seconds >= length and seconds % length == 0:
            return _counted(seconds // length, unit, language)
    return None


def _counted(number: int, unit: str, language: str) -> str:
    one, more = WORDS[language].counted[unit]
    return (one if number == 1 else more).format(number)
