/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_ROUTES_H
#define WEFT_NET_API_ROUTES_H

/* What the rows of routes.c are made of: ceilings, parameters, and schemas that are no messages. */

#include "net/route.h"

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

/* Ceilings of bodies. A payload may have 1 MiB, and base64 makes a third more of it. */
#define BODY_ONE  MIB(2)
#define BODY_BULK MIB(16)
#define BODY_TINY KIB(64)
#define BODY_FLOW MIB(64)
/* What --file-bytes allows at most, and the form around it. */
#define FILE_BODY (MIB(1024) + KIB(64))

/* An error as a bit of weft_route.fails. */
#define RC(name) (UINT32_C(1) << WEFT_##name)
_Static_assert(WEFT_RC_COUNT <= 32, "the errors of a route are bits of a uint32_t");

/* ---- Parameters and schemas that are not messages -------------------------------------------- */

#define NAME_SCHEMA "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_.:/-]{1,128}$\"}"
/* The OpenAPI document has the words of the states in place of $states and $flow_states. */
#define STATE_SCHEMA      "{\"type\":\"string\",\"enum\":[$states]}"
#define FLOW_STATE_SCHEMA "{\"type\":\"string\",\"enum\":[$flow_states]}"
#define REF(name)         "{\"$ref\":\"#/components/schemas/" name "\"}"

#define PARAM_LIMIT                                                                                \
    "limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":50}",               \
        "At most so many items; a page may be short while next is not null"
#define PARAM_AFTER "after", "{\"type\":\"string\",\"minLength\":1}", "The next of the page before"

#define PARAM_MOMENT(name, about) name, "{\"type\":\"string\",\"format\":\"date-time\"}", about

#define PARAM_SHORT_ID                                                                             \
    "id", "{\"type\":\"string\",\"pattern\":\"^[0-9A-Fa-f-]+(\\\\.\\\\.[0-9A-Fa-f]{1,12})?$\"}",   \
        "Only ids that begin so: 4 digits or more, dashes do not count; after them may "           \
        "follow \"..\" and the last digits"
#define PARAM_WAIT                                                                                 \
    "wait_ms", "{\"type\":\"integer\",\"minimum\":0,\"maximum\":60000,\"default\":0}",             \
        "Answer when it is over, or after this time"

#define SUBMIT_BODY                                                                                \
    "{\"oneOf\":[" REF("Spec") ",{\"type\":\"object\",\"properties\":{\"items\":{\"type\":"        \
    "\"array\",\"maxItems\":1000,\"items\":" REF("Spec") "}},\"required\":[\"items\"],"            \
    "\"additionalProperties\":false}]}"
#define SUBMIT_ERROR                                                                               \
    "{\"type\":\"object\",\"properties\":{\"error\":" REF("Error") ",\"line\":{\"type\":"        \
    "\"integer\",\"minimum\":1,\"description\":\"The line of the item, when the body was lines\""  \
    "}},\"required\":[\"error\"]}"
#define SUBMIT_ANSWER                                                                              \
    "{\"oneOf\":[" REF("Submitted") ",{\"type\":\"object\",\"properties\":{\"items\":{\"type\":"   \
    "\"array\",\"items\":{\"oneOf\":[" REF("Submitted") "," SUBMIT_ERROR "]}}},\"required\":["     \
    "\"items\"]}]}"

#define SIGNALS_BODY                                                                               \
    "{\"oneOf\":[" REF("SignalSent") ",{\"type\":\"object\",\"properties\":{\"items\":{\"type\":"  \
    "\"array\",\"maxItems\":1000,\"items\":" REF("SignalSent") "}},\"required\":[\"items\"],"      \
    "\"additionalProperties\":false}]}"
#define SIGNALS_ANSWER                                                                             \
    "{\"oneOf\":[" REF("Signalled") ",{\"type\":\"object\",\"properties\":{\"items\":{\"type\":"   \
    "\"array\",\"items\":{\"oneOf\":[" REF("Signalled") ",{\"type\":\"object\","                   \
    "\"properties\":{\"error\":" REF("Error") "},\"required\":[\"error\"]}]}}},\"required\":[" \
    "\"items\"]}]}"

