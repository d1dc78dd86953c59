/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls, rows, and finding the driver for a URL. A value of the wrong type is found by the
 * compiler. Whether a number fits its parameter depends on data, so the drivers check that and
 * report it.
 */

#include "store/store.h"

#include "base/arena.h"
#include "base/err.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

void weft_call_init(struct weft_call *call, struct weft_arena *arena, enum weft_stmt stmt,
                    size_t rows)
{
    assert((size_t)stmt < WEFT_STMT_COUNT);
    const struct weft_stmt_info *info = &weft_stmts[stmt];
    *call = (struct weft_call){.stmt = stmt, .rows = rows};
    call->in = weft_arena_alloc(arena, 1, info->in_size);
    if (info->item_size > 0) {
        call->item = weft_arena_alloc(arena, rows > 0 ? rows : 1, info->item_size);
        memcpy((char *)call->in + info->items, (const void *)&call->item, sizeof(call->item));
    }
}

void *weft_call_in(const struct weft_call *call, enum weft_stmt like)
{
    assert(weft_stmts[call->stmt].in_like == weft_stmts[like].in_like);
    return call->in;
}

/* Never NULL: a caller may take the address of a row before it looks whether there is one. */
void *weft_rows_out(const struct weft_rows *rows, enum weft_stmt like)
{
    static max_align_t no_rows;
    assert(!rows->row || weft_stmts[rows->stmt].out_like == weft_stmts[like].out_like);
    return rows->row ? rows->row : &no_rows;
}

void *weft_rows_group(const struct weft_rows *rows, size_t row, const char *group)
{
    const struct weft_stmt_info *info = &weft_stmts[rows->stmt];
    assert(row < rows->count && info->group && strcmp(info->group, group) == 0);
    return (char *)rows->row + row * info->out_size + info->group_place;
}

/* How many of the first letters of a URL are its scheme, "mysql" of mysql://...; 0: it has none. */
static size_t scheme_size(const char *url)
{
    size_t size = strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    return size > 0 && url[size] == ':' ? size : 0;
}

static bool has_scheme(const char *url, const char *scheme)
{
    size_t size = scheme_size(url);
    return size > 0 && size == strlen(scheme) && strncasecmp(url, scheme, size) == 0;
}

/*
 * Says what to write instead. A URL is not repeated: it may hold a password, and so may libpq's
 * "host=... password=...". A mere path does not.
 */
static enum weft_rc unknown_url(const char *url, struct weft_err *err)
{
    enum { SHOWN = 200 };
    static const char stores[] = "a store is sqlite:PATH or postgres://USER@HOST:PORT/DATABASE";
    static const struct {
        const char *scheme, *text, *hint;
    } known[] = {
        {"http", "http:// is the URL of a server, and a store is asked for",
         "name a server with --server or WEFT_SERVER"},
        {"https", "https:// is the URL of a server, and a store is asked for",
         "name a server with --server or WEFT_SERVER"},
        {"sqlite3", "the scheme of a SQLite file is sqlite:", "write sqlite:weft.db"},
        {"file", "the scheme of a SQLite file is sqlite:", "write sqlite:weft.db"},
        {"sqlite", "the scheme sqlite: is written in small letters", "write sqlite:weft.db"},
        {"postgres", "the URL of a PostgreSQL store begins with postgres://",
         "write postgres://USER@HOST:PORT/DATABASE"},
        {"postgresql", "the URL of a PostgreSQL store begins with postgresql://",
         "write postgresql://USER@HOST:PORT/DATABASE"},
    };
    const char *hint = stores;
    enum weft_rc rc = WEFT_OK;
    size_t size = scheme_size(url);
    for (size_t i = 0; i < WEFT_LEN(known) && !rc; i++)
        if (has_scheme(url, known[i].scheme)) {
            rc = weft_invalid(err, "url", "%s", known[i].text);
            hint = known[i].hint;
        }
    if (!rc && size > 0 && strncmp(url + size, "://", 3) == 0)
        rc = weft_invalid(err, "url", "there is no store for %.*s:// URLs", (int)size, url);
    else if (!rc && *url && !strpbrk(url, ":@="))
        rc = weft_invalid(err, "url",
                          "the store URL has no scheme: for the file %.*s write sqlite:%.*s", SHOWN,
                          url, SHOWN, url);
    else if (!rc)
        rc = weft_invalid(err, "url",
                          "the store URL must be sqlite:PATH, postgres://... or postgresql://...");
    return weft_hint(err, rc, hint);
}

enum weft_rc weft_driver_for(const char *url, const struct weft_driver **ret_driver,
                             struct weft_err *err)
{
    static const struct {
        const char *scheme;
        const struct weft_driver *driver;
    } known[] = {
        {"sqlite:", &weft_driver_sqlite},
        {"postgres://", &weft_driver_pg},
        {"postgresql://", &weft_driver_pg},
    };
    for (size_t i = 0; i < WEFT_LEN(known); i++) {
        if (strncmp(url, known[i].scheme, strlen(known[i].scheme)) == 0) {
            *ret_driver = known[i].driver;
            return WEFT_OK;
        }
    }
    return unknown_url(url, err);
}
