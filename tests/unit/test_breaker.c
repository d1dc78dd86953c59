/* SPDX-License-Identifier: Apache-2.0 */

/* The circuit breaker, by table and by random walks, with a clock that the test sets. */

#include "core/breaker.h"

#include "dice.h"
#include "tap.h"

#define S     WEFT_SECOND
#define START (1000 * S)

#define JITTER (1 * S) /* the whole of it, where the breaker opens for the first time */

enum { NONE = 0, ONE = 1, ANY = 2 };

static const struct weft_breaker_rules rules = {.in_row = 3,
                                                .percent = 50,
                                                .calls_min = 6,
                                                .window_us = 8 * S,
                                                .open_us = 2 * S,
                                                .open_max_us = 10 * S};

static struct weft_breaker new_breaker(const struct weft_breaker_rules *with)
{
    struct weft_breaker breaker = {0};
    weft_breaker_reset(&breaker, with);
    return breaker;
}

static int room(const struct weft_breaker *breaker, weft_usec now_us)
{
    size_t count = weft_breaker_room(breaker, now_us);
    return count == SIZE_MAX ? ANY : (int)count;
}

static uint32_t begin(struct weft_breaker *breaker, weft_usec now_us)
{
    uint32_t ticket = UINT32_MAX;
    ok(weft_breaker_begin(breaker, now_us, &ticket), "a call begins");
    return ticket;
}

/*
 * A story: each letter is a call that begins and ends at once (g good, b bad, v void), a wait of a
 * second (.), a wait for the next call (w), or a begin that must be refused (x).
 */
static const struct {
    const char *name, *story;
    enum weft_breaker_state state;
    int room;
} story[] = {
    {"a new breaker", "", WEFT_BREAKER_CLOSED, ANY},
    {"two failures", "bb", WEFT_BREAKER_CLOSED, ANY},
    {"three in a row", "bbb", WEFT_BREAKER_OPEN, NONE},
    {"a success between them", "bbgbb", WEFT_BREAKER_CLOSED, ANY},
    {"a void between them does not count", "bbvb", WEFT_BREAKER_OPEN, NONE},
    {"in a row over hours", "b.........b..............b", WEFT_BREAKER_OPEN, NONE},
    {"half of five calls", "bgbgb", WEFT_BREAKER_CLOSED, ANY},
    {"half of six calls", "gbgbgb", WEFT_BREAKER_OPEN, NONE},
    {"a third of six", "ggbggb", WEFT_BREAKER_CLOSED, ANY},
    {"a success does not open it", "bbgbbg", WEFT_BREAKER_CLOSED, ANY},
    {"but the failure after it", "bbgbbgb", WEFT_BREAKER_OPEN, NONE},
    {"failures that left the window", "bb........ggbggb", WEFT_BREAKER_CLOSED, ANY},
    {"failures within the window", "bb.....ggbg.b", WEFT_BREAKER_OPEN, NONE},
    {"successes that left the window", "gggggg.........gbgbgb", WEFT_BREAKER_OPEN, NONE},
    {"refused while open", "bbbx", WEFT_BREAKER_OPEN, NONE},
    {"after a second", "bbb.x", WEFT_BREAKER_OPEN, NONE},
    {"a probe may begin", "bbbw", WEFT_BREAKER_HALF_OPEN, ONE},
    {"a good probe", "bbbwg", WEFT_BREAKER_CLOSED, ANY},
    {"a bad probe", "bbbwb", WEFT_BREAKER_OPEN, NONE},
    {"a void probe", "bbbwv", WEFT_BREAKER_HALF_OPEN, ONE},
    {"probes until one is good", "bbbwbwbwvvbwg", WEFT_BREAKER_CLOSED, ANY},
    {"closed it counts anew", "bbbwgbb", WEFT_BREAKER_CLOSED, ANY},
    {"and opens again", "bbbwgbbb", WEFT_BREAKER_OPEN, NONE},
    {"nothing comes for long", "bbb.........................", WEFT_BREAKER_HALF_OPEN, ONE},
};

