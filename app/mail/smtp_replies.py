"""Whose fault it is when an SMTP server refuses a recipient, or a mail that has one.

A code does not say by itself: servers refuse relaying, senders, quotas and whole networks in answer
to a recipient, often for good (5yz), and so would refuse every mail. Only what is about this
recipient ends a mail; whatever remains unclear makes it wait.
"""

import re
from enum import Enum, auto

PERMANENT = range(500, 600)
# What RFC 5321 and 7504 say of the mailbox itself when RCPT is refused so.
OF_THE_MAILBOX = frozenset({550, 551, 553, 556})

_STATUS = re.compile(r"(?<![\d.])5\.(\d{1,3})\.(\d{1,3})(?![\d.])")  # RFC 3463
_ADDRESS = re.compile(r"\S*@\S*")
_HOST = re.compile(r"\b[\w-]+(?:\.[\w-]+)+\b")
_OF_EVERYBODY = re.compile(
    r"\b(relay\w*|rcpthosts|quota|limit\w*|exceed\w*|too many|rate|throttl\w*|"
    r"senders?|sending|submission|send ?as\w*|(from|envelope) address|mail from|return.path|"
    r"clients?|your \w+|ip|(block|black|deny)\w*|dnsbl|rbl|reputation|helo|ehlo|"
    r"authenticat\w*|unauthenticated|log ?in|not authori[sz]ed|credentials|permissions?|verified|"
    r"spf|dkim|dmarc|r?dns|ptr|tls|encrypt\w*|spam|policy|prohibit\w*|suspended|sandbox|"
    r"later|shut\w* down|configuration)\b"
)
_SUBJECT = r"(user|recipient|mailbox|account|address(ee)?|person)"
_OF_THE_RECIPIENT = re.compile(
    rf"\b((no such|unknown|invalid|bad|inactive|no) (\w+ )?{_SUBJECT}|un(routeable|known) address|"
    rf"{_SUBJECT} (name |address )?(is )?(currently )?(not|un\w+|in\w+|disabled|rejected|refused)|"
    r"(does|do)(n'?t| not) (exist|have)|recipient\w*)\b"
)
# By subject and detail: a bad address of the sender, and a mailbox that is full; by subject: the
# system, the protocol, and what its rules forbid, often to everybody in the words for one.
_OF_EVERYBODY_BY_STATUS = {("1", "7"), ("1", "8"), ("2", "2")}
_OF_EVERYBODY_BY_SUBJECT = {"3", "5", "7"}


class ReplyVerdict(Enum):
    """What becomes of the mail; with `ENDS_ALONE` it waits if others are refused alike."""

    WAITS = auto()
    ENDS_ALONE = auto()
    ENDS = auto()


def judge(code: int, text: str, recipient: str, *, has_content: bool = False) -> ReplyVerdict:
    """Judge a refusal of RCPT or, if the server `has_content`, of the mail itself.

    A status code (RFC 3463) decides as far as it can, then the words, then the reply code.
    """
    if code not in PERMANENT:
        return ReplyVerdict.WAITS
    status = _STATUS.search(text)
    kind = status.groups() if status else ("", "")
    words = _HOST.sub(" ", _ADDRESS.sub(" ", apart_from(recipient, text))).lower()
    is_by_status = kind in _OF_EVERYBODY_BY_STATUS or kind[0] in _OF_EVERYBODY_BY_SUBJECT
    is_everybodys = is_by_status or _OF_EVERYBODY.search(words) is not None
    if kind[0] == "1" and (kind[1] not in {"0", "7", "8"} or not is_everybodys):
        return ReplyVerdict.ENDS
    if is_everybodys:
        return ReplyVerdict.WAITS
    is_named = kind[0] == "2" or _OF_THE_RECIPIENT.search(words) is not None
    is_mailbox = not status and not has_content and code in OF_THE_MAILBOX
    return ReplyVerdict.ENDS_ALONE if is_named or is_mailbox else ReplyVerdict.WAITS


def apart_from(address: str, text: str) -> str:
    """Return a text without an address, however its letters are written."""
    local, _, domain = address.rpartition("@")
    return re.sub(rf'"?{re.escape(local)}"?@{re.escape(domain)}', "*", text, flags=re.IGNORECASE)
