#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft flow on a store and through a server, and the flows of examples/flows.

root=$(cd "$(dirname "$0")/../.." && pwd)
flows=$root/examples/flows
source "$(dirname "$0")/common.bash"
export WEFT_STORE=$store

# flow_state ID: sets out to the word.
flow_state() {
    run "$weft" flow show "$1" --json
    out=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["state"])' "$out")
}

# node_states ID: sets out to "a succeeded, b skipped", by name.
node_states() {
    run "$weft" flow show "$1" --json
    out=$(python3 -c 'import json, sys
nodes = json.loads(sys.argv[1])["nodes"]
print(", ".join(sorted(n["name"] + " " + n["state"] for n in nodes)))' "$out")
}

# ---- files ----

exits 0 'migrate of a new store' "$weft" migrate
cat >good.json <<'END'
// A comment, then "nodes".
{ "name": "good", /* here, too */ "nodes": [
  {"name": "a", "kind": "k", "payload": "// no comment"}, // first
  {"name": "b", "kind": "k", "after": ["a"]}
]}
END
exits 0 'flow run of a file with comments' "$weft" flow run good.json
good=$out
has "$good" '^[0-9a-f-]{36}$' 'the id is printed'
run "$weft" flow show "$good" --json
json "$out" 'v["name"] == "good" and [n["name"] for n in v["nodes"]] == ["a", "b"]' \
    'flow show --json has the nodes as they were written'
first=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["nodes"][0]["id"])' "$out")
exits 0 'show of the first node' "$weft" show "$first" --payload
is "$out" '"// no comment"' 'a comment sign inside a string is kept'
exits 0 'show of a node' "$weft" show "$first"
has "$out" "^flow +$good, node a" 'the flow is named'

printf '{\n "nodes": [\n  {"name": "a", "kind": "k"},\n  {"name": "b"}\n ]\n}\n' >bad.json
exits 2 'flow run with a node without a kind' "$weft" flow run bad.json
has "$err" "bad.json:4: .*'b'.*kind is missing" 'the error has the line and the node'
printf '{"nodes": [\n{"name": "a", "kind": "k"}\n{}]}\n' >bad.json
exits 2 'flow run of invalid JSON' "$weft" flow run bad.json
has "$err" '^weft: bad.json:3:1: [a-z]' 'the error has line and column'
printf '[]' >bad.json
exits 2 'flow run of a JSON array' "$weft" flow run bad.json
has "$err" 'bad.json:1: a flow is an object' 'the error says that a flow is an object'
same='{"name": "a", "kind": "k"}'
printf '{"nodes": [\n%s,\n%s]}\n' "$same" "$same" >bad.json
exits 2 'flow run with a name that is used twice' "$weft" flow run bad.json
has "$err" "bad.json:3: .*'a'" 'the error has the line of the second one'
exits 1 'flow run of a directory' "$weft" flow run .
has "$err" 'cannot read .: Is a directory' 'the error says that it cannot be read'
printf '{"nodes": [\n{"name": "a", "kind": "k"},\n\n%s]}\n' \
    '{"name": "b", "kind": "k", "after": ["x"]}' >bad.json
exits 2 'flow run with an unknown upstream' "$weft" flow run bad.json
has "$err" "bad.json:4: .*'b'.*'x'" 'the error has the line and both names'
printf '{"nodes": [\n%s,\n%s]}\n' '{"name": "a", "kind": "k", "after": ["b"]}' \
    '{"name": "b", "kind": "k", "after": ["a"]}' >bad.json
exits 2 'flow run with a circle' "$weft" flow run bad.json
has "$err" 'bad.json:[23]: .* -> ' 'the error names every node of the circle'
printf '{"nodes": [\n{"name": "a", "kind": "bad kind"}]}\n' >bad.json
exits 2 'flow run with an invalid kind' "$weft" flow run bad.json
has "$err" "bad.json:2: node 'a': kind" 'the error has the line'
printf '{"nodes": [], "colour": 1} /* never ends' >bad.json
exits 2 'flow run with an unknown field' "$weft" flow run bad.json
has "$err" "no field 'colour'" 'the error names the field'
exits 1 'flow run of a file that does not exist' "$weft" flow run none.json
has "$err" 'cannot read none.json' 'the error names the file'

# ---- the command line ----

exits 2 'flow without a verb' "$weft" flow
exits 2 'flow with an unknown verb' "$weft" flow walk
has "$err" 'run, show, ls' 'the error lists the verbs'
exits 2 'flow show without an id' "$weft" flow show
exits 2 'flow show with an invalid id' "$weft" flow show x
exits 2 'flow ls with an unknown state' "$weft" flow ls --state ready
exits 2 'flow cancel with an unknown policy' "$weft" flow cancel "$good" --policy some
exits 2 'flow ls with an option of another verb' "$weft" flow ls --watch
has "$err" 'flow ls. has no --watch' 'the error names the option'
exits 3 'flow show of a flow that does not exist' "$weft" flow show \
    00000000-0000-7000-8000-000000000000

