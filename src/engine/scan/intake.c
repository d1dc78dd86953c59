/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The inbox: submissions by the SQL functions weft_submit() and weft_submit_spec() inside
 * applications' own transactions.
 *
 * A row becomes an execution by the code that every other submission goes through, under the id
 * that they returned, and is deleted in the same transaction. A row that is not valid
 * becomes a failed execution under that id, and a row whose key is taken a skipped one that names
 * the execution that has the key: no application waits for an id that never appears.
 *
 * The pass first reads rows without locking them, validates them and interns their names, which
 * takes separate transactions; then it takes the rows, batch by batch, with SKIP LOCKED. Replicas
 * that read the same rows divide them there.
 *
 * A read goes by age over all namespaces. If it could not return all waiting rows, the next reads
 * take turns between namespaces (inbox_turns), until one finds nothing: so an application that
 * submits very much at once keeps no other namespace waiting. As long as one read returns all rows,
 * none of this runs.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/str.h"
#include "core/budget.h"
#include "core/carried.h"
#include "core/spec.h"
#include "core/state.h"
#include "engine/engine_state.h"
#include "engine/job/submit.h"
#include "engine/scan/scan.h"

#include <string.h>

/* ---- From a row to a spec -------------------------------------------------------------------- */

static enum weft_rc json_of(const char *text, enum weft_json_kind kind, const char *field,
                            struct weft_json *ret_value, struct weft_err *err)
{
    enum weft_rc rc = weft_json_check(text, strlen(text), ret_value, err);
    if (!rc && ret_value->kind != kind)
        rc = weft_invalid(err, field, "%s has the wrong type", field);
    return rc;
}

/* Texts up to one more than `most`, which is refused later. */
struct texts {
    const char *field;
    size_t most;
    const char **text; /* in arena */
    size_t count;
};

static enum weft_rc read_texts(const struct weft_json *value, struct weft_arena *arena,
                               struct texts *texts, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    texts->text = weft_new_array(arena, const char *, texts->most + 1);
    struct weft_json_iter item;
    weft_json_iter_init(&item, value);
    while (!rc && texts->count <= texts->most && weft_json_next(&item)) {
        if (item.value.kind != WEFT_JSON_STRING)
            return weft_invalid(err, texts->field, "%s must be texts", texts->field);
        rc = weft_json_string(&item.value, arena, &texts->text[texts->count++], err);
    }
    return rc;
}

static enum weft_rc read_capabilities(const char *text, struct weft_arena *arena,
                                      struct weft_spec *spec, struct weft_err *err)
{
    struct weft_json value;
    struct texts texts = {.field = "capabilities", .most = WEFT_CAPABILITIES_MAX};
    enum weft_rc rc = json_of(text, WEFT_JSON_ARRAY, texts.field, &value, err);
    if (!rc)
        rc = read_texts(&value, arena, &texts, err);
    spec->capabilities = texts.text;
    spec->capability_count = texts.count;
    return rc;
}

static enum weft_rc read_cost(const struct weft_json *value, struct weft_arena *arena,
                              struct weft_spec *spec, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    struct weft_amount *cost =
        weft_new_array(arena, struct weft_amount, WEFT_BUDGET_DIMENSIONS_MAX + 1);
    struct weft_json_iter member;
    weft_json_iter_init(&member, value);
    while (!rc && spec->cost_count <= WEFT_BUDGET_DIMENSIONS_MAX && weft_json_next(&member)) {
        struct weft_amount *one = &cost[spec->cost_count++];
        rc = weft_json_string(&member.key, arena, &one->dimension, err);
        if (!rc && !weft_json_i64(&member.value, &one->amount))
            rc = weft_invalid(err, "cost", "an amount of cost must be a whole number");
    }
    spec->cost = cost;
    return rc;
}

/* What weft_submit_spec() put into one column: see 0032. */
static enum weft_rc read_limits(const char *text, struct weft_arena *arena, struct weft_spec *spec,
                                struct weft_err *err)
{
    struct weft_json value;
    struct texts budgets = {.field = "budgets", .most = WEFT_BUDGETS_NAMED_MAX};
    enum weft_rc rc = json_of(text, WEFT_JSON_OBJECT, "limits", &value, err);
    if (rc)
        return rc;
    struct weft_json_iter member;
    weft_json_iter_init(&member, &value);
    while (!rc && weft_json_next(&member)) {
        enum weft_json_kind kind = member.value.kind;
        if (kind == WEFT_JSON_NULL)
            continue;
        if (weft_json_is(&member.key, "gate") && kind == WEFT_JSON_STRING)
            rc = weft_json_string(&member.value, arena, &spec->gate, err);
        else if (weft_json_is(&member.key, "budgets") && kind == WEFT_JSON_ARRAY)
            rc = read_texts(&member.value, arena, &budgets, err);
        else if (weft_json_is(&member.key, "cost") && kind == WEFT_JSON_OBJECT)
            rc = read_cost(&member.value, arena, spec, err);
        else
            rc = weft_invalid(err, "limits", "gate, budgets or cost has the wrong type");
    }
    spec->budgets = budgets.text;
    spec->budget_count = budgets.count;
    return rc;
}

