#!/usr/bin/env bash
# The whole check, the same for a person and for CI; stops at the first failure.
#
#   bash tests/run.sh          everything
#   bash tests/run.sh tools    only installs what the checks need
#
# It needs Rust, Python 3.11 and Node.js 20. What else it needs of the system it installs where it may, that is as
# root with apt; elsewhere it says what to install, and stops. The rest goes into target/tools and stays there.
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

# What the checks need of the system.
NEEDED="cc ps python3 node npm chromium"
CARGO_DENY=0.20.2

present() { # PROGRAM: whether it is there, whole and new enough
    case $1 in
    cc) printf '#include <stdlib.h>\n' | cc -E - ;;
    python3) python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' ;;
    node) node -e 'process.exit(Number(parseInt(process.versions.node) < 20))' ;;
    chromium) command -v "${CHROMIUM:-chromium}" ;;
    *) command -v "$1" ;;
    esac >/dev/null 2>&1
}

packages() { # PROGRAM: the packages of Debian that bring it
    case $1 in
    cc) printf 'gcc libc6-dev' ;;
    ps) printf 'procps' ;;
    python3) printf 'python3 python3-venv' ;;
    node) printf 'nodejs' ;;
    *) printf '%s' "$1" ;;
    esac
}

missing() { # prints the needed programs that are not there
    local program
    for program in $NEEDED; do
        present "$program" || printf '%s ' "$program"
    done
}

system_packages() {
    local programs wanted=() program
    programs=$(missing)
    [ -z "$programs" ] && return 0
    for program in $programs; do
        read -ra names <<<"$(packages "$program")"
        wanted+=("${names[@]}")
    done
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        printf 'missing: %s; install it as root, on Debian with: apt-get update && apt-get install -y %s\n' \
            "${programs% }" "${wanted[*]}" >&2
        return 1
    fi
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
    "${apt[@]}" update || return 1
    "${apt[@]}" install -y --no-install-recommends "${wanted[@]}" >/dev/null || return 1
    programs=$(missing)
    [ -z "$programs" ] && return 0
    printf 'missing or too old after the installation: %s; needed are Python 3.11 with venv, Node.js 20 with npm, %s\n' \
        "${programs% }" "and the programs cc, ps and ${CHROMIUM:-chromium}" >&2
    return 1
}

stamped() { # FOLDER FILE: whether FOLDER was made from FILE as it is now
    [ "$(cat "$1/made-from" 2>/dev/null)" = "$(sha256sum <"$2")" ]
}

python_tools() {
    local folder=$RAINCHECK_TEST_TOOLS/python wanted=tests/sdk/requirements.txt
    stamped "$folder" "$wanted" && return 0
    rm -rf "$folder"
    python3 -m venv "$folder" || return 1
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$wanted" || return 1
    sha256sum <"$wanted" >"$folder/made-from"
}

node_tools() {
    local folder=$RAINCHECK_TEST_TOOLS/node wanted=tests/sdk/package-lock.json
    stamped "$folder" "$wanted" && return 0
    rm -rf "$folder"
    mkdir -p "$folder"
    cp tests/sdk/package.json "$wanted" "$folder/"
    # Not `npm ci`: it refuses a lock file without an optional package for Windows that not every registry has.
    (cd "$folder" && npm install --no-save --silent --no-audit --no-fund --ignore-scripts) || return 1
    sha256sum <"$wanted" >"$folder/made-from"
}

wrapped_server() {
    local folder=$RAINCHECK_TEST_TOOLS/everything wanted=tests/wrapped/package-lock.json
    stamped "$folder" "$wanted" && return 0
    rm -rf "$folder"
    mkdir -p "$folder"
    cp tests/wrapped/package.json "$wanted" "$folder/"
    (cd "$folder" && npm ci --silent --no-audit --no-fund --ignore-scripts) || return 1
    sha256sum <"$wanted" >"$folder/made-from"
}

# Not optimised: that takes a quarter of the time to build, and the check then takes two seconds.
cargo_deny() {
    local folder=$RAINCHECK_TEST_TOOLS/cargo-deny
    [ "$(cat "$folder/made-from" 2>/dev/null)" = "$CARGO_DENY" ] && return 0
    rm -rf "$folder"
    CARGO_TARGET_DIR=$folder/build CARGO_PROFILE_DEV_DEBUG=false CARGO_INCREMENTAL=0 cargo install --quiet --locked \
        --debug --no-default-features --no-track --root "$folder" cargo-deny --version "$CARGO_DENY" || return 1
    rm -rf "$folder/build"
    printf '%s\n' "$CARGO_DENY" >"$folder/made-from"
}

# They are workspaces of their own, so that no other step notices a dependency that they lack.
lock_files() {
    local manifest
    for manifest in tests/bench/Cargo.toml tests/bench/queue-peers/Cargo.toml; do
        cargo update --quiet --workspace --locked --manifest-path "$manifest" || {
            printf 'bring it up to date with: cargo update --workspace --manifest-path %s\n' "$manifest" >&2
            return 1
        }
    done
}

# Built together, crates lend each other the features of what they share; whoever takes one gets it alone.
each_crate_alone() {
    local manifest warnings
    for manifest in crates/*/Cargo.toml; do
        [ -f "${manifest%Cargo.toml}src/lib.rs" ] || continue
        warnings=$(cargo check --quiet --lib --manifest-path "$manifest" 2>&1) && [ -z "$warnings" ] || {
            printf '%s\n' "$warnings" >&2
            return 1
        }
    done
}

# They measure, and are run by hand.
benchmark_scripts() {
    local script
    python3 -c 'import ast, sys; [ast.parse(open(one).read(), one) for one in sys.argv[1:]]' tests/bench/*.py || return 1
    for script in tests/bench/*/*.mjs; do
        node --check "$script" || return 1
    done
}

documentation() {
    RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps
}

step "packages of the system" system_packages
step "the Python SDK" python_tools
step "the TypeScript SDK, the Inspector and the conformance suites" node_tools
step "the server that is wrapped" wrapped_server
step "the tools for the Unity package" bash tests/unity/run.sh tools
step "cargo-deny" cargo_deny
[ "${1:-}" = tools ] && exit 0

step "format" cargo fmt --all --check
step "lints" cargo clippy --quiet --workspace --all-targets -- -D warnings
step "build" cargo build --quiet --workspace --all-targets
# Not `--all-targets`: that would run the benchmarks once, too, and fill their queues.
step "tests" cargo test --workspace --lib --bins --tests
step "the browser extension" node --test crates/browser/extension-tests/*.test.mjs
step "the page of the browser extension" env "BROWSER_MCP=${CARGO_TARGET_DIR:-target}/debug/browser-mcp" \
    node --test crates/browser/extension-tests/page.chromium.mjs crates/browser/extension-tests/native.chromium.mjs crates/browser/extension-tests/user.chromium.mjs \
    crates/browser/extension-tests/theirs.chromium.mjs
step "the Unity package" bash tests/unity/run.sh
step "MCP conformance" bash tests/conformance/run.sh
step "examples in the documentation" cargo test --workspace --doc
step "documentation" documentation
step "each crate alone" each_crate_alone
step "tidy" cargo xtask tidy
step "scripts of the benchmarks" benchmark_scripts
step "lock files of the benchmarks" lock_files
step "licences and sources" "$RAINCHECK_TEST_TOOLS/cargo-deny/bin/cargo-deny" --log-level error \
    check -D unmatched-skip -D unnecessary-skip bans licenses sources
printf '==> all passed in %d s\n' "$((SECONDS - started))"
