"""The lists of packages: complete, pinned, hashed, and above every advisory we know of.

Advisories that came out later are a matter of `bin/audit`, which asks for them.
"""

import re
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.servers import ROOT

LISTS = (
    *("requirements", "requirements-dev", "requirements-audit", "requirements-kubernetes"),
    "clients/python/requirements",
)
PIN = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^ ;]+)(?: *;[^\\]*)? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


def pins(name):
    """Return the version and the number of hashes by package of a compiled list."""
    found = {}
    for line in (ROOT / f"{name}.txt").read_text().splitlines():
        if pin := PIN.match(line):
            current = canonicalize_name(pin["name"])
            assert current not in found, f"{current} is there twice"
            found[current] = [Version(pin["version"]), 0]
        elif HASH.match(line):
            found[current][1] += 1
        else:
            assert not line or line.lstrip().startswith("#"), (
                f"{name}.txt: {line!r} is neither pin nor hash"
            )
    return found


def wanted(name):
    """Return the packages that a list is compiled from."""
    lines = (
        line.partition("#")[0].strip() for line in (ROOT / f"{name}.in").read_text().splitlines()
    )
    return [Requirement(line) for line in lines if line and not line.startswith("-")]


def needed(roots):
    """Return all packages that `roots` need on this machine, from what is installed."""
    found, open_ends = set(), list(roots)
    while open_ends:
        requirement = open_ends.pop()
        extras = requirement.extras or {""}
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in extras):
            continue
        key = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if key in found:
            continue
        found.add(key)
        for text in metadata.distribution(requirement.name).requires or ():
            child = Requirement(text)
            if child.marker is None or any(child.marker.evaluate({"extra": e}) for e in extras):
                child.marker = None
                open_ends.append(child)
    return {name for name, _ in found}


def advisories():
    """Return the version that is safe by package."""
    lines = (ROOT / "tests/security/advisories.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    assert all(len(row) > 2 for row in rows)
    return {name: Version(version) for name, version, *_ in rows}


@pytest.mark.parametrize("name", LISTS)
def test_every_package_is_pinned_with_hashes(name):
    found = pins(name)
    assert found
    assert [package for package, (_, hashes) in found.items() if not hashes] == []
    assert {canonicalize_name(one.name) for one in wanted(name)} <= set(found)
    for requirement in wanted(name):
        version = found[canonicalize_name(requirement.name)][0]
        assert requirement.specifier.contains(version), f"{requirement}: {version} is pinned"


@pytest.mark.parametrize(("name", "below"), [("requirements", ()), ("requirements-dev", LISTS[:1])])
def test_whatever_they_need_is_in_the_list(name, below):
    """Else an installation would take whatever version there is that day, unchecked."""
    listed = set(pins(name)).union(*(pins(other) for other in below))
    assert needed(wanted(name)) - listed == set()


def test_what_is_installed_is_what_is_pinned():
    for name in LISTS[:2]:
        for package, (version, _) in pins(name).items():
            try:
                installed = Version(metadata.version(package))
            except metadata.PackageNotFoundError:
                continue  # for another Python
            assert installed == version, package


def test_lists_that_share_a_package_agree_on_its_version():
    service, suite = pins("requirements"), pins("requirements-dev")
    assert {p for p in service.keys() & suite.keys() if service[p][0] != suite[p][0]} == set()


def test_no_pin_has_a_known_advisory():
    found = [(package, pin[0]) for name in LISTS for package, pin in pins(name).items()]
    safe = advisories()
    assert safe.keys() <= {package for package, _ in found}
    assert [pin for pin in found if pin[0] in safe and pin[1] < safe[pin[0]]] == []
