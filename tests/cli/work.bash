# SPDX-License-Identifier: Apache-2.0
#
# What scripts about `weft work` share, beside common.bash, which comes after it.

submit() {
    "$weft" submit "$@"
}

state() {
    "$weft" show "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])'
}

# until_true WORD...: runs it until it succeeds, for a minute at most.
until_true() {
    local i
    for i in {1..1200}; do
        if "$@" 2>/dev/null; then return 0; fi
        sleep 0.05
    done
    return 1
}

# in_background WORD...: starts `weft work` and fills worker.
worker=
in_background() {
    : >work.out # at once, and not when the background gets there: what is in them counts
    : >work.err
    "$weft" work "$@" >work.out 2>work.err </dev/null &
    worker=$!
    server_pid=$worker # so that leaving ends it
}

# ends CODE NAME: the worker in the background ends by itself with that exit code.
ends() {
    status=0
    if ! until_true bash -c "! kill -0 $worker"; then
        bad "$2" 'it does not end' "$(cat work.out work.err)"
        return
    fi
    wait "$worker" || status=$?
    server_pid=
    is "$status" "$1" "$2"
}
