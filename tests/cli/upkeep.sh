#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# lanes, counts, workers, migrate and token on a store of their own; and how tables look.

source "$(dirname "$0")/common.bash"

# ---- migrate ----

exits 1 'migrate --check without a store' "$weft" migrate --store sqlite:none.db --check
if [[ -e none.db ]]; then bad 'makes none'; else ok 'makes none'; fi
exits 1 'migrate --check of a new one' "$weft" migrate --store "$store" --check
exits 0 'migrate' "$weft" migrate --store "$store"
has "$out" '^applied 1 ' 'says what it did'
exits 0 'migrate again' "$weft" migrate --store "$store"
has "$out" 'up to date' 'has nothing to do'
exits 0 'migrate --check' "$weft" migrate --store "$store" --check --json
json "$out" 'v["before"] == v["after"] == v["known"]' 'says so'
exits 2 'a store that is none' "$weft" migrate --store nonsense:
has "$err" '^hint: ' 'gets a hint'
printf 'this is no database, but a text that is long enough to be one\n%.0s' {1..50} >text.db
exits 1 'a file that is none' "$weft" migrate --store sqlite:text.db
echo "store = $store" >weft.conf
exits 0 'the store of the settings' "$weft" migrate --check
echo 'nonsense' >>weft.conf
exits 2 'settings that are wrong' "$weft" migrate --check
exits 0 'do not matter to --store' "$weft" migrate --check --store "$store"
rm weft.conf
exits 0 'the store of the environment' env WEFT_STORE="$store" "$weft" migrate --check
exits 2 'it needs a store' "$weft" migrate --server http://127.0.0.1:1

# ---- a store that is not there ----

# Only commands that bring or serve work create a store; for all others it is a mistyped path.
nobody=01932c07-5f3e-7a10-8c51-0123456789ab
typo=${store/weft.db/typo.db}
if [[ $typo == "$store" ]]; then typo=${store}_typo; fi
for command in ls counts lanes 'lanes mail --pause' 'lanes mail --remove' workers replicas \
    scanners 'token ls' 'token create --name a --scopes read' 'token revoke 1' 'token rotate 1' \
    "show $nobody" "cancel $nobody" "replay $nobody" 'flow ls' "flow show $nobody"; do
    # shellcheck disable=SC2086
    exits 3 "$command without a store" "$weft" $command --store "$typo"
    has "$err" '^weft: there is no store at (sqlite|postgres)[^ ]*typo' 'names the place'
    has "$err" '^hint: check the path or URL; .weft serve., .submit.' 'and says what creates one'
done
is "$(find . -name '*typo*')" '' 'no file is left behind'
exits 0 'submit creates a store' "$weft" submit -k a '{}' --store "$typo"
exits 0 'ls then finds it' "$weft" ls --store "$typo"

# ---- URLs of the wrong kind ----

exits 2 'a path without a scheme' "$weft" counts --store weft.db
has "$err" 'for the file weft.db write sqlite:weft.db' 'is told how to write it'
exits 2 'a scheme without a store' "$weft" counts --store mysql://u:secret@h/d
has "$err" '^hint: a store is sqlite:PATH or postgres://' 'is told what there is'
lacks "$err" 'secret' 'without the password'
exits 2 'sqlite: with a host' "$weft" counts --store sqlite://weft.db
has "$err" '^hint: write sqlite:weft.db' 'is told how to write it'
exits 2 'a server where a store is wanted' "$weft" counts --store http://127.0.0.1:1
has "$err" 'use --server$' 'is told the option'
exits 2 'the same in the environment' env WEFT_STORE=http://127.0.0.1:1 "$weft" counts
has "$err" 'use WEFT_SERVER$' 'is told the variable'
exits 2 'the same for migrate' "$weft" migrate --store http://127.0.0.1:1
has "$err" '^hint: name a server with --server' 'is told the option'
exits 2 'a store where a server is wanted' "$weft" counts --server sqlite:wrong.db
has "$err" 'use --store$' 'is told the option'
exits 2 'the same in the environment' env WEFT_SERVER=sqlite:wrong.db "$weft" counts
has "$err" 'use WEFT_STORE$' 'is told the variable'
exits 2 'a server without a scheme' "$weft" counts --server 127.0.0.1:1
has "$err" 'must begin with http:// or https://' 'is told how to write it'
if [[ -e wrong.db ]]; then bad 'no file is created'; else ok 'no file is created'; fi
exits 1 'a file that is no database' "$weft" counts --store sqlite:text.db
has "$err" 'text.db: file is not a database' 'is told'
has "$err" '^hint: name another file' 'what to do'

export WEFT_STORE=$store

# ---- lanes, counts ----

