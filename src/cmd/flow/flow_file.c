/* SPDX-License-Identifier: Apache-2.0 */

/* Comments are replaced by spaces, so that every place in the text stays where it was. */

#include "base/err.h"
#include "cmd/cli/text.h"
#include "cmd/flow/flow.h"
#include "core/graph.h"
#include "core/spec.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 64 << 20 };

struct text {
    const char *path;
    char *data; /* in the arena of the cli */
    size_t size;
};

/* ---- The text -------------------------------------------------------------------------------- */

static struct text read_text(const struct weft_cli *cli, const char *path)
{
    const char *why;
    struct text text = {.path = strcmp(path, "-") == 0 ? "standard input" : path};
    text.data = weft_cli_read_file(cli, path, FILE_MAX, &text.size, &why);
    if (!text.data) {
        weft_cli_say("weft: cannot read %s: %s", path, why);
        weft_quit(WEFT_EXIT_FAILED);
    }
    return text;
}

/* The end of the string or comment that begins at `at`; the text may end before it does. */
static char *end_of(char *at, const char *end)
{
    if (*at == '"') {
        for (at++; at < end && *at != '"'; at++)
            at += *at == '\\' && at + 1 < end;
        return at < end ? at + 1 : at;
    }
    bool block = at[1] == '*';
    for (at += 2; at < end; at++) {
        if (!block && *at == '\n')
            return at;
        if (block && *at == '*' && at + 1 < end && at[1] == '/')
            return at + 2;
    }
    return at;
}

static void blank_comments(struct text *text)
{
    char *at = text->data;
    const char *end = text->data + text->size;
    while (at < end) {
        bool comment = *at == '/' && at + 1 < end && (at[1] == '/' || at[1] == '*');
        char *next = comment || *at == '"' ? end_of(at, end) : at + 1;
        for (; at < next; at++)
            if (comment && *at != '\n')
                *at = ' ';
    }
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Line and column of a place, both from 1 on; columns in bytes. */
static size_t line_of(const struct text *text, const char *place, size_t *ret_column)
{
    size_t line = 1;
    const char *begin = text->data;
    for (const char *at = text->data; at < place; at++)
        if (*at == '\n') {
            line++;
            begin = at + 1;
        }
    *ret_column = (size_t)(place - begin) + 1;
    return line;
}

/* Where the node of this number begins in the text; NULL: there is no such node. */
static const char *place_of(const struct weft_json *object, size_t number)
{
    struct weft_json nodes;
    struct weft_json_iter each;
    if (!weft_wire_member(object, "nodes", &nodes) || nodes.kind != WEFT_JSON_ARRAY)
        return NULL;
    weft_json_iter_init(&each, &nodes);
    while (weft_json_next(&each))
        if (number-- == 0)
            return each.value.text;
    return NULL;
}

__attribute__((noreturn)) static void report(const struct text *text, const char *place,
                                             const struct weft_err *err)
{
    size_t column, line = place ? line_of(text, place, &column) : 0;
    const char *colon = err->rc == WEFT_INVALID_JSON ? strstr(err->text, ": ") : NULL;
    if (place && colon) /* line and column replace the byte offset */
        weft_cli_say("weft: %s:%zu:%zu: %s", text->path, line, column, colon + 2);
    else if (place)
        weft_cli_say("weft: %s:%zu: %s", text->path, line, err->text);
    else
        weft_cli_say("weft: %s: %s", text->path, err->text);
    weft_quit(weft_exit_of(err->rc));
}

/* The place that the error of the JSON reader ("byte 12: ...") or of a field ("nodes[3].x") names.
 */
static const char *blamed(const struct text *text, const struct weft_json *object,
                          const struct weft_err *err)
{
    static const char byte[] = "byte ", nodes[] = "nodes[";
    if (err->rc == WEFT_INVALID_JSON && strncmp(err->text, byte, sizeof(byte) - 1) == 0) {
        size_t offset = strtoul(err->text + sizeof(byte) - 1, NULL, 10);
        return text->data + (offset < text->size ? offset : text->size);
    }
    if (object && err->field && strncmp(err->field, nodes, sizeof(nodes) - 1) == 0)
        return place_of(object, strtoul(err->field + sizeof(nodes) - 1, NULL, 10));
    return NULL;
}

/* Checks as the engine does; *ret_blamed is 1 + the number of the node that is wrong. */
static enum weft_rc check_nodes(const struct weft_cli *cli, const struct weft_flow_file *file,
                                size_t *ret_blamed, struct weft_err *err)
{
    const struct weft_flow_spec *spec = &file->spec;
    struct weft_names_outside outside = {0};
    struct weft_graph graph;
    struct weft_resolved resolved;
    if (file->grows)
        outside = weft_graph_outside(spec->nodes, spec->node_count, cli->arena);
    const struct weft_graph_input input = {.node = spec->nodes,
                                           .count = spec->node_count,
                                           .known = outside.name,
                                           .known_count = outside.count};
    enum weft_rc rc = weft_graph_build(&input, cli->arena, &graph, err);
    *ret_blamed = rc ? graph.blamed : 0;
    for (size_t i = 0; i < spec->node_count && !rc; i++) {
        struct weft_err story = {0};
        rc = weft_spec_resolve(&spec->nodes[i].spec, "default", weft_wall_us(), cli->arena,
                               &resolved, &story);
        if (!rc)
            rc = weft_spec_takes(&resolved, spec->nodes[i].after, spec->nodes[i].after_count,
                                 &story);
        if (rc) {
            (void)weft_fail(err, rc, "node '%s': %s", spec->nodes[i].name, story.text);
            *ret_blamed = i + 1;
        }
    }
    return rc;
}

void weft_flow_file_read(const struct weft_cli *cli, const char *path, struct weft_flow_file *file)
{
    struct weft_json object;
    struct weft_err err = {0};
    size_t number = 0;
    struct text text = read_text(cli, path);
    blank_comments(&text);
    if (weft_json_check(text.data, text.size, &object, &err))
        report(&text, blamed(&text, NULL, &err), &err);
    if (object.kind != WEFT_JSON_OBJECT) {
        (void)weft_fail(&err, WEFT_INVALID_VALUE, "a flow is an object: {\"nodes\": [...]}");
        report(&text, object.text, &err);
    }
    if (weft_wire_read(&weft_wire_flow_spec, &object, cli->arena, &file->spec, &err))
        report(&text, blamed(&text, &object, &err), &err);
    if (check_nodes(cli, file, &number, &err))
        report(&text, number > 0 ? place_of(&object, number - 1) : NULL, &err);
}
