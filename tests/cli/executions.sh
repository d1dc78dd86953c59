#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# submit, ls, show, cancel and replay on a store of their own, SQLite or PostgreSQL.

source "$(dirname "$0")/common.bash"
export WEFT_STORE=$store
uuid='^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'
absent=01932c07-5f3e-7a10-8c51-0123456789ab

# ---- submit ----

exits 0 'submit of a JSON payload' "$weft" submit --kind mail '{"to": "ada"}'
first=$out
has "$first" "$uuid" 'prints the id and nothing else'
is "$err" '' 'nothing on stderr'
is "$("$weft" show "$first" --payload)" '{"to": "ada"}' \
    'show --payload returns the submitted JSON byte for byte'

exits 0 'submit with every option' "$weft" submit -k resize -l images --key img-1 -p 7 --delay 1h \
    --deadline +2d --capability gpu --capability big --tenant acme -t size=9 --tag a=b=c \
    --max-attempts 2 --timeout 5m --lease 45s --backoff fixed --retry-delay 2s --retry-max 1m \
    --no-jitter --no-retry bad_input --max-lost 3 --retention 2d 'some text'
full=$out
exits 0 'show --json of that execution' "$weft" show "$full" --json
json "$out" 'v["lane"] == "images" and v["kind"] == "resize" and v["state"] == "delayed"' \
    'lane, kind and state are as submitted'
json "$out" 'v["priority"] == 7 and v["tenant"] == "acme" and v["key"] == "img-1"' \
    'priority, tenant and key are as submitted'
json "$out" 'v["tags"] == {"size": "9", "a": "b=c"}' 'the tags are as submitted'
json "$out" 'sorted(v["capabilities"]) == ["big", "gpu"]' 'the capabilities are as submitted'
json "$out" 'v["deadline_at"] > v["run_at"] > v["created_at"]' \
    'deadline, run time and creation are in order'
json "$out" '__import__("base64").b64decode(v["payload_base64"]) == b"some text"' \
    'the payload is in base64'
exits 0 'show of that execution' "$weft" show "$full"
has "$out" '^payload +some text \(9 bytes, text/plain' 'a payload that is no JSON is text'
has "$out" '^tag +a=b=c$' 'each tag has a line'
has "$out" '^runs at +20.*Z \(in 59 m\)$' 'run time with the distance from now'
has "$out" '^attempt +1 of 2$' 'the number of the next attempt and of all attempts'
has "$out" '^retries +every 2 s$' 'the wait between retries'
has "$out" '^no retry +bad_input$' 'the error classes that are final'
exits 0 'show with the default policy' "$weft" show "$first"
has "$out" '^attempt +1 of 25$' '25 attempts are allowed'
has "$out" '^retries +exponential from 1 s, factor 2, at most 1 h, \+-20 %$' \
    'waits between retries grow'

exits 0 'submit with a known key' "$weft" submit -k resize -l images --key img-1 'some text'
is "$out" "$full" 'prints the id of the first execution'
has "$err" 'the key is known' 'stderr says that the key is known'
exits 0 'submit with a known key and --json' "$weft" submit -k resize -l images --key img-1 \
    'some text' --json
json "$out" 'v["duplicate"] is True and v["state"] == "delayed"' \
    'the answer is marked as a duplicate'
exits 6 'submit with a known key and another payload' "$weft" submit -k resize -l images --key \
    img-1 'other text'
has "$err" '^hint: ' 'the error has a hint'

printf 'from a file\n\xff' >payload.bin
exits 0 'submit of a payload from a file' "$weft" submit -k x @payload.bin
"$weft" show "$out" --payload >back.bin
if cmp -s payload.bin back.bin; then
    ok 'a payload from a file is stored byte for byte'
else
    bad 'a payload from a file is stored byte for byte'
fi
id=$(printf '[1,2]' | "$weft" submit -k x -)
is "$("$weft" show "$id" --payload)" '[1,2]' 'submit - takes the payload from standard input'
id=$(echo x | "$weft" submit -k piped)
is "$("$weft" show "$id" --payload | od -c | head -n 1)" '0000000   x  \n' \
    'a pipe on standard input is the payload when no argument is given'
id=$("$weft" submit -k piped <payload.bin)
"$weft" show "$id" --payload >back.bin
if cmp -s payload.bin back.bin; then
    ok 'a file on standard input is the payload when no argument is given'
else
    bad 'a file on standard input is the payload when no argument is given'
