/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ADMIN_TOKENS_H
#define WEFT_ENGINE_ADMIN_TOKENS_H

/* Bearer tokens: create, rotate, revoke, list, last use; the namespaces that they are bound to. */

#include "core/token.h"
#include "engine/engine.h"

struct weft_id_column;

/* A secret of a token; see core/token.h for its text. */
struct weft_token_row {
    int32_t id;
    const char *name;
    const char *ns;   /* NULL: any */
    uint32_t scopes;  /* enum weft_scope, or-ed */
    uint8_t hash[32]; /* SHA-256 of the secret */
    weft_usec created_us;
    weft_usec expires_us;   /* 0: never */
    int32_t token;          /* the token it belongs to: its own id, or of the first secret */
    weft_usec last_used_us; /* 0: never */
};

struct weft_token_rows {
    struct weft_token_row *item; /* by id; in the arena */
    size_t count;
};

/* The client that manages tokens. NULL in the calls below: the process that opened the store. */
struct weft_token_caller {
    struct weft_rights rights; /* of the token that the request came with */
    int32_t token;             /* its id; 0: it came without one */
};

/* The last use of a secret: written in batches, outside of requests. */
struct weft_token_use {
    int32_t id;
    weft_usec at_us;
};

/* Sets token->id, token, and created_us unless the caller has set it. */
WEFT_MUST_CHECK enum weft_rc weft_engine_token_add(struct weft_engine *engine,
                                                   struct weft_token_row *token,
                                                   struct weft_err *err);

/* All secrets of all tokens. */
WEFT_MUST_CHECK enum weft_rc weft_engine_tokens(struct weft_engine *engine,
                                                struct weft_arena *arena,
                                                struct weft_token_rows *ret_tokens,
                                                struct weft_err *err);

/* Tokens outside the rights of the caller are WEFT_FORBIDDEN; lists leave them out. An id may be
 * that of any secret of the token. */
WEFT_MUST_CHECK enum weft_rc
weft_engine_token_create(struct weft_engine *engine, const struct weft_token_caller *caller,
                         const struct weft_token_spec *spec, struct weft_arena *arena,
                         struct weft_token *ret_token, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc
weft_engine_token_rotate(struct weft_engine *engine, const struct weft_token_caller *caller,
                         const struct weft_token_rotation *rotation, struct weft_arena *arena,
                         struct weft_token *ret_token, struct weft_err *err);

/* *ret_token is the token as it was before. */
WEFT_MUST_CHECK enum weft_rc weft_engine_token_revoke(struct weft_engine *engine,
                                                      const struct weft_token_caller *caller,
                                                      int32_t id, struct weft_arena *arena,
                                                      struct weft_token *ret_token,
                                                      struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_token_list(struct weft_engine *engine,
                                                    const struct weft_token_caller *caller,
                                                    struct weft_arena *arena,
                                                    struct weft_tokens *ret_tokens,
                                                    struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_tokens_used(struct weft_engine *engine,
                                                     const struct weft_token_use *use, size_t count,
                                                     struct weft_err *err);

/*
 * The namespace of each execution, NULL for one that does not exist: a token that is bound to a
 * namespace reaches only executions of it. An execution never changes its namespace, so a check
 * before the operation is safe.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_namespaces(struct weft_engine *engine,
                                                    const struct weft_id_column *ids,
                                                    const char **ret_ns, struct weft_err *err);

#endif
