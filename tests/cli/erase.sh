#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft erase: asking, waiting, receipts and verification, in a store.

source "$(dirname "$0")/work.bash"
source "$(dirname "$0")/common.bash"
export WEFT_STORE=$store weft

exits 0 'the store is made' "$weft" migrate
exits 0 'one of the tenant' "$weft" submit --kind job --tenant kanarie --tag user=42 '"x"'
exits 0 'another tenant' "$weft" submit --kind job --tenant other

exits 2 'no subject' "$weft" erase --reason 'why'
exits 2 'two subjects' "$weft" erase --tenant a --tag b:c --reason 'why'
exits 2 'no reason' "$weft" erase --tenant a
exits 2 'an unknown verb' "$weft" erase burn
exits 2 'verify without an id' "$weft" erase verify
exits 3 'an unknown receipt' "$weft" erase show 00000000-0000-7000-8000-000000000000

exits 0 'a tenant is erased' "$weft" erase --tenant kanarie --reason 'ticket 1' --wait --json
json "$out" '(v["state"], v["reason"]) == ("done", "ticket 1")' 'the receipt says that it is done'
json "$out" '(v["counts"]["removed"], v["counts"]["name"]) == (1, 1)' 'and what was done'
lacks "$out" kanarie 'and does not name the tenant'
id=$(sed -n 's/.*"id":"\([^"]*\)".*/\1/p' <<<"$out")
exits 0 'the list' "$weft" erase ls
has "$out" 'done +tenant' 'shows it'
exits 0 'verification finds nothing' "$weft" erase verify "$id"
has "$out" '^verified: 0 rows' 'it says so'
exits 0 'the receipt' "$weft" erase show "$id"
has "$out" '^removed +1$' 'has the counts'
exits 0 'what is left' "$weft" ls --json
json "$out" '[item["tenant"] for item in v["items"]] == ["other"]' 'is the other tenant'
plan
