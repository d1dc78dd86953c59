/* SPDX-License-Identifier: Apache-2.0 */

/* Conditions in the words of `weft show`. */

#include "base/arena.h"
#include "base/base.h"
#include "cmd/job/show.h"
#include "tap.h"

static const struct row {
    const char *condition, *words;
} rows[] = {
    {"{\"waitpoint\":\"a\"}", "a signal at a"},
    {"{\"waitpoint\":\"a\",\"name\":\"yes\"}", "signal `yes` at a"},
    {"{\"all\":[{\"waitpoint\":\"a\"},{\"waitpoint\":\"b\"},{\"waitpoint\":\"c\"}]}",
     "a signal at each of a, b and c"},
    {"{\"any\":[{\"waitpoint\":\"a\",\"name\":\"yes\"},{\"waitpoint\":\"b\",\"name\":\"yes\"}]}",
     "signal `yes` at a or b"},
    {"{\"any\":[{\"waitpoint\":\"a\",\"name\":\"yes\"},{\"waitpoint\":\"b\"}]}",
     "signal `yes` at a or a signal at b"},
    {"{\"count\":{\"n\":2,\"of\":\"waitpoints\",\"name\":\"approved\"}}",
     "2 of 3 waitpoints, signal `approved`"},
    {"{\"count\":{\"n\":1,\"of\":\"waitpoints\",\"waitpoints\":[\"a\",\"c\"]}}",
     "1 of 2 waitpoints (a or c)"},
    {"{\"count\":{\"n\":1,\"of\":\"signals\"}}", "1 signal"},
    {"{\"count\":{\"n\":3,\"of\":\"signals\",\"waitpoints\":[\"b\"],\"name\":\"vote\"}}",
     "3 signals `vote` at b"},
    {"{\"count\":{\"n\":2,\"of\":\"sources\",\"name\":\"approved\"}}",
     "signals `approved` from 2 different sources"},
    {"{\"operator\":true}", "an operator"},
    {"{\"timeout\":true}", "its timeout"},
    {"{\"any\":[{\"operator\":true},{\"all\":[{\"waitpoint\":\"a\"},{\"count\":{\"n\":2,\"of\":"
     "\"signals\"}}]}]}",
     "an operator or (a signal at a and 2 signals)"},
    {"{\"all\":[{\"waitpoint\":\"a\"}]}", "a signal at a"},
    {"{\"moon\":\"full\"}", "{\"moon\":\"full\"}"}, /* of a newer server */
    {"{\"waitpoint\":\"z\"}", "{\"waitpoint\":\"z\"}"},
};

int main(void)
{
    static const struct weft_waitpoint at[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    static const struct weft_waitpoint many[] = {{.name = "1"}, {.name = "2"}, {.name = "3"},
                                                 {.name = "4"}, {.name = "5"}, {.name = "6"},
                                                 {.name = "7"}, {.name = "8"}};
    struct weft_arena *arena = weft_arena_new();
    for (size_t i = 0; i < WEFT_LEN(rows); i++) {
        const struct weft_waiting waiting = {
            .condition = rows[i].condition, .waitpoint = at, .waitpoint_count = WEFT_LEN(at)};
        is_str(weft_condition_words(&waiting, arena), rows[i].words, "%s", rows[i].condition);
    }
    const struct weft_waiting all = {.waitpoint = many, .waitpoint_count = WEFT_LEN(many)};
    is_str(weft_condition_words(&all, arena), "a signal at each of 1, 2, 3, 4, 5 and 3 more",
           "of eight waitpoints five are named and three counted");
    weft_arena_free(arena);
    return tap_done();
}
