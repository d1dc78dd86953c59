#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft budget: budgets are made, changed, shown, reset and removed, in a store and through a server.

source "$(dirname "$0")/work.bash"
source "$(dirname "$0")/common.bash"
export WEFT_STORE=$store weft

exits 0 'the store is made' "$weft" migrate
exits 0 'an empty list of budgets' "$weft" budget
is "$(wc -l <<<"$out")" 1 'has a line with the titles'

# ---- Making and changing ----

exits 0 'a budget with two dimensions is made' "$weft" budget team --hard tokens=1M,usd=500 \
    --soft tokens=800k --estimate tokens=500 --every 1month --anchor 2099-12-01T00:00:00Z \
    --tenant acme
has "$out" '^state +ok$' 'nothing is used yet'
has "$out" '^for +tenant acme, and executions that name it$' 'its executions are named'
has "$out" '^reset +every 1month, counted from 2099-12-01T00:00:00.000Z$' 'its periods are named'
has "$out" '^tokens +0 +0 +1000000 +800000 +1000000 +500$' 'numbers may end with M and k'
has "$out" '^usd +0 +0 +500 +- +500 +0$' 'the other dimension has a line of its own'

exits 0 'one limit is changed' "$weft" budget team --soft tokens=0 --on-hard cancel --json
json "$out" 'v["dimensions"]["tokens"] == {"hard": 1000000, "soft": None, "estimate": 500,
    "used": 0, "reserved": 0}' '0 takes the limit away, the others stay'
json "$out" '(v["match"]["tenant"], v["match"]["lane"], v["reset"]["every_months"],
    v["on_hard"]) == ("acme", None, 1, "cancel")' 'all other settings stay'

run "$weft" budget team --lane gpu --kind train --every 1d --on-hard hold --json
json "$out" 'v["match"] == {"lane": "gpu", "kind": "train", "tenant": None}' \
    'what it matches is replaced as a whole'
json "$out" 'v["reset"] == {"every_ms": 86400000, "every_months": None,
    "anchor_at": "2099-12-01T00:00:00.000Z"}' \
    'a span takes the place of months, the anchor stays'
run "$weft" budget team --match-all --json
json "$out" 'v["match"] == {"lane": None, "kind": None, "tenant": None}' '--match-all matches all'
run "$weft" budget team --by-name --every never
has "$out" '^for +executions that name it$' '--by-name matches none'
has "$out" '^reset +never$' '--every never ends the periods'

exits 3 'a dimension that the budget does not have' "$weft" budget team --hard tokns=5
has "$err" "^weft: budget 'team' has no dimension 'tokns'$" 'the error names both'
has "$err" "^hint: did you mean 'tokens'\\? it has tokens, usd; --add" 'the hint says what to do'
exits 0 '--add adds a dimension' "$weft" budget team --add --hard seconds=3600 --hard calls=2k
has "$out" '^calls +0 +0 +2000' 'an option may be repeated'
exits 0 '--drop takes dimensions away' "$weft" budget team --drop seconds --drop calls
lacks "$out" '^(seconds|calls)' 'they are not there any more'
exits 3 '--drop of a dimension that is not there' "$weft" budget team --drop seconds
exits 2 '--drop of all dimensions' "$weft" budget team --drop tokens --drop usd
has "$err" 'weft budget team --remove' 'the error says how a budget is removed'

# ---- Mistakes ----

for value in tokens =5 tokens= tokens=-1 tokens=1.5 tokens=5X 'to kens=5' tokens=1,tokens=2 \
    tokens=1, tokens=9000000T; do
    exits 2 "--hard $value" "$weft" budget team --hard "$value"
    has "$err" "^weft budget: --hard(:| is) " 'the error names the option'
done
run "$weft" budget team --hard tokens
has "$err" 'for example tokens=500k' 'a dimension without a number: the error has an example'
exits 2 'an estimate above hard' "$weft" budget team --estimate usd=501
has "$err" "'usd' is 501, above its hard limit of 500.*lower --estimate or raise --hard" \
    'the error says what to do'
exits 2 'periods in days and months' "$weft" budget team --every 1d --every 1month
has "$err" 'a span of time like 1d, or months like 1month, and not both' 'the error says why'
exits 2 'a period that is no time' "$weft" budget team --every monthly
exits 2 'a period that is too short' "$weft" budget team --every 10ms
exits 2 'an anchor without periods' "$weft" budget team --anchor 2099-01-01T00:00:00Z
has "$err" '--every 1d or --every 1month' 'the error says what is missing'
exits 2 'an anchor that is no moment' "$weft" budget team --anchor tomorrow
exits 2 'an unknown word for --on-hard' "$weft" budget team --on-hard stop
has "$err" 'it must be hold or cancel' 'the error has the words'
exits 2 'two ways to match' "$weft" budget team --match-all --lane gpu
exits 2 'a change without a name' "$weft" budget --hard tokens=1
exits 2 'two things at once' "$weft" budget team --reset --remove
exits 2 'a change and something else' "$weft" budget team --hard tokens=1 --ledger
exits 2 'an option of the ledger alone' "$weft" budget team --all
exits 2 'a name that is none' "$weft" budget 'a team' --hard tokens=1
exits 2 'a mistake is found before the server is asked' env WEFT_SERVER=http://127.0.0.1:1 \
    "$weft" budget team --every monthly
exits 3 'a budget that does not exist' "$weft" budget nope
has "$err" "there is no budget 'nope'" 'the error names it'
exits 3 'a change of a budget that does not exist' "$weft" budget nope --every 1d
has "$err" '^hint: to make it, say what it limits: --hard tokens=1M' 'the hint says how to make it'
for action in --reset --ledger --remove; do
    exits 3 "$action of a budget that does not exist" "$weft" budget nope $action
