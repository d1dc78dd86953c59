/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cursors of lists, over an engine with a few executions. One that is taken shows only what comes
 * behind it, and going on from page to page ends; all others are refused by name.
 */

#include "base/arena.h"
#include "base/err.h"
#include "core/cursor.h"
#include "direct.h"
#include "engine/engine.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "engine/job/submit.h"
#include "fuzz/fuzz.h"
#include "weft/weft.h"

#include <unistd.h>

enum { EXECUTIONS = 5 };

static struct weft_engine *engine;
static char file[256];

static void remove_store(void)
{
    static const char *const suffix[] = {"", "-wal", "-shm"};
    char path[300];
    weft_engine_close(engine);
    for (size_t i = 0; i < WEFT_LEN(suffix); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", file, suffix[i]);
        (void)unlink(path);
    }
}

static void open_store(void)
{
    char url[300];
    struct weft_err err = {0};
    struct weft_spec spec[EXECUTIONS] = {0};
    struct weft_submitted answer[EXECUTIONS];
    const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    (void)snprintf(file, sizeof(file), "%s/weft-cursor-%d.db", folder ? folder : "/tmp",
                   (int)getpid());
    (void)snprintf(url, sizeof(url), "sqlite:%s", file);
    const struct weft_engine_config config = {.url = url};
    must(weft_engine_open(&config, &engine, &err) == WEFT_OK);
    (void)atexit(remove_store);
    for (size_t i = 0; i < EXECUTIONS; i++)
        spec[i] = (struct weft_spec){.kind = "fuzz"};
    must(engine_submit(engine, "default", spec, EXECUTIONS, answer, &err) == WEFT_OK);
}

/* Follows a list from a cursor to its end. */
static void follow(const char *after, struct weft_arena *arena)
{
    struct weft_id last = {0};
    size_t seen = 0;
    bool any = false;
    while (after) {
        struct weft_read_page page;
        struct weft_err err = {0};
        const struct weft_listing listing = {
            .filter = {.ns = "default"}, .after = after, .limit = 2};
        enum weft_rc rc = weft_engine_list(engine, &listing, arena, &page, &err);
        must(rc == WEFT_OK || (seen == 0 && rc == WEFT_INVALID_VALUE && err.field &&
                               strcmp(err.field, "after") == 0));
        if (rc)
            return;
        for (size_t i = 0; i < page.count; i++) {
            must(!any || memcmp(&page.item[i].id, &last, sizeof(last)) < 0);
            last = page.item[i].id;
            any = true;
        }
        seen += page.count;
        must(seen <= EXECUTIONS);
        after = page.next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!engine)
        open_store();
    struct weft_arena *arena = weft_arena_new();
    char *text = fuzz_text(data, size);
    follow(text, arena);
    /* The same as the place in a cursor that is otherwise good. */
    const struct weft_cursor_list list = {.name = "executions", .ns = "default"};
    size_t place = size < WEFT_CURSOR_PLACE_MAX ? size : WEFT_CURSOR_PLACE_MAX;
    follow(weft_cursor_write(&list, data, place, arena), arena);
    free(text);
    weft_arena_free(arena);
    return 0;
}
