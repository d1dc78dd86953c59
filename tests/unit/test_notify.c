/* SPDX-License-Identifier: Apache-2.0 */

/* Notices between replicas, and the loss of their connection. */

#include "store_fixture.h"

#include "base/arena.h"
#include "store/notify.h"
#include "store/store.h"

#include <poll.h>

enum { WAIT_MS = 10000 };

/* The next notice, waiting for it with a bound; NULL when none comes or the bell fails. */
static const char *wait_next(struct fixture *f, struct weft_notifier *bell)
{
    const char *text = NULL;
    for (int tries = 0; tries < 100; tries++) {
        struct pollfd fd = {.fd = weft_notifier_fd(bell), .events = POLLIN};
        if (weft_notifier_next(bell, f->arena, &text, &f->err) || text)
            break;
        if (poll(&fd, 1, WAIT_MS) <= 0)
            break;
    }
    return text;
}

static struct weft_notifier *open_bell(struct fixture *f, const char *url)
{
    struct weft_notifier *bell = NULL;
    enum weft_rc rc = weft_notifier_open(url, &bell, &f->err);
    if (rc) {
        printf("Bail out! no bell: %s\n", f->err.text);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    return bell;
}

static void test_notices(struct fixture *f)
{
    const char *unprepared = weft_arena_printf(f->arena, "%s&weft_prepare=off", f->url);
    struct weft_notifier *a = open_bell(f, f->url), *b = open_bell(f, unprepared);
    const char *text = NULL;
    ok(weft_notifier_next(a, f->arena, &text, &f->err) == WEFT_OK && !text, "nothing at first");
    ok(weft_notifier_send(a, "1:2 'quoted' \\", &f->err) == WEFT_OK, "a rings");
    is_str(wait_next(f, b), "1:2 'quoted' \\", "b hears it as it was");
    ok(weft_notifier_send(b, "", &f->err) == WEFT_OK, "b answers with nothing");
    is_str(wait_next(f, a), "", "an empty notice arrives as the next one");
    ok(weft_notifier_next(a, f->arena, &text, &f->err) == WEFT_OK && !text,
       "a notifier does not hear its own notice");

    char longest[WEFT_NOTICE_TEXT_MAX + 1];
    memset(longest, 'x', WEFT_NOTICE_TEXT_MAX);
    longest[WEFT_NOTICE_TEXT_MAX] = '\0';
    ok(weft_notifier_send(a, longest, &f->err) == WEFT_OK, "the longest notice");
    text = wait_next(f, b);
    ok(text && strcmp(text, longest) == 0, "arrives whole");
    for (int i = 0; i < 20; i++)
        (void)!weft_notifier_send(a, i % 2 ? "odd" : "even", &f->err);
    int odd = 0, even = 0;
    for (int i = 0; i < 20 && (text = wait_next(f, b)) != NULL; i++) {
        odd += strcmp(text, "odd") == 0;
        even += strcmp(text, "even") == 0;
    }
    ok(odd == 10 && even == 10, "twenty in a row, one by one: %d and %d", odd, even);
    weft_notifier_close(a);
    weft_notifier_close(b);
}

/* Two stores in one database do not hear each other. */
static void test_apart(struct fixture *f, struct fixture *other)
{
    struct weft_notifier *a = open_bell(f, f->url), *b = open_bell(f, f->url);
    struct weft_notifier *stranger = open_bell(other, other->url);
    const char *text = NULL;
    ok(weft_notifier_send(stranger, "elsewhere", &f->err) == WEFT_OK,
       "a notifier of another schema rings");
    ok(weft_notifier_send(a, "here", &f->err) == WEFT_OK, "notifier a rings");
    is_str(wait_next(f, b), "here", "b hears a alone");
    ok(weft_notifier_next(stranger, f->arena, &text, &f->err) == WEFT_OK && !text,
       "a notifier of another schema does not hear it");
    weft_notifier_close(a);
    weft_notifier_close(b);
    weft_notifier_close(stranger);
}

static void test_lost(struct fixture *f)
{
    struct weft_notifier *bell = open_bell(f, f->url);
    struct weft_conn *conn = fixture_open(f);
    const char *text = NULL;
    /* Only this one: the server is shared with tests that have bells of their own. */
    const char *schema = strstr(f->url, "weft_schema=") + strlen("weft_schema=");
    const char *sql =
        weft_arena_printf(f->arena,
                          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                          "WHERE query LIKE '%%LISTEN \"%s\"' AND pid <> pg_backend_pid()",
                          schema);
    ok(fixture_script(f, conn, sql) == WEFT_OK, "the server ends the session");
    enum weft_rc rc = WEFT_OK;
    for (int tries = 0; tries < 100 && !rc; tries++) {
        struct pollfd fd = {.fd = weft_notifier_fd(bell), .events = POLLIN};
        if (poll(&fd, 1, WAIT_MS) <= 0)
            break;
        rc = weft_notifier_next(bell, f->arena, &text, &f->err);
    }
    is_int(rc, WEFT_UNAVAILABLE, "the notifier reports the lost connection: %s", f->err.text);
    is_int(weft_notifier_next(bell, f->arena, &text, &f->err), WEFT_UNAVAILABLE,
           "the next call fails as well");
    is_int(weft_notifier_send(bell, "x", &f->err), WEFT_UNAVAILABLE,
           "ring fails on a broken connection");
    weft_notifier_close(bell);
    bell = open_bell(f, f->url);
    ok(weft_notifier_send(bell, "x", &f->err) == WEFT_OK, "a new one does");
    weft_notifier_close(bell);
    weft_conn_close(conn);
}

int main(void)
{
    struct weft_notifier *bell = NULL;
    struct weft_err err;
    is_int(weft_notifier_open("sqlite:x.db", &bell, &err), WEFT_NOT_FOUND, "SQLite has no bells");
    is_int(weft_notifier_open("http://x", &bell, &err), WEFT_INVALID_VALUE,
           "a URL of another scheme is refused");
    ok(weft_notifier_open("postgres:///x?host=/nowhere", &bell, &err) == WEFT_UNAVAILABLE,
       "a server that is not there is unavailable");
    weft_notifier_close(NULL);
    if (!fixture_has_pg()) {
        tap_skip("WEFT_TEST_PG is not set");
        return tap_done();
    }
    struct fixture f, other;
    fixture_init(&f, &weft_driver_pg);
    fixture_init(&other, &weft_driver_pg);
    test_notices(&f);
    test_apart(&f, &other);
    test_lost(&f);
    fixture_done(&other);
    fixture_done(&f);
    return tap_done();
}
