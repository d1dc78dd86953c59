/* SPDX-License-Identifier: Apache-2.0 */

#include "cmd/batch/batch_follow.h"

#include "base/arena.h"
#include "cmd/batch/batch_files.h"
#include "core/batch_id.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
    LOOK_FIRST_MS = 50, /* how often a followed batch is looked at: pauses grow */
    LOOK_LAST_MS = 1000,
    VALIDATING_MS = 3000, /* how long a new batch is awaited that may fail */
    STEPS = 10,           /* lines on stderr of one batch, for what ends of it */
};

static uint64_t bad(const struct weft_batch_info *batch)
{
    return batch->failed + batch->expired + batch->cancelled;
}

static bool has_ended(const struct weft_batch_info *batch)
{
    return batch->status == WEFT_BATCH_STATUS_COMPLETED ||
           batch->status == WEFT_BATCH_STATUS_FAILED ||
           batch->status == WEFT_BATCH_STATUS_EXPIRED ||
           batch->status == WEFT_BATCH_STATUS_CANCELLED;
}

const char *weft_batch_color(const struct weft_batch_info *batch)
{
    static const char *const color[WEFT_BATCH_STATUS_CANCELLED + 1] = {
        [WEFT_BATCH_STATUS_VALIDATING] = "33",  [WEFT_BATCH_STATUS_FAILED] = "31",
        [WEFT_BATCH_STATUS_IN_PROGRESS] = "34", [WEFT_BATCH_STATUS_FINALIZING] = "34",
        [WEFT_BATCH_STATUS_COMPLETED] = "32",   [WEFT_BATCH_STATUS_EXPIRED] = "31",
        [WEFT_BATCH_STATUS_CANCELLING] = "33",  [WEFT_BATCH_STATUS_CANCELLED] = "90",
    };
    return color[batch->status];
}

static const char *batch_text(const struct weft_cli *cli, const struct weft_id *id)
{
    char *text = weft_arena_alloc(cli->arena, WEFT_BATCH_ID_TEXT, 1);
    weft_batch_id_print(WEFT_BATCH_PREFIX, id, text);
    return text;
}

/* ---- Showing --------------------------------------------------------------------------------- */

static void print_moment(const char *what, weft_usec moment_us)
{
    char text[WEFT_AGO_TEXT];
    if (!moment_us)
        return;
    weft_ago(moment_us, weft_wall_us(), text);
    printf("%-10s %s\n", what, text);
}

static void put_model_name(struct weft_table *table, const void *item)
{
    const struct weft_batch_model *model = item;
    if (model->escalated_to)
        weft_table_cell(table, "%s -> %s", model->model ? model->model : "(others)",
                        model->escalated_to);
    else
        weft_table_cell(table, "%s", model->model ? model->model : "(others)");
}

static void put_model_bad(struct weft_table *table, const void *item)
{
    const struct weft_batch_model *model = item;
    weft_table_cell(table, "%" PRIu64, model->failed + model->expired + model->cancelled);
}

#define AT(member) offsetof(struct weft_batch_model, member)
static const struct weft_column model_columns[] = {
    {"MODEL", WEFT_LEFT, 0, put_model_name, 0},
    {"LINES", WEFT_RIGHT, 0, weft_cell_u64, AT(total)},
    {"DONE", WEFT_RIGHT, 0, weft_cell_u64, AT(succeeded)},
    {"BAD", WEFT_RIGHT, 0, put_model_bad, 0},
    {"RUNNING", WEFT_RIGHT, 0, weft_cell_u64, AT(running)},
};
#undef AT

/* What is wrong with the file of a batch that failed. */
static void put_errors(const struct weft_cli *cli, const struct weft_batch_info *batch)
{
    const struct weft_file_info file = {.errors = batch->errors};
    weft_file_put_errors(cli, &file);
}

