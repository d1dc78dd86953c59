/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft ls: a list of executions, newest first. weft show: one execution with all its fields, or its
 * bytes.
 *
 * A page of the API may be short, so ls asks for pages until there are as many executions as were
 * wanted. They are printed as they come; nothing is kept.
 */

#include "base/id.h"
#include "base/limits.h"
#include "base/moment.h"
#include "base/str.h"
#include "cmd/cli/filter_args.h"
#include "cmd/job/show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT_NORMAL = 50, PREVIEW_MAX = 400, LINE_MAX_TEXT = 1024 };

/* "class: the last line of the message" */
static void put_error_line(struct weft_table *table, const char *error_class, const char *message)
{
    char line[LINE_MAX_TEXT] = "";
    weft_last_line(message ? message : "", line, sizeof(line));
    weft_table_cell(table, "%s%s%s", error_class ? error_class : "",
                    error_class && line[0] ? ": " : "", line);
}

/* Of a suspended one: that an operator must look, and what it waits for or until when. */
static void put_suspended(struct weft_table *table, const struct weft_execution *item)
{
    char ago[WEFT_AGO_TEXT];
    const char *color = item->escalated ? weft_state_color(WEFT_STATE_FAILED) : NULL;
    const char *what = item->reason;
    weft_ago(item->timeout_us, weft_wall_us(), ago);
    if (!what)
        what =
            item->timeout_us ? weft_arena_printf(weft_table_arena(table), "times out %s", ago) : "";
    weft_table_paint(table, color, "%s%s%s", item->escalated ? "escalated" : "",
                     item->escalated && *what ? ": " : "", what);
}

/* DETAIL: the error, the reason of a stop, the run time, or the worker. */
static void put_detail(struct weft_table *table, const void *field)
{
    const struct weft_execution *item = field;
    if (item->error_class)
        put_error_line(table, item->error_class, item->error_message);
    else if (item->state == WEFT_STATE_SUSPENDED)
        put_suspended(table, item);
    else if (item->reason)
        weft_table_cell(table, "%s", item->reason);
    else if (item->state == WEFT_STATE_DELAYED)
        weft_cell_ago(table, &item->run_at_us);
    else if (item->state == WEFT_STATE_RUNNING && item->percent >= 0)
        weft_table_cell(table, "%s, %d %%", item->worker ? item->worker : "", item->percent);
    else
        weft_table_cell(table, "%s", item->worker ? item->worker : "");
}

#define AT(member) offsetof(struct weft_execution, member)
/* clang-format off */
#define FROM_KIND                                                                                  \
    {"KIND", WEFT_LEFT, 4, weft_cell_text, AT(kind)},                                              \
    {"STATE", WEFT_LEFT, 0, weft_cell_state, AT(state)},                                           \
    {"TRY", WEFT_RIGHT, 2, weft_cell_i32, AT(attempt)},                                            \
    {"AGE", WEFT_RIGHT, 0, weft_cell_ago, AT(created_us)},                                         \
    {"DETAIL", WEFT_LEFT, 1, put_detail, 0}
/* clang-format on */
static const struct weft_column columns[] = {
    {"ID", WEFT_LEFT, 0, weft_cell_id, AT(id)},
    {"LANE", WEFT_LEFT, 3, weft_cell_text, AT(lane)},
    FROM_KIND,
};
/* With --flow: the name of the node follows the id. */
static const struct weft_column member_columns[] = {
    {"ID", WEFT_LEFT, 0, weft_cell_id, AT(id)},
    {"NODE", WEFT_LEFT, 3, weft_cell_text, AT(node)},
    {"LANE", WEFT_LEFT, 2, weft_cell_text, AT(lane)},
    FROM_KIND,
};

struct listing {
    struct weft *weft;
    struct weft_filter filter;
    uint64_t wanted;          /* UINT64_MAX: all */
    struct weft_table *table; /* NULL: JSON */
    struct weft_json_out out; /* JSON, unless all are wanted: then each has a line of its own */
    struct weft_pages pages;
    bool progress; /* a line on stderr says how far it has looked */
};

