/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Routes: "METHOD TARGET", over the table of the server. A route that is found is found
 * again, with the same values, when every byte of every segment is encoded.
 */

#include "fuzz/fuzz.h"

#include "base/buf.h"
#include "net/route.h"

static void encode_path(const struct weft_route_match *match, struct weft_buf *out)
{
    for (size_t i = 0; i < match->count; i++) {
        weft_buf_add_char(out, '/');
        for (const char *at = match->text + match->segment[i]; *at; at++)
            weft_buf_printf(out, "%%%02x", (unsigned)(uint8_t)*at);
    }
}

static void check_found(const char *method, const struct weft_route *route,
                        const struct weft_route_match *match)
{
    struct weft_route_match again;
    struct weft_buf path;
    weft_buf_init(&path, 1 << 20);
    must(match->count > 0 && match->count <= WEFT_ROUTE_SEGMENTS);
    encode_path(match, &path);
    bool fits = path.size < WEFT_ROUTE_TEXT; /* encoded it is three times as long */
    must(!fits || weft_route_find(&weft_routes, method, path.data, &again) == route);
    must(!fits || again.count == match->count);
    for (size_t i = 0; i < match->count && fits; i++)
        must(strcmp(again.text + again.segment[i], match->text + match->segment[i]) == 0);
    weft_buf_done(&path);
}

static void check_decode(const char *text, bool plus)
{
    size_t size = strlen(text), decoded;
    char *out = malloc(size + 1);
    must(out);
    if (weft_percent_decode(text, size, plus, out, &decoded))
        must(decoded <= size && strlen(out) == decoded);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *method = fuzz_text(data, size);
    char *space = strchr(method, ' ');
    /* A copy of its own, so that reads before and behind it are seen. */
    const char *rest = space ? space + 1 : "";
    char *target = fuzz_text(rest, strlen(rest));
    if (space)
        *space = '\0';
    struct weft_route_match match;
    const struct weft_route *route = weft_route_find(&weft_routes, method, target, &match);
    must(!route == (match.miss != WEFT_ROUTE_FOUND));
    if (route)
        check_found(method, route, &match);
    if (match.miss == WEFT_ROUTE_METHOD)
        must(match.allow[0] && strlen(match.allow) < WEFT_ROUTE_ALLOW);
    check_decode(target, false);
    check_decode(target, true);
    free(target);
    free(method);
    return 0;
}