static void test_stories(void)
{
    for (size_t i = 0; i < WEFT_LEN(story); i++) {
        struct weft_breaker breaker = new_breaker(&rules);
        weft_usec now_us = START;
        for (const char *c = story[i].story; *c; c++) {
            uint32_t ticket = 0;
            if (*c == '.')
                now_us += S;
            else if (*c == 'w')
                now_us = weft_breaker_next(&breaker);
            else if (*c == 'x')
                ok(!weft_breaker_begin(&breaker, now_us, &ticket), "%s: refused", story[i].name);
            else if (weft_breaker_begin(&breaker, now_us, &ticket))
                weft_breaker_end(&breaker, ticket,
                                 *c == 'g'   ? WEFT_BREAKER_GOOD
                                 : *c == 'b' ? WEFT_BREAKER_BAD
                                             : WEFT_BREAKER_VOID,
                                 now_us, JITTER);
            else
                ok(false, "%s: no room at %s", story[i].name, c);
        }
        is_int(weft_breaker_look(&breaker, now_us), story[i].state, "%s: state", story[i].name);
        is_int(room(&breaker, now_us), story[i].room, "%s: room", story[i].name);
    }
}

static void fail(struct weft_breaker *breaker, size_t times, weft_usec now_us, uint64_t random)
{
    for (size_t i = 0; i < times; i++)
        weft_breaker_end(breaker, begin(breaker, now_us), WEFT_BREAKER_BAD, now_us, random);
}

static void test_backoff(void)
{
    struct weft_breaker breaker = new_breaker(&rules);
    weft_usec now_us = START;
    static const weft_usec most_us[] = {2 * S, 4 * S, 8 * S, 10 * S, 10 * S};
    for (size_t i = 0; i < WEFT_LEN(most_us); i++) {
        fail(&breaker, i == 0 ? 3 : 1, now_us, 0);
        weft_usec wait_us = weft_breaker_next(&breaker) - now_us;
        is_int(wait_us, most_us[i] / 2, "time %zu that it opens: half the time at least", i + 1);
        now_us += wait_us;
    }
    weft_breaker_end(&breaker, begin(&breaker, now_us), WEFT_BREAKER_GOOD, now_us, 0);
    is_int(weft_breaker_next(&breaker), 0, "closed, calls may begin at once");
    fail(&breaker, 3, now_us + rules.window_us, 0);
    is_int(weft_breaker_next(&breaker) - now_us - rules.window_us, 5 * S,
           "opened again soon, it goes on with the longest time");
    now_us = weft_breaker_next(&breaker);
    weft_breaker_end(&breaker, begin(&breaker, now_us), WEFT_BREAKER_GOOD, now_us, 0);
    now_us += rules.window_us + 1;
    fail(&breaker, 3, now_us, JITTER);
    is_int(weft_breaker_next(&breaker) - now_us, 2 * S,
           "opened again later, it starts over; at most the whole time");
}

static void test_tickets(void)
{
    struct weft_breaker breaker = new_breaker(&rules);
    uint32_t early = begin(&breaker, START), late = begin(&breaker, START);
    fail(&breaker, 3, START, 0);
    weft_usec until_us = weft_breaker_next(&breaker);
    weft_breaker_end(&breaker, early, WEFT_BREAKER_GOOD, START, 0);
    is_int(breaker.state, WEFT_BREAKER_OPEN, "a call from before does not close it");
    weft_breaker_end(&breaker, early, WEFT_BREAKER_BAD, START, 0);
    is_int(weft_breaker_next(&breaker), until_us, "or keep it open for longer");

    uint32_t probe = begin(&breaker, until_us), other;
    is_int(weft_breaker_next(&breaker), WEFT_NEVER, "while probing no call can be planned");
    ok(!weft_breaker_begin(&breaker, until_us + 60 * S, &other),
       "there is no second probe, however long the first one takes");
    weft_breaker_end(&breaker, late, WEFT_BREAKER_BAD, until_us, 0);
    weft_breaker_end(&breaker, late, WEFT_BREAKER_GOOD, until_us, 0);
    is_int(room(&breaker, until_us), NONE, "a call from before does not stand for the probe");
    weft_breaker_end(&breaker, probe, WEFT_BREAKER_VOID, until_us, 0);
    uint32_t second = begin(&breaker, until_us);
    weft_breaker_end(&breaker, probe, WEFT_BREAKER_GOOD, until_us, 0);
    is_int(room(&breaker, until_us), NONE, "a probe ends once");
    weft_breaker_end(&breaker, second, WEFT_BREAKER_GOOD, until_us, 0);
    is_int(room(&breaker, until_us), ANY, "the second probe closes it");
    for (size_t i = 0; i < 3; i++)
        weft_breaker_end(&breaker, late, WEFT_BREAKER_BAD, until_us, 0);
    is_int(room(&breaker, until_us), ANY, "failures of calls from before do not open it again");

    fail(&breaker, 3, until_us, 0);
    weft_breaker_reset(&breaker, &rules);
    is_int(room(&breaker, until_us), ANY, "a reset closes it");
    is_int(breaker.in_row + breaker.opens, 0, "and forgets");
}