fi
id=$(: | "$weft" submit -k piped)
exits 3 'show --payload after submit with an empty pipe' "$weft" show "$id" --payload
exits 0 'submit without a payload' "$weft" submit -k x
exits 3 'show --payload of an execution without a payload' "$weft" show "$out" --payload
exits 2 'submit of JSON with a syntax error' "$weft" submit -k x '{"a":}'
has "$err" 'not valid JSON' 'the error says that it is not valid JSON'
exits 0 'the same with --content-type text/plain' "$weft" submit -k x '{"a":}' --content-type \
    text/plain
exits 0 'submit with --run-at' "$weft" submit -k x --run-at 2099-01-31T12:00:00Z
head -c 1048577 /dev/zero >large.bin
exits 2 'submit of a payload that is too large' "$weft" submit -k x @large.bin
exits 2 'submit of a payload from a missing file' "$weft" submit -k x @nowhere
exits 2 'submit without --kind' "$weft" submit '{}'
exits 2 'submit with an invalid kind' "$weft" submit -k 'a b'
for option in '--priority 40000' '--delay soon' '--run-at tomorrow' '--tag novalue' '--count 0' \
    '--max-attempts 0' '--backoff slow' '--deadline -5m'; do
    # shellcheck disable=SC2086
    exits 2 "submit with an invalid value: $option" "$weft" submit -k x $option
done

exits 0 'submit --count 2500' "$weft" submit -k copy -l copies --count 2500 '{}'
is "$(sort -u <<<"$out" | wc -l)" 2500 'submit --count 2500: prints a distinct id for each copy'
exits 2 'submit --count with --key' "$weft" submit -k copy --key k --count 2 '{}'

python3 -c '
for i in range(2345):
    print("{\"lane\":\"bulk\",\"kind\":\"b\",\"payload\":{\"n\":%d},\"key\":\"b-%d\"}" % (i, i))
' >bulk.jsonl
exits 0 'submit --bulk of a file of specs' "$weft" submit --bulk bulk.jsonl
is "$(sort -u <<<"$out" | wc -l)" 2345 \
    'submit --bulk of a file of specs: prints an id for each line'
is "$err" 'weft: accepted 2345, duplicates 0, refused 0' 'stderr has the summary'
exits 0 'submit --bulk --json of the same file' "$weft" submit --bulk bulk.jsonl --json
is "$(grep -c '"duplicate":true' <<<"$out")" 2345 \
    'submit --bulk of known keys: every line is a duplicate'
has "$out" '^\{"line":2345,.*"duplicate":true' 'each answer has the number of its line'
is "$(tail -n 1 <<<"$out")" '{"accepted":0,"duplicates":2345,"refused":0}' \
    'submit --bulk --json of the same file: the last line is the summary'
printf '%s\n' '{"kind":"good"}' '{"kind":' '' '{"kind":"x","colour":1}' '{"kind":"bad name"}' \
    '{"payload":1}' >mixed.jsonl
exits 1 'submit --bulk of a file with invalid lines' "$weft" submit --bulk mixed.jsonl
is "$(wc -l <<<"$out")" 1 \
    'submit --bulk of a file with invalid lines: the valid lines are submitted'
has "$err" '^weft: mixed.jsonl:2: ' 'invalid JSON is reported with its line'
has "$err" '^weft: mixed.jsonl:4: .*colour' 'an unknown field is reported with its line'
has "$err" '^weft: mixed.jsonl:5: ' 'a value that the engine refuses is reported with its line'
has "$err" '^weft: accepted 1, duplicates 0, refused 4$' 'the summary counts refused lines'
exits 1 'submit --bulk with --lane' "$weft" submit --bulk mixed.jsonl --lane spare
has "$("$weft" ls --lane spare)" ' good +ready' \
    'submit --bulk --lane: a spec without a lane gets that of --lane'
exits 2 'submit --bulk with another option' "$weft" submit --bulk mixed.jsonl --kind normal
exits 1 'submit --bulk --json of a file with invalid lines' "$weft" submit --bulk mixed.jsonl --json
is "$(grep -c '"error"' <<<"$out")" 4 'submit --bulk --json: each invalid line has an error'
has "$out" '^\{"line":4,"error":.*colour' 'an error has the number of its line'
is "$(echo '{"kind":"z"}' | "$weft" submit --bulk - | wc -l)" 1 \
    'submit --bulk - reads standard input'

# ---- ls ----

