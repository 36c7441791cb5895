"""The page of a draft in a real browser: nothing in it runs or loads, even opened by itself."""

from tests.support.browser import needs_chromium

pytestmark = needs_chromium

ADDRESS = "http://localhost/preview.html"
DRAFT = """\
<!doctype html><title>still</title>
<p style="color: #ff0000" id="word">Hello {{username}}</p>
<script>document.title = 'ran'</script>
<img src="https://evil.example/seen.png" onerror="document.title = 'ran'">
<svg onload="document.title = 'ran'"></svg>
<meta http-equiv="refresh" content="0; url=https://evil.example/away">
<form action="https://evil.example/form"><button>Send</button></form>
<meta http-equiv="refresh" content="0; url=https://evil.example/away">
"""


def test_nothing_of_a_draft_runs_or_loads(api, admin, chromium):
    api.login(admin).ok()
    path = "/admin/mail/templates/password_reset/preview"
    answer = api.get(api.post(path, {"html": DRAFT}).ok()["preview_url"])
    asked = []

    def serve(route):
        asked.append(route.request.url)
        route.fulfill(status=answer.status, headers=dict(answer.headers), body=answer.body)

    with chromium.new_page() as page:
        page.route("**/*", serve)
        page.goto(ADDRESS)
        assert page.locator("#word").text_content() == "Hello alice"
        page.get_by_role("button").click()
        page.wait_for_load_state("networkidle")
        assert page.title() == "still"
    assert asked == [ADDRESS]
