/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_HTTP_SETTINGS_H
#define WEFT_ENGINE_HTTP_SETTINGS_H

/*
 * The settings of endpoints in the store. Whether the caller may make a private endpoint is for the
 * server to decide: here everything that core/endpoint.h allows is allowed.
 */

#include "weft/http.h"

struct weft_endpoint_out;
struct weft_engine;

struct weft_endpoint_asking {
    const char *ns;
    uint32_t limit;    /* 0: the default */
    const char *after; /* NULL: the first page */
};

WEFT_MUST_CHECK enum weft_rc weft_engine_endpoint_put(struct weft_engine *engine, const char *ns,
                                                      const struct weft_endpoint *endpoint,
                                                      struct weft_err *err);
/* ret_endpoint: as it was. */
WEFT_MUST_CHECK enum weft_rc weft_engine_endpoint_remove(struct weft_engine *engine, const char *ns,
                                                         const char *name, struct weft_arena *arena,
                                                         struct weft_endpoint *ret_endpoint,
                                                         struct weft_err *err);
/* The health of the answers is not known. */
WEFT_MUST_CHECK enum weft_rc weft_engine_endpoint(struct weft_engine *engine, const char *ns,
                                                  const char *name, struct weft_arena *arena,
                                                  struct weft_endpoint *ret_endpoint,
                                                  struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_endpoints(struct weft_engine *engine,
                                                   const struct weft_endpoint_asking *asking,
                                                   struct weft_arena *arena,
                                                   struct weft_endpoints *ret_endpoints,
                                                   struct weft_err *err);

/* A row as the settings that it holds; texts are in the arena. */
struct weft_endpoint weft_endpoint_of_row(const struct weft_endpoint_out *row,
                                          struct weft_arena *arena);

#endif
