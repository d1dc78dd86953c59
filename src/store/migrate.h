/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_STORE_MIGRATE_H
#define WEFT_STORE_MIGRATE_H

/*
 * Migrations: numbered, embedded, append-only, checksummed.
 *
 * The schema table has one row: its version (the number of the last migration) and the oldest
 * binary that may use it (the number of migrations that binary knows). A binary that knows fewer
 * migrations than the store has runs as long as it is not older than that: rolling upgrades work.
 */

#include "store/store.h"

struct weft_migration_text {
    const char *sha256; /* of the file, in hex */
    const char *sql;
    const char
        *index; /* PostgreSQL: it builds this index beside the work, on this table; or NULL */
    const char *table;
};

struct weft_migration {
    int number;
    const char *name;
    int oldest_binary; /* binaries that know fewer migrations are refused from here on; 0: as before
                        */
    struct weft_migration_text pg, sqlite;
};

extern const struct weft_migration weft_migrations[]; /* generated, in order from 1 */
extern const size_t weft_migration_count;
/* Every index that they make, by name; NULL ends a list. Generated from sql/schema.*.sql. */
extern const char *const weft_indexes_pg[], *const weft_indexes_sqlite[];

/* A migration that waits for a lock, as far as is known. */
struct weft_migration_wait {
    const struct weft_migration *migration;
    weft_usec waited_us;
    int64_t pid;             /* of the session that holds it; 0: not known */
    weft_usec open_us;       /* how long its transaction is open; 0: not known */
    const char *application; /* its name, as it gave it; or "" */
};

/* What a binary brings along; tests pass lists of their own. */
struct weft_migration_set {
    const struct weft_migration *migration;
    size_t count;
    bool check_only;   /* apply nothing: a store that is not up to date is WEFT_SCHEMA */
    bool must_exist;   /* a database without anything of weft's is WEFT_NOT_FOUND */
    weft_usec wait_us; /* how long a migration tries to get its locks; 0: 10 min */
    /* Told while it does so, now and then. May be NULL. */
    void (*waits)(void *context, const struct weft_migration_wait *wait);
    void *context;
};

/*
 * Brings the store to the last migration this binary knows. Any number of processes may do so at
 * once: one applies, the others wait for it and find nothing left to do.
 * A migration never waits long for a table that a transaction of others holds, because everything
 * else that needs the table would wait behind it: it gives up soon and tries again after a pause.
 * WEFT_BUSY: it did so for wait_us, or another process is migrating for very long.
 * WEFT_SCHEMA: a migration was changed after it was applied, this binary is too old for the store,
 * or the database holds something that is not weft's. WEFT_FORBIDDEN: no permission.
 */
WEFT_MUST_CHECK enum weft_rc weft_migrate(struct weft_conn *conn,
                                          const struct weft_migration_set *set,
                                          struct weft_arena *arena, struct weft_err *err);

/* The failure of a binary that knows too few migrations for the store. */
enum weft_rc weft_too_old(size_t known, int64_t oldest_binary, struct weft_err *err);

/* How many migrations were applied to the store; 0 for one that holds nothing of weft's. */
WEFT_MUST_CHECK enum weft_rc weft_migrations_applied(struct weft_conn *conn,
                                                     struct weft_arena *arena, size_t *ret_count,
                                                     struct weft_err *err);

#endif