exits 0 'ls in a pipe' "$weft" ls
has "$out" '^ID +LANE +KIND +STATE +TRY +AGE +DETAIL$' 'the first line has the titles'
is "$(wc -l <<<"$out")" 51 'ls in a pipe: 50 rows by default'
exits 0 'ls --limit' "$weft" ls --limit 3 --json
json "$out" 'len(v["items"]) == 3 and v["next"]' '--json has items and next'
next=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["next"])' "$out")
exits 0 'ls --after' "$weft" ls --limit 3 --after "$next" --json
json "$out" "all(i['id'] < '$next' for i in v['items'])" 'goes on behind the cursor'
exits 0 'ls --limit above a page' "$weft" ls --lane bulk --limit 1500
is "$(wc -l <<<"$out")" 1501 'ls --limit above a page: reads as many pages as it needs'
exits 0 'ls --all' "$weft" ls --all --lane bulk --json
is "$(wc -l <<<"$out")" 2345 'ls --all: prints the executions of all pages'
exits 0 'ls --all --json' python3 -c '
import json, sys
for line in open(sys.argv[1]):
    assert json.loads(line)["lane"] == "bulk"' "$scratch/.out"
is "$("$weft" ls --all --lane bulk | grep -c LANE)" 1 'ls --all prints titles once'
exits 0 'ls --kind' "$weft" ls -k resize --json
json "$out" "[i['id'] for i in v['items']] == ['$full']" 'lists the one that fits'
exits 0 'ls --tag' "$weft" ls --tag size=9 --json
json "$out" "[i['id'] for i in v['items']] == ['$full']" 'lists the one that fits'
exits 0 'ls --key' "$weft" ls --key img-1 --json
json "$out" 'len(v["items"]) == 1' 'lists the one that fits'
exits 0 'ls --state' "$weft" ls --state delayed --tenant acme --json
json "$out" 'len(v["items"]) == 1' 'lists the one that fits'
exits 2 'ls with an unknown state' "$weft" ls --state done
exits 2 'ls with an invalid cursor' "$weft" ls --after nonsense
exits 0 'ls in another namespace' "$weft" ls --namespace other --json
json "$out" 'v["items"] == [] and v["next"] is None' 'lists nothing'
is "$(WEFT_NAMESPACE=other "$weft" ls | wc -l)" 1 'the namespace may come from the environment'

# ---- what failed, and when ----

"$weft" submit -k boom -l boom --max-attempts 1 </dev/null >boom.txt
boom=$(cat boom.txt)
"$weft" work --lane boom --name w-boom --drain -- \
    sh -c 'printf "first\n  second\nthe last line\n\n" >&2; exit 3' >work.log 2>&1 </dev/null ||
    true
exits 0 'ls of executions that failed within the hour' "$weft" ls --state failed --since 1h --lane \
    boom
has "$out" "^$boom +boom +boom +failed .* exit_3: the last line$" \
    'DETAIL has the last line of the error'
exits 0 'show of a failed execution' "$weft" show "$boom"
has "$out" '^error +exit_3: first$' 'shows the first line of the error'
has "$out" '^ {14}  second$' 'shows each further line of the error'
has "$out" '^ {14}the last line$' 'each further line stands on a line of its own'
for filter in '--error-class exit_3' '--worker w-boom' '--since 1h -l boom' \
    '--state failed --until 0s' '--since 2020-01-01T00:00:00Z -k boom'; do
    # shellcheck disable=SC2086
    exits 0 "ls $filter" "$weft" ls $filter --json
    json "$out" "[i['id'] for i in v['items']] == ['$boom']" 'lists the execution'
done
for filter in '--error-class exit_4' '--worker w-none' '--until 1h -l boom' \
    '--state failed --until 1h' '--state failed --since 2999-01-01T00:00:00Z'; do
    # shellcheck disable=SC2086
    exits 0 "ls $filter" "$weft" ls $filter --json
    json "$out" 'v["items"] == []' 'lists nothing'
done
exits 2 'ls with an invalid --since' "$weft" ls --since yesterday
has "$err" 'how long ago, like 1h' 'the error says how a time is written'
exits 2 'ls with --since after --until' "$weft" ls --since 1h --until 2h
exits 0 'replay of executions that failed long ago' "$weft" replay --state failed --lane boom \
    --until 1h --yes
is "$out" 'replayed 0 executions' 'replays none'
exits 0 'replay of executions that failed within the hour' \
    "$weft" replay --state failed --lane boom --since 1h --yes
is "$out" 'replayed 1 execution' 'replays the one that failed'

# ---- short ids ----

