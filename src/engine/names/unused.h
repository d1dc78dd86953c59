/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_NAMES_UNUSED_H
#define WEFT_ENGINE_NAMES_UNUSED_H

/*
 * How interned rows are removed that no row has referred to for long. The scanner unused_names
 * (scan/unused_names.c) finds, retires and removes them; names.c takes it back where one is
 * wanted. A binary before 0.2 does not look for retired rows: none is retired while a server of
 * such a version is alive, and the first one that is raises oldest_binary of the schema.
 *
 * Rows that refer to
 *   a queue:    execution, live, outcome, draining (column queue);
 *   a worker:   live, outcome, attempt, draining (column worker), and the list of workers;
 *   a tenant:   queue;
 *   a route:    queue.
 * Namespaces, lanes and policies stay: settings, tallies, keys, flows and spans refer to them.
 *
 * There are no foreign keys, because each would cost a look per row of every submission, and every
 * process keeps ids in its caches for as long as it lives. So a row goes in steps:
 *
 *   1. A walk over all that can refer to it has met no reference: it is noted in the table
 *      `unused`.
 *   2. Walks have met none for as long as the setting says. The row is retired: it goes from
 *      `unused` to the table `retired`. That may be wrong, and does no harm then.
 *   3. A walk that began WEFT_UNUSED_RETIRED_US or more after that has met none: it is removed, in
 *      one transaction with its note, which goes first. A walk that met one removes the note.
 *
 * What a retired row means: no id of it is written that was not looked up by its text again. The
 * statement that looks up by text tells that the row is retired, and the operation takes that back
 * (retired_keep) and looks again before it writes the id. Whether the remover or that operation
 * comes first is decided by the row of `retired`, which both delete first: if the operation does,
 * the remover does not find the note and leaves the row; if the remover does, the second look finds
 * no row, and one with another id is added.
 *
 * A server learns of retired rows by its poll, every second: of all of them each time, so that one
 * that another thread has just cached from an older look is marked by the next. A process whose
 * last poll that succeeded began longer than WEFT_RETIRED_SEEN_US ago, or which does not poll,
 * forgets which text has which id before it next writes one. Times are those of a clock that goes
 * on while the machine sleeps.
 *
 * So an id is taken from a cache at most WEFT_RETIRED_SEEN_US after its row was retired, and a
 * minute more for a look by text that was under way meanwhile. The transaction that writes it ends
 * within the bounds of a request and of an exchange with the store, which are minutes. The walk
 * before the removal begins no earlier than WEFT_UNUSED_RETIRED_US after the row was retired, so it
 * meets what was written, and the row stays. A reference that is written while that walk is under
 * way, behind the place where it is, was looked up by its text, so the note is gone. A reference
 * that moves from one table to another meanwhile moves in the order in which the walk reads them.
 * What is left is a process that stands still for half an hour between taking an id and sending it.
 *
 * Reads by id need nothing of that. An id that was read from a row of the store is that of an
 * interned row that exists, and ids are never used twice (SQLite gives the largest number plus one,
 * so the row with the largest is never removed). What a cache holds under an id therefore stays
 * right, also when the row is gone. A reader that looks for a text looks again as
 * well, because the row may have come back under another id; it takes that of a retired row, to
 * which some row may refer again.
 */

#include "base/base.h"

#include <pthread.h>

struct weft_unused_walk;

/* The walk for interned rows that no row refers to: scan/unused_names.c. */
struct weft_unused {
    pthread_mutex_t lock;
    weft_usec after_us; /* rows that are unused for so long are removed; 0: never */
    int64_t walker;     /* the number of this engine among those that walk */
    int32_t base;       /* where the ids begin that the next walk looks at; of the pass */
    bool busy;          /* a pass is running, and has the walk */
    struct weft_unused_walk *walk; /* owned; NULL: none is under way */
};
void weft_unused_init(struct weft_unused *unused, weft_usec after_us);
void weft_unused_done(struct weft_unused *unused);

#define WEFT_RETIRED_SEEN_US   ((weft_usec)20 * 60 * WEFT_SECOND)
#define WEFT_UNUSED_RETIRED_US ((weft_usec)60 * 60 * WEFT_SECOND)

#endif
