"""Built-in mails in the language of their readers."""

import json
import re
from datetime import timedelta

import pytest
import sqlalchemy as sa

from app.crypto.tokens import random_uuid
from app.login.completion import FirstFactorKind
from app.mail import delivery, service
from app.mail.models import OutboxMail
from app.mail.rendering import FOLDER, built_in
from app.mail.templates import Template
from app.mail.words import ENGLISH, WORDS, duration, exact_duration, rounded_duration
from app.mfa.models import MfaMethod
from app.settings import page_keys
from tests.support.challenge import give_totp, start_login, verify
from tests.support.factories import bearer_of, change_user, configure
from tests.support.mailbox import html_of, text_of
from tests.support.outbox import TOKEN, queue

FIREFOX = {
    "User-Agent": "Mozilla/5.0 (Windows NT 10.0; rv:132.0) Gecko/20100101 Firefox/132.0",
}
GERMAN = '{"language":"de-AT"}'
ACTIVATE = {ENGLISH: "activate your account", "de": "Konto aktivieren", "zh-CN": "激活您的账户"}


# --- what there is -------------------------------------------------------------------------------


def test_mails_have_the_languages_of_the_pages():
    assert tuple(WORDS) == page_keys.LANGUAGES


@pytest.mark.parametrize("language", [language for language in WORDS if language != ENGLISH])
def test_every_mail_is_translated(language):
    files = {path.stem for path in (FOLDER / language).iterdir()}
    assert files == set(Template)
    for template in files:
        ours, theirs = built_in(template, ENGLISH), built_in(template, language)
        assert ours.subject != theirs.subject
        assert f'<html lang="{language}">' in theirs.html
        # Every value, every style and every button of the English one, and no other.
        names = re.compile(r"\{\{\w+\}\}|class=\"\w+\"|href=")
        assert sorted(names.findall(ours.html)) == sorted(names.findall(theirs.html))
        assert set(names.findall(ours.subject)) == set(names.findall(theirs.subject))


@pytest.mark.parametrize("language", WORDS)
def test_every_way_to_sign_in_has_a_name(language):
    assert set(WORDS[language].methods) == {*FirstFactorKind, *MfaMethod}
    assert WORDS[language].counted.keys() == WORDS[ENGLISH].counted.keys()


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("de", ["1 Tag", "90 Minuten", "1 Stunde", "45 Sekunden", "4 Minuten"]),
        ("zh-CN", ["1 天", "90 分钟", "1 小时", "45 秒", "4 分钟"]),
    ],
)
def test_a_life_in_words(language, words):
    told = [duration(seconds, language) for seconds in (86_400, 5400, 3600)]
    told += [exact_duration(45, language), rounded_duration(299, language)]
    assert told == words


# --- whose language ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accepted", "chosen", "offered", "language"),
    [
        (None, None, page_keys.LANGUAGES, ENGLISH),
        (None, None, ("zh-CN", "en"), "zh-CN"),
        ("fr, de-AT;q=0.8, en;q=0.5", None, page_keys.LANGUAGES, "de"),
        ("fr", None, ("de", "en"), "de"),
        ("de", None, ("en", "zh-CN"), ENGLISH),
        ("de", "zh-CN", page_keys.LANGUAGES, "zh-CN"),
        ("de", "zh-CN", ("en", "de"), "de"),
        (None, "../en", page_keys.LANGUAGES, ENGLISH),
    ],
)
def test_who_registers_reads_the_language_of_the_browser(
    rt, api, admin, mailbox, accepted, chosen, offered, language
):
    configure(rt, pages_languages=list(offered), auth_register_activation_enabled=True)
    if chosen:
        api.set_cookie("service_language", chosen)
    body = {"username": "bob", "email": "bob@example.com", "password": "a good password 1"}
    api.post("/auth/register", body, headers={"Accept-Language": accepted}).ok(201)
    mail = mailbox.only()
    assert ACTIVATE[language] in mail["Subject"]
    assert f'lang="{language}"' in html_of(mail)
    assert WORDS[language].footer.replace("{{site_name}}", "Gatehouse") in text_of(mail)


def test_an_account_has_a_language_of_its_own(rt, api, user, mailbox):
    change_user(rt, user, preferences=GERMAN)
    body, headers = {"email": user.email}, {"Accept-Language": "zh-CN"}
    api.post("/auth/password/reset/request", body, headers=headers).ok()
    mail = mailbox.only()
    assert mail["Subject"] == "Gatehouse: Passwort zurücksetzen"
    assert "Der Link ist 1 Stunde lang gültig und funktioniert nur einmal." in text_of(mail)


def test_an_administrator_does_not_choose_the_language_of_others(rt, app, admin, user, mailbox):
    boss, headers = bearer_of(rt, app, admin), {"Accept-Language": "de"}
    boss.set_cookie("service_language", "de")
    boss.post("/admin/users/invitations", {"email": "guest@example.com"}, headers=headers).ok(201)
    assert mailbox.only()["Subject"] == "You are invited to Gatehouse"
    boss.post(f"/admin/users/{user.id}/password-reset-mail", headers=headers).ok()
    assert mailbox.only()["Subject"] == "Gatehouse: reset your password"
    shown = boss.post("/admin/mail/templates/user_invitation/preview", {}, headers=headers).ok()
    assert shown["subject"] == "You are invited to Gatehouse"


@pytest.mark.both_databases
def test_a_new_sign_in_is_told_in_the_language_of_the_account(rt, signed_in, user, mailbox, clock):
    mailbox.read()
    enabled = give_totp(rt, user, clock)
    change_user(rt, user, preferences=GERMAN)
    stranger = signed_in.stranger()
    verify(stranger, start_login(stranger, user), enabled.app.code(), headers=FIREFOX)
    mail = mailbox.only()
    assert mail["Subject"] == "Gatehouse: Neue Anmeldung"
    for said in (
        "Zeit: 02.03.2026, 09:30 UTC",
        "Browser: Firefox auf Windows",
        "Angemeldet mit: Passwort und Authenticator-App",
    ):
        assert said in text_of(mail)


