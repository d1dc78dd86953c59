#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What the command shows of executions that wait. A program that works over HTTP suspends them.

source "$(dirname "$0")/common.bash"
export WEFT_STORE=$store

serve_hello
has "$url" '^http' 'a server starts'
export WEFT_SERVER=$url

# post PATH BODY: sets out to the answer.
post() {
    run python3 -c 'import sys, urllib.request
request = urllib.request.Request(sys.argv[1], sys.argv[2].encode(),
                                 {"Content-Type": "application/json"})
print(urllib.request.urlopen(request).read().decode())' "$url$1" "$2"
}

# suspended LANE MEMBERS: submits an execution and suspends it; sets id, and out to the answer.
suspended() {
    id=$("$weft" submit --kind k --lane "$1")
    post /v1/claims '{"worker": "w", "lanes": ["'"$1"'"]}'
    post /v1/leases/suspend '{"id": "'"$id"'", "epoch": 1, '"$2"'}'
}

# until_has PATTERN WORD...: runs it until it has such a line, at most 30 s.
until_has() {
    local pattern=$1
    shift
    for ((i = 0; i < 300; i++)); do
        run "$@"
        grep -Eq -e "$pattern" <<<"$out" && break
        sleep 0.1
    done
}

# ---- show ----

suspended mail '"waitpoints": [{"name": "a"}, {"name": "b"}, {"name": "c"}], "timeout_ms": 11520000,
    "condition": {"count": {"n": 2, "of": "waitpoints", "name": "approved"}},
    "reason": "waiting_for_approval"'
json "$out" 'v["state"] == "suspended"' 'an execution is suspended'
token=$(python3 -c 'import json, sys
print(json.loads(sys.argv[1])["waitpoints"][1]["token"])' "$out")
mail=$id
run "$weft" signal "$token" --name approved
is "$out" recorded 'the first of two signals is recorded'
exits 0 'show of a suspended execution' "$weft" show "$mail"
has "$out" '^suspended +20[0-9-]+T.* \(' 'the time of the suspend is shown'
has "$out" '^reason +waiting_for_approval$' 'the reason is shown'
has "$out" '^waits for +2 of 3 waitpoints, signal `approved`$' 'the condition is shown in words'
has "$out" '^timeout +fails in 3 h 1[01] m \(at 20' 'the time of the failure is shown'
has "$out" '^next +weft signal TOKEN ' 'the command that sends a signal is shown'
has "$out" "^ +weft resume $mail " 'the command that resumes is shown'
has "$out" '^a +open +0 ' 'the waitpoints are shown'
has "$out" '^b +open +1 ' 'the number of signals of each waitpoint is shown'
lacks "$out" '^(escalated|resumed) ' 'no escalation and no resumption is shown'
exits 0 'show --json of a suspended execution' "$weft" show "$mail" --json
json "$out" '(v["suspension"]["condition"]["count"]["n"] == 2 and v["resumed"] is None and
    [w["signals"] for w in v["waitpoints"]] == [0, 1, 0] and
    v["suspension"]["on_timeout"] == "fail")' \
    'the JSON has the fields of GET /v1/executions/ID/waiting'

exits 0 'resume' "$weft" resume "$mail" --reason 'by phone'
exits 0 'show of a resumed execution' "$weft" show "$mail"
has "$out" '^resumed +by an operator, 20.*: by phone$' 'the resumer and the reason are shown'
lacks "$out" '^(suspended|waits for|timeout|next) ' 'no suspension is shown any more'

suspended sleepers '"condition": {"timeout": true}, "timeout_ms": 3600000, "on_timeout": "resume",
    "resume_delay_ms": 5000'
exits 0 'show of a durable sleep' "$weft" show "$id"
has "$out" '^waits for +its timeout$' 'the condition is shown'
has "$out" '^timeout +goes on in (1 h 0|59) m ' 'the time when it goes on is shown'
has "$out" '^resume delay +5 s$' 'the delay is shown'
has "$out" "^next +weft resume $id +lets it go on$" 'resume is the only command that is shown'

suspended late '"waitpoints": [{"name": "a"}], "timeout_ms": 1, "on_timeout": "escalate"'
late=$id
until_has '^escalated ' "$weft" show "$late"
has "$out" '^escalated +20' 'show of an escalated execution: the time is shown'
has "$out" 'left to an operator' 'show of an escalated execution: the operator must act'
has "$out" "^ +weft resume $late " 'show of an escalated execution: resume is shown'

