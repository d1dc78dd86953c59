/* SPDX-License-Identifier: Apache-2.0 */

/* Kinds that weft carries out itself: their targets, and which member of a payload is blamed. */

#include "core/carried.h"

#include "base/arena.h"
#include "core/http_call.h"
#include "tap.h"

#include <string.h>

int main(void)
{
    struct weft_arena *arena = weft_arena_new();
    /* clang-format off */
    static const struct {
        const char *type, *payload, *target, *field;
    } row[] = {
        {NULL, "{\"endpoint\":\"a/b\"}", "a/b", NULL},
        {"application/json", "{\"url\":\"http://h/\"}", WEFT_OWN_URL, NULL},
        {"text/plain", "{\"endpoint\":\"a\"}", NULL, "content_type"},
        {NULL, "", NULL, "payload"},
        {NULL, "{\"endpoint\":\"a\"", NULL, "payload"},
        {NULL, "{\"endpoint\":\"*\"}", NULL, "payload.endpoint"},
        {NULL, "{\"endpoint\":\"a\",\"body_base64\":\"?\"}", NULL, "payload.body_base64"},
        {NULL, "{\"endpoint\":\"a\",\"stream\":1}", NULL, "payload.stream"},
        {NULL, "{\"endpoint\":\"a\",\"method\":\"get\"}", NULL, "payload.method"},
    };
    /* clang-format on */
    ok(weft_kind_is_carried("http"), "weft carries out http");
    ok(!weft_kind_is_carried("https") && !weft_kind_is_carried("job"), "and no other kind");
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_carried carried = {0};
        struct weft_err err = {0};
        enum weft_rc rc = weft_carried_read(row[i].type, row[i].payload, strlen(row[i].payload),
                                            arena, &carried, &err);
        is_int(rc == WEFT_OK, row[i].target != NULL, "%s is %s", row[i].payload,
               row[i].target ? "read" : "refused");
        is_str(rc ? err.field : carried.target, rc ? row[i].field : row[i].target, "%s",
               row[i].payload);
    }
    static const char text[] =
        "{\"endpoint\":\"a\",\"body\":{\"x\":0},\"from\":{\"/body/x\":\"draft#/body\"}}";
    struct weft_carried carried = {0};
    is_int(weft_carried_read(NULL, text, strlen(text), arena, &carried, NULL), WEFT_OK, "read");
    is_int(carried.from_count, 1, "it takes one result");
    is_str(carried.from[0].node, "draft", "of this upstream");
    weft_arena_free(arena);
    return tap_done();
}
