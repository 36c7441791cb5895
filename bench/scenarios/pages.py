"""The built-in pages: their rates, and in Chromium what they load and how soon they are there."""

import re
import shutil
import statistics
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bench import procs
from bench.api import LOGIN, Unexpected, credentials
from bench.lab import Lab
from bench.load import Request, Run, render
from bench.report import Figure, Row, rates, ratio
from bench.servers import ROOT, WORKERS, NotStarted, Running, Service, free_port, temporary_folder

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

KILOBYTE = 1000
WORKER_CLASS = "app.serving.worker.Worker"
LEAST_OF_BARE = {"/login": 0.5, "a static file": 0.7}
WARM_KILOBYTES, WARM_REQUESTS = 8, 5
# Slow 4G in ms and bytes a second, on a processor four times slower.
SLOW_4G = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1_600_000 / 8,
    "uploadThroughput": 750_000 / 8,
}
SLOWER_PROCESSOR = {"rate": 4}
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
# The button that shows a password appears in the step in which the form begins to work.
WATCH = """
window.seen = {};
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.seen.lcp = entry.startTime;
}).observe({ type: "largest-contentful-paint", buffered: true });
new MutationObserver(() => {
  if (document.querySelector("[data-reveals]:not([hidden])"))
    window.seen.usable ??= performance.now();
}).observe(document, { attributes: true, childList: true, subtree: true });
"""


@dataclass(frozen=True)
class Opened:
    """A page, what shows that it is complete, and its bars: kB, requests, seconds on Slow 4G."""

    path: str
    complete: str
    kilobytes: int
    requests: int
    lcp: float
    usable: float | None = None


PAGES = (
    Opened("/login", "[data-reveals]:not([hidden])", 60, 24, 1.6, 1.8),
    Opened("/settings/security", "#content:not([aria-busy])", 80, 32, 2.2),
    Opened("/admin/users", "tbody tr:nth-of-type(50)", 110, 30, 2.5),
)


class Traffic:
    """What a page has loaded since the last `take`; its icon belongs to the window's tab."""

    def __init__(self, page: "Page") -> None:
        self._asked: dict[str, str] = {}
        self._bytes: dict[str, int] = {}
        devtools = page.context.new_cdp_session(page)
        devtools.on("Network.requestWillBeSent", self._note_request)
        devtools.on("Network.loadingFinished", self._note_end)
        devtools.send("Network.enable")

    def _note_request(self, event: Any) -> None:
        self._asked[event["requestId"]] = event["request"]["url"]

    def _note_end(self, event: Any) -> None:
        self._bytes[event["requestId"]] = int(event["encodedDataLength"])

    def take(self) -> list[tuple[str, int]]:
        """Return the address and the bytes of each answer that came over the network."""
        found = [(url, self._bytes.get(id, 0)) for id, url in self._asked.items()]
        self._asked.clear()
        return [(url, size) for url, size in found if size and "icon.svg" not in url]


def page_request(path: str) -> Request:
    """Return what a browser would send to load a file or document."""
    return Request(render("GET", path, Accept_Encoding="gzip", Accept_Language="en"))


def pages(lab: Lab) -> Iterator[Row]:
    """Compare rates with a bare route's, then open each page in fresh contexts of a browser."""
    yield _rates(lab)
    origin = f"http://localhost:{lab.service.port}"
    with _browser() as browser:
        for page in PAGES:
            yield _visited(lab, browser, origin, page)


def _visited(lab: Lab, browser: "Browser", origin: str, page: Opened) -> Row:
    procs.wait_until_quiet(lab.service.server.pid, lab.options.noise, lab.options.wait)
    before = procs.sample()
    visits = [
        _loaded(browser, origin, page) | _timed(browser, origin, page)
        for _ in range(lab.options.repeats)
    ]
    after = procs.sample()
    figures = [
        Figure(name, statistics.median(visit[name] for visit in visits), unit, at_most=most)
        for name, unit, most in _bars(page)
    ]
    foreign = procs.foreign_load(before, after)
    run = Run(len(visits), after.at - before.at, 0, "", [], foreign_cores=foreign)
    return Row(f"page {page.path}", lab.database, figures, [run])