# ---- looking and steering ----

exits 0 'flow show' "$weft" flow show "$good"
has "$out" "^flow $good good: open " 'has the state'
has "$out" '^2 nodes: 1 ready, 1 blocked' 'has the counts'
has "$out" '^b +blocked' 'has the nodes'
lacks "$out" $'\033' 'has no colours in a pipe'
exits 0 'flow show --color always' "$weft" flow show "$good" --color always
has "$out" $'\033\\[' 'has colours'
COLUMNS=40 run "$weft" flow show "$good"
is "$(awk '{ if (length($0) > 40 && NR > 2) print }' <<<"$out")" '' \
    'flow show is not wider than a narrow terminal'
exits 0 'flow dot' "$weft" flow dot "$good"
has "$out" '"a" -> "b";' 'the edges'
exits 0 'flow ls' "$weft" flow ls --state open --json
json "$out" "[f['id'] for f in v['items']] == ['$good']" 'lists the flow'
exits 0 'flow ls with another name' "$weft" flow ls --name other --json
is "$out" '{"items":[]}' 'lists nothing'
exits 0 'flow cancel' "$weft" flow cancel "$good" --reason enough
is "$out" 'flow cancelled, with 2 members' 'the number of cancelled members is printed'
exits 0 'flow show of a cancelled flow' "$weft" flow show "$good" --watch=100ms
has "$out" 'cancelled \(all\): enough' 'has the reason once'
exits 1 'flow show --wait of a cancelled flow' "$weft" flow show "$good" --wait
has "$err" "flow $good cancelled" 'the error says that the flow was cancelled'
has "$out" '^flow .* good: cancelled' 'the flow is drawn'
exits 0 'flow rm --json' "$weft" flow rm "$good" --json
json "$out" 'v == {"state": "cancelled", "cancelled": 0}' 'the answer has the state'
exits 3 'flow show of a removed flow' "$weft" flow show "$good"
exits 0 'flow run with a key' "$weft" flow run good.json --key once --name named
once=$out
exits 0 'flow run with the same key' "$weft" flow run good.json --key once --name named --json
json "$out" "v['duplicate'] and v['id'] == '$once'" 'prints the same id'
exits 0 'ls --flow' "$weft" ls --flow "$once" --json
json "$out" "[i['node'] for i in v['items']] == ['b', 'a']" 'lists the members'
cat >more.json <<'END'
{"nodes": [{"name": "c", "kind": "k"}, {"name": "d", "kind": "k", "after": ["a"]}]}
END
exits 0 'flow add' "$weft" flow add "$once" more.json
is "$out" 'revision 2' 'prints the new revision'
exits 0 'flow link' "$weft" flow link "$once" c,b b,d
is "$out" 'revision 3' 'prints the new revision'
exits 0 'flow show --json after add and link' "$weft" flow show "$once" --json
json "$out" '{n["name"]: sorted(n["after"]) for n in v["nodes"]} == {
    "a": [], "b": ["a", "c"], "c": [], "d": ["a", "b"]}' 'every node comes after its upstreams'
exits 2 'flow link that closes a circle' "$weft" flow link "$once" d,b
has "$err" 'circle' 'the error names the circle'
exits 6 'flow link with an old revision' "$weft" flow link "$once" c,d --revision 2
has "$err" 'revision 3' 'the error names the revision'
exits 2 'flow link with half an edge' "$weft" flow link "$once" c
has "$err" "'c' is no edge" 'the error says that it is no edge'
exits 2 'flow link without an edge' "$weft" flow link "$once"
has "$err" 'takes ID FROM,TO' 'the error names the arguments'
exits 2 'flow add with two files' "$weft" flow add "$once" good.json good.json
exits 0 'flow link --json' "$weft" flow link "$once" c,d --revision 3 --json
is "$out" '{"revision":4}' 'the answer has the revision'
exits 0 'cancel --flow' "$weft" cancel --flow "$once" --kind k --yes
exits 0 'flow rm of the flow that has grown' "$weft" flow rm "$once"
exits 0 'flow run with another key' "$weft" flow run good.json --key again --name named
once=$out
exits 0 'cancel of one member' "$weft" cancel --flow "$once" --state blocked --yes
is "$out" 'cancelled 1 execution' 'says that it is cancelled'
exits 2 'ls --flow of a flow that does not exist' "$weft" ls --flow 7
has "$err" "'7' is no id of a flow" 'the error names it'
exits 0 'flow rm of the flow that has grown' "$weft" flow rm "$once"
echo '{"nodes": [{"name": "a", "kind": "k"}]}' >one.json
exits 0 'flow run of one node' "$weft" flow run one.json
one=$out
exits 0 'flow show of one node' "$weft" flow show "$one"
has "$out" '^1 node: 1 ready' 'the count has no plural'
exits 0 'flow rm of the flow with one node' "$weft" flow rm "$one"