static void put_page(struct listing *listing, const struct weft_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        if (listing->table)
            weft_table_row(listing->table, &page->item[i]);
        else if (listing->wanted == UINT64_MAX)
            weft_json_out_item(&weft_wire_execution, &page->item[i]);
        else
            weft_wire_write(&weft_wire_execution, &page->item[i], &listing->out.json);
    }
    if (listing->table)
        weft_table_flush(listing->table);
}

/* On a terminal, for a filter that few executions fit: how far back the server has looked. */
static void show_progress(struct listing *listing, const struct weft_page *page)
{
    char moment[WEFT_MOMENT_TEXT];
    if (!isatty(STDERR_FILENO))
        return;
    if (listing->progress)
        (void)fputs("\r\033[K", stderr);
    listing->progress = page->looked_to_us != 0;
    if (!listing->progress)
        return;
    weft_moment_print(page->looked_to_us, moment);
    (void)fprintf(stderr, "looked back to %s", moment);
    (void)fflush(stderr);
}

static enum weft_rc read_pages(struct listing *listing, const char *after, struct weft_err *err)
{
    struct weft_pages *pages = &listing->pages;
    enum weft_rc rc = WEFT_OK;
    (void)snprintf(pages->next, sizeof(pages->next), "%s", after ? after : "");
    for (uint64_t left = listing->wanted; pages->more && left > 0 && !weft_cli_interrupted();) {
        rc = weft_next_page(listing->weft, &listing->filter,
                            (uint32_t)(left < WEFT_PAGE_MAX ? left : WEFT_PAGE_MAX), pages, err);
        if (rc)
            break;
        show_progress(listing, &pages->page);
        put_page(listing, &pages->page);
        left -= pages->page.count < left ? pages->page.count : left;
    }
    weft_page_free(&pages->page);
    return rc;
}

/* Ends the table or the JSON. After a failure rows that were not printed yet are dropped. */
static void finish(struct listing *listing, enum weft_rc rc)
{
    bool items = !listing->table && listing->wanted != UINT64_MAX;
    if (listing->progress)
        (void)fputs("\r\033[K", stderr);
    if (rc && listing->table) {
        weft_table_free(listing->table);
    } else if (rc && items) {
        weft_json_out_drop(&listing->out);
    } else if (listing->table) {
        weft_table_print(listing->table);
        if (listing->pages.next[0] && isatty(STDERR_FILENO))
            (void)fprintf(stderr, "There are more: add --after %s, or --all\n",
                          listing->pages.next);
    } else if (items) {
        weft_json_end_array(&listing->out.json);
        weft_json_add_text(&listing->out.json, "next",
                           listing->pages.next[0] ? listing->pages.next : NULL);
        weft_json_out_end_object(&listing->out);
    }
}

static enum weft_exit run_ls(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct listing listing = {.wanted = UINT64_MAX, .pages.more = true};
    if (!weft_cli_has(cli, "all"))
        listing.wanted = (uint64_t)weft_cli_i64(cli, "limit", 1, INT32_MAX, LIMIT_NORMAL);
    listing.weft = weft_open_filter(cli, WEFT_PICK_BY_STATE, &listing.filter);
    bool members = !weft_id_is_zero(&listing.filter.flow);
    if (!weft_cli_json(cli))
        listing.table = weft_table_new(cli, members ? member_columns : columns,
                                       members ? WEFT_LEN(member_columns) : WEFT_LEN(columns));
    else if (listing.wanted != UINT64_MAX)
        weft_json_out_begin_items(&listing.out);
    weft_cli_catch();
    enum weft_rc rc = read_pages(&listing, weft_cli_get(cli, "after"), &err);
    finish(&listing, rc);
    return rc ? weft_cli_fail(&err) : weft_cli_interrupted() ? WEFT_EXIT_INTERRUPTED : WEFT_EXIT_OK;
}

