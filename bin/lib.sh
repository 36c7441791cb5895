# Shared by the scripts in this folder: sourced, with `root` set to the project's folder.

say() {
    printf '%s: %s\n' "bin/${0##*/}" "$*" >&2
}

die() {
    say "$*"
    exit 1
}

# Go to the project's folder; a relative instance folder stays where the caller meant it.
enter_project() {
    case ${GATEHOUSE_INSTANCE:-/} in
        /*) ;;
        *) GATEHOUSE_INSTANCE=$PWD/$GATEHOUSE_INSTANCE && export GATEHOUSE_INSTANCE ;;
    esac
    cd "$root" || exit 1
    # Code is compiled once: without that every process starts a fifth later, the suite's by hundreds.
    unset PYTHONDONTWRITEBYTECODE
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Print the first Python that is new enough; PYTHON wins.
find_python() {
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python3.14 python
    do
        if is_new_enough "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    die "needs Python 3.11 or later; set PYTHON to one"
}

# Debian ships venv without ensurepip in its minimal Python; then the pip outside does the work.
create_venv() {
    say "creating $1 with $("$2" --version)"
    if "$2" -c 'import ensurepip, venv' 2>/dev/null; then
        "$2" -m venv --clear "$1"
    elif "$2" -m pip --version >/dev/null 2>&1; then
        "$2" -m venv --clear --without-pip "$1"
    else
        die "this Python has neither venv nor pip: install them (Debian, Ubuntu: apt-get install" \
            "python3-venv) or set PYTHON to another one"
    fi || die "could not create $1"
}

# Run the pip of an environment, or one from outside on it.
venv_pip() {
    venv=$1
    shift
    if "$venv/bin/python" -c 'import pip' 2>/dev/null; then
        "$venv/bin/python" -m pip --disable-pip-version-check "$@"
    else
        python=$(find_python) || exit 1
        "$python" -m pip --disable-pip-version-check --python "$venv/bin/python" "$@"
    fi
}

# The copy of an installed requirement file is its stamp.
is_installed() {
    for list in "$@"; do
        cmp -s "$list" ".venv/$list" || return 1
    done
    is_new_enough .venv/bin/python
}

# Bring .venv in line with the given requirement files. The stamp is written last, so that an
# interrupted installation is repeated.
ensure_venv() {
    is_installed "$@" && return
    lock_venv
    if ! is_new_enough .venv/bin/python; then
        python=$(find_python) || exit 1
        create_venv .venv "$python"
    fi
    for requirements in "$@"; do
        is_installed "$requirements" && continue
        say "installing $requirements, which may take a minute"
        # The lists are complete. Were pip to resolve them again, a package released tomorrow could
        # ask for one that they do not name.
        # Who watches sees pip at work; a log gets only what goes wrong.
        if [ -t 2 ]; then quiet=; else quiet=--quiet; fi
        venv_pip .venv install $quiet --no-deps --require-hashes -r "$requirements" >&2 ||
            die "installation failed"
    done
    venv_pip .venv check >&2 || die "these packages do not fit together: remove .venv and try again"
    for requirements in "$@"; do
        cp "$requirements" ".venv/$requirements"
    done
    unlock_venv
}

has_tools() {
    cmp -s "$1" "$2/installed.txt" && is_new_enough "$2/bin/python"
}

# Install requirements-NAME.txt into .cache/NAME, an environment that nothing else uses.
ensure_tools() {
    list=requirements-$1.txt tools=.cache/$1
    has_tools "$list" "$tools" && return
    lock_venv
    if ! has_tools "$list" "$tools"; then
        python=$(find_python) || exit 1
        create_venv "$tools" "$python"
        say "installing $list, which may take a minute"
        venv_pip "$tools" install --quiet --no-deps --require-hashes -r "$list" >&2 ||
            die "installation failed"
        cp "$list" "$tools/installed.txt"
    fi
    unlock_venv
}

# Two scripts started together must not both install; without flock(1) they simply do not wait.
lock_venv() {
    exec 9>.venv.lock
    if command -v flock >/dev/null; then flock 9; fi
}

unlock_venv() {
    exec 9>&-
}

# Install what package-lock.json names; fails where there is no Node.
ensure_node_packages() {
    command -v node >/dev/null && command -v npm >/dev/null || return 1
    cmp -s package-lock.json node_modules/.installed && return
    lock_venv
    if ! cmp -s package-lock.json node_modules/.installed; then
        say "installing what package-lock.json names"
        # Its output may reveal the registry in use.
        npm ci --ignore-scripts --no-audit --no-fund >/dev/null 2>&1 || die "npm ci failed"
        cp package-lock.json node_modules/.installed
    fi
    unlock_venv
}
