/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft doctor: a checklist. A store is examined by the engine; a server is asked only whether it
 * lives and is ready, because it does not expose its database.
 */

#include "base/clock.h"
#include "cmd/cli/output.h"
#include "engine/admin/doctor.h"
#include "engine/engine.h"
#include "fetch/fetch.h"

#include <string.h>

enum { FINDINGS_MAX = 64, CALL_MS = 10000, BODY_MAX = 1 << 20, SAID_MAX = 160 };

struct checklist {
    struct weft_arena *arena;
    struct weft_finding item[FINDINGS_MAX];
    size_t count;
};

static void add(struct checklist *list, enum weft_finding_level level, const char *what,
                const char *detail, const char *advice)
{
    if (list->count < FINDINGS_MAX)
        list->item[list->count++] =
            (struct weft_finding){.level = level, .what = what, .detail = detail, .advice = advice};
}

static bool has_bad(const struct checklist *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->item[i].level == WEFT_FINDING_BAD)
            return true;
    return false;
}

/* ---- A store --------------------------------------------------------------------------------- */

static void add_failure(struct checklist *list, const char *what, const struct weft_err *err,
                        const char *advice)
{
    add(list, WEFT_FINDING_BAD, what, weft_arena_strdup(list->arena, err->text),
        err->hint ? err->hint : advice);
}

static void examine_store(struct checklist *list, const char *url)
{
    /* The doctor neither creates a store nor migrates one. */
    const struct weft_engine_config config = {
        .url = url, .connections = 2, .no_migrate = true, .must_exist = true};
    struct weft_engine *engine = NULL;
    struct weft_findings found = {0};
    struct weft_err err = {0};
    enum weft_rc rc = weft_engine_open(&config, &engine, &err);
    if (rc == WEFT_SCHEMA)
        err.hint = "`weft migrate` brings it up to date, unless it is newer than this binary";
    if (rc) {
        add_failure(list, "store", &err,
                    "check that the database runs, and the URL, user and password");
        return;
    }
    add(list, WEFT_FINDING_OK, "store", "it can be opened", NULL);
    if (weft_engine_examine(engine, list->arena, &found, &err))
        add_failure(list, "examination", &err, NULL);
    for (size_t i = 0; i < found.count; i++)
        add(list, found.item[i].level, found.item[i].what, found.item[i].detail,
            found.item[i].advice);
    weft_engine_close(engine);
}

/* ---- A server -------------------------------------------------------------------------------- */

/* The text of the member `name`, or of its member `inner`; NULL: the body has none. */
static const char *text_in(const struct weft_buf *body, const char *name, const char *inner,
                           struct weft_arena *arena)
{
    struct weft_json value, text;
    struct weft_err err;
    const char *found;
    if (weft_json_check(body->data, body->size, &value, &err) ||
        !weft_wire_member(&value, name, &text) ||
        (inner && !weft_wire_member(&text, inner, &text)) ||
        weft_json_string(&text, arena, &found, &err))
        return NULL;
    return found;
}

/* The message of an error, or the beginning of any other body. */
static const char *refusal_text(struct checklist *list, const struct weft_buf *body)
{
    const char *text = text_in(body, "error", "message", list->arena);
    return text ? text : weft_arena_printf(list->arena, "%.*s", SAID_MAX, body->data);
}

struct question {
    const char *what, *path, *good, *advice;
};

static bool ask(struct checklist *list, struct weft_fetch *fetch, const struct question *question)
{
    struct weft_fetch_answer answer = {0};
    struct weft_fetch_failure failure;
    struct weft_err err = {0};
    const struct weft_fetch_call call = {
        .method = "GET", .path = question->path, .timeout_ms = CALL_MS};
    weft_usec begun_us = weft_boot_us();
    if (weft_fetch_do(fetch, &call, &answer, &failure, &err)) {
        add_failure(list, question->what, &err,
                    "start it with `weft serve`, or name another with --server");
        return false;
    }
    double took_ms = (double)(weft_boot_us() - begun_us) / 1000;
    if (answer.status == 200) {
        const char *warning = text_in(&answer.body, "warning", NULL, list->arena);
        add(list, WEFT_FINDING_OK, question->what,
            weft_arena_printf(list->arena, "%s (%.1f ms)", question->good, took_ms), NULL);
        if (warning)
            add(list, WEFT_FINDING_WARN, question->what, warning,
                "`weft scanners` shows who runs what");
    } else {
        add(list, WEFT_FINDING_BAD, question->what,
            weft_arena_printf(list->arena, "it answers %d: %s", answer.status,
                              refusal_text(list, &answer.body)),
            question->advice);
    }
    weft_fetch_answer_done(&answer);
    return true;
}

