/* SPDX-License-Identifier: Apache-2.0 */

#include "erasing.h"

#include "direct.h"

#include "base/arena.h"
#include "base/id.h"
#include "engine/erase/erase.h"
#include "engine/ready/poll.h"

#include <string.h>

struct weft_erasure erase_ask(struct fixture *f, const struct weft_erasure_spec *spec)
{
    struct weft_erasure erasure = {0};
    is_int(weft_engine_erase(f->a, "default", spec, 0, f->arena, &erasure, &f->err), WEFT_OK,
           "the order is taken");
    is_int(erasure.state, WEFT_ERASURE_RUNNING, "and runs");
    return erasure;
}

struct weft_erasure erase_read(struct fixture *f, const struct weft_id *id)
{
    struct weft_erasure erasure = {0};
    const struct weft_erasure_asking asking = {.id = *id, .ns = "default"};
    is_int(weft_engine_erasure(f->b, &asking, f->arena, &erasure, &f->err), WEFT_OK, "it is read");
    return erasure;
}

struct weft_erasure erase_verify(struct fixture *f, const struct weft_id *id)
{
    struct weft_erasure erasure = {0};
    const struct weft_erasure_asking asking = {.id = *id, .ns = "default"};
    is_int(weft_engine_erasure_verify(f->b, &asking, f->arena, &erasure, &f->err), WEFT_OK,
           "it is verified");
    return erasure;
}

/* As servers do every second. */
static void poll(struct fixture *f)
{
    struct weft_poll poll;
    is_int(weft_engine_poll(f->a, f->arena, &poll, &f->err), WEFT_OK, "a polls");
    is_int(weft_engine_poll(f->b, f->arena, &poll, &f->err), WEFT_OK, "b polls");
}

/* Runs what erases, on two replicas in turn, until it is done. */
struct weft_erasure erase_to_the_end(struct fixture *f, const struct weft_id *id)
{
    struct weft_erasure erasure = erase_read(f, id);
    for (int i = 0; i < 100 && erasure.state == WEFT_ERASURE_RUNNING; i++) {
        (void)run_pass(f, i % 2 ? f->a : f->b, WEFT_SCANNER_ERASURE);
        (void)run_pass(f, f->a, WEFT_SCANNER_CANCEL_BACKLOG);
        (void)run_pass(f, f->b, WEFT_SCANNER_PURGE);
        forward_ms(f, 1000);
        poll(f);
        erasure = erase_read(f, id);
    }
    is_int(erasure.state, WEFT_ERASURE_DONE, "it comes to its end");
    return erasure;
}

int64_t erase_counted(const struct weft_erasure *erasure, const char *name)
{
    for (size_t i = 0; i < erasure->count_count; i++)
        if (strcmp(erasure->counts[i].name, name) == 0)
            return (int64_t)erasure->counts[i].value;
    return -1;
}
