"""A real, certified OpenID provider on loopback: npm's oidc-provider, run by Node.

`package-lock.json` pins it, and a Node for machines whose own is too old; what is needed is
installed on first use. If Node is missing or the installation fails, its tests are skipped with
the reason.
"""

import html
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import requests

from app.serving.parent_death import before_exec
from tests.support import npm
from tests.support.npm import Missing

FOLDER = Path(__file__).with_name("oidc_provider")
CLIENT_ID = "gatehouse"
# Characters that HTTP Basic only carries form-encoded (RFC 6749 §2.3.1).
CLIENT_SECRET = "loopback only: +/%&= and more than thirty-two bytes"
PUBLIC_CLIENT_ID = "gatehouse-public"
# A client that may send its secret in the form only.
POST_CLIENT_ID = "gatehouse-post"
CALLBACK = "/api/v1/auth/external-auth/callback"
MAX_STEPS = 20
OLDEST_NODE = 22  # what oidc-provider supports; Debian 12 has 18


@dataclass(frozen=True)
class OidcProvider:
    """A running provider; anyone can sign in under any name."""

    issuer: str
    client_id: str = CLIENT_ID
    client_secret: str = CLIENT_SECRET

    def sign_in(self, authorization_url: str, name: str = "alice") -> str:
        """Act as a user with a browser; return the callback URL without following it."""
        with requests.Session() as browser:
            browser.trust_env = False
            answer = browser.get(authorization_url, allow_redirects=False, timeout=10)
            for _ in range(MAX_STEPS):
                if not answer.is_redirect:
                    answer = self._submit(browser, answer, name)
                    continue
                target = urljoin(answer.url, answer.headers["Location"])
                if not target.startswith(self.issuer):
                    return target
                answer = browser.get(target, allow_redirects=False, timeout=10)
        raise AssertionError("the provider never came to an end")

    @staticmethod
    def _submit(browser: requests.Session, page: requests.Response, name: str) -> requests.Response:
        action = re.search(r'<form[^>]*action="([^"]+)"', page.text)
        prompt = re.search(r'name="prompt" value="(\w+)"', page.text)
        assert action, f"{page.status_code}: {page.text[:500]}"
        assert prompt, page.text[:500]
        form = {"prompt": prompt[1]}
        if prompt[1] == "login":
            form |= {"login": name, "password": "any"}
        url = urljoin(page.url, html.unescape(action[1]))
        return browser.post(url, data=form, allow_redirects=False, timeout=10)


def parameters(callback_url: str) -> dict[str, str]:
    """Return the query parameters of a callback URL."""
    return {name: values[0] for name, values in parse_qs(urlsplit(callback_url).query).items()}


@contextmanager
def running() -> Iterator[OidcProvider]:
    """Run the provider, which must be installed."""
    clients = [
        _client(CLIENT_ID, "client_secret_basic"),
        _client(POST_CLIENT_ID, "client_secret_post"),
        _client(PUBLIC_CLIENT_ID, "none"),
    ]
    node = _own_node() or _brought_node()
    assert node, "the provider is not installed"
    with subprocess.Popen(
        [node, "provider.mjs"],
        cwd=FOLDER,
        env={**os.environ, "CLIENTS": json.dumps(clients)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=before_exec(),
    ) as process:
        try:
            assert process.stdout
            # Warnings about the Node version come first.
            lines = (line.strip() for line in process.stdout)
            issuer = next((line for line in lines if line.startswith("http://")), None)
            assert issuer, "the provider did not start"
            yield OidcProvider(issuer)
        finally:
            process.terminate()
            process.wait(10)


def _client(client_id: str, method: str) -> Mapping[str, object]:
    return {
        "client_id": client_id,
        **({} if method == "none" else {"client_secret": CLIENT_SECRET}),
        "redirect_uris": [f"http://localhost{CALLBACK}"],
        "application_type": "native",
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
    }


def install() -> None:
    """Install what the lock file names, including a Node if this machine's is too old.

    Raises: Missing.
    """
    has_own = _own_node() is not None
    options = ["--omit=optional"] if has_own else []
    npm.install(FOLDER, *options, is_complete=lambda: has_own or _brought_node() is not None)
    if not has_own and not _brought_node():
        raise Missing(f"Node {OLDEST_NODE} or later is needed, and none fits this machine")


def _own_node() -> str | None:
    """Return this machine's Node; None if it is too old."""
    command = ["node", "--version"]
    version = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    major = re.match(r"v(\d+)\.", version)
    return "node" if major and int(major[1]) >= OLDEST_NODE else None


def _brought_node() -> str | None:
    """Return the Node from the lock file; None if not needed, or not built for this platform."""
    return next((str(path) for path in FOLDER.glob("node_modules/node-*/bin/node")), None)