id=$("$weft" submit --kind k --lane other)
exits 0 'show of an execution that never waited' "$weft" show "$id" --json
json "$out" '"suspension" not in v and "waitpoints" not in v' 'the JSON has neither field'

# ---- flow show ----

# member NAME: sets id to the execution of a node of the flow.
member() {
    run "$weft" flow show "$flow" --json
    id=$(python3 -c 'import json, sys
print({n["name"]: n["id"] for n in json.loads(sys.argv[1])["nodes"]}[sys.argv[2]])' "$out" "$1")
}

python3 -c 'import json
def node(name): return {"name": name, "kind": "k", "lane": name}
json.dump({"nodes": [node(f"n{i}") for i in range(20)]}, open("wide.json", "w"))'
flow=$("$weft" flow run wide.json)
for row in 'n0:"waitpoints": [{"name": "ann"}, {"name": "bob"}]' \
    'n1:"waitpoints": [{"name": "ann"}], "reason": "approval"' \
    'n2:"condition": {"operator": true}' \
    'n3:"condition": {"timeout": true}, "timeout_ms": 3600000' \
    'n15:"waitpoints": [{"name": "cay"}], "timeout_ms": 1, "on_timeout": "escalate"'; do
    member "${row%%:*}"
    post /v1/claims '{"worker": "w", "lanes": ["'"${row%%:*}"'"]}'
    post /v1/leases/suspend '{"id": "'"$id"'", "epoch": 1, '"${row#*:}"'}'
done
until_has 'escalated' "$weft" flow show "$flow"
has "$out" '^(`-|\|-)? ?n0 +suspended .* waits for ann, bob$' \
    'flow show: a node without a reason shows its waitpoints'
has "$out" 'n1 +suspended .* waits for approval$' 'flow show: a node with a reason shows that'
has "$out" 'n2 +suspended .* waits for an operator$' 'flow show: a node may wait for an operator'
has "$out" 'n3 +suspended .* waits for its timeout$' 'flow show: a node may wait for its timeout'
has "$out" 'n15 +suspended .* escalated: waits for cay$' \
    'flow show: an escalated node far back in a long row is drawn'
lacks "$out" 'n16 ' 'flow show: other nodes far back are not'
exits 0 'flow show --json' "$weft" flow show "$flow" --json
json "$out" '[n["waitpoints"] for n in v["nodes"] if n["escalated"]] == [["cay"]]' \
    'one node is escalated'
json "$out" '[n["name"] for n in v["nodes"] if n["timeout_at"]] == ["n3"]' \
    'one node has a timeout, an escalated node has none any more'
exits 0 'flow dot' "$weft" flow dot "$flow"
has "$out" '"n15" \[fillcolor=orangered, tooltip="suspended, escalated"' \
    'the escalated node stands out'
has "$out" '"n0" \[fillcolor=orange, tooltip="suspended"' 'a suspended node has a colour'

# ---- lists ----

suspended quiet '"waitpoints": [{"name": "a"}], "timeout_ms": 3600000'
exits 0 'ls of suspended executions' "$weft" ls --state suspended --limit 100
has "$out" " suspended .* approval\$" 'the reason is shown'
has "$out" ' quiet .* suspended .* times out in (1 h|59 m)$' 'without a reason the timeout is shown'
has "$out" "^$late +late .* escalated\$" 'an escalated execution is marked'
exits 0 'ls --escalated' "$weft" ls --escalated --json
json "$out" '[i["lane"] for i in v["items"]] == ["n15", "late"]' 'only escalated ones are listed'
counted late 'v["items"][0]["escalated"] == 1' 'counts have a number of escalated executions'
until_has 'weft_executions_escalated.*lane="late"} 1$' python3 -c 'import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1] + "/metrics").read().decode())' "$url"
has "$out" '^weft_executions_escalated\{namespace="default",lane="late"} 1$' 'metrics have them'
has "$out" '^weft_executions_escalated\{namespace="default",lane="quiet"} 0$' \
    'metrics count no escalated executions in a lane without any'
exits 0 'counts' "$weft" counts --lane late
has "$out" ' ESCALATED ' 'counts of a lane with escalated executions have the column ESCALATED'
exits 0 'cancel --escalated' "$weft" cancel --escalated --lane late --yes
has "$out" 'cancelled 1 execution' 'one execution of the lane is cancelled'

plan
