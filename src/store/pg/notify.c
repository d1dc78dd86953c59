/* SPDX-License-Identifier: Apache-2.0 */

/*
 * LISTEN and NOTIFY on a connection that does nothing else. The channel has the name of the schema,
 * so that two stores in one database do not wake each other. A notice need not be durable, so its
 * commit does not wait for the disk. That is set for its transaction alone: behind a pooler, the
 * next transaction on that connection may be another client's work.
 */

#include "store/notify.h"

#include "base/arena.h"
#include "store/pg/pg.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SEND_MAX_US (5 * WEFT_SECOND)

static const char notify_name[] = "weft_notify";
static const char notify_sql[] =
    "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)";

struct weft_notifier {
    struct weft_pg *pg; /* owned; not in pipeline mode */
};

static enum weft_rc start_listening(struct weft_pg *pg, struct weft_err *err)
{
    const char *sql = weft_arena_printf(pg->arena, "LISTEN \"%s\"", pg->schema);
    enum weft_rc rc = WEFT_OK;
    if (!PQexitPipelineMode(pg->pq))
        return weft_pg_lost(pg, "listen", PQerrorMessage(pg->pq), err);
    if (pg->named) {
        if (!PQsendPrepare(pg->pq, notify_name, notify_sql, 0, NULL))
            return weft_pg_lost(pg, "listen", PQerrorMessage(pg->pq), err);
        rc = weft_pg_drain(pg, "listen", SEND_MAX_US, err);
    }
    if (rc)
        return rc;
    if (!PQsendQuery(pg->pq, sql))
        return weft_pg_lost(pg, "listen", PQerrorMessage(pg->pq), err);
    return weft_pg_drain(pg, "listen", SEND_MAX_US, err);
}

enum weft_rc weft_notifier_open(const char *url, struct weft_notifier **ret_notifier,
                                struct weft_err *err)
{
    const struct weft_driver *driver;
    struct weft_conn *conn = NULL;
    enum weft_rc rc = weft_driver_for(url, &driver, err);
    if (!rc && driver != &weft_driver_pg)
        rc = weft_fail(err, WEFT_NOT_FOUND, "stores of this kind have no notifier");
    if (!rc)
        rc = weft_pg_open(url, &conn, err);
    if (rc)
        return rc;
    struct weft_notifier *notifier = weft_alloc(1, sizeof(*notifier));
    notifier->pg = weft_pg_of(conn);
    rc = start_listening(notifier->pg, err);
    if (rc) {
        weft_notifier_close(notifier);
        return rc;
    }
    *ret_notifier = notifier;
    return WEFT_OK;
}

void weft_notifier_close(struct weft_notifier *notifier)
{
    if (!notifier)
        return;
    weft_pg_close(&notifier->pg->conn);
    free(notifier);
}

int weft_notifier_fd(const struct weft_notifier *notifier)
{
    return PQsocket(notifier->pg->pq);
}

enum weft_rc weft_notifier_send(struct weft_notifier *notifier, const char *text,
                                struct weft_err *err)
{
    struct weft_pg *pg = notifier->pg;
    assert(strlen(text) <= WEFT_NOTICE_TEXT_MAX);
    if (pg->conn.broken)
        return weft_pg_lost(pg, "notify", "the connection is broken", err);
    const char *const value[] = {pg->schema, text};
    int sent =
        pg->named
            ? PQsendQueryPrepared(pg->pq, notify_name, WEFT_LEN(value), value, NULL, NULL, 0)
            : PQsendQueryParams(pg->pq, notify_sql, WEFT_LEN(value), NULL, value, NULL, NULL, 0);
    if (!sent)
        return weft_pg_lost(pg, "notify", PQerrorMessage(pg->pq), err);
    return weft_pg_drain(pg, "notify", SEND_MAX_US, err);
}

enum weft_rc weft_notifier_next(struct weft_notifier *notifier, struct weft_arena *arena,
                                const char **ret_text, struct weft_err *err)
{
    struct weft_pg *pg = notifier->pg;
    *ret_text = NULL;
    if (pg->conn.broken || !PQconsumeInput(pg->pq) || PQstatus(pg->pq) != CONNECTION_OK)
        return weft_pg_lost(pg, "listen", PQerrorMessage(pg->pq), err);
    PGnotify *notice;
    while (!*ret_text && (notice = PQnotifies(pg->pq)) != NULL) {
        if (notice->be_pid != PQbackendPID(pg->pq))
            *ret_text = weft_arena_strdup(arena, notice->extra);
        PQfreemem(notice);
    }
    return WEFT_OK;
}
