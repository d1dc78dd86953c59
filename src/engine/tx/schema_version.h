/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_TX_SCHEMA_VERSION_H
#define WEFT_ENGINE_TX_SCHEMA_VERSION_H

/* Whether this binary is too old for the schema of the store. */

#include "base/base.h"

struct weft_conn;
struct weft_engine;

/* WEFT_SCHEMA: this binary is too old for the store, which was migrated. Known without asking. */
WEFT_MUST_CHECK enum weft_rc weft_engine_version(struct weft_engine *engine, struct weft_err *err);

/* What another process may have made of the schema. */
void weft_version_seen(struct weft_engine *engine, int64_t version, int64_t oldest_binary);

/* weft_engine_version(), after a look at the schema when the last one is old. No transaction is
 * open. */
WEFT_MUST_CHECK enum weft_rc weft_version_look(struct weft_engine *engine, struct weft_conn *conn,
                                               struct weft_err *err);

#endif