static void print_batch(const struct weft_cli *cli, const struct weft_batch_info *batch)
{
    printf("%s\n%-10s ", batch->batch_id, "status");
    weft_put_painted(weft_cli_color(cli) ? weft_batch_color(batch) : NULL,
                     weft_wire_batch_statuses[batch->status]);
    printf("\n%-10s %" PRIu64 ": %" PRIu64 " succeeded, %" PRIu64 " failed, %" PRIu64
           " expired, %" PRIu64 " cancelled, %" PRIu64 " running\n",
           "lines", batch->total, batch->succeeded, batch->failed, batch->expired, batch->cancelled,
           batch->running);
    printf("%-10s %s\n%-10s %s\n", "endpoint", batch->endpoint, "input", batch->input_file);
    if (batch->output_file)
        printf("%-10s %s\n", "output", batch->output_file);
    if (batch->error_file)
        printf("%-10s %s\n", "errors", batch->error_file);
    if (batch->metadata) {
        printf("%-10s ", "metadata");
        weft_put_clean(stdout, batch->metadata);
        putchar('\n');
    }
    print_moment("created", batch->created_us);
    print_moment("started", batch->started_us);
    print_moment("retried", batch->retried_us);
    if (has_ended(batch)) {
        print_moment("ended", batch->finished_us);
    } else {
        print_moment("expires", batch->expires_us);
        printf("%-10s %" PRIu64 " lines in the last minute\n", "pace", batch->ended_last_minute);
        print_moment("ends", batch->estimated_end_us);
    }
    if (batch->model_count > 0) {
        const struct weft_list models = {model_columns,          WEFT_LEN(model_columns),
                                         &weft_wire_batch_model, batch->model,
                                         sizeof(*batch->model),  batch->model_count};
        putchar('\n');
        weft_cli_put_list(cli, &models);
    }
    (void)fflush(stdout);
    if (batch->errors)
        put_errors(cli, batch);
}

enum weft_exit weft_batch_show(const struct weft_cli *cli, struct weft *weft,
                               const struct weft_id *id)
{
    struct weft_err err = {0};
    struct weft_batch_infos batches = {0};
    if (weft_batch_get(weft, id, &batches, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_batch_info, batches.item);
    else
        print_batch(cli, batches.item);
    weft_batch_infos_free(&batches);
    return WEFT_EXIT_OK;
}

/* ---- Following ------------------------------------------------------------------------------- */

/* What has been shown so far. */
struct follow {
    struct weft_bar *bar; /* NULL before the lines are known */
    bool terminal, any;
    enum weft_batch_status status;
    uint64_t step;
};

/* A line where the status changes, and for each tenth of the lines. */
static void show_line(struct follow *follow, const struct weft_batch_info *batch)
{
    uint64_t ended = batch->succeeded + bad(batch);
    uint64_t step = batch->total ? ended * STEPS / batch->total : 0;
    if (follow->any && follow->status == batch->status && follow->step == step)
        return;
    follow->any = true;
    follow->status = batch->status;
    follow->step = step;
    if (batch->total > 0)
        weft_cli_say("%s: %" PRIu64 " of %" PRIu64 " lines have ended",
                     weft_wire_batch_statuses[batch->status], ended, batch->total);
    else
        weft_cli_say("%s", weft_wire_batch_statuses[batch->status]);
}

static void show_bar(struct follow *follow, const struct weft_batch_info *batch)
{
    uint64_t ended = batch->succeeded + bad(batch);
    if (batch->status == WEFT_BATCH_STATUS_VALIDATING || batch->total == 0)
        return;
    if (!follow->bar) {
        follow->bar = weft_bar_new("batch", batch->total);
        weft_bar_begin_at(follow->bar, ended);
    }
    weft_bar_set(follow->bar, ended);
}

/* What came of it. */
static enum weft_exit tell_end(const struct weft_cli *cli, const struct weft_batch_info *batch)
{
    bool good = batch->status == WEFT_BATCH_STATUS_COMPLETED && bad(batch) == 0;
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_batch_info, batch);
    else
        printf("%s: %" PRIu64 " of %" PRIu64 " lines succeeded\n",
               weft_wire_batch_statuses[batch->status], batch->succeeded, batch->total);
    (void)fflush(stdout);
    if (good)
        return WEFT_EXIT_OK;
    if (batch->status == WEFT_BATCH_STATUS_FAILED) {
        weft_cli_say("weft: %s failed: its file cannot be used", batch->batch_id);
        put_errors(cli, batch);
        return WEFT_EXIT_FAILED;
    }
    weft_cli_say("weft: %" PRIu64 " failed, %" PRIu64 " expired, %" PRIu64 " were cancelled",
                 batch->failed, batch->expired, batch->cancelled);
    weft_cli_say("hint: `weft batch errors %s` shows why, `weft batch retry` runs them again",
                 batch->batch_id);
    return WEFT_EXIT_FAILED;
}

