/* SPDX-License-Identifier: Apache-2.0 */

/* The runner: every case on a store of its own. With arguments, only the cases that are named. */

#include "conformance.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/admin/doctor.h"
#include "engine/engine.h"
#include "store/fault/fault.h"
#include "store/store.h"

#include <stdlib.h>
#include <unistd.h>

static struct test_case *first;

/* Constructors run in no useful order: the list is kept sorted by name. */
void case_register(struct test_case *test)
{
    struct test_case **at = &first;
    while (*at && strcmp((*at)->name, test->name) < 0)
        at = &(*at)->next;
    test->next = *at;
    *at = test;
}

static struct weft_engine *open_over(struct fixture *f, const struct weft_driver *driver)
{
    struct weft_engine *engine = NULL;
    struct weft_err err;
    static bool statements_fit; /* the schema of each case is the same */
    const struct weft_engine_config config = {
        .url = f->url, .driver = driver, .statements_fit = statements_fit};
    if (weft_engine_open(&config, &engine, &err)) {
        printf("Bail out! cannot open %s: %s\n", f->url, err.text);
        exit(1);
    }
    statements_fit = true;
    weft_clock_set(weft_engine_clock(engine), f->now_us);
    return engine;
}

struct weft_engine *open_engine(struct fixture *f)
{
    return open_over(f, NULL);
}

struct weft_engine *open_faulty(struct fixture *f, struct weft_fault *fault)
{
    fault->inner = is_pg(f) ? &weft_driver_pg : &weft_driver_sqlite;
    return open_over(f, weft_fault_install(fault));
}

static void set_up(struct fixture *f, const char *store, int number)
{
    *f = (struct fixture){.store = store, .now_us = START_US, .arena = weft_arena_new()};
    if (strcmp(store, "pg") == 0) {
        const char *pg = getenv("WEFT_TEST_PG");
        if (!pg) {
            printf("Bail out! WEFT_TEST_PG must be the URL of a scratch PostgreSQL\n");
            exit(1);
        }
        (void)snprintf(f->url, sizeof(f->url), "%s%cweft_schema=c%d_%d", pg,
                       strchr(pg, '?') ? '&' : '?', (int)getpid(), number);
    } else {
        const char *folder = getenv("TMPDIR");
        (void)snprintf(f->url, sizeof(f->url), "sqlite:%s/case-%d-%d.db", folder ? folder : "/tmp",
                       (int)getpid(), number);
    }
    f->a = open_engine(f);
    f->b = open_engine(f);
}

static void tear_down(struct fixture *f, const char *name)
{
    enum weft_rc rc = weft_engine_check(f->a, &f->err);
    ok(rc == WEFT_OK, "%s: the invariants hold", name);
    if (rc)
        printf("# %s\n", f->err.text);
    weft_engine_close(f->b);
    weft_engine_close(f->a);
    if (is_pg(f)) {
        run_sql(f, "DROP SCHEMA IF EXISTS weft CASCADE");
    } else {
        static const char *const suffix[] = {"", "-wal", "-shm"};
        for (size_t i = 0; i < WEFT_LEN(suffix); i++) {
            char path[600];
            (void)snprintf(path, sizeof(path), "%s%s", f->url + strlen("sqlite:"), suffix[i]);
            (void)unlink(path);
        }
    }
    weft_arena_free(f->arena);
}

int main(int argc, char **argv)
{
    const char *store = getenv("WEFT_TEST_STORE");
    int number = 0;
    for (struct test_case *test = first; test; test = test->next) {
        number++;
        if (!is_named(test->name, argc, argv))
            continue;
        printf("# %s\n", test->name);
        struct fixture f;
        set_up(&f, store ? store : "sqlite", number);
        test->run(&f);
        tear_down(&f, test->name);
    }
    return tap_done();
}