def _bars(page: Opened) -> Iterator[tuple[str, str, float]]:
    yield "cold", " kB", page.kilobytes
    yield "cold, requests", "", page.requests
    yield "warm, without the API", " kB", WARM_KILOBYTES
    yield "warm, requests", "", WARM_REQUESTS
    yield "LCP on Slow 4G", " s", page.lcp
    if page.usable:
        yield "usable on Slow 4G", " s", page.usable


def _loaded(browser: "Browser", origin: str, opened: Opened) -> dict[str, float]:
    """Load a page twice and return what came over the network."""
    with _page(browser, origin, opened) as page:
        traffic = Traffic(page)
        page.goto(opened.path)
        _wait(page, opened)
        cold = traffic.take()
        page.reload()
        _wait(page, opened)
        warm = traffic.take()
    own = [size for url, size in warm if "/api/v1/" not in url]
    return {
        "cold": sum(size for _, size in cold) / KILOBYTE,
        "cold, requests": len(cold),
        "warm, without the API": sum(own) / KILOBYTE,
        "warm, requests": len(warm),
    }


def _timed(browser: "Browser", origin: str, opened: Opened) -> dict[str, float]:
    """Load a page over a slow line and return the seconds until what there is to see."""
    with _page(browser, origin, opened) as page:
        page.add_init_script(WATCH)
        devtools = page.context.new_cdp_session(page)
        devtools.send("Network.enable")
        devtools.send("Network.emulateNetworkConditions", SLOW_4G)
        devtools.send("Emulation.setCPUThrottlingRate", SLOWER_PROCESSOR)
        page.goto(opened.path)
        _wait(page, opened)
        seen: Mapping[str, float] = page.evaluate("window.seen")
    names = {"lcp": "LCP on Slow 4G", "usable": "usable on Slow 4G"}
    return {names[name]: at / 1000 for name, at in seen.items()}


def _wait(page: "Page", opened: Opened) -> None:
    page.wait_for_selector(opened.complete)
    page.wait_for_load_state("networkidle")


@contextmanager
def _browser() -> Iterator["Browser"]:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        raise NotStarted("chromium is not on the PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*FLAGS])
        yield browser
        browser.close()


@contextmanager
def _page(browser: "Browser", origin: str, opened: Opened) -> Iterator["Page"]:
    """Open a fresh context, with the administrator signed in except for the sign-in page."""
    context = browser.new_context(base_url=origin)
    if opened.path != "/login":
        answer = context.request.post(LOGIN, data=credentials(Service.ADMIN))
        if not answer.ok:
            raise Unexpected(answer.text())
    yield context.new_page()
    context.close()


def _rates(lab: Lab) -> Row:
    with ExitStack() as stack:
        servers = {"a bare route": (_bare(stack), "/")}
        servers |= {"/login": (lab.service, "/login")}
        servers |= {"a static file": (lab.service, _style_sheet(lab.service))}
        runs = lab.in_turn(
            {name: partial(_ask, lab, server, path) for name, (server, path) in servers.items()}
        )
    bare = [run.rate for run in runs["a bare route"]]
    shares = [
        Figure(
            f"{name}, beside bare", ratio([run.rate for run in runs[name]], bare), at_least=least
        )
        for name, least in LEAST_OF_BARE.items()
    ]
    return Row(
        "pages", lab.database, [*rates(runs), *shares], [r for rs in runs.values() for r in rs]
    )


def _ask(lab: Lab, server: Running, path: str) -> Run:
    return lab.measure(server, lab.job(server, requests=[page_request(path)]))


def _style_sheet(service: Service) -> str:
    """Return the address of the pages' first style sheet."""
    document = service.api.call("GET", "/login").require(200).body.decode()
    found = re.search(r'rel="stylesheet" href="([^"]+)"', document)
    if not found:
        raise Unexpected("the sign-in page has no style sheet")
    return found[1]


def _bare(stack: ExitStack) -> Running:
    """Serve bench/bare.py by the service's kind and number of workers."""
    folder, port = temporary_folder(stack), free_port()
    argv = [sys.executable, "-m", "gunicorn", "bench.bare:app", "--bind", f"127.0.0.1:{port}"]
    argv += ["--worker-class", WORKER_CLASS, "--workers", str(WORKERS)]
    argv += ["--no-control-socket", "--log-level", "warning"]
    # gunicorn would read the service's own configuration from the project's folder.
    env = {"PYTHONPATH": str(ROOT)}
    return Running(stack, argv, port, "/", folder=folder, cwd=folder, env=env, postgres=None)
