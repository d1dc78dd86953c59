#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Two of three reviewers must agree; if they take too long, an operator is shown the case.
#
#     examples/waiting/reviews.sh         WEFT=path/to/weft when weft is not installed
#
# As `reviews.sh task` it is the command that `weft work` runs. There is no server: all commands
# open the same file.

set -euo pipefail
weft=${WEFT:-weft}

if [[ ${1:-} == task ]]; then
    if [[ -n ${WEFT_RESUMED:-} ]]; then
        grep -o '"waitpoint_name":"[a-z]*"' "$WEFT_SIGNALS/signals.json" | cut -d '"' -f 4 | sort
        exit 0
    fi
    for reviewer in ann bob eve; do # a link of its own for each
        "$weft" waitpoints --new "$reviewer" >"$reviewer.token"
    done
    echo '{"waitpoints": [{"name": "ann"}, {"name": "bob"}, {"name": "eve"}],
           "condition": {"count": {"n": 2, "of": "waitpoints", "name": "agreed"}},
           "timeout_ms": 100, "on_timeout": "escalate", "reason": "two reviews"}' \
        >"$WEFT_SUSPEND_FILE"
    exit 79
fi

task=$(realpath "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export WEFT_STORE=sqlite:$folder/weft.db

id=$("$weft" submit --kind review '{"change": 17}')
"$weft" work --kind review --max 1 -- "$task" task
echo "ann agrees: $("$weft" signal "$(cat ann.token)" --name agreed)"
echo "eve objects: $("$weft" signal "$(cat eve.token)" --name objected)"

# Without a server a worker does the upkeep, timeouts too. This one waits for the escalation; an
# escalated execution stays suspended and can still be signalled or resumed.
"$weft" work --kind none --name upkeep -- true 2>upkeep.log &
worker=$!
for _ in {1..200}; do
    if "$weft" show "$id" --json | grep -q '"escalated":true'; then break; fi
    "$weft" show "$id" --wait=100ms >/dev/null 2>&1 || true
done
kill "$worker"
wait "$worker" || true
"$weft" show "$id" --json | grep -o '"state":"[a-z]*"\|"escalated":[a-z]*'

# The operator sees it, and reminds bob. (Or decides alone: weft resume ID --reason ...)
echo "bob agrees: $("$weft" signal "$(cat bob.token)" --name agreed)"
"$weft" work --kind review --max 1 -- "$task" task
echo "heard: $("$weft" show "$id" --wait=20s --result | paste -s -d ' ')"