static enum weft_rc read_tags(const char *text, struct weft_arena *arena, struct weft_spec *spec,
                              struct weft_err *err)
{
    struct weft_json value;
    enum weft_rc rc = json_of(text, WEFT_JSON_OBJECT, "tags", &value, err);
    if (rc)
        return rc;
    struct weft_tag *tag = weft_new_array(arena, struct weft_tag, WEFT_TAGS_MAX + 1);
    struct weft_json_iter member;
    weft_json_iter_init(&member, &value);
    while (!rc && spec->tag_count <= WEFT_TAGS_MAX && weft_json_next(&member)) {
        if (member.value.kind != WEFT_JSON_STRING)
            return weft_invalid(err, "tags", "a tag's value must be a text");
        rc = weft_json_string(&member.key, arena, &tag[spec->tag_count].key, err);
        if (!rc)
            rc = weft_json_string(&member.value, arena, &tag[spec->tag_count++].value, err);
    }
    spec->tags = tag;
    return rc;
}

static enum weft_rc read_policy(const char *text, struct weft_arena *arena, struct weft_spec *spec,
                                struct weft_err *err)
{
    struct weft_json value;
    struct weft_policy *policy = weft_new(arena, struct weft_policy);
    enum weft_rc rc = json_of(text, WEFT_JSON_OBJECT, "policy", &value, err);
    if (!rc)
        rc = weft_policy_parse(&value, arena, policy, err);
    spec->policy = policy;
    return rc;
}

static enum weft_rc read_spec(const struct weft_rows *rows, size_t i, struct weft_arena *arena,
                              struct weft_spec *ret_spec, struct weft_err *err)
{
    const struct weft_inbox_peek_out *row = &weft_out_inbox_peek(rows)[i];
    struct weft_spec spec = {
        .ns = row->namespace,
        .lane = row->lane,
        .kind = row->kind,
        .payload = row->payload.data,
        .payload_size = row->payload.size,
        .content_type = row->content_type,
        .priority = row->priority.value,
        .delay_ms = row->delay_ms.value,
        .run_at_us = row->run_at.value,
        .deadline_us = row->deadline.value,
        .tenant = row->tenant,
        .key = row->key,
    };
    enum weft_rc rc = WEFT_OK;
    if (row->oversize)
        rc = weft_fail_field(err, WEFT_TOO_LARGE, row->oversize, "%s is larger than allowed",
                             row->oversize);
    if (!rc && row->size > WEFT_PAYLOAD_MAX)
        rc = weft_fail_field(err, WEFT_TOO_LARGE, "payload", "the payload is larger than %d bytes",
                             WEFT_PAYLOAD_MAX);
    if (!rc && row->capabilities)
        rc = read_capabilities(row->capabilities, arena, &spec, err);
    if (!rc && row->tags)
        rc = read_tags(row->tags, arena, &spec, err);
    if (!rc && row->policy)
        rc = read_policy(row->policy, arena, &spec, err);
    if (!rc && row->limits)
        rc = read_limits(row->limits, arena, &spec, err);
    *ret_spec = spec;
    return rc;
}

/* ---- Taking rows out ------------------------------------------------------------------------- */

enum weft_rc weft_inbox_take(struct weft_tx *tx, struct weft_submission **item, size_t *count,
                             struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_inbox_take_in *in = weft_call_inbox_take(&call, tx->arena, *count);
    for (size_t i = 0; i < *count; i++)
        in->row[i].id = item[i]->id;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++)
        for (size_t row = 0; row < rows.count; row++) {
            if (weft_id_cmp(&weft_out_inbox_take(&rows)[row].id, &item[i]->id) != 0)
                continue;
            item[kept++] = item[i];
            break;
        }
    *count = kept;
    return WEFT_OK;
}

