/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Submitting many.
 *
 * Memory is bounded by one chunk, whatever the size of the file. A chunk is submitted when it has
 * 1,000 specs or half of what one request may carry.
 */

#include "cmd/job/submit_bulk.h"

#include "cmd/cli/bar.h"
#include "cmd/cli/cli_json.h"
#include "cmd/cli/line.h"
#include "cmd/cli/text.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/limits.h"
#include "core/result.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LINE_MAX_BYTES = 4 << 20 }; /* a payload in base64, and the rest of the spec */

/* ---- A chunk --------------------------------------------------------------------------------- */

/* Where a spec of a file stands in it. */
static void put_line_number(const struct weft_sending *sending, uint64_t line,
                            struct weft_json_writer *json)
{
    if (sending->file)
        weft_json_add_i64(json, "line", (int64_t)line);
}

static void refuse(struct weft_sending *sending, uint64_t line, const struct weft_err *err)
{
    const char *text = err->text[0] ? err->text : weft_rc_text(err->rc);
    sending->refused++;
    if (sending->worst == WEFT_EXIT_OK)
        sending->worst = WEFT_EXIT_FAILED;
    (void)fflush(stdout);
    if (sending->file)
        (void)fprintf(stderr, "weft: %s:%" PRIu64 ": ", sending->file, line);
    else
        (void)fputs("weft: ", stderr);
    weft_put_clean(stderr, text);
    (void)fputc('\n', stderr);
    if (!weft_cli_json(sending->cli))
        return;
    struct weft_json_out out;
    weft_json_out_begin_object(&out);
    put_line_number(sending, line, &out.json);
    weft_json_key(&out.json, "error");
    weft_wire_write_error(err, WEFT_FENCE_NONE, &out.json);
    weft_json_out_end_object(&out);
}

static void put_answer(struct weft_sending *sending, uint64_t line,
                       const struct weft_submitted *answer)
{
    char id[WEFT_ID_TEXT];
    if (answer->err.rc) {
        refuse(sending, line, &answer->err);
        return;
    }
    if (answer->duplicate)
        sending->duplicates++;
    else
        sending->accepted++;
    if (weft_cli_json(sending->cli)) {
        struct weft_json_out out;
        const struct weft_submit_result result = weft_submit_result_of(answer);
        weft_json_out_begin_object(&out);
        put_line_number(sending, line, &out.json);
        weft_wire_write_members(&weft_wire_submitted, &result, &out.json);
        weft_json_out_end_object(&out);
        return;
    }
    weft_id_print(&answer->id, id);
    printf("%s\n", id);
}

enum weft_exit weft_send_chunk(struct weft_sending *sending, const struct weft_spec *spec,
                               const uint64_t *line, size_t count)
{
    struct weft_err err = {0};
    if (count == 0)
        return WEFT_EXIT_OK;
    struct weft_submitted *answer = calloc(count, sizeof(*answer));
    if (!answer)
        weft_oom(count * sizeof(*answer));
    enum weft_exit code = WEFT_EXIT_OK;
    if (weft_submit(sending->weft, spec, count, answer, &err)) {
        code = weft_cli_fail(&err);
        if (line)
            (void)fprintf(stderr,
                          "weft: stopped at line %" PRIu64
                          " of %s: it and those after it were not "
                          "answered\n",
                          line[0], sending->file);
    }
    for (size_t i = 0; i < count && code == WEFT_EXIT_OK; i++)
        put_answer(sending, line ? line[i] : 0, &answer[i]);
    free(answer);
    sending->done += count;
    weft_bar_set(sending->bar, sending->done);
    return code == WEFT_EXIT_OK && weft_cli_interrupted() ? WEFT_EXIT_INTERRUPTED : code;
}

/* ---- A file ---------------------------------------------------------------------------------- */

struct chunk {
    struct weft_arena *arena; /* of the lines and what was read from them */
    struct weft_spec *spec;
    uint64_t *line;
    size_t count, bytes;
};

