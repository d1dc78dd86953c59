#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A person approves by a link.
#
#     examples/waiting/approval.sh        WEFT=path/to/weft when weft is not installed
#
# The script is both sides: it starts a server, submits a page to publish and plays the person; as
# `approval.sh task` it is the command that `weft work` runs for the page.

set -euo pipefail
weft=${WEFT:-weft}

if [[ ${1:-} == task ]]; then
    if [[ ${WEFT_RESUMED:-} == signals ]]; then # the person has answered
        sed 's/.*"name":"\([^"]*\)","source":"\([^"]*\)".*/"\1 by \2"/' "$WEFT_SIGNALS/signals.json"
        exit 0
    fi
    # The link goes out first. Should the answer come before the suspend, it is kept.
    token=$("$weft" waitpoints --new approval)
    echo "$WEFT_SERVER/v1/signals/$token?name=approved" >mail.txt
    echo '{"waitpoints": [{"name": "approval"}], "reason": "waiting for approval",
           "timeout_ms": 86400000}' >"$WEFT_SUSPEND_FILE"
    exit 79
fi

task=$(realpath "$0")
folder=$(mktemp -d)
cd "$folder"
# The server says where it listens in its first line.
exec {log}< <(exec "$weft" serve --listen 127.0.0.1:0 --store sqlite:weft.db 2>&1)
server=$!
trap 'kill "$server"; rm -rf "$folder"' EXIT
read -r -t 20 line <&"$log"
WEFT_SERVER=$(grep -o 'http://[0-9.:]*' <<<"$line")
export WEFT_SERVER

id=$("$weft" submit --kind publish '{"page": "prices"}')
"$weft" work --kind publish --max 1 -- "$task" task # ends when the command has suspended
echo "the mail says: $(cut -c 1-60 mail.txt)..."

echo "ann follows the link:"
curl -sS -X POST "$(cat mail.txt)&source=ann" | grep -o '"effect":"[a-z]*"'

"$weft" work --kind publish --max 1 -- "$task" task
echo "the result: $("$weft" show "$id" --wait=20s --result)"
