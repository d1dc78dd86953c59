/* SPDX-License-Identifier: Apache-2.0 */

#include "net/group/fair.h"

#include "base/limits.h"
#include "base/str.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The requests of one token in a line, its walks apart from the rest. Parties of a line take turns
 * too. They are searched one after the other: there are as many as tokens with requests that wait.
 */
struct party {
    struct party *after; /* in the line; the first one's turn is next */
    struct weft_request *first, **last;
    int32_t token;
    bool walks;
    size_t count;
};

struct weft_fair_line {
    struct weft_fair_line *before, *after; /* in the ring */
    struct weft_fair_line *same;           /* the next one of its bucket */
    struct party *party, **last_party;
    struct party home; /* the first one to come: most lines have no other; in use: count > 0 */
    struct weft_fair_sum sum;
    size_t taken; /* items that the call under way took */
    char ns[WEFT_NAME_MAX + 1];
};

/* ---- Lines ----------------------------------------------------------------------------------- */

static const char *ns_of(const struct weft_request *request)
{
    return request->ns ? request->ns : "";
}

static size_t bucket_of(const char *ns)
{
    return weft_text_bucket(ns, WEFT_FAIR_BUCKETS);
}

static struct weft_fair_line *find(const struct weft_fair *fair, const char *ns)
{
    struct weft_fair_line *line = fair->bucket[bucket_of(ns)];
    while (line && strncmp(line->ns, ns, sizeof(line->ns) - 1) != 0)
        line = line->same;
    return line;
}

/* A new line comes last: behind all that wait already. */
static struct weft_fair_line *add_line(struct weft_fair *fair, const char *ns)
{
    struct weft_fair_line *line = fair->spare ? fair->spare : weft_alloc(1, sizeof(*line));
    fair->spare = NULL;
    *line = (struct weft_fair_line){.same = fair->bucket[bucket_of(ns)]};
    line->last_party = &line->party;
    (void)snprintf(line->ns, sizeof(line->ns), "%s", ns);
    fair->bucket[bucket_of(ns)] = line;
    line->after = fair->next ? fair->next : line;
    line->before = fair->next ? fair->next->before : line;
    line->before->after = line->after->before = line;
    if (!fair->next)
        fair->next = line;
    fair->lines++;
    return line;
}

/* An empty line goes; the turn is the next one's if it was this one's. */
static void remove_line(struct weft_fair *fair, struct weft_fair_line *line)
{
    struct weft_fair_line **place = &fair->bucket[bucket_of(line->ns)];
    while (*place != line)
        place = &(*place)->same;
    *place = line->same;
    line->before->after = line->after;
    line->after->before = line->before;
    if (fair->next == line)
        fair->next = line->after == line ? NULL : line->after;
    fair->lines--;
    free(fair->spare);
    fair->spare = line;
}

static struct party *find_party(const struct weft_fair_line *line,
                                const struct weft_request *request)
{
    struct party *party = line->party;
    while (party && (party->token != request->token || party->walks != request->walks))
        party = party->after;
    return party;
}

/* Puts a party behind the others of its line. */
static void append_party(struct weft_fair_line *line, struct party *party)
{
    party->after = NULL;
    *line->last_party = party;
    line->last_party = &party->after;
}

static struct party *add_party(struct weft_fair_line *line, const struct weft_request *request)
{
    struct party *party = line->home.count == 0 ? &line->home : weft_alloc(1, sizeof(*party));
    *party = (struct party){.token = request->token, .walks = request->walks};
    party->last = &party->first;
    append_party(line, party);
    return party;
}

/* A party had its turn: it is the last one now, or goes when it has no more. */
static void end_turn(struct weft_fair_line *line, struct party *party)
{
    struct party **place = &line->party;
    while (*place != party)
        place = &(*place)->after;
    *place = party->after;
    if (!party->after)
        line->last_party = place;
    if (party->count > 0)
        append_party(line, party);
    else if (party != &line->home)
        free(party);
}

static bool is_small(const struct weft_fair_line *line)
{
    return line->sum.items <= WEFT_SMALL_ITEMS && line->sum.bytes <= WEFT_SMALL_BYTES;
}

static void add_to(struct weft_fair_sum *sum, const struct weft_fair_sum *more, int sign)
{
    bool adds = sign > 0;
    sum->count = adds ? sum->count + more->count : sum->count - more->count;
    sum->items = adds ? sum->items + more->items : sum->items - more->items;
    sum->bytes = adds ? sum->bytes + more->bytes : sum->bytes - more->bytes;
}

