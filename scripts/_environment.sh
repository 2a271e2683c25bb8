# Sourced by the other scripts: makes a virtual environment with tunesmith, and puts it first in PATH.
# Needs only a POSIX shell on Debian or Ubuntu; installs what is missing if root or sudo allows it.

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
environment=${TUNESMITH_VENV:-$root/.venv}

# Container images set it. Each of the many processes that a run starts would then compile all modules anew.
unset PYTHONDONTWRITEBYTECODE

say() { printf '%s\n' "tunesmith: $*" >&2; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then sudo "$@"
    else return 1
    fi
}

apt_install() {
    command -v apt-get >/dev/null 2>&1 || return 1
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$@" >/dev/null 2>&1 && return 0
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q >/dev/null 2>&1
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$@" >/dev/null 2>&1
}

find_python() {
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null 2>&1 && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
            command -v "$name"
            return 0
        fi
    done
    return 1
}

# Removes an environment that this script made. Anything else at that path belongs to the user and stays.
remove_environment() {
    [ -e "$environment" ] || return 0
    if [ -e "$environment/.tunesmith" ]; then rm -rf "$environment"; return 0; fi
    say "$environment is there and is no environment of tunesmith's with pip: move it away, or set TUNESMITH_VENV"
    exit 2
}

make_environment() {
    mkdir -p "$environment" && : >"$environment/.tunesmith"
    # `venv` may be incomplete (Debian has ensurepip in another package), so check that pip runs.
    "$1" -m venv "$environment" >/dev/null 2>&1 && "$environment/bin/python" -m pip --version >/dev/null 2>&1 && return 0
    say "python3-venv is missing; installing it"
    apt_install python3-venv && "$1" -m venv --clear "$environment" >/dev/null 2>&1 && {
        : >"$environment/.tunesmith"
        return 0
    }
    "$1" -m virtualenv "$environment" >/dev/null 2>&1 && return 0
    "$1" -m pip install -q --user virtualenv >/dev/null 2>&1 && "$1" -m virtualenv "$environment" >/dev/null 2>&1 && return 0
    say "cannot make a virtual environment: install python3-venv (as root: apt-get install python3-venv), then run this again"
    return 1
}

# set_up [EXTRA]: makes an environment with tunesmith (and one of its extras), again whenever pyproject.toml changes.
set_up() {
    python=$(find_python) || { apt_install python3 && python=$(find_python); } || {
        say "no Python >= 3.11 here and none could be installed: install python3 (Debian 12, Ubuntu 24.04 or newer have one)"
        exit 2
    }
    extra=${1:-}
    stamp="$environment/.tunesmith-$extra-$(cksum <"$root/pyproject.toml" | tr -c '0-9\n' '-')"
    if ! "$environment/bin/python" -m pip --version >/dev/null 2>&1; then
        remove_environment
        make_environment "$python" || exit 2
    fi
    if [ ! -e "$stamp" ]; then
        say "installing tunesmith and what it needs into $environment"
        "$environment/bin/python" -m pip install -q --disable-pip-version-check -e "$root${extra:+[$extra]}" || {
            say "pip could not install tunesmith: see its message above; a network that reaches PyPI is needed once"
            exit 2
        }
        : >"$stamp"
    fi
    PATH="$environment/bin:$PATH"
    export PATH
}