exits 0 'show with the two ends of an id' "$weft" show "${first:0:8}${first:9:2}..${first: -6}"
has "$out" "^id +$first$" 'shows the execution'
exits 0 'show with an id without dashes' "$weft" show "${first//-/}"
has "$out" "^id +$first$" 'shows the execution'
exits 2 'show with a form that fits several ids' "$weft" show "${first:0:5}"
has "$err" "^weft: '${first:0:5}' fits more than 5 executions:$" 'the error counts them'
is "$(grep -c "^  ${first:0:5}.*, .*, " <<<"$err")" 5 'lists five with kind, state and age'
exits 3 'show with a form that fits no id' "$weft" show ffffffff
has "$err" "there is no execution with the id 'ffffffff'" 'the error names it'
exits 2 'show with three digits of an id' "$weft" show 01a
has "$err" 'at least its first 4 digits' 'the error says how many digits are needed'
exits 3 'ls with a --flow that does not exist' "$weft" ls --flow ffffffff
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    script -qec "$(printf %q "$weft") ls -k boom" typed >/dev/null </dev/null
    shown=$(grep -o '[0-9a-f]*\.\.[0-9a-f]*' typed)
    exits 0 'show with the id as ls prints it on a terminal' "$weft" show "$shown"
    has "$out" "^id +$boom$" 'shows the execution'
fi

# ---- priority, revoke, deadline ----

exits 0 'priority of a living execution' "$weft" priority "$boom" 7
is "$out" "$boom has another priority" 'says that it is changed'
exits 0 'priority with a negative number' "$weft" priority "$boom" -- -7
exits 0 'priority with the number it has' "$weft" priority "$boom" -- -7
is "$out" "$boom was so already" 'says that nothing changed'
exits 0 'deadline of a living execution' "$weft" deadline "$boom" 2h --json
json "$out" 'v["items"][0]["changed"]' 'says that it is changed'
exits 0 'show after priority and deadline' "$weft" show "$boom" --json
json "$out" 'v["priority"] == -7 and v["deadline_at"] > v["created_at"]' 'shows both'
exits 0 'deadline none' "$weft" deadline "$boom" none
exits 0 'show after deadline none' "$weft" show "$boom" --json
json "$out" 'v["deadline_at"] is None' 'shows no deadline'
exits 6 'revoke of an execution that is not running' "$weft" revoke "$boom"
has "$err" 'only a running execution has a lease' 'the error names the state'
# ---- resume, waitpoints, signal, keys ----

exits 6 'resume of an execution that is not suspended' "$weft" resume "$boom"
has "$err" 'only a suspended execution can be resumed' 'the error names the state'
exits 0 'waitpoints of an execution that has none' "$weft" waitpoints "$boom" --json
json "$out" 'v["items"] == []' 'shows none'
exits 5 'signal with a token that is none' "$weft" signal nothing --name approved
has "$err" 'the signal token is not good' 'the error names the token'
exits 0 'keys rotate' "$weft" keys rotate --grace 1h --json
json "$out" 'v["items"][-1]["current"]' 'shows the key that signs'
exits 0 'keys' "$weft" keys
has "$out" 'signs' 'shows which key signs'
exits 2 'keys with another word' "$weft" keys remove

exits 2 'priority that is no number' "$weft" priority "$boom" high
exits 2 'deadline that is no moment' "$weft" deadline "$boom" soon
exits 2 'priority without a number' "$weft" priority "$boom"
exits 3 'priority of an execution that does not exist' "$weft" priority $absent 1

# ---- show ----

exits 3 'show of an execution that does not exist' "$weft" show $absent
has "$err" 'there is no execution' 'the error names it'
exits 2 'show with an invalid id' "$weft" show nonsense
exits 4 'show --wait that times out' "$weft" show "$first" --wait=100ms
has "$err" 'has not ended: it is ready' 'the error says that it has not ended'
exits 4 'submit --wait that times out' "$weft" submit -k never --wait=100ms
has "$err" "${uuid:1:-1}" 'stderr has the id'
is "$out" '' 'stdout is left to the result'
exits 3 'show --result of an execution without a result' "$weft" show "$first" --result

# ---- cancel, replay ----