/* Counts a request that came into a line (1) or left it (-1); returns what it adds to sums. */
static struct weft_fair_sum count_in(struct weft_fair *fair, struct weft_fair_line *line,
                                     const struct weft_request *request, int sign)
{
    const struct weft_fair_sum one = {1, request->weight, request->items.bytes};
    if (is_small(line))
        add_to(&fair->small, &line->sum, -1);
    add_to(&line->sum, &one, sign);
    add_to(&fair->all, &one, sign);
    if (is_small(line))
        add_to(&fair->small, &line->sum, 1);
    return one;
}

/* ---- In -------------------------------------------------------------------------------------- */

void weft_fair_put(struct weft_fair *fair, struct weft_request *request)
{
    struct weft_fair_line *line = find(fair, ns_of(request));
    if (!line)
        line = add_line(fair, ns_of(request));
    struct party *party = find_party(line, request);
    if (!party)
        party = add_party(line, request);
    request->next = NULL;
    *party->last = request;
    party->last = &request->next;
    party->count++;
    (void)count_in(fair, line, request, 1);
}

struct weft_fair_sum weft_fair_of(const struct weft_fair *fair, const char *ns)
{
    const struct weft_fair_line *line = find(fair, ns ? ns : "");
    return line ? line->sum : (struct weft_fair_sum){0};
}

size_t weft_fair_like(const struct weft_fair *fair, const struct weft_request *request)
{
    const struct weft_fair_line *line = find(fair, ns_of(request));
    const struct party *party = line ? find_party(line, request) : NULL;
    return party ? party->count : 0;
}

/* ---- Out ------------------------------------------------------------------------------------- */

/* Takes the first request of a party; adds it to the sum. */
static struct weft_request *pop(struct weft_fair *fair, struct weft_fair_line *line,
                                struct party *party, struct weft_fair_sum *sum)
{
    struct weft_request *request = party->first;
    party->first = request->next;
    party->count--;
    if (!party->first)
        party->last = &party->first;
    end_turn(line, party);
    const struct weft_fair_sum one = count_in(fair, line, request, -1);
    add_to(sum, &one, 1);
    line->taken += one.items;
    return request;
}

/* The first party of a line that may have its turn now; or NULL. */
static struct party *next_party(const struct weft_fair_line *line, weft_fair_may *may,
                                const void *context)
{
    struct party *party = line->party;
    while (party && may && !may(context, party->first))
        party = party->after;
    return party;
}

bool weft_fair_any(const struct weft_fair *fair, weft_fair_may *may, const void *context)
{
    const struct weft_fair_line *line = fair->next;
    size_t looked = 0;
    while (looked < fair->lines && !next_party(line, may, context)) {
        line = line->after;
        looked++;
    }
    return looked < fair->lines;
}

/* The party of a line that the limit means, or NULL. */
static struct party *meant_of(const struct weft_fair_line *line,
                              const struct weft_fair_limit *limit)
{
    /* A large line of which this call took something may be small by now. */
    if (line->taken == 0 && limit->lines != WEFT_FAIR_ALL &&
        is_small(line) != (limit->lines == WEFT_FAIR_SMALL))
        return NULL;
    return next_party(line, limit->may, limit->context);
}

static bool fits(const struct weft_fair_line *line, const struct weft_request *request,
                 const struct weft_fair_limit *limit, const struct weft_fair_sum *sum, bool shared)
{
    if (sum->count == 0)
        return true;
    if (shared && line->taken > 0 && line->taken + request->weight > limit->share)
        return false;
    return sum->items + request->weight <= limit->items &&
           sum->bytes + request->items.bytes <= limit->bytes;
}

size_t weft_fair_take(struct weft_fair *fair, const struct weft_fair_limit *limit,
                      struct weft_request **to, struct weft_fair_sum *ret_sum)
{
    struct weft_fair_sum sum = {0};
    struct weft_fair_line *line = fair->next, *missed = NULL;
    bool shared = fair->lines > 1;
    for (size_t i = 0; i < fair->lines; i++, line = line->after)
        line->taken = 0;
    size_t in_vain = 0; /* lines looked at since a request was taken */
    while (line && sum.count < limit->count && in_vain < fair->lines) {
        struct weft_fair_line *after = line->after;
        struct party *meant = meant_of(line, limit);
        in_vain++;
        if (meant && fits(line, meant->first, limit, &sum, shared)) {
            struct weft_request **place = &to[sum.count];
            *place = pop(fair, line, meant, &sum);
            in_vain = 0;
            if (!line->party)
                remove_line(fair, line);
        } else if (meant && !missed && line->taken == 0) {
            missed = line;
        }
        line = fair->lines > 0 ? after : NULL;
    }
    fair->next = missed ? missed : line;
    *ret_sum = sum;
    return sum.count;
}

void weft_fair_done(struct weft_fair *fair)
{
    assert(fair->lines == 0);
    free(fair->spare);
    fair->spare = NULL;
}
