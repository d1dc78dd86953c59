/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_UNUSED_H
#define WEFT_ENGINE_UNUSED_H

/*
 * How interned rows can be removed that nothing has referred to for long. This binary looks for
 * retired rows and takes it back where one is wanted; the scanner that retires and removes follows,
 * when no older binary can be beside it.
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
 *   1. Walks over all that can refer to it have met no reference for as long as the setting says.
 *      The row is retired: it is noted in the table `retired`.
 *   2. A walk that began WEFT_UNUSED_RETIRED_US or more after that has met none: it is removed, in
 *      one statement with its note. A walk that met one removes the note.
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
 * last poll that succeeded began longer than WEFT_UNUSED_TOLD_US ago, or which does not poll,
 * forgets which text has which id before it next writes one. Times are those of a clock that goes
 * on while the machine sleeps.
 *
 * So an id is taken from a cache at most WEFT_UNUSED_TOLD_US after its row was retired, and a
 * minute more for a look by text that was under way meanwhile. The transaction that writes it ends
 * within the bounds of a request and of an exchange with the store, which are minutes. The walk
 * before the removal begins no earlier than WEFT_UNUSED_RETIRED_US after the row was retired, so it
 * meets what was written, and the row stays. What is left is a process that stands still for half
 * an hour between taking an id and sending it.
 *
 * Reads by id need nothing of that. An id that was read from a row of the store is that of an
 * interned row that exists, and ids are never used twice (SQLite gives the largest number plus one:
 * the remover must leave the row with the largest). What a cache holds under an id therefore stays
 * right, also when the row is gone. A reader that looks for a text gets the id of a retired row as
 * well: something may refer to it again.
 */

#include "base/base.h"

#define WEFT_UNUSED_TOLD_US    ((weft_usec)20 * 60 * WEFT_SECOND)
#define WEFT_UNUSED_RETIRED_US ((weft_usec)60 * 60 * WEFT_SECOND)

#endif
