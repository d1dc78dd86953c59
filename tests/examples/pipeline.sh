#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The second example: counts at the end, the same counts after a second run, and after two at once.

set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

counts='succeeded   1001
cancelled      1
10 of them needed a second attempt'

expect() {
    local what=$1 want=$2 output=$3
    if [[ $(tail -n 3 "$output") != "$counts" ]] || ! grep -q "$want" "$output"; then
        echo "pipeline: $what printed" >&2
        cat "$output" >&2
        exit 1
    fi
}

run() {
    local url=$1 pipeline=$WEFT_BUILD/examples/pipeline
    "$pipeline" "$url" >"$scratch/first"
    expect 'the first run' 'images: 1000 new, 0 known already' "$scratch/first"
    grep -q 'the watcher was told to stop: cancelled' "$scratch/first"
    grep -q 'the report is at [1-9]' "$scratch/first"
    "$pipeline" "$url" >"$scratch/second"
    expect 'the second run' 'images: 0 new, 1000 known already' "$scratch/second"
}

# Two processes on a new store at the same time share the work; neither does it again.
run_both() {
    local url=$1 pipeline=$WEFT_BUILD/examples/pipeline other
    "$pipeline" "$url" >"$scratch/one" &
    other=$!
    "$pipeline" "$url" >"$scratch/two"
    wait "$other"
    expect 'one of two' 'images: ' "$scratch/one"
    expect 'two of two' 'images: ' "$scratch/two"
}

run "sqlite:$scratch/pipeline.db"
run_both "sqlite:$scratch/both.db"
if [[ -n ${WEFT_TEST_PG:-} ]]; then
    separator='?'
    [[ $WEFT_TEST_PG != *\?* ]] || separator='&'
    run "$WEFT_TEST_PG${separator}weft_schema=pipeline_$$"
    run_both "$WEFT_TEST_PG${separator}weft_schema=pipeline_both_$$"
fi