#define IDS_SCHEMA                                                                                 \
    "\"ids\":{\"type\":\"array\",\"maxItems\":1000,\"items\":{\"type\":\"string\",\"format\":"     \
    "\"uuid\"}},\"filter\":" REF("Filter") ",\"max\":{\"type\":[\"integer\",\"null\"],"            \
    "\"minimum\":1,\"maximum\":10000,\"default\":10000},\"after\":{\"type\":[\"string\","          \
    "\"null\"],\"description\":\"By filter: the next of the call before\"}"
#define ONE_OF_BOTH                                                                                \
    "\"oneOf\":[{\"required\":[\"ids\"]},{\"required\":[\"filter\"]}],"                            \
    "\"additionalProperties\":false"
#define CANCEL_MANY_BODY                                                                           \
    "{\"type\":\"object\",\"properties\":{" IDS_SCHEMA                                             \
    ",\"reason\":{\"type\":[\"string\",\"null\"]}}," ONE_OF_BOTH "}"
#define REPLAY_MANY_BODY                                                                           \
    "{\"type\":\"object\",\"properties\":{" IDS_SCHEMA                                             \
    ",\"force\":{\"type\":[\"boolean\",\"null\"],\"default\":false}}," ONE_OF_BOTH "}"
#define STEER_MANY_ANSWER                                                                          \
    "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"items\":{\"type\":\"array\",\"items\":{"   \
    "\"type\":\"object\",\"properties\":{\"id\":{\"type\":[\"string\",\"null\"]},\"state\":"       \
    STATE_SCHEMA ",\"changed\":{\"type\":\"boolean\"},\"error\":" REF("Error") "},\"required\":["  \
    "\"id\"]}}},\"required\":[\"items\"]}"                                                         \
    "," REF("Sweep") "]}"

#define COUNTS_ANSWER                                                                              \
    "{\"type\":\"object\",\"properties\":{\"as_of\":{\"type\":\"string\",\"format\":"              \
    "\"date-time\",\"description\":\"When they were counted\"},\"age_ms\":{\"type\":"              \
    "\"integer\",\"minimum\":0,\"description\":\"How old they are: a server counts at most "       \
    "once a second\"},\"items\":{\"type\":\"array\",\"items\":" REF("LaneCount") "}},"             \
    "\"required\":[\"as_of\",\"age_ms\",\"items\"]}"
#define RELEASED_ANSWER                                                                            \
    "{\"type\":\"object\",\"properties\":{\"released\":{\"type\":\"integer\",\"minimum\":0}},"     \
    "\"required\":[\"released\"]}"
#define STATUS_ANSWER                                                                              \
    "{\"type\":\"object\",\"properties\":{\"status\":{\"type\":\"string\"}},\"required\":["        \
    "\"status\"]}"
#define READY_ANSWER                                                                               \
    "{\"type\":\"object\",\"properties\":{\"status\":{\"type\":\"string\"},\"warning\":{"          \
    "\"type\":\"string\",\"description\":\"It works, but something is missing\"}},\"required\":["  \
    "\"status\"]}"
/* A list as OpenAI has it. */
#define OPENAI_LIST_OF(name)                                                                       \
    "{\"type\":\"object\",\"required\":[\"object\",\"data\",\"has_more\"],"                        \
    "\"properties\":{\"object\":{\"type\":\"string\"},\"data\":{\"type\":\"array\","               \
    "\"items\":" REF(name) "},\"first_id\":{\"type\":[\"string\",\"null\"]},"                      \
    "\"last_id\":{\"type\":[\"string\",\"null\"]},\"has_more\":{\"type\":\"boolean\"}}}"
#define NOTHING_BODY "{\"type\":\"object\",\"additionalProperties\":false}"

#endif
