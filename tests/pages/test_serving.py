"""Documents and files: headers, caching, compression, and the switch."""

import gzip
import json
import re

import brotli
import pytest

from app.pages.files import all_files
from app.pages.registry import PAGES
from app.settings import queries, service
from app.settings.page_keys import SECTIONS
from tests.support.factories import configure

PATHS = [re.sub(r"<int:\w+>", "1", page.path) for page in PAGES]
UNKNOWN = "/no/such/address"
KILOBYTE = 1024
MANIFEST = "/pages/site.webmanifest"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")


def own_headers(answer):
    """Return the headers without those that differ from one answer to the next."""
    return {name: value for name, value in answer.headers if name != "X-Request-ID"}


def expected_headers(path, answer):
    frames = "; frame-src 'self'" if path == "/admin/mail/<template>" else ""
    return {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Length": str(len(answer.data)),
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; "
            "img-src 'self' data: blob:; connect-src 'self'; font-src 'none'; "
            "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
            f"require-trusted-types-for 'script'; trusted-types 'none'{frames}"
        ),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": answer.headers["Permissions-Policy"],
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Cache-Control": "no-cache",
        "ETag": answer.headers["ETag"],
        "Vary": "Accept-Language, Cookie, Accept-Encoding",
    }


def test_a_page_is_closed_to_everything_from_elsewhere(web):
    """It has neither inline scripts nor styles, and whatever it names is there."""
    named = set()
    for path in PATHS:
        answer = web.get(path)
        assert answer.status_code == 200, path
        assert own_headers(answer) == expected_headers(path, answer), path
        assert "publickey-credentials-get=(self)" in answer.headers["Permissions-Policy"]
        html = answer.text
        assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=", html) == [], path
        assert len(answer.data) <= 8 * KILOBYTE, path
        packed = web.get(path, headers={"Accept-Encoding": "br"})
        assert len(packed.data) <= 2.5 * KILOBYTE, path
        urls = re.findall(r'(?:href|src|data-catalogue)="(/pages/[^"]+)"', html)
        assert urls, path
        named |= {*urls} - {MANIFEST}
    for url in named:
        answer = web.get(url)
        assert answer.status_code == 200, url
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable", url


def test_all_static_imports_of_a_page_are_loaded_at_once(web):
    html = web.get("/login").text
    loaded = set(re.findall(r'rel="modulepreload" href="/pages/\w+/([^"]+)"', html))
    for name in loaded:
        source = all_files().contents[name].plain.body.decode()
        imported = re.findall(r'^import [^;]*?"\.\./([^"]+)";$', source, re.MULTILINE)
        assert set(imported) <= loaded, name
    assert "signin/second_factor.js" not in loaded


def test_a_page_that_has_not_changed_is_not_sent_again(web):
    etag = web.get("/login").headers["ETag"]
    again = web.get("/login", headers={"If-None-Match": etag})
    assert (again.status_code, again.data) == (304, b"")
    assert again.headers["ETag"] == etag
    german = web.get("/login", headers={"If-None-Match": etag, "Accept-Language": "de"})
    assert german.status_code == 200


def test_files_are_compressed_for_those_who_take_it(web):
    url = f"/pages/{all_files().version}/base/base.css"
    plain = web.get(url)
    assert "Content-Encoding" not in plain.headers
    etags = {plain.headers["ETag"]}
    for taken, coding, unpack in (
        ("gzip, br", "br", brotli.decompress),
        ("gzip", "gzip", gzip.decompress),
        ("gzip, br;q=0", "gzip", gzip.decompress),
    ):
        packed = web.get(url, headers={"Accept-Encoding": taken})
        assert packed.headers["Content-Encoding"] == coding
        assert unpack(packed.data) == plain.data
        assert plain.headers["Vary"] == packed.headers["Vary"] == "Accept-Encoding"
        etags.add(packed.headers["ETag"])
    assert len(etags) == 3
    refused = web.get(url, headers={"Accept-Encoding": "gzip;q=0"})
    assert "Content-Encoding" not in refused.headers


def test_a_file_of_another_version_is_the_current_one_and_is_asked_for_again(web):
    """While instances are updated one after the other, a page meets files of both versions."""
    answer = web.get("/pages/0123456789ab/base/api.js")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-cache"
    old = web.get("/pages/theme.css?v=0123456789ab")
    assert old.headers["Cache-Control"] == "no-cache"