# ---- the examples ----

# carry_out WORD...: a worker, until there is nothing to do.
carry_out() {
    run timeout 120 "$weft" work --drain "$@"
}

run "$weft" flow run "$flows/diamond.json"
id=$out
carry_out -c 4 -- true
node_states "$id"
is "$out" 'fetch succeeded, left succeeded, merge succeeded, right succeeded' \
    'the diamond: every node succeeded'
flow_state "$id"
is "$out" succeeded 'the diamond: the flow succeeded'

run "$weft" flow run "$flows/race.json"
id=$out
# One model answers; the others are slower than any test.
carry_out --kind ask --max 1 -- true
carry_out --kind step -- true
node_states "$id"
is "$(grep -o cancelled <<<"$out" | wc -l)" 2 \
    'the race: the losers are cancelled'
has "$out" 'answer succeeded' 'the race: the node after the join ran'
run "$weft" flow show "$id" --json
json "$out" '[n["reason"] for n in v["nodes"] if n["state"] == "cancelled"] == (
    2 * ["sibling_quorum_satisfied"])' 'the race: the losers have the reason'
flow_state "$id"
is "$out" succeeded 'the race: the flow succeeded'

run "$weft" flow run "$flows/quorum.json"
id=$out
carry_out --kind step --max 1 -- true
carry_out --kind review --max 2 -- true
carry_out --kind step -- true
node_states "$id"
has "$out" 'publish succeeded' 'the quorum: two of three reviewers are enough'
has "$out" '(ada|ben|cleo) ready' 'the quorum: the third reviewer is not cancelled'
carry_out --kind review -- true
flow_state "$id"
is "$out" succeeded 'the quorum: the flow succeeded'

run "$weft" flow run "$flows/failure.json"
id=$out
carry_out --kind broken -- sh -c 'echo it does not build >&2; exit 1'
carry_out --kind step -- true
node_states "$id"
is "$out" 'build failed, deploy skipped, lint succeeded, test skipped' \
    'the failure: nodes behind it are skipped'
exits 0 'flow show of a failed flow' "$weft" flow show "$id"
has "$out" 'build +failed .*it does not build' 'has the error'
flow_state "$id"
is "$out" failed 'the failure: the flow failed'

run "$weft" flow run "$flows/grow.json"
id=$out
carry_out --kind plan -- sh -c '"$0" flow add "$WEFT_FLOW" "$1" && test "$WEFT_NODE" = plan' \
    "$weft" "$flows/grow-more.json"
carry_out --kind step -c 2 -- true
node_states "$id"
is "$out" 'close succeeded, part-1 succeeded, part-2 succeeded, plan succeeded, report succeeded' \
    'a flow grows while it runs'
exits 6 'flow add to a flow that has ended' "$weft" flow add "$id" "$flows/grow-more.json"

# ---- through a server ----

serve_hello
if [[ -z $url ]]; then
    bad 'a server' "$(cat serve.log)"
    plan
    exit 1
fi
unset WEFT_STORE
export WEFT_SERVER=$url
python3 "$flows/map-reduce.py" 1000 >map.json
exits 0 'flow run of a thousand parts' "$weft" flow run map.json
id=$out
exits 0 'flow show of a thousand parts' "$weft" flow show "$id"
has "$out" 'more +.* blocked' 'does not draw each of them'
if (($(wc -l <<<"$out") < 30)); then
    ok 'flow show of a thousand parts: is not longer than a screen'
else
    bad 'flow show of a thousand parts: is not longer than a screen' "$out"
fi
exits 0 'flow show --all of a thousand parts' "$weft" flow show "$id" --all
if (($(wc -l <<<"$out") > 1000)); then
    ok 'flow show --all of a thousand parts: draws each of them'
else
    bad 'flow show --all of a thousand parts: draws each of them' "$out"
fi
# A chain, and rows that go on below: what matters of them fits on a screen, too.
python3 - >long.json <<'END'
import json
nodes = [{"name": "n0", "kind": "long", "policy": {"max_attempts": 1}}]
nodes += [{"name": f"n{i}", "kind": "never", "after": [f"n{i - 1}"]} for i in range(1, 500)]
nodes += [{"name": f"p{i}", "kind": "never", "after": ["n499"]} for i in range(500)]
nodes += [{"name": f"q{i}", "kind": "never", "after": [f"p{i}"]} for i in range(500)]
print(json.dumps({"nodes": nodes}))
END
exits 0 'flow run of a long chain and a long row' "$weft" flow run long.json
long=$out
exits 0 'flow show of a long chain and a long row' "$weft" flow show "$long"
if (($(wc -l <<<"$out") < 60)); then
    ok 'flow show of a long chain and a long row: is not longer than a screen'
