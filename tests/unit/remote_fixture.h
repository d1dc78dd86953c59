/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_UNIT_REMOTE_FIXTURE_H
#define WEFT_TESTS_UNIT_REMOTE_FIXTURE_H

/* A handle over a fake server that gives the answers of the test, one after the other. */

#include "http_fixture.h"

#include "weft/weft.h"

#define ID_TEXT  "01890000-0000-7000-8000-000000000001"
#define ID2_TEXT "01890000-0000-7000-8000-000000000002"

static struct weft_err err;
static struct stage stage;
static struct weft *weft;
static struct weft_id id, id2;

static inline void begin(const struct take *take, size_t count)
{
    stage_init(&stage);
    for (size_t i = 0; i < count; i++)
        stage_add(&stage, take[i]);
    stage_open(&stage);
    weft = NULL;
    enum weft_rc rc =
        weft_open(stage.url, &(struct weft_options){.ns = "blue", .token = "secret"}, &weft, &err);
    if (rc) {
        printf("Bail out! cannot open %s: %s\n", stage.url, err.text);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    err = (struct weft_err){0};
}

static inline void end(void)
{
    weft_close(weft);
    stage_done(&stage);
}

/* The request `i` was this. */
static inline void asked_for(size_t i, const char *method, const char *path, const char *body)
{
    const struct asked *asked = &stage.asked[i];
    is_str(asked->method, method, "%s %s: the method", method, path);
    is_str(asked->path, path, "%s %s: the path", method, path);
    if (body)
        is_str(asked->body, body, "%s %s: the body", method, path);
}

#define ERROR(code, hint)                                                                          \
    "{\"error\":{\"code\":\"" code "\",\"message\":\"m\",\"hint\":" hint ",\"field\":null}}"
#define EXECUTION(id_, state)                                                                      \
    "{\"id\":\"" id_ "\",\"namespace\":\"blue\",\"lane\":\"l\",\"kind\":\"k\",\"state\":\"" state  \
    "\",\"priority\":1,\"tags\":{\"a\":\"b\"},\"capabilities\":[\"gpu\"],\"attempt\":1,"           \
    "\"epoch\":2,\"worker\":\"w\",\"progress\":{\"percent\":40,\"note\":null},"                    \
    "\"error\":{\"class\":\"c\",\"message\":\"m\"},\"reason\":null}"

#endif