enum weft_rc weft_submission_end(struct weft_tx *tx, struct weft_submission *const *item,
                                 size_t count, weft_usec now_us, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    const struct weft_span_row *span = weft_submission_spans(item, count, tx->arena);
    struct weft_submit_ended_in *in = weft_call_submit_ended(&call, tx->arena, count);
    in->now = now_us;
    for (size_t i = 0; i < count; i++) {
        const struct weft_submit_result *answer = item[i]->answer;
        char first[WEFT_ID_TEXT];
        weft_id_print(&answer->id, first);
        in->row[i].id = item[i]->id;
        in->row[i].ord = item[i]->ord;
        in->row[i].queue = item[i]->queue->id;
        in->row[i].policy = item[i]->policy;
        in->row[i].state = answer->duplicate ? WEFT_STATE_SKIPPED : WEFT_STATE_FAILED;
        in->row[i].ended = WEFT_ENDED_REFUSED;
        if (answer->duplicate) {
            in->row[i].reason = weft_arena_printf(tx->arena, "duplicate of %s", first);
        } else {
            in->row[i].reason = "refused by intake";
            in->row[i].error_class = weft_rc_wire(answer->rc);
            in->row[i].error_message = answer->err->text;
        }
        in->row[i].payload = (struct weft_blob){item[i]->spec.payload, item[i]->spec.payload_size};
        in->row[i].tags = item[i]->spec.tags;
        in->row[i].span = weft_span_of(&span[i]);
    }
    return weft_tx_run(tx, &call, 1, &rows, err);
}

/* ---- The pass -------------------------------------------------------------------------------- */

/* The order of the table in pass.c. */
enum { PROCESSED, REFUSED, EXISTING_ID };

struct intake {
    struct weft_pass *pass;
    struct weft_engine *engine;
    struct weft_arena *arena;
    weft_usec now_us;
    struct weft_submission *valid, *refused;
    size_t valid_count, refused_count;
    struct weft_submission *existing; /* rows under an id that is taken, or is none */
    size_t existing_count, removed_count;
    struct weft_submission **ended; /* refused rows that no other replica took meanwhile */
    size_t ended_count;
    struct weft_submit_result *answer;
};

/* The tags of a refused row, if they are good: an erasure finds its payload by them. */
static void keep_tags(const char *text, struct weft_arena *arena, struct weft_spec *filed)
{
    struct weft_err err;
    const char *canonical;
    if (text && !read_tags(text, arena, filed, &err) &&
        !weft_tags_text(filed->tags, filed->tag_count, arena, &canonical, &err))
        return;
    filed->tags = NULL;
    filed->tag_count = 0;
}

/*
 * What a refused row is filed under: its own names where they are names. A kind that weft carries
 * out itself is none for a row whose payload may be the reason.
 */
static enum weft_rc file_refused(struct intake *intake, const struct weft_spec *spec,
                                 const char *tags, struct weft_submission *item,
                                 struct weft_err *err)
{
    struct weft_spec filed = {
        .ns = spec->ns && weft_name_valid(spec->ns) ? spec->ns : "default",
        .lane = spec->lane && weft_name_valid(spec->lane) ? spec->lane : NULL,
        .kind = spec->kind && weft_name_valid(spec->kind) && !weft_kind_is_carried(spec->kind)
                    ? spec->kind
                    : "invalid",
        .payload = spec->payload,
        .payload_size = spec->payload_size,
        .tenant = spec->tenant && weft_name_valid(spec->tenant) ? spec->tenant : NULL,
    };
    keep_tags(tags, intake->arena, &filed);
    return weft_spec_resolve(&filed, "default", intake->now_us, intake->arena, &item->spec, err);
}

static enum weft_rc sort_rows(struct intake *intake, const struct weft_rows *rows,
                              struct weft_err *err)
{
    intake->valid = weft_new_array(intake->arena, struct weft_submission, rows->count + 1);
    intake->refused = weft_new_array(intake->arena, struct weft_submission, rows->count + 1);
    intake->existing = weft_new_array(intake->arena, struct weft_submission, rows->count + 1);
    intake->answer = weft_new_array(intake->arena, struct weft_submit_result, rows->count + 1);
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_inbox_peek_out *row = &weft_out_inbox_peek(rows)[i];
        if (row->known || weft_id_is_zero(&row->id)) { /* zeros mean "none" everywhere else */
            intake->existing[intake->existing_count++] =
                (struct weft_submission){.id = row->id, .spec.ns = row->namespace};
            continue;
        }
        struct weft_spec spec;
        struct weft_submit_result *answer = &intake->answer[i];
        struct weft_submission *item = &intake->valid[intake->valid_count];
        struct weft_err story = {0};
        enum weft_rc rc = read_spec(rows, i, intake->arena, &spec, &story);
        if (!rc)
            rc = weft_spec_resolve(&spec, "default", intake->now_us, intake->arena, &item->spec,
                                   &story);
        if (!rc)
            rc = weft_spec_takes(&item->spec, NULL, 0, &story);
        if (rc) {
            answer->err = weft_err_dup(intake->arena, &story);
            answer->rc = rc;
            item = &intake->refused[intake->refused_count++];
            enum weft_rc failed = file_refused(intake, &spec, row->tags, item, err);
            if (failed)
                return failed;
        } else {
            intake->valid_count++;
        }
        item->id = row->id;
        item->answer = answer;
    }
    enum weft_rc rc = WEFT_OK;
    if (intake->valid_count)
        rc = weft_submission_place(intake->engine, false, intake->valid, intake->valid_count, err);
    if (!rc && intake->refused_count)
        rc = weft_submission_place(intake->engine, false, intake->refused, intake->refused_count,
                                   err);
    return rc;
}

