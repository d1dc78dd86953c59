/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_CHAT_CHUNKS_H
#define WEFT_CORE_CHAT_CHUNKS_H

/*
 * The chunks of a streamed chat completion (OpenAI's `chat.completion.chunk`, which many servers
 * send) put together into the `chat.completion` that a call without streaming would have given.
 * Memory is that of the result, not of the stream. Pure.
 *
 * How the members of chunks come together is a table in chat_chunks.c. In short: texts of a delta
 * are joined, byte for byte; choices and tool calls are told apart by their index; of anything else
 * the last value that says something stays. Members appear in the order in which they came first.
 */

#include "base/json.h"

struct weft_chat_chunks; /* opaque */

/* size_max: bytes of the result. */
struct weft_chat_chunks *weft_chat_chunks_new(size_t size_max);
void weft_chat_chunks_free(struct weft_chat_chunks *chunks); /* NULL is fine */

/* Whether an object is a chunk: says so, or says nothing (as some servers do) and has choices. */
bool weft_chat_chunk_is(const struct weft_json *value);
/*
 * Adds a chunk. `original` is where the text of the chunk begins before it was masked
 * (json_mend.h), or chunk->text. WEFT_TOO_LARGE, WEFT_INVALID_VALUE: nothing can be added any more.
 */
WEFT_MUST_CHECK enum weft_rc weft_chat_chunks_add(struct weft_chat_chunks *chunks,
                                                  const struct weft_json *chunk,
                                                  const char *original, struct weft_err *err);
/* True when there is a choice, and each has a reason why it finished. */
bool weft_chat_chunks_finished(const struct weft_chat_chunks *chunks);
/* Writes the result. Once, after the last chunk. */
void weft_chat_chunks_write(struct weft_chat_chunks *chunks, struct weft_buf *buf);

#endif
