"""The command that installs the peers: `python -m bench.peers`."""

import sys

from bench.peers import install


def main() -> None:
    """Install all peers; report which could not be installed, and why."""
    failed = False
    for name in install.NAMES:
        try:
            install.ensure(name)
        except install.Missing as missing:
            failed = True
            sys.stderr.write(f"{name}: {missing}\n")
        else:
            sys.stderr.write(f"{name} is installed\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