static void test_off(void)
{
    struct weft_breaker_rules off = rules;
    off.in_row = off.percent = 0;
    struct weft_breaker breaker = new_breaker(&off);
    fail(&breaker, 50, START, 0);
    is_int(room(&breaker, START), ANY, "without rules it never opens");
    off.in_row = 1;
    off.window_us = 0;
    breaker = new_breaker(&off);
    fail(&breaker, 1, START, 0);
    is_int(room(&breaker, START), NONE, "without a window only a row counts");
    breaker = new_breaker(&rules);
    fail(&breaker, 1, START, 0);
    fail(&breaker, 1, START - 60 * S, 0);
    fail(&breaker, 1, 0, 0);
    is_int(breaker.state, WEFT_BREAKER_OPEN, "a clock that goes back does no harm");
    ok(weft_breaker_default.in_row > 0 && weft_breaker_default.open_us > 0, "there are defaults");
}

/* ---- Random walks ---------------------------------------------------------------------------- */

enum { CALLS_MAX = 12, ENDS_MAX = 4096, STEPS = 4000, WALKS = 40 };

struct call {
    uint32_t ticket;
    enum weft_breaker_state began; /* the state before it */
    bool stale;                    /* the state has changed since */
};

/* What a breaker must do, told from the ends of calls alone. */
struct walk {
    struct weft_breaker breaker;
    struct call call[CALLS_MAX];
    size_t calls;
    weft_usec ended_us[ENDS_MAX]; /* of the calls that counted, since it closed */
    size_t ends, row;
    weft_usec now_us;
    uint64_t dice;
};

static bool wrong(const char *what)
{
    printf("# %s\n", what);
    return false;
}

static bool walk_begin(struct walk *walk)
{
    enum weft_breaker_state before = weft_breaker_look(&walk->breaker, walk->now_us);
    size_t space = weft_breaker_room(&walk->breaker, walk->now_us);
    uint32_t ticket;
    if (weft_breaker_begin(&walk->breaker, walk->now_us, &ticket) != (space > 0))
        return wrong("a call begins where there is room");
    if (space == 0)
        return true;
    if (before == WEFT_BREAKER_OPEN)
        return wrong("no call begins while it is open");
    for (size_t i = 0; i < walk->calls; i++)
        if (before == WEFT_BREAKER_HALF_OPEN && !walk->call[i].stale &&
            walk->call[i].began == WEFT_BREAKER_HALF_OPEN)
            return wrong("one probe at a time");
    walk->call[walk->calls++] = (struct call){.ticket = ticket, .began = before};
    return true;
}

static size_t recent(const struct walk *walk)
{
    size_t count = 0;
    for (size_t i = 0; i < walk->ends; i++)
        count += walk->ended_us[i] >= walk->now_us - rules.window_us;
    return count;
}

static bool judge_probe(const struct walk *walk, enum weft_breaker_end end)
{
    static const enum weft_breaker_state after[] = {
        [WEFT_BREAKER_VOID] = WEFT_BREAKER_HALF_OPEN,
        [WEFT_BREAKER_GOOD] = WEFT_BREAKER_CLOSED,
        [WEFT_BREAKER_BAD] = WEFT_BREAKER_OPEN,
    };
    return walk->breaker.state == after[end] || wrong("the end of a probe decides");
}