const struct weft_command weft_command_ls = {
    .name = "ls",
    .args = "",
    .summary = "list executions, newest first",
    .about =
        "Options name what each execution must fit.\n\n"
        "ID: on a terminal a short form of the id, which every command takes; in a pipe, with "
        "--long and with --json the whole id. NODE, with --flow: its name in the flow. LANE, KIND, "
        "STATE: as submitted, and what became of it. TRY: the number of its attempt. AGE: since it "
        "was submitted. DETAIL: the worker that has it, the last line of the error it met, when it "
        "runs, the reason it was stopped for, or what a suspended one waits for.\n\n"
        "--since and --until are compared with the moment at which an execution ended when --state "
        "is one of succeeded, failed, cancelled, expired and skipped, otherwise with the moment at "
        "which it was submitted. They take how long ago (30s, 5m, 1h, 7d, 2w) or a moment such as "
        "2031-01-31T12:00:00Z.\n\n"
        "A filter that fits little makes for a long look: on a terminal standard error says how "
        "far back it has looked, and Ctrl-C ends it with what was found.\n\n"
        "With --json it is one object {\"items\":[...],\"next\":CURSOR}; with --json --all "
        "each execution is a line of its own.",
    .example =
        "weft ls --state failed --since 1h --lane mail\nweft ls --error-class timeout --worker "
        "w-7\nweft ls --tag customer=42 --limit 10\n"
        "weft ls --all --json | jq -r .id",
    .option =
        (const struct weft_option[]){
            WEFT_FILTER_OPTIONS,
            {"limit", 0, "N", "at most so many; default: 50", NULL},
            {"all", 'a', NULL, "all there are, page by page", NULL},
            {"long", 'L', NULL, "whole ids, also on a terminal", NULL},
            {"after", 0, "CURSOR", "go on where another list ended", NULL},
            {.name = NULL},
        },
    .run = run_ls,
};

/* ---- weft show ------------------------------------------------------------------------------- */

/* The class, then the message of the error, one line below the other. */
static void put_error(const char *error_class, const char *message)
{
    if (!error_class)
        return;
    size_t size = message ? strcspn(message, "\n") : 0;
    weft_show_field("error", "%s%s%.*s", error_class, message ? ": " : "", (int)size,
                    message ? message : "");
    for (const char *at = message ? message + size : ""; *at; at += size) {
        size = strcspn(++at, "\n");
        if (at[size] || size > 0) /* the last line may end with a newline, or with none */
            weft_show_field("", "%.*s", (int)size, at);
    }
}

/* The beginning of what a worker said of an error. */
static void put_error_detail(const char *detail)
{
    size_t all = detail ? strlen(detail) : 0,
           size = all ? weft_utf8_cut(detail, all, PREVIEW_MAX) : 0;
    if (detail)
        weft_show_field("detail", "%.*s%s", (int)size, detail, size < all ? "..." : "");
}

static void put_facts(const struct weft_cli *cli, const struct weft_execution *item)
{
    char id[WEFT_ID_TEXT];
    weft_id_print(&item->id, id);
    weft_show_field("id", "%s", id);
    printf("%-13s ", "state");
    weft_put_painted(weft_cli_color(cli) ? weft_state_color(item->state) : NULL,
                     weft_state_name(item->state));
    putchar('\n');
    weft_show_text("namespace", item->ns);
    weft_show_text("lane", item->lane);
    weft_show_text("kind", item->kind);
    weft_show_text("tenant", item->tenant);
    weft_show_text("gate", item->gate);
    weft_show_text("key", item->key);
    if (item->node) {
        weft_id_print(&item->flow, id);
        weft_show_field("flow", "%s, node %s", id, item->node);
    }
    weft_show_field("priority", "%d", item->priority);
    for (size_t i = 0; i < item->tag_count; i++)
        weft_show_field("tag", "%s=%s", item->tags[i].key, item->tags[i].value);
    for (size_t i = 0; i < item->capability_count; i++)
        weft_show_text("capability", item->capabilities[i]);
    for (size_t i = 0; i < item->budget_count; i++)
        weft_show_text("budget", item->budgets[i]);
}

/* ---- Retries --------------------------------------------------------------------------------- */

