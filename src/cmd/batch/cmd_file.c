/* SPDX-License-Identifier: Apache-2.0 */

/* weft file: the files that batches are made of, and the files that they make. */

#include "base/limits.h"
#include "cmd/batch/batch_files.h"

#include <inttypes.h>
#include <string.h>

#define AT(member) offsetof(struct weft_file_info, member)
static const struct weft_column columns[] = {
    {"FILE", WEFT_LEFT, 0, weft_cell_text, AT(file_id)},
    {"NAME", WEFT_LEFT, 1, weft_cell_text, AT(filename)},
    {"BYTES", WEFT_RIGHT, 0, weft_cell_u64, AT(bytes)},
    {"LINES", WEFT_RIGHT, 0, weft_cell_u64, AT(requests)},
    {"BAD", WEFT_RIGHT, 0, weft_cell_u64, AT(error_count)},
    {"CREATED", WEFT_RIGHT, 0, weft_cell_ago, AT(created_us)},
    {"EXPIRES", WEFT_RIGHT, 2, weft_cell_ever, AT(expires_us)},
};
#undef AT

static enum weft_rc read_files(struct weft *weft, uint32_t left, struct weft_table *table,
                               struct weft_json_writer *json, struct weft_err *err)
{
    char next[WEFT_CURSOR_TEXT] = "";
    do {
        struct weft_file_infos files = {0};
        uint32_t page = left < WEFT_PAGE_MAX ? left : WEFT_PAGE_MAX;
        enum weft_rc rc = weft_files(weft, NULL, page, *next ? next : NULL, &files, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < files.count; i++) {
            if (table)
                weft_table_row(table, &files.item[i]);
            else
                weft_wire_write(&weft_wire_file, &files.item[i], json);
        }
        left -= (uint32_t)files.count;
        (void)snprintf(next, sizeof(next), "%s", files.next ? files.next : "");
        weft_file_infos_free(&files);
    } while (left > 0 && *next);
    return WEFT_OK;
}

static enum weft_exit list_files(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct weft *weft = weft_cli_open(cli);
    struct weft_json_out out;
    uint32_t most = (uint32_t)weft_cli_i64(cli, "limit", 1, 10000, 50);
    struct weft_table *table =
        weft_cli_json(cli) ? NULL : weft_table_new(cli, columns, WEFT_LEN(columns));
    if (!table)
        weft_json_out_begin_items(&out);
    enum weft_rc rc = read_files(weft, most, table, &out.json, &err);
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

static void print_file(const struct weft_file_info *file)
{
    char created[WEFT_AGO_TEXT], expires[WEFT_AGO_TEXT];
    weft_usec now_us = weft_wall_us();
    weft_ago(file->created_us, now_us, created);
    weft_ago(file->expires_us, now_us, expires);
    printf("%s\n", file->file_id);
    (void)fputs("name     ", stdout);
    weft_put_clean(stdout, file->filename);
    printf("\npurpose  %s\n", file->purpose);
    if (file->bytes > 0)
        printf("bytes    %" PRIu64 "\n", file->bytes);
    printf("lines    %" PRIu64 "\ncreated  %s\nexpires  %s\n", file->requests, created,
           file->expires_us ? expires : "never");
    if (file->error_count > 0)
        printf("bad      %" PRIu64 " lines\n", file->error_count);
}

static enum weft_exit show_file(struct weft_cli *cli, const char *name)
{
    struct weft_err err = {0};
    struct weft_file_infos files = {0};
    struct weft_file_asking of = weft_file_arg(cli, name);
    if (of.which != WEFT_CONTENT_FILE)
        weft_cli_usage(cli, "%s belongs to a batch: `weft batch show` shows it", name);
    if (weft_files(weft_cli_open(cli), &of.id, 0, NULL, &files, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli)) {
        weft_json_out_item(&weft_wire_file, files.item);
    } else {
        print_file(files.item);
        (void)fflush(stdout);
        weft_file_put_errors(cli, files.item);
    }
    weft_file_infos_free(&files);
    return WEFT_EXIT_OK;
}

static enum weft_exit put_file(struct weft_cli *cli, const char *path)
{
    struct weft_err err = {0};
    struct weft_file_infos files = {0};
    struct weft_input input = {.path = path,
                               .model = weft_cli_get(cli, "model"),
                               .filename = weft_cli_get(cli, "name"),
                               .expires_ms =
                                   weft_cli_ms(cli, "expires", 3600000, INT64_C(30) * 86400000, 0)};
    if (weft_input_upload(cli, weft_cli_open(cli), &input, &files, &err))
        return weft_cli_fail(&err);
    const struct weft_file_info *file = files.item;
    bool bad = file->error_count > 0;
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_file, file);
    else
        printf("%s\n", file->file_id);
    if (bad) {
        weft_cli_say("weft: %s is stored, but no batch can be made of it: %" PRIu64
                     " of its lines have mistakes",
                     path, file->error_count);
        weft_file_put_errors(cli, file);
    }
    weft_file_infos_free(&files);
    return bad ? WEFT_EXIT_FAILED : WEFT_EXIT_OK;
}