/* A call that began while it was closed, which it has been since. */
static bool judge_call(struct walk *walk, enum weft_breaker_end end)
{
    bool open = walk->breaker.state == WEFT_BREAKER_OPEN;
    if (end == WEFT_BREAKER_VOID)
        return !open || wrong("a void end changes nothing");
    walk->ended_us[walk->ends++] = walk->now_us;
    walk->row = end == WEFT_BREAKER_BAD ? walk->row + 1 : 0;
    if (walk->row >= rules.in_row && !open)
        return wrong("a row of failures opens it");
    if (open && walk->row < rules.in_row &&
        (end != WEFT_BREAKER_BAD || recent(walk) < rules.calls_min))
        return wrong("only failures open it, and enough of them");
    return true;
}

static bool judge_wait(const struct walk *walk)
{
    weft_usec wait_us = weft_breaker_next(&walk->breaker) - walk->now_us;
    return walk->breaker.state != WEFT_BREAKER_OPEN ||
           (wait_us >= rules.open_us / 2 && wait_us <= rules.open_max_us) ||
           wrong("the time it is open lies between its limits");
}

static bool same(const struct weft_breaker *a, const struct weft_breaker *b)
{
    return a->state == b->state && a->probing == b->probing && a->ticket == b->ticket &&
           a->in_row == b->in_row && a->opens == b->opens && a->until_us == b->until_us &&
           memcmp(a->good, b->good, sizeof(a->good)) == 0 &&
           memcmp(a->bad, b->bad, sizeof(a->bad)) == 0;
}

static bool walk_end(struct walk *walk)
{
    size_t which = dice_below(&walk->dice, walk->calls);
    struct call call = walk->call[which];
    walk->call[which] = walk->call[--walk->calls];
    struct weft_breaker before = walk->breaker;
    enum weft_breaker_end end = (enum weft_breaker_end)dice_below(&walk->dice, 3);
    if (end == WEFT_BREAKER_GOOD && dice_chance(&walk->dice, 30))
        end = WEFT_BREAKER_BAD;
    weft_breaker_end(&walk->breaker, call.ticket, end, walk->now_us, walk->dice);
    if (call.stale)
        return same(&before, &walk->breaker) ||
               wrong("a call from before a change of state changes nothing");
    bool probe = call.began == WEFT_BREAKER_HALF_OPEN;
    if (!(probe ? judge_probe(walk, end) : judge_call(walk, end)) || !judge_wait(walk))
        return false;
    if (probe || walk->breaker.state != before.state) {
        walk->ends = walk->row = 0;
        for (size_t i = 0; i < walk->calls; i++)
            walk->call[i].stale = true;
    }
    return true;
}

static bool walk_one(uint64_t seed)
{
    struct walk walk = {.breaker = new_breaker(&rules), .now_us = START, .dice = seed};
    size_t opened = 0, closed = 0;
    for (size_t step = 0; step < STEPS && walk.ends < ENDS_MAX; step++) {
        enum weft_breaker_state before = walk.breaker.state;
        bool good = true;
        if (dice_chance(&walk.dice, 20))
            walk.now_us += (weft_usec)dice_below(&walk.dice, 3 * S);
        if (walk.calls < CALLS_MAX && dice_chance(&walk.dice, 55))
            good = walk_begin(&walk);
        else if (walk.calls > 0)
            good = walk_end(&walk);
        if (!good)
            return false;
        opened += before != WEFT_BREAKER_OPEN && walk.breaker.state == WEFT_BREAKER_OPEN;
        closed += before != WEFT_BREAKER_CLOSED && walk.breaker.state == WEFT_BREAKER_CLOSED;
    }
    return (opened > 20 && closed > 10) || wrong("the walk opens and closes it often");
}

int main(void)
{
    test_stories();
    test_backoff();
    test_tickets();
    test_off();
    for (uint64_t seed = 1; seed <= WALKS; seed++)
        ok(walk_one(seed), "a random walk from seed %" PRIu64, seed);
    return tap_done();
}