/* One line into the chunk. A line that is no spec is reported and left out. */
static void read_spec(struct weft_sending *sending, const char *lane, struct chunk *chunk,
                      const char *text, uint64_t number)
{
    struct weft_err err = {0};
    struct weft_json value;
    struct weft_spec *spec = &chunk->spec[chunk->count];
    size_t size = strlen(text);
    if (text[strspn(text, " \t\r\n")] == '\0')
        return;
    if (size > LINE_MAX_BYTES) {
        err = (struct weft_err){.rc = WEFT_TOO_LARGE, .text = "the line is too long"};
        refuse(sending, number, &err);
        return;
    }
    const char *copy = weft_arena_dup(chunk->arena, text, size + 1);
    enum weft_rc rc = weft_json_check(copy, size, &value, &err);
    if (!rc)
        rc = weft_wire_read(&weft_wire_spec, &value, chunk->arena, spec, &err);
    if (rc) {
        refuse(sending, number, &err);
        return;
    }
    if (!spec->lane)
        spec->lane = lane;
    chunk->line[chunk->count++] = number;
    chunk->bytes += size;
}

static enum weft_exit send_and_empty(struct weft_sending *sending, struct chunk *chunk)
{
    enum weft_exit code = weft_send_chunk(sending, chunk->spec, chunk->line, chunk->count);
    weft_arena_reset(chunk->arena);
    chunk->count = chunk->bytes = 0;
    return code;
}

static enum weft_exit send_lines(struct weft_sending *sending, const char *lane, FILE *file)
{
    struct chunk chunk = {.arena = weft_arena_new(),
                          .spec =
                              weft_new_array(sending->cli->arena, struct weft_spec, WEFT_BATCH_MAX),
                          .line = weft_new_array(sending->cli->arena, uint64_t, WEFT_BATCH_MAX)};
    enum weft_exit code = WEFT_EXIT_OK;
    char *text = NULL;
    size_t room = 0;
    uint64_t number = 0;
    while (code == WEFT_EXIT_OK && getline(&text, &room, file) >= 0) {
        read_spec(sending, lane, &chunk, text, ++number);
        if (chunk.count == WEFT_BATCH_MAX || chunk.bytes >= WEFT_BATCH_BYTES)
            code = send_and_empty(sending, &chunk);
    }
    if (code == WEFT_EXIT_OK && ferror(file))
        code = weft_cli_usage(sending->cli, "cannot read %s to its end", sending->file);
    enum weft_exit last = code == WEFT_EXIT_OK ? send_and_empty(sending, &chunk) : code;
    free(text);
    weft_arena_free(chunk.arena);
    return last;
}

/* The lines of a file that can be read twice; 0: it cannot. */
static uint64_t count_lines(FILE *file)
{
    struct stat info;
    char block[65536];
    uint64_t lines = 0;
    size_t size;
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode))
        return 0;
    while ((size = fread(block, 1, sizeof(block), file)) > 0)
        for (size_t i = 0; i < size; i++)
            lines += block[i] == '\n';
    rewind(file);
    return lines;
}

/* What became of the lines: on stderr for people, the last line of the output for programs. */
static void put_summary(const struct weft_sending *sending)
{
    if (!weft_cli_json(sending->cli)) {
        (void)fflush(stdout);
        (void)fprintf(stderr,
                      "weft: accepted %" PRIu64 ", duplicates %" PRIu64 ", refused %" PRIu64 "\n",
                      sending->accepted, sending->duplicates, sending->refused);
        return;
    }
    struct weft_json_out out;
    weft_json_out_begin_object(&out);
    weft_json_add_i64(&out.json, "accepted", (int64_t)sending->accepted);
    weft_json_add_i64(&out.json, "duplicates", (int64_t)sending->duplicates);
    weft_json_add_i64(&out.json, "refused", (int64_t)sending->refused);
    weft_json_out_end_object(&out);
}

enum weft_exit weft_submit_bulk(const struct weft_cli *cli, struct weft *weft, const char *path,
                                const char *lane)
{
    bool input = strcmp(path, "-") == 0;
    FILE *file = input ? stdin : fopen(path, "re");
    if (!file) {
        char why[128];
        return weft_cli_usage(cli, "cannot read %s: %s", path, strerror_r(errno, why, sizeof(why)));
    }
    struct weft_sending sending = {.cli = cli,
                                   .weft = weft,
                                   .file = input ? "standard input" : path,
                                   .bar = weft_bar_new("submit", input ? 0 : count_lines(file))};
    enum weft_exit code = send_lines(&sending, lane, file);
    weft_bar_free(sending.bar);
    put_summary(&sending);
    if (!input)
        (void)fclose(file);
    return code == WEFT_EXIT_OK ? sending.worst : code;
}