/* Notes the rows that failed, each under the class of its error: there are few of these. */
static enum weft_rc note_refused(struct weft_tx *tx, struct weft_submission *const *item,
                                 size_t count, weft_usec now_us, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    struct weft_inbox_note_in *in = weft_call_inbox_note(&call, tx->arena, count);
    in->now = now_us;
    for (size_t i = 0; i < count; i++) {
        in->row[i].id = item[i]->id;
        in->row[i].namespace = item[i]->spec.ns;
        in->row[i].reason = weft_rc_wire(item[i]->answer->rc);
    }
    return weft_tx_run(tx, &call, 1, &rows, err);
}

static enum weft_rc refuse_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct intake *intake = context;
    size_t count = intake->refused_count;
    struct weft_submission **item = weft_new_array(tx->arena, struct weft_submission *, count + 1);
    for (size_t i = 0; i < count; i++)
        item[i] = &intake->refused[i];
    enum weft_rc rc = weft_inbox_take(tx, item, &count, err);
    if (!rc && count)
        rc = weft_submission_end(tx, item, count, intake->now_us, err);
    if (!rc && count)
        rc = note_refused(tx, item, count, intake->now_us, err);
    intake->ended = item;
    intake->ended_count = count;
    return rc;
}

static enum weft_rc refuse(struct intake *intake, struct weft_err *err)
{
    struct weft_tx tx = {.engine = intake->engine, .arena = intake->arena};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, refuse_body, intake, err);
    if (rc)
        return rc;
    struct weft_commit_effects news = weft_news_new(intake->arena, intake->now_us);
    for (size_t i = 0; i < intake->ended_count; i++)
        weft_news_ended(&news, intake->ended[i]->queue->id, WEFT_STATE_FAILED);
    weft_news_tell(intake->engine, &news);
    return WEFT_OK;
}

/*
 * A row under the id of an execution that is there, or under zeros, cannot become one, not even a
 * failed one. It is removed and noted, so that it is met once.
 */
static enum weft_rc remove_existing(struct intake *intake, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    if (intake->existing_count == 0)
        return WEFT_OK;
    struct weft_inbox_refuse_in *in =
        weft_call_inbox_refuse(&call, intake->arena, intake->existing_count);
    in->now = intake->now_us;
    for (size_t i = 0; i < intake->existing_count; i++) {
        in->row[i].id = intake->existing[i].id;
        in->row[i].namespace = intake->existing[i].spec.ns;
        in->row[i].reason = weft_id_is_zero(&intake->existing[i].id)
                                ? "this id is none"
                                : "there is an execution with this id";
    }
    enum weft_rc rc = weft_tx_once(intake->engine, WEFT_TX_WRITE, &call, intake->arena, &rows, err);
    intake->removed_count = rc ? 0 : rows.count;
    return rc;
}

/* What a batch could not write because its id is taken: by an execution that came since the look.
 */
static bool is_taken(const struct weft_submit_result *answer)
{
    return answer->err && answer->err->cause == WEFT_CAUSE_DUPLICATE;
}

/* What the store itself refused, though it looked valid. */
static bool is_data(const struct weft_submit_result *answer)
{
    return answer->err && answer->err->cause == WEFT_CAUSE_DATA;
}

