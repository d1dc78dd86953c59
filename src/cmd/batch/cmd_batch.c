/* SPDX-License-Identifier: Apache-2.0 */

/* weft batch: a call for each line of a file, from the file to the answers. */

#include "base/arena.h"
#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"
#include "cmd/batch/batch_files.h"
#include "cmd/batch/batch_follow.h"
#include "core/batch_id.h"

#include <inttypes.h>
#include <string.h>

static struct weft_id batch_arg(const struct weft_cli *cli)
{
    struct weft_id id;
    const char *text = cli->arg_count > 1 ? cli->arg[1] : NULL;
    if (!text || cli->arg_count > 2)
        weft_cli_usage(cli, "'%s' needs one batch, as `weft batch ls` shows it", cli->arg[0]);
    if (!weft_batch_id_parse(WEFT_BATCH_PREFIX, text, &id) &&
        !weft_id_parse(text, strlen(text), &id))
        weft_cli_usage(
            cli, "'%s' is no batch: it must be like batch_019a9c1e7f007a019f0e0123456789ab", text);
    return id;
}

/* ---- weft batch run -------------------------------------------------------------------------- */

/* --metadata KEY=VALUE, each, as JSON; NULL: none. */
static const char *read_metadata(const struct weft_cli *cli)
{
    const char *const *given;
    size_t count = weft_cli_all(cli, "metadata", &given);
    struct weft_buf buf;
    struct weft_json_writer out;
    if (count == 0)
        return NULL;
    weft_buf_init(&buf, SIZE_MAX);
    weft_json_writer_init(&out, &buf);
    weft_json_begin_object(&out);
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(given[i], '=');
        if (!equals || equals == given[i])
            weft_cli_usage(cli, "--metadata is '%s': it must be KEY=VALUE", given[i]);
        weft_json_add_text(
            &out, weft_arena_printf(cli->arena, "%.*s", (int)(equals - given[i]), given[i]),
            equals + 1);
    }
    weft_json_end_object(&out);
    const char *text = weft_arena_strdup(cli->arena, buf.data);
    weft_buf_done(&buf);
    return text;
}

/* A model that has no row fails the batch after the upload of a file that may be large. */
static enum weft_rc check_model(struct weft *weft, const char *model, struct weft_err *err)
{
    struct weft_models models = {0};
    struct weft_err none = {0};
    enum weft_rc rc = weft_models(weft, model, 0, NULL, &models, &none);
    weft_models_free(&models);
    if (rc == WEFT_NOT_FOUND)
        rc = weft_models(weft, "*", 0, NULL, &models, &none);
    weft_models_free(&models);
    if (rc == WEFT_NOT_FOUND)
        return weft_hint(err, weft_fail(err, rc, "there is no model '%s', and no model '*'", model),
                         "say where its calls go: `weft model put NAME --endpoint ENDPOINT`");
    if (rc)
        *err = none;
    return rc;
}

/* A file with mistakes is of no use: it goes. */
static enum weft_exit refuse_file(const struct weft_cli *cli, struct weft *weft, const char *path,
                                  const struct weft_file_info *file)
{
    struct weft_err err = {0};
    weft_cli_say("weft: %s has mistakes in %" PRIu64 " of its lines, and no batch was made of it",
                 path, file->error_count);
    weft_file_put_errors(cli, file);
    if (weft_file_remove(weft, &file->id, &err))
        weft_cli_say("weft: its upload %s stays: %s", file->file_id, err.text);
    return WEFT_EXIT_FAILED;
}

/* Uploads the file; *ret_file: its id, in the arena of the cli. */
static enum weft_exit upload(const struct weft_cli *cli, struct weft *weft,
                             struct weft_input *input, const char **ret_file)
{
    struct weft_err err = {0};
    struct weft_file_infos files = {0};
    if (input->model && check_model(weft, input->model, &err))
        return weft_cli_fail(&err);
    if (weft_input_upload(cli, weft, input, &files, &err))
        return weft_cli_fail(&err);
    const struct weft_file_info *file = files.item;
    enum weft_exit code =
        file->error_count > 0 ? refuse_file(cli, weft, input->path, file) : WEFT_EXIT_OK;
    *ret_file = weft_arena_strdup(cli->arena, file->file_id);
    weft_file_infos_free(&files);
    return code;
}