def test_pages_can_be_put_on_a_home_screen(web, rt):
    html = web.get("/login").text
    touch = re.search(r'rel="apple-touch-icon" href="([^"]+)"', html)[1]
    assert web.get(touch).content_type == "image/png"
    colors = re.findall(
        r'name="theme-color" content="(#\w+)" media="\(prefers-color-scheme: (\w+)\)', html
    )
    assert colors == [("#ffffff", "light"), ("#15181c", "dark")]
    answer = web.get(MANIFEST)
    assert answer.content_type == "application/manifest+json"
    manifest = answer.get_json(force=True)
    assert (manifest["name"], manifest["start_url"]) == ("Gatehouse", "/")
    for icon in manifest["icons"]:
        assert web.get(icon["src"]).content_type == icon["type"]
    configure(rt, branding_title="Files", branding_favicon_url="/own.svg", pages_theme="dark")
    assert web.get(MANIFEST).get_json(force=True)["name"] == "Files"
    html = web.get("/login").text
    assert 'rel="apple-touch-icon" href="/own.svg"' in html
    assert re.findall(r'name="theme-color" content="(#\w+)">', html) == ["#15181c"]


def test_no_other_file_is_there(web):
    above = ("../views.py", "base/../../views.py", "base/%2e%2e/%2e%2e/views.py")
    for name in ("nothing.js", *above, "base/"):
        answer = web.get(f"/pages/{all_files().version}/{name}")
        assert (answer.status_code, answer.json["code"]) == (404, "endpoint.not_found"), name


def test_the_files_of_a_worker_are_small():
    contents = all_files().contents
    total = sum(
        len(form.body) for one in contents.values() for form in (one.plain, *one.packed.values())
    )
    assert total < 2 * 1024 * 1024
    sizes = {name: len(one.plain.body) for name, one in contents.items() if name.endswith(".js")}
    assert max(sizes.values()) < 20 * 1024
    for page in PAGES:
        assert len(all_files().graph(page.module)) <= (25 if page.section == "sign_in" else 34)


def test_a_form_sent_before_its_script_ran_leads_back_to_its_page(web):
    """So that a password never gets into an address."""
    answer = web.post("/login?return_path=/a%26b", data={"password": "a secret"})
    assert (answer.status_code, answer.headers["Location"]) == (
        303,
        "/login?return_path=/a%26b#unsent",
    )
    assert web.put("/login").status_code == 405
    assert web.put("/login").headers["Allow"] == "GET, HEAD, POST"


def test_the_root_leads_to_the_home_path(web, rt):
    assert web.get("/").headers["Location"] == "/settings/profile"
    configure(rt, pages_home_path="/files")
    assert web.get("/").headers["Location"] == "/files"


def test_an_address_without_a_page_below_the_account_is_said_to_be_missing(web):
    assert web.get("/settings").headers["Location"] == "/settings/profile"
    answer = web.get("/settings/nothing")
    assert (answer.status_code, answer.mimetype) == (404, "text/html")
    again = web.get("/settings/nothing", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.data) == (404, answer.data)
    assert web.get("/nothing").json["code"] == "endpoint.not_found"


def test_switched_off_nothing_tells_a_page_from_any_unknown_address(web, rt):
    configure(rt, pages_sections=[])
    for method in METHODS:
        unknown = web.open(UNKNOWN, method=method)
        assert unknown.status_code == 404
        expected = (404, unknown.data, own_headers(unknown))
        for path in [*PATHS, "/", "/settings", "/settings/nothing", "/pages/1/a.js"]:
            answer = web.open(path, method=method)
            found = (answer.status_code, answer.data, own_headers(answer))
            assert found == expected, (method, path)


def test_a_section_can_be_switched_off_alone(web, rt):
    configure(rt, pages_sections=["account"])
    assert web.get("/login").status_code == 404
    assert web.get("/settings/profile").status_code == 200
    configure(rt, pages_sections=["sign_in"])
    assert web.get("/login").status_code == 200
    for path in ("/settings", "/settings/profile", "/settings/nothing"):
        assert web.get(path).json["code"] == "endpoint.not_found"
    assert {page.section for page in PAGES} == set(SECTIONS)


def test_pages_are_no_operations_of_the_api(web):
    described = json.loads(web.get("/api/v1/openapi.json").data)["paths"]
    assert not {"/", "/login", "/settings/profile", "/pages/theme.css"} & set(described)


