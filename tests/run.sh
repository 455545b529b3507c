#!/usr/bin/env bash
# The whole check, the same for a person and for CI; stops at the first failure.
#
#   bash tests/run.sh          everything
#   bash tests/run.sh tools    only fetches what the end-to-end tests need, into target/tools, and looks for Chromium
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ "${CI:-}" = true ]; then
    export CARGO_INCREMENTAL=0
fi
RAINCHECK_TEST_TOOLS=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools")
export RAINCHECK_TEST_TOOLS

started=$SECONDS

step() { # NAME COMMAND...: runs one step and says how long it took
    local name=$1 from=$SECONDS
    shift
    printf '==> %s\n' "$name"
    if ! "$@"; then
        printf '==> FAILED: %s, after %d s\n' "$name" "$((SECONDS - from))"
        exit 1
    fi
    printf '==> ok: %s, %d s\n' "$name" "$((SECONDS - from))"
}

need() { # PROGRAM PACKAGES: fails with the command that brings a program
    if ! command -v "$1" >/dev/null; then
        printf '`%s` is missing; get it with: apt-get install -y %s\n' "$1" "$2" >&2
        return 1
    fi
}

stamped() { # FOLDER FILE: whether FOLDER was made from FILE as it is now
    [ "$(cat "$1/made-from" 2>/dev/null)" = "$(sha256sum <"$2")" ]
}

python_tools() {
    local folder=$RAINCHECK_TEST_TOOLS/python wanted=tests/sdk/requirements.txt
    need python3 "python3 python3-venv" || return 1
    stamped "$folder" "$wanted" && return 0
    rm -rf "$folder"
    python3 -m venv "$folder" || return 1
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$wanted" || return 1
    sha256sum <"$wanted" >"$folder/made-from"
}

node_tools() {
    local folder=$RAINCHECK_TEST_TOOLS/node wanted=tests/sdk/package-lock.json
    need node nodejs || return 1
    need npm npm || return 1
    stamped "$folder" "$wanted" && return 0
    rm -rf "$folder"
    mkdir -p "$folder"
    cp tests/sdk/package.json "$wanted" "$folder/"
    (cd "$folder" && npm ci --silent --no-audit --no-fund --ignore-scripts) || return 1
    sha256sum <"$wanted" >"$folder/made-from"
}

chromium_itself() {
    need "${CHROMIUM:-chromium}" chromium
}

documentation() {
    RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps
}

step "the Python SDK" python_tools
step "the TypeScript SDK" node_tools
step "Chromium" chromium_itself
[ "${1:-}" = tools ] && exit 0

step "format" cargo fmt --all --check
step "lints" cargo clippy --quiet --workspace --all-targets -- -D warnings
step "build" cargo build --quiet --workspace --all-targets
# Not `--all-targets`: that would run the benchmarks once, too, and fill their queues.
step "tests" cargo test --workspace --lib --bins --tests
step "the browser extension" node --test crates/browser/extension-tests/*.test.mjs
step "examples in the documentation" cargo test --workspace --doc
step "documentation" documentation
step "tidy" cargo xtask tidy
if command -v cargo-deny >/dev/null; then
    step "licences and sources" cargo deny --log-level error check -D unmatched-skip -D unnecessary-skip bans licenses sources
else
    printf '==> left out: licences and sources; get it with: cargo install --locked cargo-deny\n'
fi
printf '==> all passed in %d s\n' "$((SECONDS - started))"