enum weft_exit weft_batch_follow(const struct weft_cli *cli, struct weft *weft,
                                 const struct weft_id *id)
{
    struct follow follow = {.terminal = isatty(STDERR_FILENO)};
    struct weft_err err = {0};
    enum weft_exit code = WEFT_EXIT_INTERRUPTED;
    int pause_ms = LOOK_FIRST_MS;
    bool ended = false;
    weft_cli_catch();
    while (!ended && !weft_cli_interrupted()) {
        struct weft_batch_infos batches = {0};
        if (weft_batch_get(weft, id, &batches, &err)) {
            weft_bar_free(follow.bar);
            return weft_cli_fail(&err);
        }
        if (follow.terminal)
            show_bar(&follow, batches.item);
        else
            show_line(&follow, batches.item);
        ended = has_ended(batches.item);
        if (ended) {
            weft_bar_free(follow.bar);
            follow.bar = NULL;
            code = tell_end(cli, batches.item);
        }
        weft_batch_infos_free(&batches);
        if (!ended)
            (void)poll(NULL, 0, pause_ms); /* ended early by a signal */
        pause_ms = pause_ms * 2 < LOOK_LAST_MS ? pause_ms * 2 : LOOK_LAST_MS;
    }
    weft_bar_free(follow.bar);
    if (!ended)
        weft_cli_say("weft: interrupted; the batch goes on: `weft batch show --watch %s`",
                     batch_text(cli, id));
    return code;
}

/* Waits a little until the file has been looked at, so that mistakes in it are told at once. */
static enum weft_rc await_lines(struct weft *weft, const struct weft_id *id,
                                struct weft_batch_infos *ret_batches, struct weft_err *err)
{
    int waited_ms = 0, pause_ms = LOOK_FIRST_MS;
    for (;;) {
        enum weft_rc rc = weft_batch_get(weft, id, ret_batches, err);
        if (rc || ret_batches->item->status != WEFT_BATCH_STATUS_VALIDATING ||
            waited_ms >= VALIDATING_MS || weft_cli_interrupted())
            return rc;
        weft_batch_infos_free(ret_batches);
        (void)poll(NULL, 0, pause_ms);
        waited_ms += pause_ms;
        pause_ms *= 2;
    }
}

enum weft_exit weft_batch_begun(const struct weft_cli *cli, struct weft *weft,
                                const struct weft_id *id)
{
    struct weft_err err = {0};
    struct weft_batch_infos batches = {0};
    bool json = weft_cli_json(cli), watch = weft_cli_has(cli, "watch");
    if (!json) {
        printf("%s\n", batch_text(cli, id));
        (void)fflush(stdout);
    }
    if (watch)
        return weft_batch_follow(cli, weft, id);
    if (await_lines(weft, id, &batches, &err))
        return weft_cli_fail(&err);
    const struct weft_batch_info *batch = batches.item;
    bool failed = batch->status == WEFT_BATCH_STATUS_FAILED;
    if (json)
        weft_json_out_item(&weft_wire_batch_info, batch);
    if (failed) {
        (void)fflush(stdout);
        weft_cli_say("weft: %s failed: its file cannot be used", batch->batch_id);
        put_errors(cli, batch);
    }
    weft_batch_infos_free(&batches);
    return failed ? WEFT_EXIT_FAILED : WEFT_EXIT_OK;
}