static void examine_server(struct checklist *list, const struct weft_cli *cli, const char *url)
{
    static const struct question question[] = {
        {"server", "/healthz", "it answers", "this may not be a server of weft"},
        {"ready", "/readyz", "its store answers",
         "`weft doctor --store URL` looks at the store itself"},
    };
    const struct weft_fetch_config config = {.base_url = url,
                                             .token = weft_cli_or_env(cli, "token", "WEFT_TOKEN"),
                                             .ca_file =
                                                 weft_cli_or_env(cli, "ca-file", "WEFT_CA_FILE"),
                                             .body_max = BODY_MAX};
    struct weft_fetch *fetch = NULL;
    struct weft_err err = {0};
    if (weft_fetch_open(&config, &fetch, &err)) {
        add_failure(list, "server", &err, NULL);
        return;
    }
    for (size_t i = 0; i < WEFT_LEN(question); i++)
        if (!ask(list, fetch, &question[i]))
            break;
    weft_fetch_close(fetch);
}

/* ---- What is printed ------------------------------------------------------------------------- */

static const struct {
    const char *name, *color;
} levels[] = {
    [WEFT_FINDING_OK] = {"ok", "32"},
    [WEFT_FINDING_WARN] = {"warn", "33"},
    [WEFT_FINDING_BAD] = {"bad", "31"},
};

static void print_list(const struct checklist *list, bool color)
{
    int width = 0;
    for (size_t i = 0; i < list->count; i++) {
        int size = (int)strlen(list->item[i].what);
        width = size > width ? size : width;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct weft_finding *item = &list->item[i];
        char level[8];
        (void)snprintf(level, sizeof(level), "%-4s", levels[item->level].name);
        weft_put_painted(color ? levels[item->level].color : NULL, level);
        printf("  %-*s  %s\n", width, item->what, item->detail ? item->detail : "");
        if (item->advice)
            printf("      %-*s  -> %s\n", width, "", item->advice);
    }
}

static void print_json(const struct checklist *list)
{
    struct weft_json_out out;
    weft_json_out_begin_object(&out);
    struct weft_json_writer *json = &out.json;
    weft_json_add_bool(json, "ok", !has_bad(list));
    weft_json_add_array(json, "items");
    for (size_t i = 0; i < list->count; i++) {
        weft_json_begin_object(json);
        weft_json_add_text(json, "what", list->item[i].what);
        weft_json_add_text(json, "level", levels[list->item[i].level].name);
        weft_json_add_text(json, "detail", list->item[i].detail);
        weft_json_add_text(json, "advice", list->item[i].advice);
        weft_json_end_object(json);
    }
    weft_json_out_end_items(&out);
}

static enum weft_exit run_doctor(struct weft_cli *cli)
{
    const char *target = weft_cli_target(cli);
    bool remote = weft_is_server(target);
    struct checklist list = {.arena = cli->arena};
    if (remote)
        examine_server(&list, cli, target);
    else
        examine_store(&list, target);
    if (weft_cli_json(cli))
        print_json(&list);
    else
        print_list(&list, weft_cli_color(cli));
    if (remote && !weft_cli_json(cli))
        printf("\nfor clock, transactions, bloat and indexes: weft doctor --store URL\n");
    return has_bad(&list) ? WEFT_EXIT_FAILED : WEFT_EXIT_OK;
}

const struct weft_command weft_command_doctor = {
    .name = "doctor",
    .args = "",
    .summary = "check a store or a server",
    .about =
        "With --store it looks at the database: its schema, the offset of its clock, old "
        "transactions, bloat, missing indexes, work that is stuck, and whether every row "
        "is whole; who of the servers died and which scanner is not well; and says what to do. It "
        "reads everything and changes nothing. Without --store "
        "it asks a server whether it lives and is ready.\n\n"
        "Exit code 1 says that something is bad; a warning does not.",
    .example =
        "weft doctor --store postgres:///weft\n"
        "weft doctor --store sqlite:weft.db --json",
    .run = run_doctor,
};
