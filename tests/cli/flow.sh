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

exits 0 'a store' "$weft" migrate
cat >good.json <<'END'
// A comment, then "nodes".
{ "name": "good", /* here, too */ "nodes": [
  {"name": "a", "kind": "k", "payload": "// no comment"}, // first
  {"name": "b", "kind": "k", "after": ["a"]}
]}
END
exits 0 'a flow with comments' "$weft" flow run good.json
good=$out
has "$good" '^[0-9a-f-]{36}$' 'its id is printed'
run "$weft" flow show "$good" --json
json "$out" 'v["name"] == "good" and [n["name"] for n in v["nodes"]] == ["a", "b"]' \
    'it is as it was written'
first=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["nodes"][0]["id"])' "$out")
exits 0 'its first node' "$weft" show "$first" --payload
is "$out" '"// no comment"' 'what stands in a string is no comment'
exits 0 'the node' "$weft" show "$first"
has "$out" "^flow +$good, node a" 'knows its flow'

printf '{\n "nodes": [\n  {"name": "a", "kind": "k"},\n  {"name": "b"}\n ]\n}\n' >bad.json
exits 2 'a node without a kind' "$weft" flow run bad.json
has "$err" "bad.json:4: .*'b'.*kind is missing" 'the line and the node are told'
printf '{"nodes": [\n{"name": "a", "kind": "k"}\n{}]}\n' >bad.json
exits 2 'no JSON' "$weft" flow run bad.json
has "$err" '^weft: bad.json:3:1: [a-z]' 'the line and the column are told'
printf '[]' >bad.json
exits 2 'a list' "$weft" flow run bad.json
has "$err" 'bad.json:1: a flow is an object' 'is no flow'
same='{"name": "a", "kind": "k"}'
printf '{"nodes": [\n%s,\n%s]}\n' "$same" "$same" >bad.json
exits 2 'the same name twice' "$weft" flow run bad.json
has "$err" "bad.json:3: .*'a'" 'is told where it stands again'
exits 1 'a directory' "$weft" flow run .
has "$err" 'cannot read .: Is a directory' 'is no file'
printf '{"nodes": [\n{"name": "a", "kind": "k"},\n\n%s]}\n' \
    '{"name": "b", "kind": "k", "after": ["x"]}' >bad.json
exits 2 'an unknown upstream' "$weft" flow run bad.json
has "$err" "bad.json:4: .*'b'.*'x'" 'the line and both names are told'
printf '{"nodes": [\n%s,\n%s]}\n' '{"name": "a", "kind": "k", "after": ["b"]}' \
    '{"name": "b", "kind": "k", "after": ["a"]}' >bad.json
exits 2 'a circle' "$weft" flow run bad.json
has "$err" 'bad.json:[23]: .* -> ' 'it is told whole'
printf '{"nodes": [\n{"name": "a", "kind": "bad kind"}]}\n' >bad.json
exits 2 'a bad kind' "$weft" flow run bad.json
has "$err" "bad.json:2: node 'a': kind" 'the line is told'
printf '{"nodes": [], "colour": 1} /* never ends' >bad.json
exits 2 'an unknown field' "$weft" flow run bad.json
has "$err" "no field 'colour'" 'is named'
exits 1 'a file that is not there' "$weft" flow run none.json
has "$err" 'cannot read none.json' 'is named'

# ---- the command line ----

exits 2 'no verb' "$weft" flow
exits 2 'an unknown verb' "$weft" flow walk
has "$err" 'run, show, ls' 'the verbs are told'
exits 2 'show what?' "$weft" flow show
exits 2 'no id' "$weft" flow show x
exits 2 'a state that is none' "$weft" flow ls --state ready
exits 2 'a policy that is none' "$weft" flow cancel "$good" --policy some
exits 2 'an option of another verb' "$weft" flow ls --watch
has "$err" 'flow ls. has no --watch' 'is not passed over'
exits 3 'no such flow' "$weft" flow show 00000000-0000-7000-8000-000000000000

# ---- looking and steering ----

