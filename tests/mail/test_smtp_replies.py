"""Whose fault a refusal is: as real servers word it, and as RFC 5321 and 3463 have it."""

import pytest

from app.mail.smtp_replies import ReplyVerdict, apart_from, judge

WAITS, ALONE, ENDS = ReplyVerdict.WAITS, ReplyVerdict.ENDS_ALONE, ReplyVerdict.ENDS
ADA = "ada@example.com"


@pytest.mark.parametrize("code", [250, 354, 421, 432, 450, 451, 452, 454, 455, 471])
def test_what_is_for_now_waits_whatever_it_says(code):
    assert judge(code, "5.1.1 no such user", ADA) is WAITS
    assert judge(code, "4.1.1 no such user", ADA, has_content=True) is WAITS


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        *((code, WAITS) for code in (500, 501, 502, 503, 504, 521, 530, 535, 552, 554, 555)),
        *((code, ALONE) for code in (550, 551, 553, 556)),
    ],
)
def test_a_bare_code_is_about_the_mailbox_if_rfc_5321_says_so(code, verdict):
    for text in ("", "no", "Requested action not taken"):
        assert judge(code, text, ADA) is verdict
        assert judge(code, text, ADA, has_content=True) is WAITS


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        *((f"5.1.{detail}", ENDS) for detail in (0, 1, 2, 3, 4, 6, 9, 10)),
        *((f"5.1.{detail}", WAITS) for detail in (7, 8)),  # the sender's address
        *((f"5.2.{detail}", ALONE) for detail in (0, 1, 3, 4)),
        *((f"5.{subject}.0", WAITS) for subject in (0, 3, 4, 5, 6, 7)),
        ("5.2.2", WAITS),
        ("5.7.1", WAITS),
    ],
)
@pytest.mark.parametrize("code", [550, 554])
@pytest.mark.parametrize("has_content", [False, True])
def test_a_status_decides_before_the_code(code, status, verdict, has_content):
    assert judge(code, f"{status} no", ADA, has_content=has_content) is verdict


RECIPIENTS = [
    "550 5.1.1 <ada@example.com>: Recipient address rejected: User unknown in local table",
    "550-5.1.1 The email account that you tried to reach does not exist. Please try to check "
    "the recipient's address. For more information, go to https://support.google.com/mail/?p=NoSuch",
    "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient ada@example.com not found by SMTP lookup",
    "550 5.4.1 Recipient address rejected: Access denied. [AM0EUR02FT012.prod.outlook.com]",
    "550 5.2.1 The email account that you tried to reach is inactive.",
    "550 No Such User Here",
    "550 no such user",
    "550 Unrouteable address",
    "550 unknown user <ada@example.com>",
    "550 sorry, no mailbox here by that name. (#5.1.1)",
    "550 Requested action not taken: mailbox unavailable",
    "551 User not local; please try <ada@elsewhere.example>",
    "553 mailbox name not allowed",
    "554 delivery error: dd This user doesn't have a yahoo.com account (ada@yahoo.com) [0]",
    "556 5.1.10 Recipient address has null MX",
]
SERVERS = [
    "554 5.7.1 <ada@example.com>: Relay access denied",
    "550 5.7.1 Unable to relay",
    "550 5.7.54 SMTP; Unable to relay recipient in non-accepted domain",
    "550 5.7.1 Relaying denied",
    "550 relay not permitted",
    "554 5.7.1 relay denied",
    "550 that domain is not in my list of allowed rcpthosts",
    "553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)",
    "554 Message rejected: Email address is not verified. The following failed",
    "550 5.4.5 Daily user sending quota exceeded. For more information see https://support.google.com",
    "550 5.4.5 Daily SMTP relay limit exceeded for user.",
    "552 5.2.2 Over quota",
    "550 mailbox of ada@example.com is over quota",
    "550 5.1.8 Access denied, bad outbound sender. For more information please go to aka.ms",
    "550 5.1.0 <files@files.example> sender rejected",
    "550 5.1.7 <files@files.example>: Sender address rejected: undeliverable address",
    "553 5.7.1 <files@files.example>: Sender address rejected: not owned by user files",
    "550 5.7.60 SMTP; Client does not have permissions to send as this sender",
    "554 5.2.252 SendAsDenied; files@files.example not allowed to send as other@files.example",
    "550 5.7.1 Service unavailable; client [192.0.2.7] blocked using zen.spamhaus.org",
    "554 5.7.1 <unknown[192.0.2.7]>: Client host rejected: Access denied",
    "504 5.5.2 <localhost>: Helo command rejected: need fully-qualified hostname",
    "530 5.7.0 Authentication required",
    "550 5.7.26 This mail has been blocked because the sender is unauthenticated. SPF did not pass",
    "550 5.7.708 Service unavailable. Access denied, traffic not accepted from this IP",
    "550 Your account is suspended",
    "554 5.7.1 <ada@example.com>: Recipient address rejected: Access denied",
    "550 Administrative prohibition",
    "550 System shutting down",
    "550 5.5.0 Server configuration problem: no such user lookup table",
    "550 Recipient verification failed, try later",
    "550 5.7.1 Invalid credentials for relay [192.0.2.7]. The IP address is not registered",
    "554 5.3.2 system not accepting network messages",
    "552 5.3.4 Message size exceeds fixed limit",
    "554 Transaction failed",
]


@pytest.mark.parametrize("reply", RECIPIENTS, ids=range(len(RECIPIENTS)))
def test_what_servers_say_of_a_recipient_ends_its_mail(reply):
    assert judge(int(reply[:3]), reply[4:], ADA) is not WAITS


@pytest.mark.parametrize("reply", SERVERS, ids=range(len(SERVERS)))
@pytest.mark.parametrize("has_content", [False, True])
def test_what_servers_say_of_everybody_makes_it_wait(reply, has_content):
    assert judge(int(reply[:3]), reply[4:], ADA, has_content=has_content) is WAITS


@pytest.mark.parametrize("name", ["sender", "relay", "quota", "client", "your.ip"])
def test_the_words_of_an_address_or_a_host_are_none_of_the_servers(name):
    address = f"{name}@{name}.example"
    for text in (f"<{address}>: no such user", f"mx.{name}.example says: no such user {address}"):
        assert judge(550, text, address) is ALONE


@pytest.mark.parametrize(
    ("address", "text", "rest"),
    [
        (ADA, "550 <Ada@Example.COM>: no", "550 <*>: no"),
        ("a..b@example.com", '550 <"a..b"@example.com>: no', "550 <*>: no"),
        ("a+b.c@example.com", "a+b.c@example.com a+b!c@example.com", "* a+b!c@example.com"),
        (ADA, "550 no", "550 no"),
    ],
)
def test_two_refusals_are_compared_apart_from_the_address(address, text, rest):
    assert apart_from(address, text) == rest
