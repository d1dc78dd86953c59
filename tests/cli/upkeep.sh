#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# lanes, counts, workers, migrate and token on a store of their own; and how tables look.

source "$(dirname "$0")/common.bash"

# ---- migrate ----

exits 1 'migrate --check without a store' "$weft" migrate --store sqlite:none.db --check
if [[ -e none.db ]]; then bad 'no file is created'; else ok 'no file is created'; fi
exits 1 'migrate --check of an empty database' "$weft" migrate --store "$store" --check
exits 0 'migrate' "$weft" migrate --store "$store"
has "$out" '^applied 1 ' 'names the migrations it applied'
exits 0 'migrate of a store that is up to date' "$weft" migrate --store "$store"
has "$out" 'up to date' 'says that it is up to date'
exits 0 'migrate --check of a store that is up to date' "$weft" migrate --store "$store" --check \
    --json
json "$out" 'v["before"] == v["after"] == v["known"]' 'says that it is up to date'
exits 2 'migrate with an unknown scheme' "$weft" migrate --store nonsense:
has "$err" '^hint: ' 'the error has a hint'
printf 'this is no database, but a text that is long enough to be one\n%.0s' {1..50} >text.db
exits 1 'migrate of a file that is no database' "$weft" migrate --store sqlite:text.db
echo "store = $store" >weft.conf
exits 0 'migrate takes the store of the settings' "$weft" migrate --check
echo 'nonsense' >>weft.conf
exits 2 'migrate with invalid settings' "$weft" migrate --check
exits 0 'migrate --store with invalid settings' "$weft" migrate --check --store "$store"
rm weft.conf
exits 0 'migrate takes the store of the environment' env WEFT_STORE="$store" "$weft" migrate --check
exits 2 'ls of a store that was not migrated' "$weft" migrate --server http://127.0.0.1:1

# ---- a store that is not there ----

# Only commands that bring or serve work create a store; for all others it is a mistyped path.
absent=01932c07-5f3e-7a10-8c51-0123456789ab
typo=${store/weft.db/typo.db}
if [[ $typo == "$store" ]]; then typo=${store}_typo; fi
for command in ls counts lanes 'lanes mail --pause' 'lanes mail --remove' workers replicas \
    scanners 'token ls' 'token create --name a --scopes read' 'token revoke 1' 'token rotate 1' \
    "show $absent" "cancel $absent" "replay $absent" 'flow ls' "flow show $absent"; do
    # shellcheck disable=SC2086
    exits 3 "$command without a store" "$weft" $command --store "$typo"
    has "$err" '^weft: there is no store at (sqlite|postgres)[^ ]*typo' 'the error names the place'
    has "$err" '^hint: check the path or URL; .weft serve., .submit.' \
    'the hint says which commands create a store'
done
is "$(find . -name '*typo*')" '' 'commands on a missing store create no file'
exits 0 'submit on a missing store' "$weft" submit -k a '{}' --store "$typo"
exits 0 'ls after submit created the store' "$weft" ls --store "$typo"

# ---- URLs of the wrong kind ----

exits 2 'ls with a path without a scheme' "$weft" counts --store weft.db
has "$err" 'for the file weft.db write sqlite:weft.db' 'the error says how a store is written'
exits 2 'ls with a scheme of no store' "$weft" counts --store mysql://u:secret@h/d
has "$err" '^hint: a store is sqlite:PATH or postgres://' 'the error lists the schemes'
lacks "$err" 'secret' 'the error has no password'
exits 2 'ls with sqlite:// and a host' "$weft" counts --store sqlite://weft.db
has "$err" '^hint: write sqlite:weft.db' 'the error says how a store is written'
exits 2 'ls with a server as --store' "$weft" counts --store http://127.0.0.1:1
has "$err" 'use --server$' 'the error names --server'
exits 2 'ls with a server as WEFT_STORE' env WEFT_STORE=http://127.0.0.1:1 "$weft" counts
has "$err" 'use WEFT_SERVER$' 'the error names WEFT_SERVER'
exits 2 'migrate with a server as --store' "$weft" migrate --store http://127.0.0.1:1
has "$err" '^hint: name a server with --server' 'the error names the option'
exits 2 'ls with a store as --server' "$weft" counts --server sqlite:wrong.db
has "$err" 'use --store$' 'the error names --store'
exits 2 'ls with a store as WEFT_SERVER' env WEFT_SERVER=sqlite:wrong.db "$weft" counts
has "$err" 'use WEFT_STORE$' 'the error names WEFT_STORE'
exits 2 'ls with a server without a scheme' "$weft" counts --server 127.0.0.1:1
has "$err" 'must begin with http:// or https://' 'the error says how a server is written'
if [[ -e wrong.db ]]; then bad 'invalid URLs create no file'; else ok \
    'invalid URLs create no file'; fi