exits 0 'it is drawn' "$weft" flow show "$good"
has "$out" "^flow $good good: open " 'with its state'
has "$out" '^2 nodes: 1 ready, 1 blocked' 'and its counts'
has "$out" '^b +blocked' 'and its nodes'
lacks "$out" $'\033' 'without colours, as this is no terminal'
exits 0 'in colours' "$weft" flow show "$good" --color always
has "$out" $'\033\\[' 'if they are wanted'
COLUMNS=40 run "$weft" flow show "$good"
is "$(awk '{ if (length($0) > 40 && NR > 2) print }' <<<"$out")" '' 'it fits a narrow terminal'
exits 0 'for Graphviz' "$weft" flow dot "$good"
has "$out" '"a" -> "b";' 'the edges'
exits 0 'listed' "$weft" flow ls --state open --json
json "$out" "[f['id'] for f in v['items']] == ['$good']" 'there it is'
exits 0 'by another name' "$weft" flow ls --name other --json
is "$out" '{"items":[]}' 'there is none'
exits 0 'cancelled' "$weft" flow cancel "$good" --reason enough
is "$out" 'flow cancelled, with 2 members' 'whole, and no word is said twice'
exits 0 'it is drawn' "$weft" flow show "$good" --watch=100ms
has "$out" 'cancelled \(all\): enough' 'with the reason, once: it has ended'
exits 1 'waiting for it' "$weft" flow show "$good" --wait
has "$err" "flow $good cancelled" 'tells how it ended'
has "$out" '^flow .* good: cancelled' 'and draws it'
exits 0 'removed' "$weft" flow rm "$good" --json
json "$out" 'v == {"state": "cancelled", "cancelled": 0}' 'which is told'
exits 3 'it is gone' "$weft" flow show "$good"
exits 0 'with a key' "$weft" flow run good.json --key once --name named
once=$out
exits 0 'once more' "$weft" flow run good.json --key once --name named --json
json "$out" "v['duplicate'] and v['id'] == '$once'" 'is the same'
exits 0 'its members' "$weft" ls --flow "$once" --json
json "$out" "[i['node'] for i in v['items']] == ['b', 'a']" 'are listed'
cat >more.json <<'END'
{"nodes": [{"name": "c", "kind": "k"}, {"name": "d", "kind": "k", "after": ["a"]}]}
END
exits 0 'other nodes' "$weft" flow add "$once" more.json
is "$out" 'revision 2' 'the flow has grown'
exits 0 'edges' "$weft" flow link "$once" c,b b,d
is "$out" 'revision 3' 'it has them'
exits 0 'its nodes' "$weft" flow show "$once" --json
json "$out" '{n["name"]: sorted(n["after"]) for n in v["nodes"]} == {
    "a": [], "b": ["a", "c"], "c": [], "d": ["a", "b"]}' 'come after one another'
exits 2 'a circle' "$weft" flow link "$once" d,b
has "$err" 'circle' 'is refused'
exits 6 'a stale edge' "$weft" flow link "$once" c,d --revision 2
has "$err" 'revision 3' 'names the revision'
exits 2 'half an edge' "$weft" flow link "$once" c
has "$err" "'c' is no edge" 'is none'
exits 2 'no edge' "$weft" flow link "$once"
has "$err" 'takes ID FROM,TO' 'and what it takes is told'
exits 2 'two files' "$weft" flow add "$once" good.json good.json
exits 0 'as JSON' "$weft" flow link "$once" c,d --revision 3 --json
is "$out" '{"revision":4}' 'the revision'
exits 0 'what was added' "$weft" cancel --flow "$once" --kind k --yes
exits 0 'the flow again' "$weft" flow rm "$once"
exits 0 'with a key' "$weft" flow run good.json --key again --name named
once=$out
exits 0 'one of them' "$weft" cancel --flow "$once" --state blocked --yes
is "$out" 'cancelled 1 execution' 'is cancelled'
exits 2 'members of nothing' "$weft" ls --flow 7
has "$err" "'7' is no id of a flow" 'is said'
exits 0 'out of the way' "$weft" flow rm "$once"
echo '{"nodes": [{"name": "a", "kind": "k"}]}' >one.json
exits 0 'one node' "$weft" flow run one.json
one=$out
exits 0 'drawn' "$weft" flow show "$one"
has "$out" '^1 node: 1 ready' 'is one node'
exits 0 'out of the way' "$weft" flow rm "$one"

# ---- the examples ----

# carry_out WORD...: a worker, until there is nothing to do.
carry_out() {
    run timeout 120 "$weft" work --drain "$@"
}

run "$weft" flow run "$flows/diamond.json"
id=$out
carry_out -c 4 -- true
node_states "$id"
is "$out" 'fetch succeeded, left succeeded, merge succeeded, right succeeded' 'the diamond'
flow_state "$id"
is "$out" succeeded 'succeeds'

run "$weft" flow run "$flows/race.json"
id=$out
# One model answers; the others are slower than any test.
carry_out --kind ask --max 1 -- true
carry_out --kind step -- true
node_states "$id"
is "$(grep -o cancelled <<<"$out" | wc -l)" 2 'the losers of the race are cancelled'
has "$out" 'answer succeeded' 'and the answer is given'
run "$weft" flow show "$id" --json
json "$out" '[n["reason"] for n in v["nodes"] if n["state"] == "cancelled"] == (
    2 * ["sibling_quorum_satisfied"])' 'with the reason'
flow_state "$id"
is "$out" succeeded 'the race succeeds'

run "$weft" flow run "$flows/quorum.json"
id=$out
carry_out --kind step --max 1 -- true
carry_out --kind review --max 2 -- true
carry_out --kind step -- true
node_states "$id"
has "$out" 'publish succeeded' 'two reviewers are enough'
has "$out" '(ada|ben|cleo) ready' 'and the third may still come'
carry_out --kind review -- true
flow_state "$id"
is "$out" succeeded 'the review succeeds'

run "$weft" flow run "$flows/failure.json"
id=$out
carry_out --kind broken -- sh -c 'echo it does not build >&2; exit 1'
carry_out --kind step -- true
node_states "$id"
is "$out" 'build failed, deploy skipped, lint succeeded, test skipped' \
    'a failure skips what comes after it'