/* Why a failed execution gets no further attempt; NULL for executions in other states. */
static const char *why_not_retried(const struct weft_execution *item, struct weft_arena *arena)
{
    switch (item->not_retried) {
    case WEFT_NOT_RETRIED_CLASS:
        return weft_arena_printf(arena, "class %s is in no_retry",
                                 item->error_class ? item->error_class : "error");
    case WEFT_NOT_RETRIED_PERMANENT:
        return "its worker said that the error is permanent";
    case WEFT_NOT_RETRIED_LOST:
        return weft_arena_printf(arena, "its lease was lost more than %d times (max_lost)",
                                 item->policy->max_lost);
    case WEFT_NOT_RETRIED_INVALID:
        return "it was submitted with values that are not valid";
    case WEFT_NOT_RETRIED_ATTEMPTS:
    case WEFT_NOT_RETRIED_NONE:
    case WEFT_NOT_RETRIED_COUNT:
        break;
    }
    return NULL;
}

/* "3 of 25, next try in 4 s (at ...)", "25 of 25 used", "1 of 25 used, not retried: ..." */
static void put_attempt(const struct weft_execution *item, struct weft_arena *arena)
{
    bool living = weft_state_living(item->state);
    int32_t most = item->policy->max_attempts, used = item->attempts_used;
    bool next = living && item->state != WEFT_STATE_RUNNING;
    /* A cancel, a deadline and a lost lease leave an attempt number behind that was not used. */
    bool unused = next || item->state == WEFT_STATE_CANCELLED ||
                  item->state == WEFT_STATE_EXPIRED || item->state == WEFT_STATE_SKIPPED ||
                  item->not_retried == WEFT_NOT_RETRIED_LOST ||
                  item->not_retried == WEFT_NOT_RETRIED_INVALID;
    const char *why = why_not_retried(item, arena), *when = "", *in_all = "";
    if (item->next_attempt_us) {
        char ago[WEFT_AGO_TEXT], moment[WEFT_MOMENT_TEXT];
        weft_ago(item->next_attempt_us, weft_wall_us(), ago);
        weft_moment_print(item->next_attempt_us, moment);
        when = weft_arena_printf(arena, ", next try %s (at %s)", ago, moment);
    }
    if (item->attempt > used + unused)
        in_all = weft_arena_printf(arena, ", number %d since it was submitted", item->attempt);
    weft_show_field("attempt", "%d of %d%s%s%s%s%s", used + next, most, living ? "" : " used", when,
                    in_all, why ? ", not retried: " : "", why ? why : "");
}

/* A span from a policy: "1 h" where weft_span() says "60 m". */
static void whole_span(int64_t span_ms, char ret_text[WEFT_AGO_TEXT])
{
    if (span_ms > 0 && span_ms % 3600000 == 0)
        (void)snprintf(ret_text, WEFT_AGO_TEXT, "%" PRId64 " h", span_ms / 3600000);
    else
        weft_span(span_ms * WEFT_MS, ret_text);
}

/* "exponential from 1 s, factor 2, at most 1 h, +-20 %" */
static void put_policy(const struct weft_policy *policy)
{
    char first[WEFT_AGO_TEXT], longest[WEFT_AGO_TEXT];
    const char *spread = policy->no_jitter ? "" : ", +-20 %";
    whole_span(policy->initial_ms > 0 ? policy->initial_ms : 0, first);
    whole_span(policy->max_ms, longest);
    if (policy->max_attempts == 1)
        weft_show_field("retries", "none");
    else if (policy->initial_ms <= 0)
        weft_show_field("retries", "at once");
    else if (policy->backoff == WEFT_BACKOFF_FIXED)
        weft_show_field("retries", "every %s%s",
                        policy->initial_ms < policy->max_ms ? first : longest, spread);
    else
        weft_show_field("retries", "exponential from %s, factor %g, at most %s%s", first,
                        policy->factor, longest, spread);
    for (size_t i = 0; i < policy->no_retry_count; i++)
        weft_show_text("no retry", policy->no_retry[i]);
}