done

# ---- Executions under it ----

run "$weft" budget team --hard tokens=1000 --soft tokens=600 --estimate tokens=400 --drop usd
first=$(submit -k job --budget team --cost tokens=500)
second=$(submit -k job --budget team)
third=$(submit -k job --budget team)
submit -k other --budget team --budget spare --cost tokens=1,usd=2 --cost pages=3 >/dev/null
has "$("$weft" show "$first")" '^budget +team$' 'show has the budgets of an execution'
exits 2 'submit with a cost that is none' "$weft" submit -k job --cost tokens
has "$err" '--cost is .tokens.: it must be DIMENSION=N' 'the error says how it is written'
exits 2 'submit with a budget that is no name' "$weft" submit -k job --budget 'a b'
printf '%s\n' '{"kind":"bulk","budgets":["team"],"cost":{"tokens":7}}' \
    '{"kind":"bulk","cost":{"tokens":-7}}' >bulk.jsonl
exits 1 'submit --bulk with budgets and costs' "$weft" submit --bulk bulk.jsonl
json "$("$weft" show "$out" --json)" 'v["budgets"] == ["team"]' 'lines may have budgets'
has "$err" 'bulk.jsonl:2: .*tokens' 'a cost that is none is reported with its line'

serve_hello
export WEFT_SERVER=$url
unset WEFT_STORE

# post PATH BODY: sets out to the answer.
post() {
    run curl -fsS "$url/v1$1" -d "$2"
}

post /claims '{"worker":"w","kinds":["job"],"max":10}'
json "$out" 'len(v["items"]) == 2' 'two of three fit: the cost of one and the estimate of another'
run "$weft" budget team
has "$out" '^tokens +0 +900 +100 +600 +1000 +400$' 'the claim has reserved them'
run "$weft" budget team --ledger
is "$out" "$(printf '%-36s  %-9s  %8s  %4s  %s\n' ID DIMENSION RESERVED USED SETTLED \
    "$first" tokens 500 0 '     no' "$second" tokens 400 0 '     no')" \
    'the ledger has a line for each execution'
exits 0 'why does the third one not run' "$weft" why "$third"
has "$out" "^budget: .*'team'" 'its budget is named'

post /leases/usage "{\"items\":[{\"id\":\"$first\",\"epoch\":1,\"totals\":{\"tokens\":450}}]}"
run "$weft" budget team
has "$out" '^tokens +450 +450 +100 ' 'what is used is reserved no more'
post /leases/usage "{\"items\":[{\"id\":\"$first\",\"epoch\":1,\"totals\":{\"tokens\":700}}]}"
run "$weft" budget
has "$out" '^team +soft +tokens +700 +400 +0 +1000 +-$' 'the list says that it is soft'
post /leases/usage "{\"items\":[{\"id\":\"$second\",\"epoch\":1,\"totals\":{\"tokens\":301}}]}"
has "$out" 'budget_exceeded' 'a report beyond it is refused'
run "$weft" budget team
has "$out" '^breaches +1 in this period$' 'the refusal is counted'
has "$out" '^state +hard$' 'the refusal closes the budget'

if script --version >/dev/null 2>&1; then
    # wide COLUMNS WORD...: what it prints on a terminal, without colours.
    wide() {
        run env NO_COLOR=1 TERM=xterm COLUMNS="$1" script -qec "\"\$weft\" ${*:2}" /dev/null
        out=${out//$'\r'/}
    }
    wide 120 budget
    has "$out" '^team +hard +tokens +\[#{14}\+{6}\] +700 +400 +0' 'a bar on a terminal'
    wide 90 budget team
    has "$out" '^tokens +\[#{7}\+{3}\] +700 +400 +0 +600 +1000' 'a shorter one on a narrow terminal'
    wide 40 budget
    lacks "$out" '#' 'none where there is no room'
else
    ok 'bars on a terminal # SKIP no script(1)'
fi

# ---- The ledger, page by page ----

run "$weft" budget team --hard tokens=1M
submit -k page --budget team --cost tokens=1 --count 5 >/dev/null
post /claims '{"worker":"w","kinds":["page"],"max":10}'
run "$weft" budget team --ledger --limit 3 --json
json "$out" 'len(v["items"]) == 3 and v["next"]' 'a page ends with a cursor'
next=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["next"])' "$out")
run "$weft" budget team --ledger --limit 9 --after "$next" --json
json "$out" 'len(v["items"]) == 4 and v["next"] is None' 'the next page goes on there'
run "$weft" budget team --ledger --all --json
is "$(sort -u <<<"$out" | grep -c '"settled":false')" 7 'all of it: a line of JSON for each'

# ---- The end of a period ----

exits 0 '--reset begins a new period' "$weft" budget team --reset
has "$out" '^state +ok$' 'its state is ok again'
has "$out" '^tokens +0 +405 +999595 ' 'nothing is used, what runs keeps what it has reserved'
has "$out" '^breaches +0 in this period$' 'breaches are counted anew'
exits 0 '--remove' "$weft" budget team --remove
has "$out" '^budget team is removed' 'says so'
exits 3 'it is gone' "$weft" budget team
exits 0 '--remove --json' bash -c '"$weft" budget x --hard n=1 >/dev/null &&
    "$weft" budget x --remove --json'
json "$out" 'v == {"budget": "x", "removed": True}' 'says so as JSON'

for i in 1 2 3; do "$weft" budget "b$i" --hard n=$i >/dev/null; done
run "$weft" budget --json
json "$out" '[b["budget"] for b in v["items"]] == ["b1", "b2", "b3"]' 'the list as JSON, by name'

plan