exits 0 'no lanes' "$weft" lanes
is "$(wc -l <<<"$out")" 1 'only titles'
"$weft" submit -k a -l mail --count 3 '{}' >/dev/null
"$weft" submit -k a -l images --delay 1h '{}' >/dev/null
exits 0 'lanes' "$weft" lanes
has "$out" '^mail +open +- +- +3 +0' 'with what is in them'
exits 3 'a lane that is not there' "$weft" lanes nowhere
exits 0 'pause' "$weft" lanes mail --pause
has "$out" '^mail +paused' 'is shown'
exits 0 'limit and weights' "$weft" lanes mail --max-running 4 --weight acme=3 --weight b=2 --json
json "$out" 'v["paused"] and v["max_running"] == 4 and v["weights"] == {"acme": 3, "b": 2}' \
    'what is not named stays'
exits 0 'resume' "$weft" lanes mail --resume --weight acme=0 --json
json "$out" 'not v["paused"] and v["max_running"] == 4 and v["weights"] == {"b": 2}' 'as it was'
exits 0 'retention' "$weft" lanes mail --retention 3d
has "$out" '^mail +open +4 +3d +3 +0' 'is shown as it is typed'
exits 0 'something else' "$weft" lanes mail --max-running 4 --json
json "$out" 'v["retention_ms"] == 3 * 86400000' 'leaves it'
exits 0 'no retention' "$weft" lanes mail --retention 0 --json
json "$out" 'v["retention_ms"] == 0' 'is the default again'
exits 2 'a retention that is none' "$weft" lanes mail --retention 11000d

# a lane that nothing uses may be a mistyped name
for change in --pause --resume '--max-running 1' '--retention 3d' '--weight acme=3'; do
    # shellcheck disable=SC2086
    exits 3 "$change of a lane that nothing uses" "$weft" lanes fresh $change
done
has "$err" '^weft: no such lane: fresh$' 'says that there is none'
has "$err" '^hint: use --create to set it up before its first work; lanes in use: images, mail$' \
    'names --create and the lanes in use'
exits 3 'a mistyped name' "$weft" lanes maill --pause
has "$err" "did you mean 'mail'\\? lanes in use: images, mail" 'gets the nearest one'
exits 3 'looking at a mistyped name' "$weft" lanes maill
has "$err" "^hint: did you mean 'mail'\\?" 'gets the nearest one too'
exits 0 'the lanes' "$weft" lanes --json
json "$out" '[i["lane"] for i in v["items"]] == ["images", "mail"]' 'none was created'
exits 0 'a lane before its first work' "$weft" lanes fresh --max-running 1 --create --json
json "$out" 'v["max_running"] == 1' 'is created'
exits 0 'once it is there' "$weft" lanes fresh --pause --json
json "$out" 'v["paused"] and v["max_running"] == 1' 'it needs no --create'
exits 0 'all of them' "$weft" lanes --json
json "$out" '[i["lane"] for i in v["items"]] == ["fresh", "images", "mail"]' 'by name'
exits 2 'removing and setting' "$weft" lanes fresh --remove --pause
exits 2 'removing no lane' "$weft" lanes --remove
exits 0 'remove' "$weft" lanes fresh --remove
has "$out" '^the settings of lane fresh are removed' 'says so'
exits 3 'remove again' "$weft" lanes fresh --remove
has "$err" "^weft: lane 'fresh' has no settings" 'there is nothing to remove'
exits 0 'remove for programs' "$weft" lanes mail --remove --json
json "$out" 'v == {"lane": "mail", "removed": True}' 'says so too'
exits 0 'the lanes after that' "$weft" lanes
lacks "$out" '^fresh' 'a lane that nothing uses is gone'
has "$out" '^mail +open +- +- +3 +0' 'one with work stays, with the defaults'
exits 2 'a change without a name' "$weft" lanes --pause
exits 2 'both ways' "$weft" lanes mail --pause --resume
exits 2 'a weight that is none' "$weft" lanes mail --weight acme
exits 2 'a limit that is none' "$weft" lanes mail --max-running -1

exits 0 'counts' "$weft" counts
has "$out" '^mail +3 +0 +0' 'of each lane'
has "$out" '^\(all\) +3 +0 +1' 'and together'
is "$(tail -n 1 <<<"$out")" 'as of now' 'counts of a store are of now'
exits 0 'lanes' "$weft" lanes
is "$(tail -n 1 <<<"$out")" 'as of now' 'what lanes shows of it too'
exits 0 'counts --json' "$weft" counts --json --lane mail
json "$out" 'v["as_of"] and [i["ready"] for i in v["items"]] == [3]' 'of one lane'
json "$out" 'v["age_ms"] == 0' 'with their age'
: >watched # so that it is there when it is looked at
timeout 60 "$weft" counts --json --watch=100ms >>watched 2>/dev/null &
watcher=$!
for ((i = 0; i < 1000 && $(wc -l <watched) < 3; i++)); do sleep 0.05; done
kill "$watcher"
wait "$watcher" || true
if [[ $(wc -l <watched) -ge 3 ]]; then ok 'counts --watch goes on'; else bad 'counts --watch'; fi

# ---- workers ----

