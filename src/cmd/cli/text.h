/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_CLI_TEXT_H
#define WEFT_CMD_CLI_TEXT_H

/* Ids, moments, spans and foreign text as people see them; and what they type. */

#include "cmd/cli/cli.h"

/* The last line of a text that is not empty, up to size bytes of it, in ret_text. */
void weft_last_line(const char *text, char *ret_text, size_t size);
/* Writes the bytes to stdout; on a terminal a newline follows when they do not end with one. */
void weft_put_bytes(const void *data, size_t size);

const char *weft_state_color(enum weft_state state); /* an SGR number, or NULL */
/* Prints the text in a colour, an SGR number; NULL: in none. */
void weft_put_painted(const char *color, const char *text);

enum { WEFT_AGO_TEXT = 32 };
void weft_ago(weft_usec moment_us, weft_usec now_us, char ret_text[WEFT_AGO_TEXT]);
void weft_span(weft_usec span_us, char ret_text[WEFT_AGO_TEXT]); /* "5 ms", "1.2 s", "3 h" */
weft_usec weft_wall_us(void); /* the clock on the wall, for "ago" */

/* Writes foreign text without control characters. */
void weft_put_clean(FILE *to, const char *text);

/* The words with a separator between them, in the arena. */
const char *weft_joined(struct weft_arena *arena, const char *const *word, size_t count,
                        const char *separator);

/* How wide stdout is, 0: as wide as it needs to be (no terminal, and no COLUMNS). */
size_t weft_width(void);

/* ---- What people type ------------------------------------------------------------------------ */

/* False: the text is no such value. A duration is as in weft_cli_ms(); a size is like 64KiB; an
 * amount is like 500k, in powers of a thousand. */
WEFT_MUST_CHECK bool weft_number_typed(const char *text, int64_t *ret_number);
WEFT_MUST_CHECK bool weft_amount_typed(const char *text, int64_t *ret_amount);
WEFT_MUST_CHECK bool weft_duration_typed(const char *text, int64_t *ret_ms);
/* A duration as it would be typed: 90s, 2h, 1500ms. In the arena. */
const char *weft_duration_text(struct weft_arena *arena, int64_t ms);
WEFT_MUST_CHECK bool weft_size_typed(const char *text, int64_t *ret_bytes);
/* A moment that a person typed: RFC 3339, or "+5m" or "5m" from now. False: it is none of them. */
WEFT_MUST_CHECK bool weft_moment_typed(const char *text, weft_usec *ret_moment_us);
/* The same for the past: RFC 3339, or "5m" ago. */
WEFT_MUST_CHECK bool weft_past_typed(const char *text, weft_usec *ret_moment_us);

#endif