exits 0 'cancel of a living execution' "$weft" cancel "$first" --reason 'not needed'
is "$out" "$first cancelled" 'says that it is cancelled'
exits 0 'cancel of a cancelled execution' "$weft" cancel "$first"
is "$out" "$first was so already" 'says that nothing changed'
exits 0 'show of a cancelled execution' "$weft" show "$first"
has "$out" '^reason +not needed$' 'shows the reason'
exits 1 'show --wait of a cancelled execution' "$weft" show "$first" --wait
has "$err" "cancelled: not needed" 'the error says that it was cancelled, and the reason'
exits 3 'cancel of one execution that exists and one that does not' "$weft" cancel "$full" $absent
has "$out" "^$full cancelled" 'the one that exists is cancelled'
has "$err" "^weft: $absent: " 'the id that does not exist is reported'
exits 0 'replay of a cancelled execution' "$weft" replay "$first" --json
json "$out" 'v["items"][0]["state"] == "ready" and v["items"][0]["changed"]' \
    'says that it is replayed'
exits 6 'replay of a living execution' "$weft" replay "$first"
exits 6 'replay of a living execution with --json' "$weft" replay "$first" --json
json "$out" 'v["items"][0]["error"]["code"] == "not_live"' 'the item has the error'

exits 2 'cancel with a filter and without --yes' "$weft" cancel --lane copies
has "$err" 'would cancel 2500 executions: say --yes' 'asks for a confirmation'
exits 0 'cancel with a filter and --yes' "$weft" cancel --lane copies --yes
is "$out" 'cancelled 2500 executions' 'one line has the sum of all pages'
exits 0 'the same cancel again' "$weft" cancel --lane copies --yes --json
json "$out" 'v == {"matched": 0, "changed": 0, "more": False, "next": None}' 'cancels none'
exits 0 'replay with a filter and --yes' "$weft" replay --lane copies --state cancelled --yes
is "$out" 'replayed 2500 executions' 'replays all of them'
exits 2 'cancel with an invalid cursor' "$weft" cancel --lane copies --yes --after nonsense
exits 2 'cancel with ids and a cursor' "$weft" cancel "$first" --after "$first"
exits 2 'cancel without ids and filter' "$weft" cancel --yes
exits 2 'cancel with ids and a filter' "$weft" cancel "$first" --lane mail
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    printf 'n\n' | script -qec "$(printf %q "$weft") cancel --lane copies" typed >/dev/null || true
    has "$(cat typed)" 'cancel 2500 executions\? \[y/N\]' 'cancel with a filter asks on a terminal'
    has "$(cat typed)" 'nothing was done' 'cancel that is answered with n cancels none'
    printf 'y\n' | script -qec "$(printf %q "$weft") cancel --lane copies" typed >/dev/null
    has "$(cat typed)" 'cancelled 2500 executions' 'cancel that is answered with y cancels'
fi

# ---- exit codes ----

for command in show cancel replay revoke 'flow show' 'flow dot' 'flow cancel' 'flow rm' workers; do
    # shellcheck disable=SC2086
    exits 3 "$command of an execution that does not exist" "$weft" $command $absent
done
exits 3 'priority of an execution that does not exist' "$weft" priority $absent 1
exits 3 'deadline of an execution that does not exist' "$weft" deadline $absent +1h
exits 3 'workers --goodbye for a worker that does not exist' "$weft" workers missing --goodbye
for command in ls counts lanes workers replicas scanners 'flow ls' "show $absent" \
    "cancel $absent" 'cancel --lane x --yes' "priority $absent 1" "revoke $absent" \
    "deadline $absent none" 'submit -k x' 'workers missing --goodbye'; do
    # shellcheck disable=SC2086
    exits 4 "$command without a server" \
        env -u WEFT_STORE "$weft" $command --server http://127.0.0.1:1
done

# ---- What came of it ----

"$WEFT_BUILD/examples/hello" "sqlite:$scratch/hello.db" >/dev/null
export WEFT_STORE=sqlite:$scratch/hello.db
exits 0 'ls of succeeded executions' "$weft" ls --state succeeded --json
json "$out" 'len(v["items"]) == 3' 'lists the one that succeeded'
id=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["items"][0]["id"])' "$out")
has "$("$weft" show "$id" --result)" '^Hello, ' 'show --result writes the bytes of the result'
is "$("$weft" show "$id" --result | tail -c 1)" '!' 'show --result in a pipe adds no newline'
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    script -qec "$(printf %q "$weft") show $id --result; echo next" typed >/dev/null </dev/null
    has "$(tr -d '\r' <typed)" '^next' 'show --result on a terminal ends with a newline'
fi
exits 0 'show --wait of a succeeded execution' "$weft" show "$id" --wait
has "$out" '^result +Hello, .*bytes' 'shows its result'
exits 0 'submit --wait with the key of a succeeded execution' "$weft" submit -k greet --key \
    hello-1 --wait Ada
is "$out" 'Hello, Ada!' 'prints its result'
plan
