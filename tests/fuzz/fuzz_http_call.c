/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Payloads of HTTP calls. What is read can be sent: nothing in its head breaks a line, its URL has
 * one form, and behind a base URL it stays there. The bytes are also read as a path and as a URL.
 */

#include "fuzz/fuzz.h"

#include "base/arena.h"
#include "base/limits.h"
#include "core/http_call.h"
#include "core/json_fill.h"

static void must_be_plain(const char *text)
{
    for (; *text; text++)
        must((unsigned char)*text >= ' ' && *text != 0x7f);
}

/* Its text is read as the same URL, and has no dot segments in any spelling. */
static void look_at_url(const struct weft_http_url *url, struct weft_arena *arena)
{
    struct weft_http_url again;
    must(!weft_http_url_read(url->text, "url", arena, &again, NULL));
    must(strcmp(again.text, url->text) == 0 && weft_http_same_origin(&again, url));
    must(again.address.size == url->address.size &&
         memcmp(again.address.byte, url->address.byte, sizeof(url->address.byte)) == 0);
    must(url->path[0] == '/' && url->port > 0 && url->host[0]);
    for (const char *c = url->text; *c; c++)
        must(*c > ' ' && *c < 0x7f && *c != '#' && *c != '\\');
    must(!strstr(url->path, "/../") ||
         (strchr(url->path, '?') && strchr(url->path, '?') < strstr(url->path, "/../")));
}

static void look_at_path(const char *path, struct weft_arena *arena)
{
    static const char *const base[] = {"https://example.com/v1", "http://127.0.0.1:8080/",
                                       "http://[::1]"};
    for (size_t i = 0; i < sizeof(base) / sizeof(base[0]); i++) {
        struct weft_http_url from, url;
        must(!weft_http_base_read(base[i], "url", arena, &from, NULL));
        if (weft_http_url_join(&from, path, arena, &url, NULL))
            continue;
        look_at_url(&url, arena);
        must(weft_http_same_origin(&from, &url));
        must(strncmp(url.text, base[i], strlen(base[i])) == 0);
    }
}

static void look_at_call(const struct weft_http_call *call, struct weft_arena *arena)
{
    struct weft_json value;
    must(!call->endpoint == (call->url.text != NULL));
    must(call->method[0] &&
         strspn(call->method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == strlen(call->method));
    if (call->url.text)
        look_at_url(&call->url, arena);
    if (call->path)
        look_at_path(call->path, arena);
    for (size_t i = 0; i < call->header_count; i++) {
        must_be_plain(call->header[i].name);
        must_be_plain(call->header[i].value);
        must(call->header[i].name[0] && !strpbrk(call->header[i].name, ": "));
        must(!weft_http_header_allowed(call->header[i].name, NULL));
    }
    must(call->from_count == 0 || call->json.text);
    for (size_t i = 0; i < call->from_count; i++)
        must(!weft_json_pointer_find(&call->json, call->from[i].target, "", &value, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_json payload;
    struct weft_http_call call;
    struct weft_http_url url;
    struct weft_err err = {0};
    if (!weft_json_check((const char *)data, size, &payload, &err)) {
        enum weft_rc rc = weft_http_call_read(&payload, arena, &call, &err);
        must(!rc || rc == WEFT_UNKNOWN_FIELD || rc == WEFT_INVALID_VALUE || rc == WEFT_TOO_LARGE);
        must(!rc || err.field);
        if (!rc)
            look_at_call(&call, arena);
    }
    char *text = fuzz_text(data, size);
    if (!weft_http_url_read(text, "url", arena, &url, &err))
        look_at_url(&url, arena);
    if (!weft_http_path_check(text, &err))
        look_at_path(text, arena);
    free(text);
    weft_arena_free(arena);
    return 0;
}