static enum weft_exit get_file(struct weft_cli *cli, const char *name)
{
    struct weft_file_asking of = weft_file_arg(cli, name);
    return weft_output_content(cli, weft_cli_open(cli), &of);
}

static enum weft_exit remove_file(struct weft_cli *cli, const char *name)
{
    struct weft_err err = {0};
    struct weft_file_asking of = weft_file_arg(cli, name);
    if (of.which != WEFT_CONTENT_FILE)
        weft_cli_usage(cli, "%s goes with its batch: `weft batch rm`", name);
    if (weft_file_remove(weft_cli_open(cli), &of.id, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli)) {
        struct weft_json_out out;
        weft_json_out_begin_object(&out);
        weft_json_add_text(&out.json, "file_id",
                           weft_file_id_text(WEFT_CONTENT_FILE, &of.id, cli->arena));
        weft_json_add_bool(&out.json, "deleted", true);
        weft_json_out_end_object(&out);
    } else {
        printf("file %s is deleted\n", weft_file_id_text(WEFT_CONTENT_FILE, &of.id, cli->arena));
    }
    return WEFT_EXIT_OK;
}

static enum weft_exit run_file(struct weft_cli *cli)
{
    const char *action = cli->arg[0], *name = cli->arg_count > 1 ? cli->arg[1] : NULL;
    if (!weft_is_word(action, "put ls list show get rm"))
        weft_cli_usage(cli, "'%s' is neither put, ls, show, get nor rm", action);
    bool list = weft_is_word(action, "ls list");
    if (list && name)
        weft_cli_usage(cli, "'%s' takes no file; 'show' does", action);
    if (!list && !name)
        weft_cli_usage(cli, "'%s' needs a file", action);
    return list                         ? list_files(cli)
           : strcmp(action, "put") == 0 ? put_file(cli, name)
           : strcmp(action, "get") == 0 ? get_file(cli, name)
           : strcmp(action, "rm") == 0  ? remove_file(cli, name)
                                        : show_file(cli, name);
}

const struct weft_command weft_command_file = {
    .name = "file",
    .args = "put|ls|show|get|rm [FILE]",
    .summary = "upload, show and fetch the files of batches",
    .about =
        "A file has a request on each line, as JSON; a batch makes an HTTP call of each. `weft "
        "batch run` uploads a file by itself; this command is for files that several batches "
        "use.\n\n"
        "put uploads a file of this machine, - is standard input, and prints its id. Each line is "
        "checked; mistakes are printed with their line numbers, and the exit code is 1. --model "
        "puts a model into every line, also in place of its own. show, get and rm take ids: "
        "file-..., or the id with dashes.\n\n"
        "get writes the bytes of a file, also of the output (file-output-...) and the errors "
        "(file-errors-...) of a batch. With -o the file is there when all of it is.\n\n"
        "rm deletes a file: batches whose lines have been read go on.",
    .example =
        "weft file put in.jsonl\nweft file ls\n"
        "weft file show file-019a9c1e7f007a019f0e0123456789ab\n"
        "weft file get file-output-019a9c1e7f007a019f0e0123456789ab -o out.jsonl",
    .option =
        (const struct weft_option[]){
            {"model", 0, "NAME", "put: the model of every line, also in place of its own", NULL},
            {"name", 0, "NAME", "put: the name of the file; default: as it is called here", NULL},
            {"expires", 0, "TIME", "put: when it is removed, 1h to 30d; default: 30d", NULL},
            {"limit", 0, "N", "ls: at most so many (50)", NULL},
            WEFT_OUTPUT_OPTION("get: where the bytes go"),
            {.name = NULL},
        },
    .run = run_file,
};
