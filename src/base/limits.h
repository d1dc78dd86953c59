/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_LIMITS_H
#define WEFT_BASE_LIMITS_H

/* Every ceiling on outside data, in one place. Above a limit is a clear error, never a crash. */

enum weft_limit {
    WEFT_NAME_MAX = 128,             /* lane, kind, worker, tenant, namespace, node: bytes */
    WEFT_KEY_MAX = 512,              /* idempotency key: bytes */
    WEFT_CONTENT_TYPE_MAX = 128,     /* bytes */
    WEFT_PAYLOAD_MAX = 1 << 20,      /* payload and result: bytes */
    WEFT_CALL_RESULT_MAX = 12 << 20, /* result of an HTTP call that a server made itself: bytes */
    WEFT_TAGS_MAX = 32,              /* per execution */
    WEFT_TAG_KEY_MAX = 64,           /* bytes */
    WEFT_TAG_VALUE_MAX = 256,        /* bytes */
    WEFT_CAPABILITIES_MAX = 256,     /* tokens */
    WEFT_CAPABILITIES_BYTES = 2048,  /* all tokens of one set with commas: fits an index entry */
    WEFT_NO_RETRY_MAX = 16,          /* error classes in a policy */
    WEFT_CLASS_MAX = 64,             /* error class: bytes */
    WEFT_MESSAGE_MAX = 4096,         /* error message; longer ones are cut, not refused */
    WEFT_REASON_MAX = 512,           /* cancel reason, progress note: bytes */
    WEFT_ATTEMPTS_MAX = 30000,       /* max_attempts, max_lost */
    WEFT_REPLAYS_MAX = 30000,        /* of one execution */
    WEFT_BATCH_MAX = 1000,           /* items in one transaction */
    WEFT_BATCH_BYTES = 8 << 20,      /* payload bytes in one transaction or one claim */
    WEFT_UPSTREAM_BYTES = 128,       /* what an upstream adds to these bytes, besides its result */
    WEFT_REPEATS_MAX = 8,            /* transactions of one call for items about the same lease */
    WEFT_CLAIM_QUEUES_MAX = 64,      /* queues one claim looks at */
    WEFT_CLAIM_LANES_MAX = 64,       /* lanes one claim may name */
    WEFT_CLAIM_KINDS_MAX = 256,      /* kinds one claim may name */
    WEFT_PAGE_MAX = 1000,            /* rows of a list */
    WEFT_PAGE_DEFAULT = 50,          /* rows of a list that names no limit */
    WEFT_SCAN_MAX = 10000,  /* rows a list or a filter looks at before it gives a short page */
    WEFT_SWEEP_MAX = 10000, /* executions that one cancel or replay by filter changes */
    WEFT_FLOW_NODES_MAX = 100000,
    WEFT_FLOW_EDGES_MAX = 1000000,
    WEFT_FLOW_LINKS_MAX = 1000,       /* edges that one call adds between nodes of a flow */
    WEFT_WAITPOINTS_MAX = 100,        /* of one suspension; and pending ones of an execution */
    WEFT_SIGNALS_MAX = 10000,         /* of one waitpoint */
    WEFT_CONDITION_DEPTH_MAX = 4,     /* all, any and count inside each other */
    WEFT_CONDITION_NODES_MAX = 200,   /* parts of one condition */
    WEFT_SIGNALS_CLAIM_BYTES = 65536, /* payloads of signals that a claim brings along */
    WEFT_LEASE_MIN_MS = 1000,
    WEFT_LEASE_MAX_MS = 86400000,
    WEFT_JSON_DEPTH_MAX = 64,
    WEFT_JSON_POINTER_MAX = 1024,        /* bytes */
    WEFT_HTTP_URL_MAX = 8192,            /* of an outgoing call, with its query: bytes */
    WEFT_HTTP_METHOD_MAX = 16,           /* bytes */
    WEFT_HTTP_HEADERS_MAX = 64,          /* of an outgoing call */
    WEFT_HTTP_HEADER_NAME_MAX = 128,     /* bytes */
    WEFT_HTTP_HEADER_VALUE_MAX = 8192,   /* bytes */
    WEFT_HTTP_HEADERS_BYTES = 32768,     /* names and values of all of them */
    WEFT_HTTP_FILLS_MAX = 32,            /* parts of a body that come from upstreams */
    WEFT_HTTP_RETRY_AFTER_MAX_S = 86400, /* a longer Retry-After is cut */
};

#define WEFT_DELAY_MAX_MS  ((int64_t)10 * 366 * 86400 * 1000) /* ten years */
#define WEFT_MOMENT_MAX_US ((int64_t)253402300799 * 1000000)  /* the end of the year 9999 */
/* A worker not seen for this long that holds no lease is no longer listed. */
#define WEFT_WORKER_TTL_US ((int64_t)5 * 60 * 1000000)

#endif