static void put_retries(const struct weft_execution *item)
{
    if (!item->policy) { /* an older server */
        weft_show_field("attempt", "%d", item->attempt);
        return;
    }
    struct weft_arena *arena = weft_arena_new();
    put_attempt(item, arena);
    put_policy(item->policy);
    weft_arena_free(arena);
}

static void put_progress(const struct weft_execution *item)
{
    put_retries(item);
    if (item->lost > 0)
        weft_show_field("lost leases", "%d", item->lost);
    weft_show_text("worker", item->worker);
    if (item->percent >= 0)
        weft_show_field("progress", "%d %%%s%s", item->percent, item->note ? ", " : "",
                        item->note ? item->note : "");
    weft_show_text("reason", item->reason);
    weft_show_text("ended by", item->by);
    put_error(item->error_class, item->error_message);
    put_error_detail(item->error_detail);
    weft_show_moment("created", item->created_us);
    weft_show_moment("runs at", item->run_at_us);
    weft_show_moment("started", item->started_us);
    weft_show_moment("claimed", item->claimed_us);
    weft_show_moment("lease ends", item->lease_expires_us);
    weft_show_moment("deadline", item->deadline_us);
    weft_show_moment("finished", item->finished_us);
}

/* The beginning of bytes that are text; of other bytes only their number. */
static void put_preview(const char *label, const struct weft_bytes *bytes)
{
    const char *data = bytes->data, *type = bytes->content_type ? bytes->content_type : "bytes";
    size_t size = weft_utf8_cut(data, bytes->size, PREVIEW_MAX);
    if (bytes->size > 0 && weft_utf8_valid(data, size))
        weft_show_field(label, "%.*s%s (%zu bytes, %s)", (int)size, data,
                        size < bytes->size ? "..." : "", bytes->size, type);
    else
        weft_show_field(label, "%zu bytes, %s", bytes->size, type);
}

static void put_attempt_error(struct weft_table *table, const void *item)
{
    const struct weft_attempt *at = item;
    put_error_line(table, at->error_class, at->error_message);
}

#undef AT
#define AT(member) offsetof(struct weft_attempt, member)
static void put_attempts(const struct weft_cli *cli, const struct weft_attempts *attempts)
{
    static const struct weft_column attempt_columns[] = {
        {"TRY", WEFT_RIGHT, 0, weft_cell_i32, AT(attempt)},
        {"ENDED", WEFT_LEFT, 0, weft_cell_text, AT(ended)},
        {"WHEN", WEFT_RIGHT, 0, weft_cell_ago, AT(ended_us)},
        {"WORKER", WEFT_LEFT, 2, weft_cell_text, AT(worker)},
        {"ERROR", WEFT_LEFT, 1, put_attempt_error, 0},
    };
    if (attempts->count == 0)
        return;
    putchar('\n');
    weft_cli_put_list(cli, WEFT_LIST(attempt_columns, weft_wire_attempt, *attempts));
}

/* ---- Reading --------------------------------------------------------------------------------- */

struct record {
    const struct weft_execution *item;
    struct weft_attempts attempts;
    struct weft_waiting waiting; /* of one that is suspended, or has been */
    struct weft_bytes payload, result;
};

/* True for an execution that is suspended or has been: only these have more to read. */
static bool has_waited(const struct record *record)
{
    bool waited = record->item->state == WEFT_STATE_SUSPENDED;
    for (size_t i = 0; i < record->attempts.count && !waited; i++)
        waited = strcmp(record->attempts.item[i].ended, "suspended") == 0;
    return waited;
}

static enum weft_rc read_record(struct weft *weft, struct record *record, struct weft_err *err)
{
    const struct weft_id *id = &record->item->id;
    enum weft_rc rc = weft_attempts(weft, id, &record->attempts, err);
    if (!rc && has_waited(record))
        rc = weft_waiting(weft, id, &record->waiting, err);
    if (!rc || rc == WEFT_NOT_FOUND) /* an older server does not know the path */
        rc = weft_payload(weft, id, &record->payload, err);
    if (!rc || rc == WEFT_NOT_FOUND) /* bytes that are not there are no failure */
        rc = weft_result(weft, id, &record->result, err);
    return rc == WEFT_NOT_FOUND ? WEFT_OK : rc;
}

