/* SPDX-License-Identifier: Apache-2.0 */

/* Submitting, claiming, lanes, passes and the clock. */

#include "direct.h"
#include "model.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "core/spec.h"
#include "core/state.h"
#include "engine/admin/lanes.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/submit.h"
#include "engine/scan/pass.h"
#include "weft/weft.h"

#include <stdlib.h>

const char *const lane_name[LANES] = {"default", "mail", "acme-a", "acme-b"};
const char *const lane_tenant[LANES] = {NULL, NULL, "acme", "acme"};
const char *const worker_name[WORKERS + 1] = {NULL, "worker-1", "worker-2", "worker-3"};

static const char *const kinds[] = {"resize", "send"};
static const char *const tokens[] = {"gpu", "eu", "gpu"};

/* No jitter: the model must know when. */
static const char *const fatal[] = {"fatal"};
static const struct weft_policy policies[] = {
    {.no_jitter = true, .max_attempts = 3},
    {.no_jitter = true, .max_attempts = 2, .initial_ms = -1, .lease_ms = 1000, .max_lost = 1},
    {.no_jitter = true,
     .backoff = WEFT_BACKOFF_FIXED,
     .initial_ms = 2500,
     .max_lost = 2,
     .retention_ms = 15000},
    {.no_jitter = true,
     .attempt_timeout_ms = 3000,
     .max_attempts = 2,
     .no_retry = fatal,
     .no_retry_count = 1},
    {.no_jitter = true,
     .attempt_timeout_ms = 40000,
     .factor = 3,
     .max_ms = 5000,
     .max_attempts = 4},
};

/* ---- Submit ---------------------------------------------------------------------------------- */

static void random_times(struct world *w, struct weft_spec *spec)
{
    if (chance(w, 25))
        spec->delay_ms = (int64_t)below(w, 20000);
    else if (chance(w, 15))
        spec->run_at_us = w->now_us + (weft_usec)below(w, 20000000) - 5000000;
    if (chance(w, 20))
        spec->deadline_us = w->now_us + 1 + (weft_usec)below(w, 60000000);
    else if (chance(w, 2))
        spec->deadline_us = w->now_us; /* not in the future: refused */
}

static struct weft_spec random_spec(struct world *w)
{
    static const struct weft_tag tags[] = {{"zone", "eu"}, {"who", "a \"b\" \\c"}};
    static const char *const payload[] = {NULL, "{}", "[1,2,3]"};
    size_t lane = below(w, LANES), tag = below(w, 3), body = below(w, 3);
    struct weft_spec spec = {
        .lane = lane_name[lane],
        .tenant = lane_tenant[lane],
        .kind = kinds[below(w, WEFT_LEN(kinds))],
        .payload = payload[body],
        .payload_size = payload[body] ? strlen(payload[body]) : 0,
        .priority = chance(w, 40) ? (int32_t)below(w, 5) - 2 : 0,
        .policy = &policies[below(w, WEFT_LEN(policies))],
        .tags = tag ? &tags[tag - 1] : NULL,
        .tag_count = tag ? 1 : 0,
    };
    random_times(w, &spec);
    if (chance(w, 30)) {
        spec.capabilities = &tokens[below(w, 2)];
        spec.capability_count = 1 + below(w, 2);
    }
    if (chance(w, 25))
        spec.key = weft_arena_printf(w->arena, "key-%zu", below(w, 30));
    if (chance(w, 2))
        spec.kind = "not a kind";
    return spec;
}

/* What the model answers; the subject is the one created, or the holder of the key. */
struct submitted {
    enum weft_rc rc;
    struct subject *subject;
    enum weft_state state;
    bool duplicate, created;
};

static struct submitted model_submit(struct world *w, const struct weft_spec *spec)
{
    struct weft_resolved resolved;
    struct weft_err err = {0};
    enum weft_rc rc = weft_spec_resolve(spec, "default", w->now_us, w->arena, &resolved, &err);
    if (rc)
        return (struct submitted){.rc = rc};
    struct subject *holder = resolved.key ? model_by_key(w, resolved.key) : NULL;
    if (!holder) {
        struct subject *x = model_add(w, &resolved);
        return (struct submitted){.subject = x, .state = x->live.state, .created = true};
    }
    bool same =
        memcmp(holder->spec.fingerprint, resolved.fingerprint, sizeof(resolved.fingerprint)) == 0;
    return (struct submitted){.rc = same ? WEFT_OK : WEFT_CONFLICT,
                              .subject = holder,
                              .state = holder->live.state,
                              .duplicate = same};
}

