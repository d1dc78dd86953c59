#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What the README says to paste, pasted: every block of shell commands, in its order, in one shell.

readme=$(cd "$(dirname "$0")/../.." && pwd)/README.md
source "$(dirname "$0")/common.bash"

"$weft" serve --listen 127.0.0.1:0 --hello >hello.txt 2>serve.log &
server_pid=$!
url=
for ((i = 0; i < 200; i++)); do
    url=$(grep -o 'http://127.0.0.1:[0-9]*' hello.txt | head -n 1 || true)
    if [[ -n $url ]]; then break; fi
    sleep 0.05
done
sed -n '/^```sh$/,/^```$/p' "$readme" | sed '/^```/d' >blocks
is "$(grep -c '^weft\|^curl' blocks)" 12 'commands to paste'
# Another port than the usual one, and claims that do not wait for what is there already.
{
    echo 'set -eu'
    sed -e "s|localhost:7717|${url#http://}|" -e "s|\$PWD/build|$(dirname "$weft")|" blocks
} >script
export WEFT_SERVER=$url
exits 0 'all of them work' timeout 100 bash script
is "$(grep -c 'default  *greet  *ready' <<<"$out")" 3 'three are waiting'
is "$(grep -c 'default  *greet  *succeeded' <<<"$out")" 3 'three have succeeded'
has "$out" '^Hello, Edsger!' 'the one with a key is not done twice'
has "$out" '^ *1  *failed .*disk full' 'the history tells what failed'
has "$out" '^attempt +3$' 'and that it was tried again'
has "$out" '"lane":"images","kind":"resize","payload":\{"width":80\}' 'a claim over HTTP'
plan
