/* SPDX-License-Identifier: Apache-2.0 */

#include "cmd/batch/batch_files.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PIECE = 256 << 10,
    LINE_MAX = 4 << 20, /* longer ones go on as they are: they are refused anyway */
    ERRORS_SHOWN = 5,
};

/* ---- Lines on their way ---------------------------------------------------------------------- */

struct lines {
    struct weft_input *input;
    int fd;
    int error; /* why it could not be read; 0: it could */
    bool end, first_read;
    uint64_t taken;      /* bytes of the file */
    struct weft_buf raw; /* read, and not given yet */
    struct weft_buf out; /* lines that are to be given */
    size_t given;        /* bytes of `out` */
    struct weft_bar *bar;
};

/* The url of the first line that has one. */
static void note_url(struct lines *lines, const struct weft_json *line)
{
    struct weft_json url;
    const char *text;
    struct weft_arena *arena = weft_arena_new();
    if (!lines->input->url[0] && line->kind == WEFT_JSON_OBJECT &&
        weft_wire_member(line, "url", &url) && url.kind == WEFT_JSON_STRING &&
        !weft_json_string(&url, arena, &text, NULL))
        (void)snprintf(lines->input->url, sizeof(lines->input->url), "%s", text);
    weft_arena_free(arena);
}

/*
 * Adds a line with the model in the place of its own. A line that is not what it should be stays as
 * it is: the server says what is wrong with it.
 */
static void add_line(struct lines *lines, const char *text, size_t size)
{
    struct weft_json line, body, model;
    struct weft_json_writer out;
    bool good = size <= LINE_MAX && !weft_json_check(text, size, &line, NULL);
    if (good)
        note_url(lines, &line);
    if (!good || !lines->input->model || line.kind != WEFT_JSON_OBJECT ||
        !weft_wire_member(&line, "body", &body) || body.kind != WEFT_JSON_OBJECT) {
        weft_buf_add(&lines->out, text, size);
        return;
    }
    struct weft_json_iter member;
    bool has = weft_wire_member(&body, "model", &model);
    const char *from = has ? model.text : body.text + 1;
    const char *to = has ? model.text + model.size : from;
    weft_buf_add(&lines->out, text, (size_t)(from - text));
    weft_json_writer_init(&out, &lines->out);
    if (!has)
        weft_buf_add_text(&lines->out, "\"model\":");
    weft_json_put_text(&out, lines->input->model);
    weft_json_iter_init(&member, &body);
    if (!has && weft_json_next(&member))
        weft_buf_add_char(&lines->out, ',');
    weft_buf_add(&lines->out, to, (size_t)(text + size - to));
}

/* Makes lines of what was read. The last one needs no line end. */
static void add_lines(struct lines *lines)
{
    size_t at = 0;
    while (at < lines->raw.size) {
        const char *text = lines->raw.data + at;
        const char *end = memchr(text, '\n', lines->raw.size - at);
        if (!end && !lines->end && lines->raw.size - at <= LINE_MAX)
            break;
        size_t size = end ? (size_t)(end - text) : lines->raw.size - at;
        add_line(lines, text, size);
        if (end)
            weft_buf_add_char(&lines->out, '\n');
        at += size + (end != NULL);
    }
    lines->raw.size -= at;
    memmove(lines->raw.data, lines->raw.data + at, lines->raw.size);
}

static bool read_more(struct lines *lines)
{
    char piece[1 << 16];
    ssize_t size;
    do
        size = read(lines->fd, piece, sizeof(piece));
    while (size < 0 && errno == EINTR);
    if (size < 0) {
        lines->error = errno;
        return false;
    }
    lines->end = size == 0;
    lines->taken += (uint64_t)size;
    weft_buf_add(&lines->raw, piece, (size_t)size);
    add_lines(lines);
    weft_bar_set(lines->bar, lines->taken);
    return true;
}

static bool next_lines(void *context, void *ret_data, size_t most, size_t *ret_size)
{
    struct lines *lines = context;
    while (lines->given == lines->out.size && !lines->end) {
        weft_buf_clear(&lines->out);
        lines->given = 0;
        if (!read_more(lines))
            return false;
    }
    size_t left = lines->out.size - lines->given;
    *ret_size = left < most ? left : most;
    memcpy(ret_data, lines->out.data + lines->given, *ret_size);
    lines->given += *ret_size;
    return true;
}

static void show_progress(void *context, uint64_t bytes)
{
    const struct lines *lines = context;
    weft_bar_set(lines->bar, bytes);
}

/* The url of a file that is sent as it is, without moving its place. */
static void look_at_first_line(struct lines *lines)
{
    char *text = weft_alloc(1, PIECE);
    ssize_t size = pread(lines->fd, text, PIECE, lseek(lines->fd, 0, SEEK_CUR));
    struct weft_json line;
    if (size > 0) {
        const char *end = memchr(text, '\n', (size_t)size);
        if (!weft_json_check(text, end ? (size_t)(end - text) : (size_t)size, &line, NULL))
            note_url(lines, &line);
    }
    free(text);
}

/* ---- Uploads --------------------------------------------------------------------------------- */

static int open_input(const struct weft_cli *cli, const char *path, struct stat *ret_stat)
{
    bool input = strcmp(path, "-") == 0;
    int fd = input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, ret_stat))
        weft_cli_usage(cli, "cannot read %s: %s", path, strerrordesc_np(errno));
    if (S_ISDIR(ret_stat->st_mode))
        weft_cli_usage(cli, "cannot read %s: it is a directory", path);
    return fd;
}

static const char *name_of(const struct weft_input *input)
{
    const char *slash = strrchr(input->path, '/');
    if (input->filename)
        return input->filename;
    return strcmp(input->path, "-") == 0 ? NULL : slash ? slash + 1 : input->path;
}