static void say_submitted(size_t i, enum weft_rc rc, enum weft_state state, bool duplicate,
                          struct weft_buf *out)
{
    weft_buf_printf(out, " item %zu: %s %s%s\n", i, weft_rc_wire(rc), weft_state_name(state),
                    duplicate ? " duplicate" : "");
}

static void submit_to(struct world *w, size_t s, const struct weft_spec *spec,
                      const struct submitted *want, size_t count)
{
    struct weft_submitted got[ITEMS_MAX] = {0};
    struct weft_err err = {0};
    struct weft_buf wanted, given;
    struct store *store = &w->store[s];
    broken_call(w, s, engine_submit(store->engine, "default", spec, count, got, &err), &err);
    weft_buf_init(&wanted, 1 << 16);
    weft_buf_init(&given, 1 << 16);
    for (size_t i = 0; i < count; i++) {
        if (want[i].created && !got[i].err.rc) {
            want[i].subject->id[s] = got[i].id;
            weft_map_put(&store->by_id, &got[i].id, sizeof(got[i].id), want[i].subject);
        }
        if (want[i].subject) {
            weft_buf_printf(&wanted, "#%zu", want[i].subject->number);
            say_subject(w, s, &got[i].id, &given);
        }
        say_submitted(i, want[i].rc, want[i].state, want[i].duplicate, &wanted);
        say_submitted(i, got[i].err.rc, got[i].state, got[i].duplicate, &given);
    }
    compare_text(w, store->name, wanted.data, given.data);
    weft_buf_done(&wanted);
    weft_buf_done(&given);
}

void op_submit(struct world *w)
{
    struct weft_spec spec[ITEMS_MAX];
    struct submitted want[ITEMS_MAX];
    size_t count = 1 + below(w, chance(w, 10) ? ITEMS_MAX : 5);
    if (w->subjects + count > SUBJECTS_MAX)
        return;
    for (size_t i = 0; i < count; i++) {
        spec[i] = i > 0 && chance(w, 10) ? spec[i - 1] : random_spec(w);
        want[i] = model_submit(w, &spec[i]);
        note(w, "submit %zu/%zu %s/%s pri=%d delay=%" PRId64 " key=%s -> #%zd %s", i + 1, count,
             spec[i].lane, spec[i].kind, spec[i].priority, spec[i].delay_ms,
             spec[i].key ? spec[i].key : "-",
             want[i].subject ? (ssize_t)want[i].subject->number : -1, weft_rc_wire(want[i].rc));
    }
    for (size_t s = 0; s < w->stores; s++)
        submit_to(w, s, spec, want, count);
}

/* ---- Claim ----------------------------------------------------------------------------------- */

/* The lanes a claim may name without a choice between tenants being left to the store. */
static void random_lanes(struct world *w, struct weft_claim *claim, size_t tenant)
{
    size_t first = tenant * 2, lane = below(w, 3);
    claim->lanes = &lane_name[lane == 2 ? first : first + lane];
    claim->lane_count = lane == 2 ? 2 : 1;
}