else
    bad 'flow show of a long chain and a long row: is not longer than a screen' "$out"
fi
has "$out" '^\.\.\. 486 more +486 blocked' 'the middle of the chain is counted'
has "$out" '^\|- \.\.\. 974 more +974 blocked' 'nodes below the long row are counted'
is "$(grep -cE '^[ |`-]*[npq][0-9]+ ' <<<"$out")" 40 \
    'flow show of a long chain and a long row: the other nodes have lines'
exits 0 'flow rm of the long chain' "$weft" flow rm "$long"
exits 0 'flow show --json of a thousand parts' "$weft" flow show "$id" --json
exits 6 'flow add with an old revision' "$weft" flow add "$id" "$flows/diamond.json" --revision 7
has "$err" 'revision 1' 'the error names the revision'
printf '{"nodes": [{"name": "x", "kind": "late", "after": ["missing"]}]}' >late.json
exits 2 'flow add after an unknown node' "$weft" flow add "$id" late.json
has "$err" missing 'the error names the node'
exits 0 'flow cancel of a thousand parts' "$weft" flow cancel "$id" --wait=30s --json
json "$out" 'v["state"] == "cancelled" and v["cancelled"] >= 1000' \
    'every member is cancelled or skipped'

# Each of a thousand parts gives a line, and they are counted. What the worker says of a thousand
# commands is of no use here.
exits 0 'flow run of a thousand parts that are worked on' "$weft" flow run map.json
id=$out
carry_out -c 8 -- sh -c 'case $WEFT_NODE in
    reduce) cat "$WEFT_UPSTREAM"/map-* | wc -l ;;
    *) echo "\"$WEFT_NODE\"" ;;
esac'
run "$weft" flow show "$id"
has "$out" 'map-reduce: succeeded' 'a thousand parts: the flow succeeded'
has "$out" '^1002 nodes: 1002 succeeded' 'a thousand parts: every node succeeded'
run "$weft" ls --flow "$id" --limit 1 --json # the newest is the last of the file
last=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["items"][0]["id"])' "$out")
exits 0 'show --result of the last node' "$weft" show "$last" --result
is "$out" 1000 'the result is made of a thousand parts'

# Words are counted in parts and added up, in shell: one part has nothing to say, and one says more
# than comes along with a claim.
cat >words.json <<'END'
{"nodes": [
  {"name": "part/1", "kind": "count", "payload": "one two three"},
  {"name": ".part-2", "kind": "count", "payload": "four"},
  {"name": "large", "kind": "large"},
  {"name": "silent", "kind": "silent"},
  {"name": "broken", "kind": "broken", "policy": {"max_attempts": 1}},
  {"name": "sum", "kind": "sum", "after": ["part/1", ".part-2", "large", "silent", "broken"],
   "join": {"policy": "quorum", "k": 4, "on_satisfied": "let_run"}}
]}
END
cat >words.sh <<'END'
case $WEFT_KIND in
count) wc -w ;;
large) seq 20000 ;;
silent) ;;
broken) exit 1 ;;
sum)
    cd "$WEFT_UPSTREAM" || exit
    echo "$WEFT_UPSTREAM" >"$1"
    ls -A | sort | tr '\n' ' '
    wc -l <large
    cat part* ./*part-2 | awk '{ sum += $1 } END { print sum }'
    wc -c <silent
    ;;
esac
END
exits 0 'flow run of nodes that read results of upstreams' "$weft" flow run words.json
words=$out
carry_out -c 3 -- sh words.sh "$PWD/upstream"
run "$weft" flow show "$words" --json
sum=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["nodes"][5]["id"])' "$out")
exits 0 'show --result of their sum' "$weft" show "$sum" --result
is "$out" '%2Epart-2 large part%2F1 silent 20000
4
0' 'a node reads the results of its upstreams from files'
if [[ -e $(cat upstream) ]]; then
    bad 'no directory of results stays behind'
else
    ok 'no directory of results stays behind'
fi
"$weft" work -- true >/dev/null 2>&1 &
worker=$!
exits 0 'flow run --watch' "$weft" flow run "$flows/diamond.json" --watch=100ms
kill "$worker"
wait "$worker" || true
has "$out" 'diamond: succeeded' 'flow run --watch: the flow succeeded'
exits 0 'flow rm of a flow that has ended' "$weft" flow rm "$id"
exits 3 'flow show of a removed flow' "$weft" flow show "$id"

plan
