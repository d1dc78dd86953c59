#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The example about calls that weft makes itself, against the web server of the tests.

set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
export WEFT=$WEFT_BUILD/weft
unset WEFT_SERVER WEFT_STORE || true

# It ends with its stdin; its port is its first line.
exec {models}< <(exec "$WEFT_BUILD/tests/upstream" </dev/null)
upstream=$!
trap 'kill "$upstream"; rm -rf "$scratch"' EXIT
read -r -t 20 port <&"$models"

if ! MODELS=http://127.0.0.1:$port/v1 timeout 100 "$root/examples/calls/run.sh" \
    >"$scratch/out" 2>"$scratch/err"; then
    echo 'calls: the example failed' >&2
    cat "$scratch/out" "$scratch/err" >&2
    exit 1
fi
for line in 'draft.*succeeded' 'check.*succeeded' 'again.*succeeded' 'small.*succeeded' \
    'medium.*cancelled' 'large.*cancelled' 'answer.*succeeded'; do
    if ! grep -q "$line" "$scratch/out"; then
        echo "calls: the example did not print $line but" >&2
        cat "$scratch/out" "$scratch/err" >&2
        exit 1
    fi
done
