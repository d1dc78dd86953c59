/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Flows of the benchmark: chains, in which each node comes after the one before it.
 *
 * Every chain that is under way has a number; the connection that completes its last node submits
 * it again. The payload of a node holds the number of its chain and its place. A hop is the time
 * from the answer to the completion of a node to the answer of the claim that got the next one: the
 * cascade, and the claim after it. A claim may be answered before the completion that made it
 * possible: that is a hop of 0. A node that begins before its upstream was completed is an error of
 * the server.
 */

#include "cmd/bench/bench_chains.h"
#include "base/arena.h"
#include "base/json.h"
#include "cmd/bench/bench_body.h"
#include "wire/wire.h"

enum { BODY_MAX = 256 << 20 };

struct chain {
    struct weft_buf request; /* its submission */
    bool busy;
    uint32_t sent;          /* nodes whose completion has been sent */
    weft_usec completed_us; /* when the last completion was answered; 0: it is not */
};

struct weft_bench_chains {
    struct weft_arena *arena; /* of all of it */
    const struct weft_bench_plan *plan;
    struct chain *chain; /* array of plan->flows */
    uint32_t *idle;      /* a stack of numbers */
    uint32_t idle_count;
};

/* ---- Submitting ------------------------------------------------------------------------------ */

static void add_node(const struct weft_bench_plan *plan, uint32_t chain, uint32_t node,
                     struct weft_buf *out)
{
    weft_buf_printf(out, "%s{\"name\":\"n%u\",\"lane\":\"%s\",\"kind\":\"" WEFT_BENCH_KIND "\"",
                    node > 0 ? "," : "", node, plan->lane);
    weft_buf_printf(out, ",\"payload\":{\"chain\":%u,\"node\":%u,\"data\":", chain, node);
    weft_bench_document(out, plan->payload_size, 0);
    weft_buf_add_text(out, "}");
    if (node > 0)
        weft_buf_printf(out, ",\"after\":[\"n%u\"]", node - 1);
    weft_buf_add_char(out, '}');
}

struct weft_bench_chains *weft_bench_chains_new(const struct weft_bench_plan *plan,
                                                const struct weft_bench_target *target)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_bench_chains *chains = weft_new(arena, struct weft_bench_chains);
    *chains = (struct weft_bench_chains){.arena = arena,
                                         .plan = plan,
                                         .chain = weft_new_array(arena, struct chain, plan->flows),
                                         .idle = weft_new_array(arena, uint32_t, plan->flows)};
    struct weft_buf body;
    weft_buf_init(&body, BODY_MAX);
    for (uint32_t i = 0; i < plan->flows; i++) {
        weft_buf_clear(&body);
        weft_buf_add_text(&body, "{\"name\":\"" WEFT_BENCH_KIND "\",\"nodes\":[");
        for (uint32_t node = 0; node < plan->nodes; node++)
            add_node(plan, i, node, &body);
        weft_buf_add_text(&body, "]}");
        weft_buf_init(&chains->chain[i].request, BODY_MAX);
        weft_bench_request(target, "/v1/flows", &body, &chains->chain[i].request);
        chains->idle[chains->idle_count++] = i;
    }
    weft_buf_done(&body);
    return chains;
}

void weft_bench_chains_free(struct weft_bench_chains *chains)
{
    if (!chains)
        return;
    for (uint32_t i = 0; i < chains->plan->flows; i++)
        weft_buf_done(&chains->chain[i].request);
    weft_arena_free(chains->arena);
}

bool weft_bench_chain_idle(const struct weft_bench_chains *chains)
{
    return chains->idle_count > 0;
}

uint32_t weft_bench_chain_begin(struct weft_bench_chains *chains)
{
    uint32_t number = chains->idle[--chains->idle_count];
    struct chain *chain = &chains->chain[number];
    chain->busy = true;
    chain->sent = 0;
    chain->completed_us = 0;
    return number;
}

const struct weft_buf *weft_bench_chain_request(const struct weft_bench_chains *chains,
                                                uint32_t number)
{
    return &chains->chain[number].request;
}

static void end_chain(struct weft_bench_chains *chains, uint32_t number)
{
    struct chain *chain = &chains->chain[number];
    if (chain->busy)
        chains->idle[chains->idle_count++] = number;
    chain->busy = false;
}

/* ---- Moving on ------------------------------------------------------------------------------- */

static bool find_number(const struct weft_json *object, const char *name, uint32_t below,
                        uint32_t *ret_number)
{
    struct weft_json value;
    int64_t number;
    if (!weft_wire_member(object, name, &value) || !weft_json_i64(&value, &number) || number < 0 ||
        number >= below)
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

/* The chain and the place that a claimed item names. */
static bool read_member(const struct weft_bench_chains *chains, const struct weft_json *item,
                        struct weft_bench_member *ret_member)
{
    struct weft_json payload;
    return weft_wire_member(item, "payload", &payload) &&
           find_number(&payload, "chain", chains->plan->flows, &ret_member->chain) &&
           find_number(&payload, "node", chains->plan->nodes, &ret_member->node);
}

static void note_start(struct weft_bench_chains *chains, const struct weft_bench_member *member,
                       weft_usec now_us, struct weft_bench_result *result)
{
    struct chain *chain = &chains->chain[member->chain];
    /* A submission that was repeated, because its answer was lost, gives two chains of a number. */
    if (member->node > chain->sent && result->doubtful == 0)
        weft_bench_count_error(&result->errors, "too_early", 9);
    else if (member->node > 0 && member->node == chain->sent && result->measuring)
        weft_hist_add(&result->hop, chain->completed_us ? now_us - chain->completed_us : 0);
}

enum weft_rc weft_bench_chains_claimed(struct weft_bench_chains *chains,
                                       const struct weft_bench_answer *answer, weft_usec now_us,
                                       struct weft_bench_member *ret_member,
                                       struct weft_bench_result *result, struct weft_err *err)
{
    struct weft_json value, items;
    struct weft_json_iter iter;
    enum weft_rc rc = weft_json_check(answer->body, answer->body_size, &value, err);
    if (rc || !weft_wire_member(&value, "items", &items))
        return rc;
    weft_json_iter_init(&iter, &items);
    for (size_t i = 0; weft_json_next(&iter); i++) {
        if (!read_member(chains, &iter.value, &ret_member[i]))
            return weft_fail(err, WEFT_INVALID_VALUE, "a claimed item is no node of a chain");
        note_start(chains, &ret_member[i], now_us, result);
    }
    return WEFT_OK;
}

void weft_bench_chains_completing(struct weft_bench_chains *chains,
                                  const struct weft_bench_member *member, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct chain *chain = &chains->chain[member[i].chain];
        if (chain->sent == member[i].node) {
            chain->sent++;
            chain->completed_us = 0;
        }
    }
}

size_t weft_bench_chains_completed(struct weft_bench_chains *chains,
                                   const struct weft_bench_member *member, size_t count,
                                   weft_usec now_us)
{
    size_t ended = 0;
    for (size_t i = 0; i < count; i++) {
        struct chain *chain = &chains->chain[member[i].chain];
        if (chain->sent == member[i].node + 1)
            chain->completed_us = now_us;
        if (member[i].node + 1 == chains->plan->nodes) {
            end_chain(chains, member[i].chain);
            ended++;
        }
    }
    return ended;
}