exits 1 'ls of a file that is no database' "$weft" counts --store sqlite:text.db
has "$err" 'text.db: file is not a database' 'the error names the file'
has "$err" '^hint: name another file' 'the hint says to name another file'

export WEFT_STORE=$store

# ---- lanes, counts ----

exits 0 'lanes of an empty store' "$weft" lanes
is "$(wc -l <<<"$out")" 1 'lanes of an empty store: only the titles are printed'
"$weft" submit -k a -l mail --count 3 '{}' >/dev/null
"$weft" submit -k a -l images --delay 1h '{}' >/dev/null
exits 0 'lanes with work' "$weft" lanes
has "$out" '^mail +open +- +- +- +- +3 +0' 'each lane has its counts'
exits 3 'lanes with a lane that does not exist' "$weft" lanes nowhere
exits 0 'lanes --pause' "$weft" lanes mail --pause
has "$out" '^mail +paused' 'the lane is shown as paused'
exits 0 'lanes with a limit and weights' "$weft" lanes mail --max-running 4 --weight acme=3 \
    --weight b=2 --json
json "$out" 'v["paused"] and v["max_running"] == 4 and v["weights"] == {"acme": 3, "b": 2}' \
    'settings that are not named stay as they were'
exits 0 'lanes --resume' "$weft" lanes mail --resume --weight acme=0 --json
json "$out" 'not v["paused"] and v["max_running"] == 4 and v["weights"] == {"b": 2}' \
    'the other settings stay as they were'
exits 0 'lanes --retention' "$weft" lanes mail --retention 3d
has "$out" '^mail +open +4 +- +- +3d +3 +0' 'the retention is shown as it is typed'
exits 0 'lanes with another setting' "$weft" lanes mail --max-running 4 --json
json "$out" 'v["retention_ms"] == 3 * 86400000' 'the retention stays as it was'
exits 0 'lanes --retention 0' "$weft" lanes mail --retention 0 --json
json "$out" 'v["retention_ms"] == 0' 'the retention is the default again'
exits 2 'lanes with an invalid retention' "$weft" lanes mail --retention 11000d

# a lane that nothing uses may be a mistyped name
for change in --pause --resume '--max-running 1' '--retention 3d' '--weight acme=3'; do
    # shellcheck disable=SC2086
    exits 3 "lanes $change for a lane that is not in use" "$weft" lanes fresh $change
done
has "$err" '^weft: no such lane: fresh$' 'the error says that there is no such lane'
has "$err" '^hint: use --create to set it up before its first work; lanes in use: images, mail$' \
    'the hint names --create and the lanes in use'
exits 3 'lanes --pause with a mistyped name' "$weft" lanes maill --pause
has "$err" "did you mean 'mail'\\? lanes in use: images, mail" 'the hint has the nearest name'
exits 3 'lanes with a mistyped name' "$weft" lanes maill
has "$err" "^hint: did you mean 'mail'\\?" 'the hint has the nearest name'
exits 0 'lanes after these refusals' "$weft" lanes --json
json "$out" '[i["lane"] for i in v["items"]] == ["images", "mail"]' 'no lane was created'
exits 0 'lanes --create before the first work' "$weft" lanes fresh --max-running 1 --create --json
json "$out" 'v["max_running"] == 1' 'the lane is created'
exits 0 'lanes --resume of that lane' "$weft" lanes fresh --pause --json
json "$out" 'v["paused"] and v["max_running"] == 1' '--create is not needed any more'
exits 0 'lanes --json' "$weft" lanes --json
json "$out" '[i["lane"] for i in v["items"]] == ["fresh", "images", "mail"]' \
    'all lanes are there, by name'