def test_the_language_is_the_most_deliberate_choice(web):
    for headers, query, language in (
        ({}, "", "en"),
        ({"Accept-Language": "de-AT,en;q=0.5"}, "", "de"),
        ({"Accept-Language": "zh"}, "", "zh-CN"),
        ({"Accept-Language": "fr, *;q=0.1"}, "", "en"),
        ({"Accept-Language": "de", "Cookie": "service_language=zh-CN"}, "", "zh-CN"),
        ({"Cookie": "service_language=zh-CN"}, "?lang=de", "de"),
        ({"Cookie": "service_language=xx"}, "?lang=../../x", "en"),
    ):
        html = web.get(f"/login{query}", headers=headers).text
        assert f'<html lang="{language}"' in html, (headers, query)


def test_the_languages_on_offer_are_a_setting(web, rt):
    configure(rt, pages_languages=["de"])
    html = web.get("/login", headers={"Accept-Language": "en"}).text
    assert '<html lang="de"' in html
    assert 'id="language"' not in html


def test_a_fixed_theme_is_no_choice(web, rt):
    dark = {"Cookie": "service_theme=dark"}
    assert 'data-theme="dark"' in web.get("/login", headers=dark).text
    configure(rt, pages_theme="light")
    html = web.get("/login", headers=dark).text
    assert 'data-theme="light"' in html
    assert 'id="theme"' not in html


def test_what_settings_close_is_not_drawn(web, rt):
    assert 'id="password"' in web.get("/login").text
    configure(rt, auth_password_login_enabled=False)
    html = web.get("/login").text
    assert 'id="password"' not in html
    assert 'class="primary with-icon" type="button" id="passkey"' in html
    assert "/register" not in html


def test_texts_of_operators_are_no_markup(web, rt):
    mark = "<img src=x onerror=alert(1)>"
    configure(
        rt,
        branding_title=f"Files {mark}",
        pages_message=f"Note {mark}",
        pages_footer_links=[f"Imprint {mark} https://example.com/imprint"],
    )
    html = web.get("/login").text
    assert mark not in html
    assert html.count("&lt;img src=x onerror=alert(1)&gt;") >= 3
    assert '<a href="https://example.com/imprint" rel="noreferrer">' in html


def test_branding_from_elsewhere_is_the_only_foreign_picture(web, rt):
    configure(
        rt,
        branding_wordmark_light_url="https://cdn.example/mark.svg",
        branding_favicon_url="/our.svg",
    )
    answer = web.get("/login")
    policy = answer.headers["Content-Security-Policy"]
    assert "img-src 'self' data: blob: https://cdn.example;" in policy
    assert 'rel="icon" href="/our.svg"' in answer.text


def test_a_stored_address_without_a_host_adds_nothing_to_the_policy(web, rt):
    for host in ("例え.example", "cdn.example;connect-src *", "cdn.example,x"):
        text, key = f"https://{host}/mark.svg", "branding_wordmark_light_url"
        with rt.transaction() as session:
            queries.store(session, key, text, rt.clock.now(), None)
        service.announce(rt)
        answer = web.get("/login")
        assert answer.status_code == 200
        policy = answer.headers["Content-Security-Policy"]
        assert "img-src 'self' data: blob:; connect-src 'self';" in policy, host


@pytest.mark.timeout(20)
def test_a_long_link_is_refused_at_once(line):
    endless = "a" + 200_000 * " " + "\nb c"
    line.refuses("bad_request", "config", "set", "pages_footer_links", json.dumps([endless]))


UNUSABLE = [
    ("pages_sections", ["sign_in", "nothing"]),
    ("pages_home_path", "https://example.com/"),
    ("pages_home_path", "//example.com"),
    ("pages_home_path", "/\\example.com"),
    ("pages_theme", "pink"),
    ("pages_accent_color", "red"),
    ("pages_footer_links", ["javascript:alert(1)"]),
    ("pages_footer_links", ["Imprint javascript:alert(1)"]),
    ("pages_footer_links", ["Im\nprint https://example.com"]),
    ("branding_wordmark_dark_url", "https://例え.example/mark.svg"),
    ("branding_favicon_url", "https://cdn.example;connect-src */icon.svg"),
    ("pages_footer_links", [f"Link{n} https://example.com/{n}" for n in range(6)]),
    ("pages_languages", []),
    ("pages_languages", ["en", "fr"]),
    ("pages_message", "x" * 501),
]


def test_a_setting_that_no_page_could_use_is_refused(line):
    for key, value in UNUSABLE:
        text = value if isinstance(value, str) else json.dumps(value)
        line.refuses("bad_request", "config", "set", key, text)
