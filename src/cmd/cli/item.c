/* SPDX-License-Identifier: Apache-2.0 */

/* Messages of the API on stdout. */

#include "cmd/cli/cli_json.h"

#include "base/arena.h"
#include "base/base64.h"

#include <string.h>

void weft_json_out_item(const struct weft_wire_type *type, const void *item)
{
    struct weft_json_out out;
    weft_json_out_begin(&out);
    weft_wire_write(type, item, &out.json);
    weft_json_out_end(&out);
}

void weft_json_out_bytes(struct weft_json_out *out, const char *name,
                         const struct weft_bytes *bytes)
{
    struct weft_json value;
    if (!bytes->arena)
        return;
    bool json = !bytes->content_type || strcmp(bytes->content_type, "application/json") == 0;
    if (json && weft_json_check(bytes->data, bytes->size, &value, NULL) == WEFT_OK) {
        weft_json_key(&out->json, name);
        weft_json_put_raw(&out->json, value.text, value.size);
        return;
    }
    struct weft_arena *arena = weft_arena_new();
    char *text = weft_arena_alloc(arena, WEFT_BASE64_SIZE(bytes->size) + 1, 1);
    weft_base64_encode(bytes->data, bytes->size, text);
    weft_json_key(&out->json, weft_arena_printf(arena, "%s_base64", name));
    weft_json_put_text(&out->json, text);
    weft_arena_free(arena);
}
