#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The examples about waiting: an approval by a link, two of three reviews, and an early webhook.

set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export WEFT=$WEFT_BUILD/weft
unset WEFT_SERVER WEFT_STORE || true

# expect NAME LINES WORD...: the output has these lines, in this order; among them may be others.
expect() {
    local name=$1 lines=$2 line at=1 found
    shift 2
    if ! "$@" >"$scratch/out" 2>"$scratch/err"; then
        echo "waiting: $name failed" >&2
        cat "$scratch/out" "$scratch/err" >&2
        exit 1
    fi
    while read -r line; do
        if ! found=$(tail -n +"$at" "$scratch/out" | grep -n -m 1 -e "$line" | cut -d : -f 1); then
            printf 'waiting: %s did not print %s but\n' "$name" "$line" >&2
            cat "$scratch/out" "$scratch/err" >&2
            exit 1
        fi
        at=$((at + found))
    done <<<"$lines"
}

expect approval '^suspended .* waiting for approval$
^the mail says: http://.*/v1/signals/signal_
"effect":"resumed"
^done
^the result: "approved by ann"$' "$root/examples/waiting/approval.sh"

expect reviews '^suspended .* two reviews$
^ann agrees: recorded$
^eve objects: ignored$
"state":"suspended"
"escalated":true
^bob agrees: resumed$
^heard: ann bob eve$' "$root/examples/waiting/reviews.sh"

early='^lease 1 orders the payment$
^the webhook comes before the suspend: buffered$
^lease 1 goes on with the signal "paid"$
^the payment has succeeded$
^the result is {"cents":1999}$'
expect webhook "$early" "$WEFT_BUILD/examples/webhook" "sqlite:$scratch/webhook.db"
if [[ -n ${WEFT_TEST_PG:-} ]]; then
    separator='?'
    [[ $WEFT_TEST_PG != *\?* ]] || separator='&'
    expect webhook "$early" "$WEFT_BUILD/examples/webhook" \
        "$WEFT_TEST_PG${separator}weft_schema=webhook_$$"
fi
