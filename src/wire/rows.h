/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_WIRE_ROWS_H
#define WEFT_WIRE_ROWS_H

/*
 * How the tables of messages are written (types_*.c). A file defines OF as the struct of a message,
 * writes its rows in an array of the name of the message, and then REQUEST or ANSWER of it. After
 * the description of a row come the members of struct weft_wire_field that differ from 0.
 */

#include "base/limits.h"
#include "core/result.h"
#include "wire/type.h"

#define ROW(name_, kind_, field_, ...)                                                             \
    {                                                                                              \
        .name = (name_), .name_size = sizeof(name_) - 1, .kind = WEFT_WIRE_##kind_,                \
        .at = offsetof(OF, field_), .about = __VA_ARGS__                                           \
    }
/* A nested object whose rows are over the same struct. */
#define OBJECT(name_, rows_, ...)                                                                  \
    {                                                                                              \
        .name = (name_), .name_size = sizeof(name_) - 1, .kind = WEFT_WIRE_OBJECT,                 \
        .inner = (rows_), .inners = WEFT_LEN(rows_), .about = __VA_ARGS__                          \
    }
/* Bytes, in JSON or in base64; `in` is empty, or the member that has them with a dot. */
#define BYTES(name_, in, field_, ...)                                                              \
    ROW(name_, JSON, in field_, __VA_ARGS__, COUNT(in field_##_size), TYPE(in)),                   \
        ROW(name_ "_base64", BASE64, in field_, "A " name_ " that is not JSON",                    \
            COUNT(in field_##_size), TYPE(in), .rival = name_)
#define TYPE(in) .type = offsetof(OF, in content_type)

#define COUNT(field_) .count = offsetof(OF, field_)
#define WORDS(list_)  .word = (list_), .inners = WEFT_LEN(list_)
#define REQUIRED      .flags = WEFT_WIRE_REQUIRED
#define CHECKED       .flags = WEFT_WIRE_CHECKED
#define ALWAYS        .flags = WEFT_WIRE_ALWAYS
#define OR_NULL       .flags = WEFT_WIRE_OR_NULL

/* Which lease it is about. */
#define LEASE                                                                                      \
    ROW("id", ID, id, "The execution", REQUIRED),                                                  \
        ROW("epoch", I32, epoch, "The epoch of the lease, from the claim", REQUIRED,               \
            .max = INT32_MAX)

#define MESSAGE_TYPE(rows_, name_, ...)                                                            \
    const struct weft_wire_type weft_wire_##rows_ = {.field = (rows_),                             \
                                                     .count = WEFT_LEN(rows_),                     \
                                                     .size = sizeof(OF),                           \
                                                     .name = (name_),                              \
                                                     .about = __VA_ARGS__}
#define REQUEST(rows_, name_, about_) MESSAGE_TYPE(rows_, name_, about_)
#define ANSWER(rows_, name_, about_)  MESSAGE_TYPE(rows_, name_, about_, .answer = true)

#endif
