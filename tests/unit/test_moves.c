/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Statements that change many rows at once name the states themselves. Each declares its steps, and
 * every declared step must be one that the transition table allows.
 */

#include "core/state.h"
#include "store/store.h"
#include "tap.h"

#include <stdlib.h>

static const char *const event_name[WEFT_EVENT_COUNT] = {
#define X(name) #name,
    WEFT_EVENTS(X)
#undef X
};

static enum weft_event_kind event_by_name(const char *word)
{
    for (int e = 0; e < WEFT_EVENT_COUNT; e++)
        if (strcmp(event_name[e], word) == 0)
            return (enum weft_event_kind)e;
    return WEFT_EVENT_COUNT;
}

/* "ready CLAIM running" */
static void check_move(const char *stmt, char *move)
{
    char *saved = NULL;
    const char *word[3];
    for (size_t i = 0; i < WEFT_LEN(word); i++) {
        const char *next = strtok_r(i ? NULL : move, " ", &saved);
        word[i] = next ? next : "";
    }
    ok(!strtok_r(NULL, " ", &saved), "%s: a move has three words", stmt);
    enum weft_state from = weft_state_parse(word[0]), to = weft_state_parse(word[2]);
    enum weft_event_kind event = event_by_name(word[1]);
    ok(from != WEFT_STATE_NONE, "%s: '%s' is a state", stmt, word[0]);
    ok(to != WEFT_STATE_NONE, "%s: '%s' is a state", stmt, word[2]);
    if (!ok(event != WEFT_EVENT_COUNT, "%s: '%s' is an event", stmt, word[1]))
        return;
    is_int(weft_state_next(from, event), to, "%s: %s %s %s is legal", stmt, word[0], word[1],
           word[2]);
}

/* The steps of bulk statements that the engine relies on, so that none loses its declaration. */
static void test_known(void)
{
    static const struct {
        enum weft_stmt stmt;
        const char *moves;
    } row[] = {
        {WEFT_STMT_CLAIM, "ready CLAIM running"},
        {WEFT_STMT_RENEW, "running RENEW running"},
        {WEFT_STMT_LIVE_END, "running COMPLETE succeeded"},
        {WEFT_STMT_PROMOTE_DUE, "delayed PROMOTE ready"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_str(weft_stmts[row[i].stmt].moves, row[i].moves, "%s declares its step",
               weft_stmts[row[i].stmt].name);
}

/* A statement that sets a state by itself must say which step that is. */
static void test_declared(void)
{
    for (size_t i = 0; i < WEFT_STMT_COUNT; i++) {
        const struct weft_stmt_info *stmt = &weft_stmts[i];
        for (int s = 1; s < WEFT_STATE_COUNT; s++) {
            char set[40];
            (void)snprintf(set, sizeof(set), "SET state = %d", s);
            if ((stmt->pg && strstr(stmt->pg, set)) || (stmt->sqlite && strstr(stmt->sqlite, set)))
                ok(stmt->moves && strstr(stmt->moves, weft_state_name((enum weft_state)s)),
                   "%s makes rows %s and lists this move", stmt->name,
                   weft_state_name((enum weft_state)s));
        }
    }
}

int main(void)
{
    for (size_t i = 0; i < WEFT_STMT_COUNT; i++) {
        if (!weft_stmts[i].moves)
            continue;
        char *copy = strdup(weft_stmts[i].moves), *saved = NULL;
        for (char *move = strtok_r(copy, ";", &saved); move; move = strtok_r(NULL, ";", &saved))
            check_move(weft_stmts[i].name, move);
        free(copy);
    }
    test_known();
    test_declared();
    return tap_done();
}