exits 2 'lanes --remove with another change' "$weft" lanes fresh --remove --pause
exits 2 'lanes --remove without a name' "$weft" lanes --remove
exits 0 'remove' "$weft" lanes fresh --remove
has "$out" '^the settings of lane fresh are removed' 'says that the settings are removed'
exits 3 'lanes --remove of a lane without settings' "$weft" lanes fresh --remove
has "$err" "^weft: lane 'fresh' has no settings" 'the error says that there is none'
exits 0 'lanes --remove --json' "$weft" lanes mail --remove --json
json "$out" 'v == {"lane": "mail", "removed": True}' 'the answer says that they are removed'
exits 0 'lanes after --remove' "$weft" lanes
lacks "$out" '^fresh' 'a lane that is not in use is not listed'
has "$out" '^mail +open +- +- +- +- +3 +0' 'a lane with work is listed with the defaults'
exits 2 'lanes --pause without a name' "$weft" lanes --pause
exits 2 'lanes --pause --resume' "$weft" lanes mail --pause --resume
exits 2 'lanes with an invalid weight' "$weft" lanes mail --weight acme
exits 2 'lanes with an invalid limit' "$weft" lanes mail --max-running -1

exits 0 'counts' "$weft" counts
has "$out" '^mail +3 +0 +0' 'has the counts of each lane'
has "$out" '^\(all\) +3 +0 +1' 'has the sum of all lanes'
is "$(tail -n 1 <<<"$out")" 'as of now' 'counts: counts of a store are as of now'
exits 0 'lanes with the same work' "$weft" lanes
is "$(tail -n 1 <<<"$out")" 'as of now' 'lanes with the same work: shows the same age of the counts'
exits 0 'counts --json' "$weft" counts --json --lane mail
json "$out" 'v["as_of"] and [i["ready"] for i in v["items"]] == [3]' '--lane selects the lane'
json "$out" 'v["age_ms"] == 0' 'has the age of the counts'
: >watched # so that it is there when it is looked at
timeout 60 "$weft" counts --json --watch=100ms >>watched 2>/dev/null &
watcher=$!
for ((i = 0; i < 1000 && $(wc -l <watched) < 3; i++)); do sleep 0.05; done
kill "$watcher"
wait "$watcher" || true
if [[ $(wc -l <watched) -ge 3 ]]; then
    ok 'counts --watch prints again and again'
else
    bad 'counts --watch prints again and again'
fi

# ---- workers ----

exits 0 'workers of a store that none has used' "$weft" workers
has "$out" '^WORKER +LEASES +SEEN' 'only the titles are printed'
exits 0 'workers --json' "$weft" workers --json
json "$out" 'v["items"] == []' 'there are no items'
exits 3 'workers with a worker that does not exist' "$weft" workers missing
exits 2 'workers --goodbye without a name' "$weft" workers --goodbye
exits 3 'workers --goodbye for a worker that does not exist' "$weft" workers missing --goodbye
has "$err" "there is no worker 'missing'" 'the error names the worker'

# ---- tokens ----

exits 0 'token create' "$weft" token create --name billing --scopes submit,read --expires 90d
has "$out" '^weft_[0-9]+_[A-Za-z0-9_-]{43}$' 'stdout has the token alone'
has "$err" 'shown this once' 'stderr has a note'
secret=${out#weft_*_} # which may have a _ of its own
exits 0 'token create --json' "$weft" token create --name ops --scopes admin --namespace prod --json
json "$out" 'v["token"].startswith("weft_") and v["namespace"] == "prod"' 'the answer has the token'
second=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["id"])' "$out")
exits 0 'token ls' "$weft" token ls
has "$out" 'billing +\(any\) +read,submit +.*in 89 d' 'shows name and scopes'
lacks "$out" "${secret:0:20}" 'does not show the secret'
exits 0 'token ls --json' "$weft" token ls --json
json "$out" '[i["name"] for i in v["items"]] == ["billing", "ops"]' \
    'the tokens are in the order of their ids'
if [[ -e weft.db ]]; then
    lacks "$(cat weft.db* | tr -d '\0')" "$secret" 'the store does not hold the secret'
fi
exits 0 'token rotate' "$weft" token rotate 1 --expires 2w --json
json "$out" 'v["id"] == 1 and v["token"].startswith("weft_3_") and not v["old_expires_at"]' \
    'prints another token'
