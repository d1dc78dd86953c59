#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The path of a newcomer: a server from nothing, three executions, a worker that is a shell command,
# three results; one that fails and is tried again; and what is shown of all that.

source "$(dirname "$0")/common.bash"

serve_hello
is "$(sed -n "s/^  .*weft' \([a-z]*\) .*/\1/p" hello.txt | xargs)" 'submit ls work' \
    'serve --hello names submit, ls and work'

# The commands it names, as they stand there: they are made for pasting.
line=$(grep ' submit ' hello.txt)
exits 0 'the first command of serve --hello' bash -c "$line"
one=$out
exits 0 'the second command of serve --hello' bash -c "$(grep ' ls ' hello.txt)"
has "$out" "^$one +default +greet +ready" 'lists the execution'
exits 0 'the third command of serve --hello, with --drain' bash -c \
    "$(grep ' work ' hello.txt | sed 's/ work / work --drain /')"

export WEFT_SERVER=$url
is "$("$weft" show "$one" --result)" '{"name":"Ada"}' \
    'the third command of serve --hello ran the execution'

for name in Ada Grace Edsger; do
    "$weft" submit --kind greet --tag name=$name "$name" >>ids
done
exits 0 'work with a command that reads the payload' "$weft" work --drain --concurrency 2 -- sh -c \
    'read -r name; echo "Hello, $name!"'
for name in Ada Grace Edsger; do
    id=$("$weft" ls --tag name=$name --json | grep -o '[0-9a-f-]\{36\}' | head -n 1)
    is "$("$weft" show "$id" --result)" "Hello, $name!" "the result greets $name"
done
exits 0 'ls after work' "$weft" ls --state succeeded --json
json "$out" 'len(v["items"]) == 4' 'every execution succeeded'

# Waiting for it in one line, with the worker in the background.
"$weft" work --max 1 -- tr a-z A-Z >/dev/null 2>&1 &
worker=$!
exits 0 'submit --wait' timeout 60 "$weft" submit --kind shout --wait=30s 'hello'
is "$out" 'HELLO' 'prints the result'
wait "$worker"

# One that fails, twice, and then does not.
id=$("$weft" submit --kind flaky --retry-delay 0 --max-attempts 3 '{}')
exits 0 'work with a command that fails twice' "$weft" work --drain -- sh -c \
    'test "$WEFT_ATTEMPT" -ge 3 || { printf "disk \033[31mfull\033[0m\n" >&2; exit 9; }; echo fine'
exits 0 'show of the execution that failed twice' "$weft" show "$id"
has "$out" '^state +succeeded' 'the state is succeeded'
has "$out" '^attempt +3 of 3 used$' 'the third attempt is the last'
is "$(grep -c '^ *[12]  failed .*exit_9: disk .*full' <<<"$out")" 2 \
    'show of the execution that failed twice: the history has the failures'
lacks "$out" $'\033' 'control characters of the message are gone'
exits 0 'show --json of the execution that failed twice' "$weft" show "$id" --json
json "$out" '[a["ended"] for a in v["attempts"]] == ["failed", "failed", "completed"]' \
    'two attempts failed and the third completed'
json "$out" 'v["attempts"][0]["error"]["class"] == "exit_9"' 'an attempt has the class of its error'

# One that never does.
id=$("$weft" submit --kind broken --retry-delay 0 --max-attempts 2 '{}')
exits 0 'work with a command that always fails' "$weft" work --drain -- sh -c 'echo no >&2; exit 3'
exits 1 'show --wait of a failed execution' "$weft" show "$id" --wait
has "$err" "^weft: $id failed: no" 'the error says that the execution failed'
exits 0 'ls of the failed execution' "$weft" ls --state failed
has "$out" "^$id .* failed +2 .*exit_3: no" 'shows the error'
exits 0 'replay of the failed execution' "$weft" replay --state failed --yes
is "$out" 'replayed 1 execution' 'says that it is replayed'
exits 0 'work with a better command' "$weft" work --drain -- cat
exits 0 'show --wait of the replayed execution' "$weft" show "$id" --wait
exits 0 'workers after work' "$weft" workers --json
json "$out" 'isinstance(v["items"], list)' 'has a list of workers'
exits 0 'counts at the end' "$weft" counts --json
counted '' 'v["items"][0]["ready"] == 0 and v["items"][0]["running"] == 0' 'no execution is left'
plan