/* A file of this machine, or the id of one that was uploaded. */
static enum weft_exit run_batch(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct weft_batch_infos batches = {0};
    struct weft_file_asking uploaded;
    if (cli->arg_count != 2)
        weft_cli_usage(cli, "'run' needs one file, or the id of one that was uploaded");
    struct weft_input input = {.path = cli->arg[1], .model = weft_cli_get(cli, "model")};
    const char *window = weft_cli_get(cli, "window"), *endpoint = weft_cli_get(cli, "endpoint");
    struct weft_batch_spec spec = {.input_file = cli->arg[1],
                                   .window = window,
                                   .metadata = read_metadata(cli),
                                   .key = weft_cli_get(cli, "key")};
    struct weft *weft = weft_cli_open(cli);
    if (!weft_file_id_parse(cli->arg[1], &uploaded)) {
        enum weft_exit code = upload(cli, weft, &input, &spec.input_file);
        if (code != WEFT_EXIT_OK)
            return code;
    } else if (input.model) {
        weft_cli_usage(cli, "--model is for a file that is uploaded now");
    }
    spec.endpoint = endpoint ? endpoint : *input.url ? input.url : "/v1/chat/completions";
    if (weft_batch_create(weft, &spec, &batches, &err))
        return weft_cli_fail(&err);
    struct weft_id id = batches.item->id;
    weft_batch_infos_free(&batches);
    return weft_batch_begun(cli, weft, &id);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static void put_status(struct weft_table *table, const void *item)
{
    const struct weft_batch_info *batch = item;
    weft_table_paint(table, weft_batch_color(batch), "%s", weft_wire_batch_statuses[batch->status]);
}

static void put_bad(struct weft_table *table, const void *item)
{
    const struct weft_batch_info *batch = item;
    weft_table_cell(table, "%" PRIu64, batch->failed + batch->expired + batch->cancelled);
}

#define AT(member) offsetof(struct weft_batch_info, member)
static const struct weft_column columns[] = {
    {"BATCH", WEFT_LEFT, 0, weft_cell_text, AT(batch_id)},
    {"STATUS", WEFT_LEFT, 0, put_status, 0},
    {"LINES", WEFT_RIGHT, 0, weft_cell_u64, AT(total)},
    {"DONE", WEFT_RIGHT, 0, weft_cell_u64, AT(succeeded)},
    {"BAD", WEFT_RIGHT, 0, put_bad, 0},
    {"CREATED", WEFT_RIGHT, 0, weft_cell_ago, AT(created_us)},
    {"ENDED", WEFT_RIGHT, 1, weft_cell_ago, AT(finished_us)},
    {"ENDPOINT", WEFT_LEFT, 2, weft_cell_text, AT(endpoint)},
};
#undef AT

/* Pages may be short: reads pages until there are as many batches as were asked for. */
static enum weft_rc read_batches(struct weft *weft, struct weft_batch_listing listing,
                                 struct weft_table *table, struct weft_json_writer *json,
                                 struct weft_err *err)
{
    char next[WEFT_CURSOR_TEXT] = "";
    bool more = true;
    while (more && listing.limit > 0) {
        struct weft_batch_infos batches = {0};
        enum weft_rc rc = weft_batch_list(weft, &listing, &batches, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < batches.count; i++) {
            if (table)
                weft_table_row(table, &batches.item[i]);
            else
                weft_wire_write(&weft_wire_batch_info, &batches.item[i], json);
        }
        more = batches.next != NULL;
        (void)snprintf(next, sizeof(next), "%s", batches.next ? batches.next : "");
        listing.after = next;
        listing.limit -= (uint32_t)batches.count;
        weft_batch_infos_free(&batches);
    }
    return WEFT_OK;
}

static enum weft_exit list_batches(const struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct weft_json_out out;
    const char *status = weft_cli_get(cli, "status");
    int found =
        status ? weft_wire_word(weft_wire_batch_statuses, WEFT_BATCH_STATUS_CANCELLED + 1, status)
               : 0;
    const struct weft_batch_listing listing = {
        .limit = (uint32_t)weft_cli_i64(cli, "limit", 1, WEFT_PAGE_MAX, 50),
        .by_status = status != NULL,
        .status = (enum weft_batch_status)found};
    if (found < 0)
        weft_cli_usage(cli, "there is no status '%s'", status);
    struct weft_table *table =
        weft_cli_json(cli) ? NULL : weft_table_new(cli, columns, WEFT_LEN(columns));
    if (!table)
        weft_json_out_begin_items(&out);
    enum weft_rc rc = read_batches(weft, listing, table, &out.json, &err);
    if (table && rc)
        weft_table_free(table);
    else if (table)
        weft_table_print(table);
    else if (rc)
        weft_json_out_drop(&out);
    else
        weft_json_out_end_items(&out);
    return rc ? weft_cli_fail(&err) : WEFT_EXIT_OK;
}

/* ---- Steering -------------------------------------------------------------------------------- */

static enum weft_exit cancel_batch(const struct weft_cli *cli, struct weft *weft,
                                   const struct weft_id *id)
{
    struct weft_err err = {0};
    struct weft_batch_infos batches = {0};
    if (weft_batch_cancel(weft, id, &batches, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_batch_info, batches.item);
    else
        printf("batch %s is %s\n", batches.item->batch_id,
               weft_wire_batch_statuses[batches.item->status]);
    weft_batch_infos_free(&batches);
    return WEFT_EXIT_OK;
}

static enum weft_exit retry_batch(struct weft_cli *cli, struct weft *weft, const struct weft_id *id)
{
    struct weft_err err = {0};
    struct weft_batch_retried retried;
    if (weft_batch_retry(weft, id, &retried, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_batch_retried, &retried);
    else if (retried.retried == 0)
        printf("there is nothing to retry\n");
    else
        printf("%" PRIu64 " lines run again\n", retried.retried);
    return weft_cli_has(cli, "watch") && retried.retried > 0 ? weft_batch_follow(cli, weft, id)
                                                             : WEFT_EXIT_OK;
}

static enum weft_exit remove_batch(const struct weft_cli *cli, struct weft *weft,
                                   const struct weft_id *id)
{
    struct weft_err err = {0};
    char name[WEFT_BATCH_ID_TEXT];
    if (weft_batch_remove(weft, id, &err))
        return weft_cli_fail(&err);
    weft_batch_id_print(WEFT_BATCH_PREFIX, id, name);
    if (weft_cli_json(cli)) {
        struct weft_json_out out;
        weft_json_out_begin_object(&out);
        weft_json_add_text(&out.json, "batch_id", name);
        weft_json_add_bool(&out.json, "deleted", true);
        weft_json_out_end_object(&out);
    } else {
        printf("batch %s is deleted\n", name);
    }
    return WEFT_EXIT_OK;
}

/* ---- The command ----------------------------------------------------------------------------- */

static const struct weft_option options[] = {
    {"model", 0, "NAME", "run: the model of every line, also in place of its own", NULL},
    {"window", 0, "TIME", "run: how long its lines may take, like 30m, 24h, 7d (24h)", NULL},
    {"endpoint", 0, "PATH", "run: the url of its lines; default: that of the first line", NULL},
    {"metadata", 0, "KEY=VALUE", "run: kept with the batch; may be repeated", NULL},
    {"key", 0, "KEY", "run: the same key with the same file gives the same batch", NULL},
    {"watch", 'w', NULL, "run, show, retry: until it has ended, which decides the exit code", NULL},
    {"status", 0, "STATUS", "ls: only with this status",
     "validating failed in_progress finalizing completed expired cancelling cancelled"},
    {"limit", 0, "N", "ls: at most so many (50)", NULL},
    WEFT_OUTPUT_OPTION("results, errors: where the lines go"),
    {.name = NULL},
};

/* Options belong to some actions: their descriptions say to which. */
static void check_options(const struct weft_cli *cli, const char *action)
{
    for (size_t i = 0; i < cli->given_count; i++) {
        const struct weft_option *option = cli->given[i].option;
        const char *colon = strchr(option->about, ':');
        if (option < options || option >= options + WEFT_LEN(options) || !colon)
            continue;
        char *actions = weft_arena_strdup(cli->arena, option->about);
        actions[colon - option->about] = '\0';
        for (char *comma = actions; (comma = strchr(comma, ','));)
            memmove(comma, comma + 1, strlen(comma));
        if (!weft_is_word(action, actions))
            weft_cli_usage(cli, "--%s does not go with '%s'", option->name, action);
    }
}

static enum weft_exit run(struct weft_cli *cli)
{
    const char *action = cli->arg[0];
    if (!weft_is_word(action, "run ls list show results errors cancel retry rm"))
        weft_cli_usage(cli, "'%s' is neither run, ls, show, results, errors, cancel, retry nor rm",
                       action);
    if (strcmp(action, "list") == 0)
        action = "ls";
    check_options(cli, action);
    if (strcmp(action, "run") == 0)
        return run_batch(cli);
    if (strcmp(action, "ls") == 0 && cli->arg_count > 1)
        weft_cli_usage(cli, "'ls' takes no batch; 'show' does");
    if (strcmp(action, "ls") == 0)
        return list_batches(cli, weft_cli_open(cli));
    struct weft_file_asking lines = {.id = batch_arg(cli)};
    struct weft *weft = weft_cli_open(cli);
    lines.which = strcmp(action, "results") == 0 ? WEFT_CONTENT_OUTPUT : WEFT_CONTENT_ERRORS;
    if (weft_is_word(action, "results errors"))
        return weft_output_content(cli, weft, &lines);
    return strcmp(action, "cancel") == 0  ? cancel_batch(cli, weft, &lines.id)
           : strcmp(action, "retry") == 0 ? retry_batch(cli, weft, &lines.id)
           : strcmp(action, "rm") == 0    ? remove_batch(cli, weft, &lines.id)
           : weft_cli_has(cli, "watch")   ? weft_batch_follow(cli, weft, &lines.id)
                                          : weft_batch_show(cli, weft, &lines.id);
}

const struct weft_command weft_command_batch = {
    .name = "batch",
    .args = "run|ls|show|results|errors|cancel|retry|rm [FILE|BATCH]",
    .summary = "make a call of each line of a file, and collect the answers",
    .about =
        "Each line of the file is a request, as in OpenAI's Batch API: custom_id, method, url and "
        "body. The server makes a call of each (weft model says where they go), and keeps the "
        "answers in the order of the file. A line that fails does not stop the others.\n\n"
        "run uploads a file of this machine, or takes the id of one that was uploaded, begins the "
        "batch and prints its id. A file with mistakes is refused with their line numbers. "
        "--model puts a model into every line, also in place of its own. With --watch it shows "
        "how far the batch is until it has ended.\n\n"
        "show tells how far a batch is, by model too. results and errors write the lines that "
        "there are by now: those that succeeded, and those that failed, expired or were "
        "cancelled; with -o the file is there when all of it is.\n\n"
        "cancel ends the lines that have not begun. retry runs the lines again that failed, "
        "expired or were cancelled; the window starts again. rm deletes a batch with its lines.\n\n"
        "With --watch the exit code is 0 when every line succeeded, 1 when some did not or the "
        "batch failed, and 130 when it was interrupted; the batch goes on then.",
    .example =
        "weft batch run in.jsonl --watch\n"
        "weft batch run in.jsonl --model gpt-4o --window 2h\n"
        "weft batch results batch_019a9c1e7f007a019f0e0123456789ab -o out.jsonl\n"
        "weft batch errors batch_019a9c1e7f007a019f0e0123456789ab\n"
        "weft batch retry batch_019a9c1e7f007a019f0e0123456789ab --watch",
    .option = options,
    .run = run,
};