exits 0 'token list after rotate' "$weft" token list
has "$out" 'billing +\(any\) +read,submit +.* never +in 13 d' 'the end of its validity has changed'
exits 0 'token revoke' "$weft" token revoke "$second"
exits 0 'token ls after revoke' "$weft" token ls
lacks "$out" 'ops' 'the token is not listed'
exits 3 'token revoke of a revoked token' "$weft" token revoke "$second"
exits 2 'token create without --name' "$weft" token create --scopes read
exits 2 'token create without --scopes' "$weft" token create --name a
exits 2 'token create with an unknown scope' "$weft" token create --name a --scopes root
exits 2 'token create with a moment in the past' "$weft" token create --name a --scopes read \
    --expires 2001-01-01T00:00:00Z
exits 2 'token create with an invalid --expires' "$weft" token create --name a --scopes read \
    --expires soon
has "$err" "it must be like 90d or" 'the error says how a lifetime is written'
exits 2 'token create with --expires 0' "$weft" token create --name a --scopes read --expires 0d
exits 0 'token create with a moment' "$weft" token create --name moment --scopes read --expires \
    2999-01-31T12:00:00Z
exits 2 'token revoke with an invalid id' "$weft" token revoke x
exits 2 'token with an unknown verb' "$weft" token make

# ---- Looks ----

long=a-lane-with-a-name-that-is-far-too-long-for-a-narrow-terminal
"$weft" submit -k also-a-rather-long-name-of-a-kind -l $long '{}' >/dev/null
for columns in 40 60 80 100 200; do
    for command in ls lanes counts workers 'token ls' config; do
        # shellcheck disable=SC2086
        out=$(COLUMNS=$columns "$weft" $command)
        widest=$(wc -L <<<"$out")
        # ids, states and ages are never cut
        if [[ $widest -le $columns || $columns -lt 60 ]]; then
            ok "$command fits $columns columns"
        else
            bad "$command fits $columns columns" "$out"
        fi
    done
done
has "$(COLUMNS=80 "$weft" ls)" '…' 'a cut column ends with an ellipsis'
lacks "$("$weft" ls)" '…' 'a table in a pipe is not cut'
escape=$'\033'
lacks "$("$weft" ls)" "$escape" 'a table in a pipe has no colours'
has "$("$weft" ls --color always)" "$escape\[36mready$escape\[0m" \
    '--color always gives colours in a pipe'
has "$(NO_COLOR=1 "$weft" ls --color always)" "$escape" '--color always beats NO_COLOR'
lacks "$("$weft" ls)" ' $' 'no line ends with a space'
"$weft" submit -k x -l wide --key wide --deadline +1d '{}' >/dev/null
"$weft" cancel --key wide --reason '世界 is wide: 世界世界世界世界世界世界世界世界世界世界' --yes >/dev/null
out=$(COLUMNS=110 "$weft" ls --key wide)
if [[ $(wc -L <<<"$out") -le 110 ]]; then
    ok 'wide characters are cut between two characters'
else
    bad 'wide characters are cut between two characters' "$out"
fi
has "$out" '世界 is wide.*…$' 'cut between cells'
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    on_a_terminal() { script -qec "${*@Q}" /dev/null </dev/null; }
    has "$(on_a_terminal "$weft" ls)" "$escape" 'a table on a terminal has colours'
    lacks "$(NO_COLOR=1 on_a_terminal "$weft" ls)" "$escape\[3" 'NO_COLOR takes the colours away'
    lacks "$(on_a_terminal "$weft" ls --color never)" "$escape\[3" \
        '--color never takes the colours away'
    lacks "$(TERM=dumb on_a_terminal "$weft" ls)" "$escape\[3" 'a dumb terminal gets no colours'
    has "$(on_a_terminal "$weft" submit -k x -l bar --count 3000 1)" \
        'submit \[#+\.*\] [0-9]+/3000' 'a terminal gets a progress bar'
fi
id=$("$weft" submit -k x "red$escape[31m and"$'\n''two lines')
lacks "$("$weft" show "$id")" "$escape" \
    'control characters of foreign text do not reach the terminal'
has "$("$weft" show "$id")" '^payload .* and two lines ' \
    'newlines of foreign text do not begin a line'
plan
