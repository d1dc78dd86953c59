#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Calls that weft makes itself: three models race; one calls, one checks, the first one calls again.
#
#     MODELS=http://127.0.0.1:8000/v1 examples/calls/run.sh     WEFT=path/to/weft when not installed
#
# MODELS is a server with OpenAI's chat completions.

set -euo pipefail
weft=${WEFT:-weft}
here=$(realpath "$(dirname "$0")")
folder=$(mktemp -d)
cd "$folder"
exec {log}< <(exec "$weft" serve --listen 127.0.0.1:0 --store sqlite:weft.db 2>&1)
server=$!
trap 'kill "$server"; rm -rf "$folder"' EXIT
read -r -t 20 line <&"$log"
WEFT_SERVER=$(grep -o 'http://[0-9.:]*' <<<"$line")
export WEFT_SERVER

# The endpoint is private because it is on this machine.
curl -sS -X PUT "$WEFT_SERVER/v1/endpoints/models" -o endpoint.json \
    -d "{\"url\": \"$MODELS\", \"private\": true}"

echo "call, check, call again:"
"$weft" flow run --wait=30s "$here/check.json" >flow.txt
"$weft" flow show "$(head -n 1 flow.txt)"

echo "the race:"
"$weft" work --kind step --max 1 -- cat >answer.txt & # takes the winner's answer
"$weft" flow run --wait=30s "$here/race.json" >flow.txt
"$weft" flow show "$(head -n 1 flow.txt)"
