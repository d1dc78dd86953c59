/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ADMIN_LANES_H
#define WEFT_ENGINE_ADMIN_LANES_H

/* Settings of lanes, and which lanes are in use. */

#include "engine/engine.h"

WEFT_MUST_CHECK enum weft_rc weft_engine_lane_put(struct weft_engine *engine, const char *ns,
                                                  const struct weft_lane *lane,
                                                  struct weft_err *err);

/*
 * The lanes in use: they have settings, executions that are not over, or executions that ended in
 * the last hour (as counts has them).
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_lanes(struct weft_engine *engine, const char *ns,
                                               struct weft_arena *arena,
                                               struct weft_lanes *ret_lanes, struct weft_err *err);

/*
 * The same if the caller knows which lanes are in use, by the counts of a moment ago: reads only
 * settings. `used` are the names, sorted.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_lanes_of(struct weft_engine *engine, const char *ns,
                                                  const char *const *used, size_t count,
                                                  struct weft_arena *arena,
                                                  struct weft_lanes *ret_lanes,
                                                  struct weft_err *err);

/* WEFT_NOT_FOUND: the lane is not in use. */
WEFT_MUST_CHECK enum weft_rc weft_engine_lane(struct weft_engine *engine, const char *ns,
                                              const char *name, struct weft_arena *arena,
                                              struct weft_lane *ret_lane, struct weft_err *err);

/* The settings of a lane by its number, and the bucket of its rate; untouched when there are none.
 */
WEFT_MUST_CHECK enum weft_rc weft_lane_settings_read(struct weft_engine *engine, int32_t lane,
                                                     struct weft_arena *arena,
                                                     struct weft_lane *ret_lane,
                                                     int64_t *ret_full_ns, struct weft_err *err);

/* Removes the settings of a lane; *ret_lane has them. WEFT_NOT_FOUND: the lane has none. */
WEFT_MUST_CHECK enum weft_rc weft_engine_lane_remove(struct weft_engine *engine, const char *ns,
                                                     const char *name, struct weft_arena *arena,
                                                     struct weft_lane *ret_lane,
                                                     struct weft_err *err);

#endif