exits 0 'it is drawn' "$weft" flow show "$id"
has "$out" 'build +failed .*it does not build' 'with the error'
flow_state "$id"
is "$out" failed 'the flow fails'

run "$weft" flow run "$flows/grow.json"
id=$out
carry_out --kind plan -- sh -c '"$0" flow add "$WEFT_FLOW" "$1" && test "$WEFT_NODE" = plan' \
    "$weft" "$flows/grow-more.json"
carry_out --kind step -c 2 -- true
node_states "$id"
is "$out" 'close succeeded, part-1 succeeded, part-2 succeeded, plan succeeded, report succeeded' \
    'a flow grows while it runs'
exits 6 'it has ended: it grows no more' "$weft" flow add "$id" "$flows/grow-more.json"

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
exits 0 'map and reduce' "$weft" flow run map.json
id=$out
exits 0 'drawn' "$weft" flow show "$id"
has "$out" 'more +.* blocked' 'not every one of a thousand'
if (($(wc -l <<<"$out") < 30)); then ok 'but a screen full'; else bad 'but a screen full' "$out"; fi
exits 0 'drawn' "$weft" flow show "$id" --all
if (($(wc -l <<<"$out") > 1000)); then ok 'or all'; else bad 'or all' "$out"; fi
# A chain, and rows that go on below: what matters of them fits on a screen, too.
python3 - >long.json <<'END'
import json
nodes = [{"name": "n0", "kind": "long", "policy": {"max_attempts": 1}}]
nodes += [{"name": f"n{i}", "kind": "never", "after": [f"n{i - 1}"]} for i in range(1, 500)]
nodes += [{"name": f"p{i}", "kind": "never", "after": ["n499"]} for i in range(500)]
nodes += [{"name": f"q{i}", "kind": "never", "after": [f"p{i}"]} for i in range(500)]
print(json.dumps({"nodes": nodes}))
END
exits 0 'a thousand and five hundred nodes' "$weft" flow run long.json
long=$out
exits 0 'drawn' "$weft" flow show "$long"
if (($(wc -l <<<"$out") < 60)); then ok 'on a screen'; else bad 'on a screen' "$out"; fi
has "$out" '^\.\.\. 486 more +486 blocked' 'the middle of the chain is counted'
has "$out" '^\|- \.\.\. 974 more +974 blocked' 'and what is below a long row'
is "$(grep -cE '^[ |`-]*[npq][0-9]+ ' <<<"$out")" 40 'the others have lines'
exits 0 'out of the way' "$weft" flow rm "$long"
exits 0 'a stale addition' "$weft" flow show "$id" --json
exits 6 'is refused' "$weft" flow add "$id" "$flows/diamond.json" --revision 7
has "$err" 'revision 1' 'and told why'
printf '{"nodes": [{"name": "x", "kind": "late", "after": ["nobody"]}]}' >late.json
exits 2 'an addition behind nobody' "$weft" flow add "$id" late.json
has "$err" nobody 'names him'
exits 0 'cancelled' "$weft" flow cancel "$id" --wait=30s --json
json "$out" 'v["state"] == "cancelled" and v["cancelled"] >= 1000' \
    'whole: what was blocked behind it may have been skipped'

# Each of a thousand parts gives a line, and they are counted. What the worker says of a thousand
# commands is of no use here.
exits 0 'map and reduce' "$weft" flow run map.json
id=$out
carry_out -c 8 -- sh -c 'case $WEFT_NODE in
    reduce) cat "$WEFT_UPSTREAM"/map-* | wc -l ;;
    *) echo "\"$WEFT_NODE\"" ;;
esac'
run "$weft" flow show "$id"
has "$out" 'map-reduce: succeeded' 'succeed'
has "$out" '^1002 nodes: 1002 succeeded' 'whole'
run "$weft" ls --flow "$id" --limit 1 --json # the newest is the last of the file
last=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["items"][0]["id"])' "$out")
exits 0 'what it came to' "$weft" show "$last" --result
is "$out" 1000 'a thousand parts'

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
exits 0 'words' "$weft" flow run words.json
words=$out
carry_out -c 3 -- sh words.sh "$PWD/upstream"
run "$weft" flow show "$words" --json
sum=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["nodes"][5]["id"])' "$out")
exits 0 'their sum' "$weft" show "$sum" --result
is "$out" '%2Epart-2 large part%2F1 silent 20000
4
0' 'is made of what the others gave'
if [[ -e $(cat upstream) ]]; then bad 'nothing stays behind'; else ok 'nothing stays behind'; fi
"$weft" work -- true >/dev/null 2>&1 &
worker=$!
exits 0 'watched to its end' "$weft" flow run "$flows/diamond.json" --watch=100ms
kill "$worker"
wait "$worker" || true
has "$out" 'diamond: succeeded' 'it succeeds'
exits 0 'removed' "$weft" flow rm "$id"
exits 3 'it is gone' "$weft" flow show "$id"

plan
