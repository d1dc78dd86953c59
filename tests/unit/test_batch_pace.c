/* SPDX-License-Identifier: Apache-2.0 */

/* How lines of batches keep up with their window, and payloads that are moved to another model. */

#include "core/batch_pace.h"
#include "core/batch_payload.h"

#include "tap.h"

#include "base/arena.h"
#include "base/json.h"
#include "core/batch_line.h"

#include <string.h>

#define S WEFT_SECOND
#define H ((weft_usec)3600 * S)

static const struct {
    const char *what;
    struct weft_batch_pace pace;
    uint32_t raise;
} row[] = {
    {"the first look only counts", {.waiting = 100, .left_us = 100 * S, .next_us = 10 * S}, 0},
    {"nothing waits", {.since_us = 10 * S, .left_us = 100 * S, .next_us = 10 * S}, 0},
    {"nothing has ended: the part of the time until the next look",
     {.waiting = 800, .since_us = 10 * S, .left_us = 100 * S, .next_us = 10 * S},
     100},
    {"with half of the time left it is twice as much",
     {.waiting = 800, .since_us = 10 * S, .left_us = 50 * S, .next_us = 10 * S},
     200},
    {"fast enough",
     {.waiting = 800, .ended = 100, .since_us = 10 * S, .left_us = 100 * S, .next_us = 10 * S},
     0},
    {"not quite fast enough",
     {.waiting = 800, .ended = 99, .since_us = 10 * S, .left_us = 100 * S, .next_us = 10 * S},
     100},
    {"some stand before the others already",
     {.waiting = 800, .raised = 30, .since_us = 10 * S, .left_us = 100 * S, .next_us = 10 * S},
     70},
    {"as many as are wanted do",
     {.waiting = 800, .raised = 100, .since_us = 10 * S, .left_us = 100 * S, .next_us = 10 * S},
     0},
    {"a part of a line is one",
     {.waiting = 1, .since_us = 10 * S, .left_us = 24 * H, .next_us = 1800 * S},
     1},
    {"all of them when the time is over before the next look",
     {.waiting = 7, .since_us = 10 * S, .left_us = 11 * S, .next_us = 10 * S},
     7},
    {"none when it is over", {.waiting = 7, .since_us = 10 * S, .next_us = 10 * S}, 0},
    {"a look has its bound",
     {.waiting = 100000, .since_us = 10 * S, .left_us = 10 * S, .next_us = 10 * S},
     WEFT_BATCH_PIECE_MAX},
};

static void test_raise(void)
{
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_int(weft_batch_pace_raise(&row[i].pace), row[i].raise, "%s", row[i].what);
}

/* A batch that no one else makes room for: what is raised alone must end it in time. */
static void test_raised_lines_suffice(void)
{
    const weft_usec window_us = 24 * H;
    uint64_t waiting = 50000;
    weft_usec left_us = window_us, since_us = 0;
    unsigned looks = 0;
    while (waiting > 0 && left_us > 0 && looks < 10000) {
        weft_usec next_us = weft_batch_look_in(window_us, left_us);
        const struct weft_batch_pace pace = {
            .waiting = waiting, .since_us = since_us, .left_us = left_us, .next_us = next_us};
        waiting -= weft_batch_pace_raise(&pace);
        since_us = next_us;
        left_us -= next_us;
        looks++;
    }
    is_int(waiting, 0, "every line is raised within the window");
    ok(left_us > 0 && looks < 1000, "in time, with %u looks", looks);
}

static void test_escalation(void)
{
    static const struct {
        weft_usec window_us, last_us;
    } window[] = {{24 * H, 2 * H + 24 * 60 * S}, {100 * 60 * S, 600 * S}, {H, 600 * S},
                  {20 * 60 * S, 600 * S},        {600 * S, 300 * S},      {10 * S, 5 * S}};
    for (size_t i = 0; i < WEFT_LEN(window); i++) {
        weft_usec window_us = window[i].window_us, last_us = window[i].last_us;
        long long seconds = (long long)(window_us / S);
        ok(!weft_batch_escalates(window_us, last_us + 1), "%lld s: not before", seconds);
        ok(weft_batch_escalates(window_us, last_us), "%lld s: from there on", seconds);
        ok(weft_batch_escalates(window_us, 1) && !weft_batch_escalates(window_us, 0),
           "%lld s: to the end", seconds);
        is_int(weft_batch_look_in(window_us, last_us + S), S, "%lld s: a look is in time", seconds);
    }
    is_int(weft_batch_look_in(24 * H, 24 * H), 24 * H / 50, "a look at each fiftieth");
    is_int(weft_batch_look_in(240 * H, 240 * H), 1800 * S, "but each half hour");
    is_int(weft_batch_look_in(24 * H, 60 * S), 10 * S, "ten seconds apart at least");
}

static void test_payload(void)
{
    static const char line_text[] =
        "{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":"
        "{\"model\": \"m\", \"x\" : [ 1 ],\"endpoint\":\"no\"}}";
    struct weft_arena *arena = weft_arena_new();
    struct weft_batch_line line;
    struct weft_batch_flaw flaw;
    size_t size = 0;
    ok(weft_batch_line_read(line_text, strlen(line_text), arena, &line, &flaw), "a line");
    const char *text = weft_batch_payload("openai", &line, arena, &size);
    static const char want[] =
        "{\"endpoint\":\"openai\",\"path\":\"/chat/completions\",\"method\":\"POST\",\"body\":"
        "{\"model\": \"m\", \"x\" : [ 1 ],\"endpoint\":\"no\"}}";
    ok(size == strlen(want) && memcmp(text, want, size) == 0, "its payload");
    text = weft_batch_payload_move(text, size, "e2", "larger/model", arena, &size);
    static const char moved[] =
        "{\"endpoint\":\"e2\",\"path\":\"/chat/completions\",\"method\":\"POST\",\"body\":"
        "{\"model\": \"larger/model\", \"x\" : [ 1 ],\"endpoint\":\"no\"}}";
    ok(size == strlen(moved) && memcmp(text, moved, size) == 0, "moved to another model");
    static const char *const bad[] = {"",
                                      "{}",
                                      "[]",
                                      "{",
                                      "{\"endpoint\":\"e\"}",
                                      "{\"endpoint\":\"e\",\"body\":[]}",
                                      "{\"endpoint\":\"e\",\"body\":{}}"};
    for (size_t i = 0; i < WEFT_LEN(bad); i++)
        ok(!weft_batch_payload_move(bad[i], strlen(bad[i]), "e", "m", arena, &size),
           "'%s' is no payload of a line", bad[i]);
    static const char turned[] = "{\"body\":{\"model\":\"m\"},\"endpoint\":\"e\"}";
    text = weft_batch_payload_move(turned, strlen(turned), "e2", "m2", arena, &size);
    static const char turned_moved[] = "{\"body\":{\"model\":\"m2\"},\"endpoint\":\"e2\"}";
    ok(size == strlen(turned_moved) && memcmp(text, turned_moved, size) == 0, "in any order");
    weft_arena_free(arena);
}

int main(void)
{
    test_raise();
    test_raised_lines_suffice();
    test_escalation();
    test_payload();
    return tap_done();
}
