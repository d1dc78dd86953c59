#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft gate: limits are set, shown and removed, in a store and through a server.

source "$(dirname "$0")/common.bash"
export WEFT_STORE=$store

exits 0 'the store is made' "$weft" migrate
exits 0 'an empty list is no failure' "$weft" gate

exits 0 'a class is limited' "$weft" gate customer --max-running 1
has "$out" '^customer +1 +- +-' 'the limit of the gate is shown'

exits 0 'a gate gets a window and a rate' "$weft" gate api:x --window 100/1m --rate 10/1s --burst 20
has "$out" '^api:x +- +100/1m +10/1s burst 20' 'limits are shown as they were typed'

run "$weft" gate api:x --window 0
has "$out" '^api:x +- +- +10/1s burst 20' 'a limit that is not named stays, 0 takes one away'

run "$weft" gate --json
has "$out" '"gate": *"api:x"' 'the list as JSON'

exits 0 'three of a customer are submitted' "$weft" submit --kind k --gate customer:1 --count 3
run "$weft" gate customer:1
has "$out" '^customer:1 +- +- +- +0 +1 +2' 'one execution is ready, two are held'
id=$("$weft" ls --state held --json | grep -Eo '[0-9a-f-]{36}' | head -n 1)
exits 0 'why of a held execution' "$weft" why "$id"
has "$out" "^gate: gate 'customer:1' admits 1 at a time" 'the gate and its limit are named'
run "$weft" show "$id"
has "$out" '^gate +customer:1$' 'show has its gate'
exits 0 'why as JSON' "$weft" why "$id" --json
has "$out" '"why": *"gate"' 'has the word'
run "$weft" counts
has "$out" 'HELD' 'counts show held ones'

exits 2 'a window without a span is refused' "$weft" gate api:x --window 5
has "$err" '100/1m' 'with an example'
exits 2 'a limit without a name is refused' "$weft" gate --max-running 1

exits 0 'the limits are removed' "$weft" gate customer --remove
run "$weft" gate customer:1
has "$out" '^customer:1 +- +- +- +0 +3 +0' 'without limits all executions are admitted'
exits 3 'a gate that does not exist' "$weft" gate nope:1
has "$err" "there is no gate 'nope:1'" 'the error names the gate'

exits 0 'a lane gets a window and a rate' \
    "$weft" lanes api --create --window 100/1m --rate 10/1s --burst 20
has "$out" '^api +open +- +100/1m +10/1s burst 20' 'limits are shown as they were typed'
run "$weft" lanes api --rate 0 --max-running 2
has "$out" '^api +open +2 +100/1m +- ' 'a limit that is not named stays, 0 takes one away'
exits 2 'a rate without a span is refused' "$weft" lanes api --rate 5
has "$err" '100/1m' 'with an example'

plan