static struct weft_claim random_claim(struct world *w, size_t tenant)
{
    struct weft_claim claim = {
        .worker = worker_name[1 + below(w, WORKERS)],
        .max = (uint32_t)below(w, 9),
        .lease_ms = chance(w, 30) ? 1000 + (int64_t)below(w, 20000) : 0,
    };
    random_lanes(w, &claim, tenant);
    if (chance(w, 30)) {
        claim.kinds = &kinds[below(w, WEFT_LEN(kinds))];
        claim.kind_count = 1;
    }
    if (chance(w, 60)) {
        claim.capabilities = &tokens[below(w, 2)];
        claim.capability_count = 1 + below(w, 2);
    }
    return claim;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lines in their order, so that two sets can be compared as texts. */
static void join_sorted(const char **line, size_t count, struct weft_buf *out)
{
    if (count > 0)
        qsort(line, count, sizeof(*line), by_text);
    for (size_t i = 0; i < count; i++)
        weft_buf_printf(out, "%s\n", line[i]);
}

static const char *say_claimed(struct world *w, const struct weft_claimed *c, const char *who)
{
    return weft_arena_printf(
        w->arena,
        "claim %u %s %s/%s epoch=%d attempt=%d pri=%d tenant=%s type=%s tags=%zu "
        "payload=%.*s created=%" PRId64 " deadline=%" PRId64 " lease=%" PRId64,
        c->claim, who, c->lane, c->kind, c->epoch, c->attempt, c->priority,
        c->tenant ? c->tenant : "-", c->content_type, c->tag_count,
        c->payload ? (int)c->payload_size : 1, c->payload ? (const char *)c->payload : "-",
        c->created_us, c->deadline_us, c->lease_expires_us);
}

static const char *say_taken(struct world *w, const struct subject *x, uint32_t claim)
{
    size_t tags = 0;
    (void)weft_tags_parse(x->spec.tags, w->arena, &tags);
    const struct weft_claimed claimed = {
        .claim = claim,
        .lane = x->spec.lane,
        .kind = x->spec.kind,
        .epoch = x->live.epoch,
        .attempt = x->live.attempt,
        .priority = x->live.priority,
        .tenant = *x->spec.tenant ? x->spec.tenant : NULL,
        .content_type = "application/json",
        .tag_count = tags,
        .payload = x->spec.payload,
        .payload_size = x->spec.payload_size,
        .created_us = x->created_us,
        .deadline_us = x->live.deadline_us,
        .lease_expires_us = x->live.due_us,
    };
    return say_claimed(w, &claimed, weft_arena_printf(w->arena, "#%zu", x->number));
}

static void claim_from(struct world *w, size_t s, const struct weft_claim *claim, size_t count,
                       const char *want)
{
    struct weft_claim_result result = {0};
    struct weft_err err = {0};
    struct weft_arena *arena = weft_arena_new();
    struct weft_buf got;
    weft_buf_init(&got, 1 << 20);
    broken_call(
        w, s, weft_engine_claim(w->store[s].engine, "default", claim, count, arena, &result, &err),
        &err);
    const char **line = weft_new_array(w->arena, const char *, result.count + 1);
    for (size_t i = 0; i < result.count; i++) {
        struct weft_buf who;
        weft_buf_init(&who, 64);
        say_subject(w, s, &result.item[i].id, &who);
        line[i] = say_claimed(w, &result.item[i], who.data);
        weft_buf_done(&who);
    }
    join_sorted(line, result.count, &got);
    compare_text(w, w->store[s].name, want, got.data);
    weft_buf_done(&got);
    weft_arena_free(arena);
}

void op_claim(struct world *w)
{
    struct weft_claim claim[2];
    size_t count = 1, lines = 0;
    claim[0] = random_claim(w, below(w, 2));
    claim[1] = random_claim(w, 1);
    if (chance(w, 15)) { /* all there is */
        claim[0].lanes = lane_name;
        claim[0].lane_count = LANES;
        claim[0].max = 900;
    } else if (chance(w, 20)) { /* two workers, a tenant each */
        claim[0] = random_claim(w, 0);
        count = 2;
    }
    const char *line[2 * SUBJECTS_MAX];
    struct weft_buf want;
    weft_buf_init(&want, 1 << 20);
    for (size_t c = 0; c < count; c++) {
        struct subject *taken[SUBJECTS_MAX];
        size_t got = model_claim(w, &claim[c], taken);
        for (size_t i = 0; i < got; i++)
            line[lines++] = say_taken(w, taken[i], (uint32_t)c);
        note(w, "claim %zu/%zu by %s, %zu lanes from %s, %zu kinds, %zu capabilities, max %u: %zu",
             c + 1, count, claim[c].worker, claim[c].lane_count, claim[c].lanes[0],
             claim[c].kind_count, claim[c].capability_count, claim[c].max, got);
    }
    join_sorted(line, lines, &want);
    for (size_t s = 0; s < w->stores; s++)
        claim_from(w, s, claim, count, want.data);
    weft_buf_done(&want);
}

/* ---- Lanes, passes, the clock ---------------------------------------------------------------- */

void op_lane(struct world *w)
{
    static const int32_t limits[] = {0, 0, 1, 2, 5};
    static const int64_t kept_ms[] = {0, 0, 20000, 600000};
    size_t at = below(w, LANES);
    w->lane[at] = (struct lane_state){.paused = chance(w, 25),
                                      .max_running = limits[below(w, WEFT_LEN(limits))],
                                      .retention_ms = kept_ms[below(w, WEFT_LEN(kept_ms))]};
    const struct weft_lane lane = {.name = lane_name[at],
                                   .paused = w->lane[at].paused,
                                   .max_running = w->lane[at].max_running,
                                   .retention_ms = w->lane[at].retention_ms};
    note(w, "lane %s%s max_running=%d retention_ms=%" PRId64, lane.name,
         lane.paused ? " paused" : "", lane.max_running, lane.retention_ms);
    for (size_t s = 0; s < w->stores; s++) {
        struct weft_err err = {0};
        broken_call(w, s, weft_engine_lane_put(w->store[s].engine, "default", &lane, &err), &err);
    }
}

/* In small batches the choice among equals is the store's, so it is run until nothing is left. */
static struct weft_pass_report pass_of(struct world *w, size_t s, enum weft_scanner pass,
                                       uint32_t batch)
{
    struct weft_pass_report all = {.more = true};
    for (int i = 0; i < 1000 && all.more; i++) {
        struct weft_pass_report one = {0};
        struct weft_err err = {0};
        broken_call(w, s,
                    weft_engine_pass(w->store[s].engine, pass,
                                     &(struct weft_pass_config){.batch = batch}, &one, &err),
                    &err);
        all.handled += one.handled;
        all.failed += one.failed;
        all.more = one.more;
        all.next_due_us = one.next_due_us;
    }
    return all;
}

void op_pass(struct world *w)
{
    static const uint32_t batches[] = {0, 0, 1, 3};
    enum weft_scanner pass = (enum weft_scanner)below(w, WEFT_SCANNER_COUNT);
    uint32_t batch = batches[below(w, WEFT_LEN(batches))];
    struct weft_pass_report want = model_pass(w, pass);
    note(w, "pass %s in batches of %u: %" PRIu64 " handled", weft_scanner_name(pass), batch,
         want.handled);
    for (size_t s = 0; s < w->stores; s++) {
        struct weft_pass_report got = pass_of(w, s, pass, batch);
        if (pass == WEFT_SCANNER_INTAKE)
            got.next_due_us = want.next_due_us; /* it has no timer to speak of */
        const char *text[2];
        const struct weft_pass_report *report[] = {&want, &got};
        for (size_t i = 0; i < 2; i++)
            text[i] = weft_arena_printf(
                w->arena, "handled=%" PRIu64 " failed=%" PRIu64 " more=%d next=%" PRId64,
                report[i]->handled, report[i]->failed, report[i]->more, report[i]->next_due_us);
        compare_text(w, w->store[s].name, text[0], text[1]);
    }
}

/* The next moment at which time will move this subject, or 0. */
static weft_usec moment_of(struct world *w, const struct subject *x)
{
    const struct weft_live *live = &x->live;
    const weft_usec moment_us[] = {live->due_us, live->attempt_deadline_us, live->deadline_us};
    return weft_state_living(live->state) ? moment_us[below(w, WEFT_LEN(moment_us))]
                                          : model_kept_until(w, x);
}

void op_clock(struct world *w)
{
    static const size_t far_us[] = {1000, 500000, 5000000, 5000000, 40000000, 600000000};
    struct subject *x = pick_subject(w, WEFT_STATE_RUNNING);
    weft_usec moment_us = x && chance(w, 50) ? moment_of(w, x) - (chance(w, 30) ? 1 : 0) : 0;
    /* To the very microsecond, or the one before it, because that is where comparisons differ. */
    if (moment_us > w->now_us)
        w->now_us = moment_us;
    else
        w->now_us += 1 + (weft_usec)below(w, far_us[below(w, WEFT_LEN(far_us))]);
    note(w, "the clock shows %" PRId64, w->now_us);
    for (size_t s = 0; s < w->stores; s++) {
        weft_clock_set(weft_engine_clock(w->store[s].engine), w->now_us);
        weft_clock_set(weft_engine_clock(w->store[s].reader), w->now_us);
    }
}
