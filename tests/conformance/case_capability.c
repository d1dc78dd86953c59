/* SPDX-License-Identifier: Apache-2.0 */

/* Capabilities: a claim gets only work whose capabilities it offers. */

#include "conformance.h"

#include "base/arena.h"
#include "base/limits.h"
#include "engine/job/claim.h"
#include "weft/weft.h"

enum { TOKENS_MAX = 4 };

struct set {
    const char *token[TOKENS_MAX];
};

static size_t set_size(const struct set *set)
{
    size_t count = 0;
    while (count < TOKENS_MAX && set->token[count])
        count++;
    return count;
}

static const struct {
    const char *name;
    struct set needed, offered;
    bool fits;
} row[] = {
    {"nothing needed, nothing offered", {{0}}, {{0}}, true},
    {"nothing needed, something offered", {{0}}, {{"gpu"}}, true},
    {"something needed, nothing offered", {{"gpu"}}, {{0}}, false},
    {"exact", {{"gpu"}}, {{"gpu"}}, true},
    {"exact, two", {{"gpu", "eu"}}, {{"gpu", "eu"}}, true},
    {"order does not matter", {{"gpu", "eu"}}, {{"eu", "gpu"}}, true},
    {"superset", {{"gpu"}}, {{"eu", "gpu", "ssd"}}, true},
    {"superset on both sides", {{"b", "d"}}, {{"a", "b", "c", "d"}}, true},
    {"one is missing: the first", {{"a", "b"}}, {{"b", "c"}}, false},
    {"one is missing: the last", {{"a", "z"}}, {{"a", "b"}}, false},
    {"one is missing: in the middle", {{"a", "m", "z"}}, {{"a", "z"}}, false},
    {"disjoint", {{"a"}}, {{"b"}}, false},
    {"repeated by the spec", {{"gpu", "gpu"}}, {{"gpu"}}, true},
    {"repeated by the worker", {{"gpu"}}, {{"gpu", "gpu"}}, true},
    {"a prefix is not the token", {{"gpu"}}, {{"gpu2"}}, false},
    {"nor the other way round", {{"gpu2"}}, {{"gpu"}}, false},
    {"both prefix and token", {{"gpu", "gpu2"}}, {{"gpu2", "gpu"}}, true},
    {"a prefix in front of a comma", {{"gpu"}}, {{"gpu-a", "gpu.b"}}, false},
    {"case matters", {{"GPU"}}, {{"gpu"}}, false},
    {"punctuation sorts around the comma", {{"a", "a!", "a-"}}, {{"a-", "a!", "a"}}, true},
    {"a token below the comma", {{"a!b"}}, {{"a", "a!b"}}, true},
    {"any printable ASCII", {{"zone=eu;rack:7/\"x\"'%_\\"}}, {{"zone=eu;rack:7/\"x\"'%_\\"}}, true},
};

/* Each row has a lane of its own, so that all of them lie side by side in one store. */
CASE(capability_table)
{
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        (void)submit_ok(f, &(struct weft_spec){.kind = "job",
                                               .lane = weft_arena_printf(f->arena, "row%zu", i),
                                               .capabilities = row[i].needed.token,
                                               .capability_count = set_size(&row[i].needed)});
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        const char *const lane[] = {weft_arena_printf(f->arena, "row%zu", i)};
        const struct weft_claim args = {.worker = "w",
                                        .max = 5,
                                        .lanes = lane,
                                        .lane_count = 1,
                                        .capabilities = row[i].offered.token,
                                        .capability_count = set_size(&row[i].offered)};
        is_int(claim_with(f, i % 2 ? f->a : f->b, &args).count, row[i].fits, "%s", row[i].name);
    }
}

/* The three of one lane: each worker takes what it can, and what is left waits for its worker. */
CASE(capability_waits_for_its_worker)
{
    static const char *const gpu[] = {"gpu"}, *const both[] = {"gpu", "eu"};
    struct weft_id plain = submit_job(f);
    struct weft_id needs_gpu = submit_ok(
        f, &(struct weft_spec){.kind = "job", .capabilities = gpu, .capability_count = 1});
    struct weft_id needs_both = submit_ok(
        f, &(struct weft_spec){
               .kind = "job", .priority = 9, .capabilities = both, .capability_count = 2});
    struct weft_claim_result got = claim(f, f->a, 10);
    ok(got.count == 1 && same_id(&got.item[0].id, &plain), "a worker without any takes the plain");
    struct weft_claim args = {.worker = "w", .max = 10, .capabilities = gpu, .capability_count = 1};
    got = claim_with(f, f->b, &args);
    ok(got.count == 1 && same_id(&got.item[0].id, &needs_gpu), "one with gpu takes that");
    is_int(state_of(f, &needs_both), WEFT_STATE_READY, "the third waits");
    args =
        (struct weft_claim){.worker = "w", .max = 10, .capabilities = both, .capability_count = 2};
    got = claim_with(f, f->a, &args);
    ok(got.count == 1 && same_id(&got.item[0].id, &needs_both),
       "a worker with both capabilities gets it");
}

/* A set at its limit is stored, matched and read like any other. */
CASE(capability_largest_set)
{
    const char *token[WEFT_CAPABILITIES_MAX];
    for (size_t i = 0; i < WEFT_LEN(token); i++)
        token[i] = weft_arena_printf(f->arena, "t%03zu", i);
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job",
                                                         .capabilities = token,
                                                         .capability_count = WEFT_LEN(token)});
    struct weft_execution now = describe(f, &id);
    is_int(now.capability_count, WEFT_LEN(token), "all 256 are there");
    is_str(now.capabilities[255], "t255", "the last capability is kept");
    struct weft_claim args = {.worker = "w", .capabilities = token, .capability_count = 255};
    is_int(claim_with(f, f->b, &args).count, 0, "255 of them are not enough");
    args.capability_count = 256;
    is_int(claim_with(f, f->b, &args).count, 1, "a claim with 256 capabilities is accepted");
}
