#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What the README says to paste, pasted: every block of shell commands, in its order, in one shell.

readme=$(cd "$(dirname "$0")/../.." && pwd)/README.md
source "$(dirname "$0")/common.bash"

serve_hello
"$weft" mock-llm --listen 127.0.0.1:0 >mock.txt &
mock_pid=$!
wait_for() {
    for ((i = 0; i < 400; i++)); do
        if grep -q "$1" "$2"; then return; fi
        sleep 0.05
    done
}
wait_for 'http://.*/v1' mock.txt
mock=$(grep -o 'http://.*/v1' mock.txt)
sed -n '/^```sh$/,/^```$/p' "$readme" | sed '/^```/d' >blocks
is "$(grep -c '^weft\|^curl' blocks)" 21 'the README has commands to paste'
# On the ports of this server and this mock instead of the usual ones.
{
    echo 'set -eu'
    sed -e "s|localhost:7717|${url#http://}|" -e "s|\$PWD/build|$(dirname "$weft")|" \
        -e "s|http://127.0.0.1:7718/v1|$mock|" -e 's|^weft mock-llm .*|mock=|' blocks
} >script
export WEFT_SERVER=$url
exits 0 'the commands of the README, pasted' timeout 100 bash script
is "$(grep -c 'default  *greet  *ready' <<<"$out")" 3 \
    'the commands of the README, pasted: three executions wait at first'
is "$(grep -c 'default  *greet  *succeeded' <<<"$out")" 3 \
    'the commands of the README, pasted: three executions have succeeded in the end'
has "$out" '^Hello, Edsger!' 'an execution with a key is not done twice'
has "$out" '^ *1  *failed .*disk full' 'the history shows what failed'
has "$out" '^attempt +3 of 25 used$' 'the history shows that it was tried again'
has "$out" ' words: open ' 'a flow is drawn'
has "$out" '^3 nodes: 3 succeeded' 'the flow is carried out'
has "$out" '^`- sum +succeeded .* all of one, two' 'the last node of the flow succeeded'
has "$out" '"lane":"images","kind":"resize","payload":\{"width":80\}' \
    'a claim over HTTP is answered'
has "$out" '"role":"assistant","content":"hi"' 'weft makes a call itself'
has "$out" '^completed: 3 of 3 lines succeeded$' 'a batch is made of a file'
has "$out" '"custom_id":"2","response":\{"status_code":200' 'and its answers are read'
kill "$mock_pid"
plan