def test_a_stranger_does_not_choose_the_language_of_a_warning(rt, signed_in, user, mailbox):
    mailbox.read()
    stranger = signed_in.stranger()
    stranger.set_cookie("service_language", "zh-CN")
    stranger.login(user, headers=FIREFOX | {"Accept-Language": "zh-CN"}).ok()
    mail = mailbox.only()
    assert mail["Subject"] == "Gatehouse: new sign-in"
    assert "Browser: Firefox on Windows" in text_of(mail)


def test_a_notice_whose_sentence_is_english_is_so_as_a_whole(rt, signed_in, user, mailbox):
    mailbox.read()
    configure(rt, pages_languages=["de"])
    change_user(rt, user, preferences=GERMAN)
    body = {"current_password": user.password, "new_password": "another good password 1"}
    signed_in.put("/auth/password", body).ok()
    mail = mailbox.only()
    assert mail["Subject"] == "Gatehouse: security notice"
    assert 'lang="en"' in html_of(mail)
    assert "sent this mail automatically" in text_of(mail)


def test_that_there_were_more_sign_ins_is_told_in_the_language_of_the_account(
    rt, signed_in, user, mailbox
):
    change_user(rt, user, preferences=GERMAN)
    for _ in range(11):
        signed_in.stranger().login(user).ok()
    mail = mailbox.read()[-1]
    assert mail["Subject"] == "Gatehouse: Sicherheitshinweis"
    assert "innerhalb von 24 Stunden mehr als 10 neue Browser angemeldet" in text_of(mail)
    assert 'lang="de"' in html_of(mail)


# --- an operator's own text, and other times ------------------------------------------------------


def test_words_within_an_own_text_are_in_the_first_language_of_the_site(
    rt, signed_in, user, mailbox
):
    mailbox.read()
    change_user(rt, user, preferences=GERMAN)
    own = "<p>{{browser}}, {{method}}, {{signed_in_at}}</p>"
    configure(rt, mail_template_new_sign_in_html=own)
    signed_in.stranger().login(user, headers=FIREFOX).ok()
    mail = mailbox.only()
    assert text_of(mail) == "Firefox on Windows, password, 2 March 2026, 09:30 UTC\n"
    configure(rt, pages_languages=["zh-CN", "en"])
    signed_in.stranger().login(user, headers=FIREFOX).ok()
    assert text_of(mailbox.only()) == "Windows 上的 Firefox, 密码, 2026年3月2日 09:30 UTC\n"


def test_an_own_subject_leaves_the_text_as_it_is(rt, mailbox):
    configure(rt, mail_template_password_reset_subject="Hi")
    queue(rt, language="de")
    mail = mailbox.only()
    assert mail["Subject"] == "Hi"
    assert "jemand hat für Ihr Konto" in text_of(mail)


def test_what_is_left_of_the_time_is_told_in_the_same_language(rt, mailbox, clock):
    with rt.transaction() as session:
        service.queue(
            rt,
            session,
            Template.PASSWORD_RESET,
            "ada@example.com",
            expires_at=clock.now() + timedelta(hours=1),
            language="de",
            lifetime=3600,
            username="Ada",
            token=TOKEN,
        )
    clock.advance(seconds=125)
    assert "Der Link ist 57 Minuten lang gültig" in text_of(mailbox.only())


def test_of_a_late_code_too_what_is_left_is_told(rt, mailbox, clock):
    with rt.transaction() as session:
        service.queue(
            rt,
            session,
            Template.SIGN_IN_CODE,
            "ada@example.com",
            expires_at=clock.now() + timedelta(minutes=10),
            language="de",
            lifetime=600,
            username="Ada",
            code="12345678",
        )
    clock.advance(seconds=125)
    assert "Er ist 7 Minuten lang gültig" in text_of(mailbox.only())


@pytest.mark.parametrize("stored", [{}, {"language": "fr"}])
def test_a_mail_that_another_version_queued_may_be_english(rt, mailbox, stored):
    queue(rt, language="de")
    mail_id = random_uuid()
    values = {"username": "Ada", "token": TOKEN, "expires_in": "1 hour", "site_name": "Gatehouse"}
    values |= stored
    payload = rt.secret_box.seal(json.dumps(values), delivery.name_of(mail_id))
    with rt.transaction() as session:
        session.execute(sa.update(OutboxMail).values(id=mail_id, payload=payload))
    mail = mailbox.only()
    assert mail["Subject"] == "Gatehouse: reset your password"
    assert "The link works once, for 1 hour." in text_of(mail)


def test_a_preview_is_in_the_language_asked_for(api, admin, rt):
    api.login(admin).ok()
    preview = "/admin/mail/templates/{}/preview".format
    shown = api.post(preview("new_sign_in"), {"language": "de"}).ok()
    assert shown["subject"] == "Gatehouse: Neue Anmeldung"
    assert "Browser: Firefox auf Windows" in shown["text"]
    assert "Angemeldet mit: Passwort" in shown["text"]
    shown = api.post(preview("sign_in_code"), {"language": "zh-HK"}).ok()
    assert "有效期为 10 分钟" in shown["text"]
    own = {"language": "de", "html": "<p>{{verification_url}} {{expires_in}}</p>"}
    assert "1 day" in api.post(preview("register_activation"), own).ok()["text"]
    configure(rt, pages_languages=["de"])
    assert "Einladung" in api.post(preview("user_invitation"), {}).ok()["subject"]
