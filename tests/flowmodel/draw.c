/* SPDX-License-Identifier: Apache-2.0 */

/* Random numbers from a seed, random graphs, and the log of operations. */

#include "flowmodel.h"

size_t below(struct world *w, size_t bound)
{
    return dice_below(&w->random, bound);
}

bool chance(struct world *w, unsigned percent)
{
    return dice_chance(&w->random, percent);
}

static void draw_join(struct world *w, struct member *member)
{
    uint32_t upstreams = (uint32_t)__builtin_popcount(member->after);
    member->join = (enum weft_join)below(w, 3);
    if (member->join == WEFT_JOIN_QUORUM && upstreams == 0)
        member->join = WEFT_JOIN_ALL;
    if (member->join == WEFT_JOIN_QUORUM)
        member->k = 1 + (uint32_t)below(w, upstreams);
    member->on_satisfied = (enum weft_on_satisfied)below(w, 3);
    member->cancels =
        member->on_satisfied == WEFT_ON_SATISFIED_CANCEL_REMAINING ||
        (member->on_satisfied == WEFT_ON_SATISFIED_DEFAULT && member->join != WEFT_JOIN_ALL);
}

void draw_members(struct world *w, struct flow *flow, size_t count)
{
    unsigned density = 10 + (unsigned)below(w, 60);
    for (size_t i = flow->count; i < flow->count + count; i++) {
        struct member *member = &flow->member[i];
        *member = (struct member){.state = WEFT_STATE_READY, .fired = SATISFIED};
        (void)snprintf(member->name, sizeof(member->name), "n%zu", i);
        (void)snprintf(member->kind, sizeof(member->kind), "k%zu_%zu", (size_t)(flow - w->flow), i);
        for (size_t up = 0; up < i; up++)
            member->after |= (uint32_t)chance(w, density) << up;
        draw_join(w, member);
        if (chance(w, 10))
            member->delay_ms = 1000 * (int64_t)(1 + below(w, 5));
        if (chance(w, 8))
            member->deadline_us = w->now_us + (weft_usec)(1 + below(w, 60)) * WEFT_SECOND;
        if (member->after) {
            member->state = WEFT_STATE_BLOCKED;
            member->fired = OPEN_JOIN;
        } else if (member->delay_ms) {
            member->state = WEFT_STATE_DELAYED;
            member->due_us = w->now_us + member->delay_ms * WEFT_MS;
        }
    }
    flow->count += count;
}

void draw_flow(struct world *w, struct flow *flow)
{
    *flow = (struct flow){.state = WEFT_FLOW_OPEN, .revision = 1};
    draw_members(w, flow, 1 + below(w, chance(w, 70) ? 6 : DRAWN_MAX));
}

struct weft_node *nodes_of(const struct flow *flow, size_t first, struct weft_arena *arena)
{
    static const struct weft_policy policy = {.max_attempts = 2,
                                              .backoff = WEFT_BACKOFF_FIXED,
                                              .initial_ms = 1000,
                                              .no_jitter = true,
                                              .lease_ms = 86400000};
    size_t count = flow->count - first;
    struct weft_node *node = weft_new_array(arena, struct weft_node, count);
    for (size_t i = 0; i < count; i++) {
        const struct member *member = &flow->member[first + i];
        const char **after = weft_new_array(arena, const char *, NODES_MAX);
        node[i] = (struct weft_node){.name = member->name,
                                     .spec = {.kind = member->kind,
                                              .delay_ms = member->delay_ms,
                                              .deadline_us = member->deadline_us,
                                              .policy = &policy},
                                     .after = after,
                                     .join = member->join,
                                     .k = member->k,
                                     .on_satisfied = member->on_satisfied};
        for (size_t up = 0; up < flow->count; up++)
            if (member->after >> up & 1)
                after[node[i].after_count++] = flow->member[up].name;
    }
    return node;
}

void note(struct world *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    diary_add(&w->diary, w->step, fmt, args);
    va_end(args);
}

static void print_member(const struct flow *flow, const struct member *member)
{
    static const char *const join[] = {"all", "any", "quorum"};
    printf("#   %s:", member->name);
    for (size_t up = 0; up < flow->count; up++)
        if (member->after >> up & 1)
            printf(" %s", flow->member[up].name);
    printf(" (%s %u, %s, delay %lld ms%s)\n", join[member->join], member->k,
           member->cancels ? "cancel" : "let run", (long long)member->delay_ms,
           member->deadline_us ? ", deadline" : "");
}

void print_story(const struct world *w)
{
    for (size_t f = 0; f < w->flows; f++) {
        printf("# flow %zu:\n", f);
        for (size_t i = 0; i < w->flow[f].count; i++)
            print_member(&w->flow[f], &w->flow[f].member[i]);
    }
    printf("# the steps%s:\n", w->eager ? ", each with its cascade" : "");
    diary_print(&w->diary, DIARY_LINES);
    printf("# to see it again: flowmodel %" PRIu64 "\n", w->seed);
}
