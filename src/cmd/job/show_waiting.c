/* SPDX-License-Identifier: Apache-2.0 */

/* The part of `weft show` about a suspended execution: what it waits for, until when, and what the
 * reader can do about it. */

#include "base/id.h"
#include "base/moment.h"
#include "cmd/job/show.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lines ----------------------------------------------------------------------------------- */

void weft_show_field(const char *label, const char *fmt, ...)
{
    char *text;
    va_list args;
    va_start(args, fmt);
    int size = vasprintf(&text, fmt, args);
    va_end(args);
    if (size < 0)
        weft_oom(0);
    printf("%-13s ", label);
    weft_put_clean(stdout, text);
    putchar('\n');
    free(text);
}

void weft_show_text(const char *label, const char *text)
{
    if (text)
        weft_show_field(label, "%s", text);
}

void weft_show_moment(const char *label, weft_usec moment_us)
{
    char text[WEFT_MOMENT_TEXT], ago[WEFT_AGO_TEXT];
    if (moment_us == 0)
        return;
    weft_moment_print(moment_us, text);
    weft_ago(moment_us, weft_wall_us(), ago);
    weft_show_field(label, "%s (%s)", text, ago);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* "in 3 h 12 m" where weft_ago() says "in 3 h". */
static void time_left(weft_usec moment_us, char ret_text[WEFT_AGO_TEXT])
{
    const weft_usec hour_us = 3600 * WEFT_SECOND;
    weft_usec now_us = weft_wall_us(), left_us = moment_us - now_us;
    if (left_us < hour_us || left_us >= 48 * hour_us)
        weft_ago(moment_us, now_us, ret_text);
    else
        (void)snprintf(ret_text, WEFT_AGO_TEXT, "in %" PRId64 " h %" PRId64 " m", left_us / hour_us,
                       left_us % hour_us / (60 * WEFT_SECOND));
}

static void put_timeout(const struct weft_waiting *waiting)
{
    static const char *const then[] = {
        [WEFT_ON_TIMEOUT_FAIL] = "fails",
        [WEFT_ON_TIMEOUT_CANCEL] = "is cancelled",
        [WEFT_ON_TIMEOUT_EXPIRE] = "expires",
        [WEFT_ON_TIMEOUT_RESUME] = "goes on",
        [WEFT_ON_TIMEOUT_ESCALATE] = "is left to an operator",
    };
    char left[WEFT_AGO_TEXT], moment[WEFT_MOMENT_TEXT];
    if (waiting->escalated_us) {
        weft_show_moment("escalated", waiting->escalated_us);
        weft_show_field("", "its timeout has passed: it is left to an operator");
    } else if (waiting->timeout_us) {
        time_left(waiting->timeout_us, left);
        weft_moment_print(waiting->timeout_us, moment);
        const char *what = (unsigned)waiting->on_timeout < WEFT_LEN(then)
                               ? then[waiting->on_timeout]
                               : "times out";
        weft_show_field("timeout", "%s %s (at %s)", what, left, moment);
    } else {
        weft_show_field("timeout", "none");
    }
}

/* What the reader can do. Only the holder of a token sends signals; an operator needs none. */
static void put_next(const struct weft_waiting *waiting, const char *id)
{
    if (waiting->waitpoint_count > 0)
        weft_show_field("next",
                        "weft signal TOKEN   with the token of a waitpoint, which its "
                        "worker was given");
    weft_show_field(waiting->waitpoint_count > 0 ? "" : "next", "weft resume %s   lets it go on%s",
                    id, waiting->waitpoint_count > 0 ? " without a signal" : "");
}

static void put_resumed(const struct weft_waiting *waiting)
{
    char moment[WEFT_MOMENT_TEXT], ago[WEFT_AGO_TEXT];
    const char *by = (unsigned)waiting->resumed_by < WEFT_LEN(weft_wire_resumed_by)
                         ? weft_wire_resumed_by[waiting->resumed_by]
                         : NULL;
    weft_moment_print(waiting->resumed_us, moment);
    weft_ago(waiting->resumed_us, weft_wall_us(), ago);
    weft_show_field("resumed", "by %s%s, %s (%s)%s%s",
                    waiting->resumed_by == WEFT_RESUMED_BY_OPERATOR  ? "an "
                    : waiting->resumed_by == WEFT_RESUMED_BY_TIMEOUT ? "its "
                                                                     : "",
                    by ? by : "another way", moment, ago, waiting->resume_reason ? ": " : "",
                    waiting->resume_reason ? waiting->resume_reason : "");
}

void weft_cell_waitpoint_state(struct weft_table *table, const void *field)
{
    weft_table_cell(table, "%s",
                    weft_wire_waitpoint_states[*(const enum weft_waitpoint_state *)field]);
}

void weft_show_waitpoints(const struct weft_cli *cli, const struct weft_waiting *waiting)
{
#define AT(member) offsetof(struct weft_waitpoint, member)
    static const struct weft_column columns[] = {
        {"WAITPOINT", WEFT_LEFT, 2, weft_cell_text, AT(name)},
        {"STATE", WEFT_LEFT, 0, weft_cell_waitpoint_state, AT(state)},
        {"SIGNALS", WEFT_RIGHT, 0, weft_cell_i32, AT(signals)},
        {"MADE", WEFT_RIGHT, 1, weft_cell_ago, AT(created_us)},
        {"ID", WEFT_LEFT, 1, weft_cell_id, AT(id)},
    };
#undef AT
    if (waiting->waitpoint_count == 0)
        return;
    struct weft_table *table = weft_table_new(cli, columns, WEFT_LEN(columns));
    putchar('\n');
    for (size_t i = 0; i < waiting->waitpoint_count; i++)
        weft_table_row(table, &waiting->waitpoint[i]);
    weft_table_print(table);
}

void weft_show_waiting(const struct weft_id *id, const struct weft_waiting *waiting)
{
    char text[WEFT_ID_TEXT], delay[WEFT_AGO_TEXT];
    if (waiting->resumed)
        put_resumed(waiting);
    if (!waiting->suspended)
        return;
    struct weft_arena *arena = weft_arena_new();
    weft_id_print(id, text);
    weft_show_moment("suspended", waiting->suspended_us);
    weft_show_field("waits for", "%s", weft_condition_words(waiting, arena));
    put_timeout(waiting);
    if (waiting->resume_delay_ms > 0) {
        weft_span(waiting->resume_delay_ms * WEFT_MS, delay);
        weft_show_field("resume delay", "%s", delay);
    }
    put_next(waiting, text);
    weft_arena_free(arena);
}