static void put_record(const struct weft_cli *cli, const struct record *record)
{
    put_facts(cli, record->item);
    put_progress(record->item);
    weft_show_waiting(&record->item->id, &record->waiting);
    if (record->payload.arena)
        put_preview("payload", &record->payload);
    if (record->result.arena)
        put_preview("result", &record->result);
    weft_show_waitpoints(cli, &record->waiting);
    put_attempts(cli, &record->attempts);
}

static void put_record_json(const struct record *record)
{
    struct weft_json_out out;
    weft_json_out_begin_object(&out);
    weft_wire_write_members(&weft_wire_execution, record->item, &out.json);
    weft_json_add_array(&out.json, "attempts");
    for (size_t i = 0; i < record->attempts.count; i++)
        weft_wire_write(&weft_wire_attempt, &record->attempts.item[i], &out.json);
    weft_json_end_array(&out.json);
    if (record->waiting.arena)
        weft_wire_write_members(&weft_wire_waiting, &record->waiting, &out.json);
    weft_json_out_bytes(&out, "payload", &record->payload);
    weft_json_out_bytes(&out, "result", &record->result);
    weft_json_out_end_object(&out);
}

static enum weft_exit show_bytes(struct weft *weft, const struct weft_id *id, bool payload)
{
    struct weft_err err = {0};
    struct weft_bytes bytes = {0};
    enum weft_rc rc =
        payload ? weft_payload(weft, id, &bytes, &err) : weft_result(weft, id, &bytes, &err);
    if (rc)
        return weft_cli_fail(&err);
    weft_put_bytes(bytes.data, bytes.size);
    weft_bytes_free(&bytes);
    return WEFT_EXIT_OK;
}

static enum weft_exit show(const struct weft_cli *cli, struct weft *weft,
                           const struct weft_execution *item)
{
    struct weft_err err = {0};
    struct record record = {.item = item};
    enum weft_exit code = WEFT_EXIT_OK;
    if (weft_cli_has(cli, "payload") || weft_cli_has(cli, "result"))
        return show_bytes(weft, &item->id, weft_cli_has(cli, "payload"));
    if (read_record(weft, &record, &err))
        code = weft_cli_fail(&err);
    else if (weft_cli_json(cli))
        put_record_json(&record);
    else
        put_record(cli, &record);
    weft_attempts_free(&record.attempts);
    weft_waiting_free(&record.waiting);
    weft_bytes_free(&record.payload);
    weft_bytes_free(&record.result);
    return code;
}

static enum weft_exit run_show(struct weft_cli *cli)
{
    const struct weft_id *id;
    if (weft_cli_has(cli, "payload") && weft_cli_has(cli, "result"))
        weft_cli_usage(cli, "--payload and --result exclude each other");
    struct weft *weft = weft_open_ids(cli, 1, &id);
    return weft_cli_wait(cli, weft, id, show);
}

const struct weft_command weft_command_show = {
    .name = "show",
    .args = "ID",
    .summary = "show one execution with its history",
    .about =
        "All its fields, how each of its leases ended, and the beginning of its payload and "
        "result. Of a suspended one also what it waits for, with its waitpoints and its timeout, "
        "and what you can do about it; of one that went on, what resumed it. --payload and "
        "--result write the stored bytes as they are and nothing else. With "
        "--wait the exit code tells how it ended.",
    .example =
        "weft show 01932c07-5f3e-7a10-8c51-0123456789ab\n"
        "weft show 01932c07-5f3e-7a10-8c51-0123456789ab --result >report.pdf",
    .option =
        (const struct weft_option[]){
            {"payload", 0, NULL, "write the payload, byte for byte", NULL},
            {"result", 0, NULL, "write the result, byte for byte", NULL},
            WEFT_WAIT_OPTION,
            {.name = NULL},
        },
    .run = run_show,
};