enum weft_rc weft_input_upload(const struct weft_cli *cli, struct weft *weft,
                               struct weft_input *input, struct weft_file_infos *ret_files,
                               struct weft_err *err)
{
    struct stat stat;
    struct lines lines = {.input = input, .fd = open_input(cli, input->path, &stat)};
    bool regular = S_ISREG(stat.st_mode), as_it_is = regular && !input->model;
    lines.bar = weft_bar_new("upload", regular ? (uint64_t)stat.st_size : 0);
    weft_bar_bytes(lines.bar);
    weft_buf_init(&lines.raw, SIZE_MAX);
    weft_buf_init(&lines.out, SIZE_MAX);
    const struct weft_upload upload = {.filename = name_of(input),
                                       .fd = lines.fd,
                                       .read = as_it_is ? NULL : next_lines,
                                       .expires_ms = input->expires_ms,
                                       .progress = as_it_is ? show_progress : NULL,
                                       .context = &lines};
    if (as_it_is)
        look_at_first_line(&lines);
    enum weft_rc rc = weft_file_put(weft, &upload, ret_files, err);
    if (rc && lines.error)
        rc = weft_fail(err, WEFT_INVALID_VALUE, "cannot read %s: %s", input->path,
                       strerrordesc_np(lines.error));
    weft_bar_free(lines.bar);
    weft_buf_done(&lines.raw);
    weft_buf_done(&lines.out);
    if (lines.fd != STDIN_FILENO)
        (void)close(lines.fd);
    return rc;
}

/* A member that is a text, or "". */
static const char *text_in(const struct weft_cli *cli, const struct weft_json *object,
                           const char *name)
{
    struct weft_json value;
    const char *text = "";
    if (!weft_wire_member(object, name, &value) || value.kind != WEFT_JSON_STRING ||
        weft_json_string(&value, cli->arena, &text, NULL))
        return "";
    return text;
}

void weft_file_put_errors(const struct weft_cli *cli, const struct weft_file_info *file)
{
    struct weft_json list, number;
    struct weft_json_iter each;
    uint64_t shown = 0;
    if (!file->errors || weft_json_check(file->errors, strlen(file->errors), &list, NULL))
        return;
    weft_json_iter_init(&each, &list);
    while (shown < ERRORS_SHOWN && weft_json_next(&each)) {
        int64_t line = 0;
        if (weft_wire_member(&each.value, "line", &number))
            (void)!weft_json_i64(&number, &line);
        const char *message = text_in(cli, &each.value, "message");
        if (line > 0)
            weft_cli_say("  line %" PRId64 ": %s", line, message);
        else
            weft_cli_say("  %s", message);
        shown++;
    }
    if (file->error_count > shown)
        weft_cli_say("  and %" PRIu64 " more", file->error_count - shown);
}

/* ---- Downloads ------------------------------------------------------------------------------- */

struct output {
    int fd;
    int error;
    uint64_t done;
    struct weft_bar *bar; /* NULL: none, the bytes go to the terminal or a pipe */
};

static bool write_bytes(void *context, const void *data, size_t size)
{
    struct output *output = context;
    const char *at = data;
    while (size > 0) {
        ssize_t taken = write(output->fd, at, size);
        if (taken < 0 && errno != EINTR) {
            output->error = errno;
            return false;
        }
        if (taken > 0) {
            at += taken;
            size -= (size_t)taken;
            output->done += (uint64_t)taken;
        }
    }
    if (output->bar)
        weft_bar_set(output->bar, output->done);
    return true;
}

/* Says what failed; the file that is not whole goes. */
static enum weft_exit end_output(const struct output *output, enum weft_rc rc, const char *part,
                                 const char *path, const struct weft_err *err)
{
    int error = output->error;
    if (!error && part && !rc && (fsync(output->fd) || close(output->fd) || rename(part, path)))
        error = errno;
    if (part && (rc || error))
        (void)unlink(part);
    if (error)
        weft_cli_say("weft: cannot write %s: %s", path ? path : "standard output",
                     strerrordesc_np(error));
    return error ? WEFT_EXIT_FAILED : rc ? weft_cli_fail(err) : WEFT_EXIT_OK;
}

enum weft_exit weft_output_content(const struct weft_cli *cli, struct weft *weft,
                                   const struct weft_file_asking *of)
{
    const char *path = weft_cli_get(cli, "output");
    char *part = NULL;
    struct weft_err err = {0};
    struct output output = {.fd = STDOUT_FILENO};
    if (path && strcmp(path, "-") == 0)
        path = NULL;
    if (path) {
        part = weft_arena_strdup(cli->arena, weft_arena_printf(cli->arena, "%s.XXXXXX", path));
        output.fd = mkostemp(part, O_CLOEXEC);
        if (output.fd < 0)
            weft_cli_usage(cli, "cannot write %s: %s", path, strerrordesc_np(errno));
        (void)fchmod(output.fd, 0644);
        output.bar = weft_bar_new("download", 0);
        weft_bar_bytes(output.bar);
    }
    const struct weft_sink sink = {.write = write_bytes, .context = &output};
    enum weft_rc rc = weft_content(weft, of->which, &of->id, &sink, NULL, &err);
    weft_bar_free(output.bar);
    return end_output(&output, rc, part, path, &err);
}

struct weft_file_asking weft_file_arg(const struct weft_cli *cli, const char *text)
{
    struct weft_file_asking asking = {0};
    if (!weft_file_id_parse(text, &asking))
        weft_cli_usage(
            cli, "'%s' is no file: it must be like file-019a9c1e7f007a019f0e0123456789ab", text);
    return asking;
}