exits 0 'workers' "$weft" workers
has "$out" '^WORKER +LEASES +SEEN' 'has titles'
exits 0 'workers --json' "$weft" workers --json
json "$out" 'v["items"] == []' 'none'
exits 3 'a worker that is not there' "$weft" workers nobody
exits 2 'a goodbye to nobody' "$weft" workers --goodbye
exits 3 'a goodbye to one that is not there' "$weft" workers nobody --goodbye
has "$err" "there is no worker 'nobody'" 'is told'

# ---- tokens ----

exits 0 'token create' "$weft" token create --name billing --scopes submit,read --expires 90d
has "$out" '^weft_[0-9]+_[A-Za-z0-9_-]{43}$' 'prints the token, alone'
has "$err" 'shown this once' 'and a note on stderr'
secret=${out#weft_*_} # which may have a _ of its own
exits 0 'token create --json' "$weft" token create --name ops --scopes admin --namespace prod --json
json "$out" 'v["token"].startswith("weft_") and v["namespace"] == "prod"' 'has it too'
second=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["id"])' "$out")
exits 0 'token ls' "$weft" token ls
has "$out" 'billing +\(any\) +read,submit +.*in 89 d' 'shows what it may'
lacks "$out" "${secret:0:20}" 'but not the secret'
exits 0 'token ls --json' "$weft" token ls --json
json "$out" '[i["name"] for i in v["items"]] == ["billing", "ops"]' 'by id'
if [[ -e weft.db ]]; then
    lacks "$(cat weft.db* | tr -d '\0')" "$secret" 'the store does not hold the secret'
fi
exits 0 'token rotate' "$weft" token rotate 1 --expires 2w --json
json "$out" 'v["id"] == 1 and v["token"].startswith("weft_3_") and not v["old_expires_at"]' \
    'on a store'
exits 0 'token list' "$weft" token list
has "$out" 'billing +\(any\) +read,submit +.* never +in 13 d' 'its end has changed'
exits 0 'token revoke' "$weft" token revoke "$second"
exits 0 'token ls' "$weft" token ls
lacks "$out" 'ops' 'it is gone'
exits 3 'revoke again' "$weft" token revoke "$second"
exits 2 'no name' "$weft" token create --scopes read
exits 2 'no scopes' "$weft" token create --name a
exits 2 'a scope that is none' "$weft" token create --name a --scopes root
exits 2 'a time that is past' "$weft" token create --name a --scopes read \
    --expires 2001-01-01T00:00:00Z
exits 2 'a time that is none' "$weft" token create --name a --scopes read --expires soon
has "$err" "it must be like 90d or" 'says how it is typed'
exits 2 'a time without length' "$weft" token create --name a --scopes read --expires 0d
exits 0 'a moment' "$weft" token create --name moment --scopes read --expires 2999-01-31T12:00:00Z
exits 2 'an id that is none' "$weft" token revoke x
exits 2 'a verb that is none' "$weft" token make

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
has "$(COLUMNS=80 "$weft" ls)" '…' 'what is cut ends with an ellipsis'
lacks "$("$weft" ls)" '…' 'nothing is cut in a pipe'
escape=$'\033'
lacks "$("$weft" ls)" "$escape" 'no colours in a pipe'
has "$("$weft" ls --color always)" "$escape\[36mready$escape\[0m" 'unless they are wanted'
has "$(NO_COLOR=1 "$weft" ls --color always)" "$escape" 'which beats NO_COLOR'
lacks "$("$weft" ls)" ' $' 'no line ends with a space'
"$weft" submit -k x -l wide --key wide --deadline +1d '{}' >/dev/null
"$weft" cancel --key wide --reason '世界 is wide: 世界世界世界世界世界世界世界世界世界世界' --yes >/dev/null
out=$(COLUMNS=110 "$weft" ls --key wide)
if [[ $(wc -L <<<"$out") -le 110 ]]; then ok 'wide characters are'; else bad 'wide' "$out"; fi
has "$out" '世界 is wide.*…$' 'cut between cells'
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    on_a_terminal() { script -qec "${*@Q}" /dev/null </dev/null; }
    has "$(on_a_terminal "$weft" ls)" "$escape" 'colours on a terminal'
    lacks "$(NO_COLOR=1 on_a_terminal "$weft" ls)" "$escape\[3" 'but not with NO_COLOR'
    lacks "$(on_a_terminal "$weft" ls --color never)" "$escape\[3" 'or --color never'
    lacks "$(TERM=dumb on_a_terminal "$weft" ls)" "$escape\[3" 'or a dumb terminal'
    has "$(on_a_terminal "$weft" submit -k x -l bar --count 3000 1)" \
        'submit \[#+\.*\] [0-9]+/3000' 'a progress bar'
fi
id=$("$weft" submit -k x "red$escape[31m and"$'\n''two lines')
lacks "$("$weft" show "$id")" "$escape" 'text from elsewhere does not speak to the terminal'
has "$("$weft" show "$id")" '^payload .* and two lines ' 'nor begin a line'
plan