static enum weft_rc run_intake(struct intake *intake, struct weft_err *err)
{
    struct weft_pass_report *report = &intake->pass->report;
    size_t batches = 0;
    struct weft_submissions *batch =
        weft_submission_batches(intake->valid, intake->valid_count, intake->arena, &batches);
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < batches && !rc; i++) {
        batch[i].now_us = intake->now_us;
        batch[i].from_inbox = true;
        batch[i].arena = intake->arena;
        rc = weft_submission_run(intake->engine, &batch[i], intake->arena, err);
    }
    /* It must not come back for ever. */
    for (size_t i = 0; i < intake->valid_count && !rc; i++)
        if (is_data(intake->valid[i].answer))
            intake->refused[intake->refused_count++] = intake->valid[i];
    if (!rc && intake->refused_count)
        rc = refuse(intake, err);
    for (size_t i = 0; i < intake->valid_count && !rc; i++)
        if (is_taken(intake->valid[i].answer))
            intake->existing[intake->existing_count++] = intake->valid[i];
    if (!rc)
        rc = remove_existing(intake, err);
    for (size_t i = 0; i < intake->valid_count && !rc; i++) {
        const struct weft_submit_result *answer = intake->valid[i].answer;
        bool left = answer->rc == WEFT_BUSY || is_data(answer) || is_taken(answer);
        report->handled += !left; /* another replica has it, or it is counted below */
        report->failed += !left && answer->rc != WEFT_OK;
    }
    report->handled += intake->ended_count + intake->removed_count;
    report->failed += intake->ended_count + intake->removed_count;
    return rc;
}

/* Reads rows that wait, in turns or not. */
static enum weft_rc look(const struct weft_pass *pass, const struct weft_inbox_turns *turns,
                         struct weft_rows *ret_rows, struct weft_err *err)
{
    const struct weft_pass_config *config = pass->config;
    struct weft_call call;
    if (turns->on)
        *weft_call_inbox_turns(&call, pass->arena) =
            (struct weft_inbox_turns_in){.batch = config->batch,
                                         .most = config->batch,
                                         .bytes = WEFT_BATCH_BYTES,
                                         .start = turns->start,
                                         .first = config->partition_first,
                                         .last = config->partition_last};
    else
        *weft_call_inbox_peek(&call, pass->arena) =
            (struct weft_inbox_peek_in){.batch = config->batch,
                                        .bytes = WEFT_BATCH_BYTES,
                                        .namespace = config->ns,
                                        .first = config->partition_first,
                                        .last = config->partition_last};
    return weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, ret_rows, err);
}

/* How the next look goes on: in turns, if this one did not see all or cannot know that it did. */
static struct weft_inbox_turns next_turns(const struct weft_rows *rows, bool in_turns,
                                          const struct weft_pass_config *config)
{
    struct weft_inbox_turns turns = {.on = false};
    if (rows->count == 0)
        return turns;
    const char *next = weft_out_inbox_peek(rows)[rows->count - 1].next;
    turns.on = in_turns || next || rows->count == config->batch;
    if (next && strlen(next) < sizeof(turns.start))
        memcpy(turns.start, next, strlen(next) + 1);
    return turns;
}

/*
 * The turns are a hint of this process alone: where two passes at the same time mix them up, a look
 * begins at another namespace than it could have.
 */
static struct weft_inbox_turns turns_of(struct weft_engine *engine,
                                        const struct weft_inbox_turns *set)
{
    pthread_mutex_lock(&engine->sample_lock);
    if (set)
        engine->inbox_turns = *set;
    struct weft_inbox_turns turns = engine->inbox_turns;
    pthread_mutex_unlock(&engine->sample_lock);
    return turns;
}

enum weft_rc weft_intake_run(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_engine *engine = pass->engine;
    const struct weft_pass_config *config = pass->config;
    bool has_inbox = strcmp(engine->driver->name, "pg") == 0;
    struct intake intake = {.pass = pass, .engine = engine, .arena = pass->arena};
    struct weft_rows rows = {0};
    struct weft_inbox_turns turns = {.on = false};
    if (!config->ns)
        turns = turns_of(engine, NULL);
    bool anew = turns.start[0] == '\0';
    enum weft_rc rc = has_inbox ? look(pass, &turns, &rows, err) : WEFT_OK;
    if (!rc && !config->ns) {
        turns = next_turns(&rows, turns.on, config);
        (void)turns_of(engine, &turns);
    }
    intake.now_us = weft_clock_now(engine->clock);
    if (!rc && rows.count > 0) {
        rc = sort_rows(&intake, &rows, err);
        if (!rc)
            rc = run_intake(&intake, err);
        pass->report.more = pass->report.handled > 0;
        pass->count[PROCESSED] = pass->report.handled;
        pass->count[REFUSED] = pass->report.failed;
        pass->count[EXISTING_ID] = intake.removed_count;
    }
    pass->report.more |= !rc && rows.count == 0 && !anew; /* there may be rows before the start */
    return rc;
}
