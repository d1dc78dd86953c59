/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_NAMES_UNUSED_H
#define WEFT_ENGINE_NAMES_UNUSED_H

/*
 * How interned rows are removed that no row has referred to for long. The scanner unused_names
 * (scan/unused_names.c) finds, retires and removes them; names.c and queues.c undo the retirement
 * of a row that an operation needs. A binary before 0.2 does not check for retired rows: the
 * scanner retires none while a server of such a version is alive, and the first retirement raises
 * oldest_binary of the schema.
 *
 * Rows that refer to
 *   a queue:    execution, live, outcome, draining (column queue);
 *   a worker:   live, outcome, attempt, draining (column worker), and the list of workers;
 *   a tenant:   queue;
 *   a route:    queue.
 * Namespaces, lanes and policies stay: settings, tallies, keys, flows and spans refer to them.
 *
 * There are no foreign keys, because each would cost a lookup per row of every submission, and
 * every process keeps ids in its caches for as long as it lives. So a row is removed in steps:
 *
 *   1. A walk over all rows that can refer to it has met no reference: the walk adds a note to the
 *      table `unused`.
 *   2. Walks have met no reference for as long as the setting says. The row is retired: its note
 *      moves from `unused` to the table `retired`. A retirement by mistake does no harm.
 *   3. A walk that began WEFT_UNUSED_RETIRED_US or more after that has met no reference: it deletes
 *      the note and then the row in one transaction. A walk that met one deletes the note only.
 *
 * The rule for a retired row: an operation that writes its id has looked the row up by its text
 * again. The statement that looks up by text returns whether the row is retired; if so, the
 * operation deletes the note (retired_keep) and looks up again before it writes the id. The row of
 * `retired` decides between the scanner and that operation, because both delete it first: if the
 * operation does, the scanner does not find the note and leaves the row; if the scanner does, the
 * second lookup finds no row, and the operation adds one with another id.
 *
 * A server reads the retired rows by its poll, every second, and all of them each time: a row that
 * another thread has just cached from an older lookup is marked by the next poll. A process whose
 * last successful poll began longer than WEFT_RETIRED_SEEN_US ago, or which does not poll, empties
 * its caches by text before it next writes an id. Both times are of a clock that runs on while the
 * machine sleeps.
 *
 * So an operation takes an id from a cache at most WEFT_RETIRED_SEEN_US after the row was retired,
 * and a minute more for a lookup by text that was under way meanwhile. The transaction that writes
 * the id ends within the bounds of a request and of an exchange with the store, which are minutes.
 * The walk before the removal begins no earlier than WEFT_UNUSED_RETIRED_US after the row was
 * retired, so it meets that reference, and the row stays. A reference written while that walk is
 * under way, behind its position, was looked up by its text, so the note is gone. A reference that
 * moves from one table to another meanwhile moves in the order in which the walk reads the tables.
 * The remaining risk is a process that stands still for half an hour between taking an id and
 * sending it.
 *
 * Reads by id need none of this. An id that was read from a row of the store belongs to an interned
 * row that exists, and ids are never used twice (SQLite gives the largest number plus one, so the
 * row with the largest id is never removed). The entry of a cache under an id therefore stays
 * right, also when the row is gone. A reader that looks for a text looks it up again as well,
 * because the row may have come back under another id; the reader accepts the id of a retired row,
 * to which a row may refer again.
 */

#include "base/base.h"

#include <pthread.h>

struct weft_unused_walk;

/* The walk for interned rows that no row refers to: scan/unused_names.c. */
struct weft_unused {
    pthread_mutex_t lock;
    weft_usec after_us; /* rows are removed when they are unused for so long; 0: never */
    int64_t walker;     /* the number of this engine among all that walk */
    int32_t base;       /* where the ids begin that the next walk looks at; of the pass */
    bool busy;          /* a pass is running, and has the walk */
    struct weft_unused_walk *walk; /* owned; NULL: none is under way */
};
void weft_unused_init(struct weft_unused *unused, weft_usec after_us);
void weft_unused_done(struct weft_unused *unused);

#define WEFT_RETIRED_SEEN_US   ((weft_usec)20 * 60 * WEFT_SECOND)
#define WEFT_UNUSED_RETIRED_US ((weft_usec)60 * 60 * WEFT_SECOND)

#endif
