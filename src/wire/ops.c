/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/ops.h"

#include "wire/wire.h"

const char *const weft_group_names[WEFT_GROUP_COUNT] = {
    [WEFT_GROUP_NONE] = "read",   [WEFT_GROUP_LIST] = "list",   [WEFT_GROUP_PARSE] = "parse",
    [WEFT_GROUP_HEAVY] = "heavy", [WEFT_GROUP_ADMIN] = "admin",
#define FOLDED(op, label, ...) [WEFT_GROUP_##op] = label,
#define ALONE(op, ...)
#include "wire/ops.def"
};

const struct weft_op_info weft_ops[WEFT_OP_COUNT] = {
#define OP(op, group_, id_, method_, path_, scope_, repeat_, in_, takes_, out_, gives_, call_)     \
    [WEFT_OP_##op] = {.id = #id_,                                                                  \
                      .method = #method_,                                                          \
                      .path = path_,                                                               \
                      .scope = WEFT_SCOPE_##scope_,                                                \
                      .group = WEFT_GROUP_##group_,                                                \
                      .repeat = WEFT_REPEAT_##repeat_,                                             \
                      .takes = takes_,                                                             \
                      .gives = gives_},
#include "wire/ops.def"
};
