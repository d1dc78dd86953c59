/* SPDX-License-Identifier: Apache-2.0 */

/* Messages about suspended executions, waitpoints, signals and signing keys. */

#include "weft/admin.h"
#include "wire/rows.h"

const char *const weft_wire_on_timeouts[] = {
    [WEFT_ON_TIMEOUT_FAIL] = "fail",         [WEFT_ON_TIMEOUT_CANCEL] = "cancel",
    [WEFT_ON_TIMEOUT_EXPIRE] = "expire",     [WEFT_ON_TIMEOUT_RESUME] = "resume",
    [WEFT_ON_TIMEOUT_ESCALATE] = "escalate",
};
static const char *const effects[] = {
    [WEFT_SIGNAL_RESUMED] = "resumed",   [WEFT_SIGNAL_RECORDED] = "recorded",
    [WEFT_SIGNAL_BUFFERED] = "buffered", [WEFT_SIGNAL_DUPLICATE] = "duplicate",
    [WEFT_SIGNAL_IGNORED] = "ignored",
};
const char *const weft_wire_resumed_by[] = {
    [WEFT_RESUMED_BY_SIGNALS] = "signals",
    [WEFT_RESUMED_BY_TIMEOUT] = "timeout",
    [WEFT_RESUMED_BY_OPERATOR] = "operator",
};
const char *const weft_wire_waitpoint_states[] = {
    [WEFT_WAITPOINT_PENDING] = "pending",
    [WEFT_WAITPOINT_OPEN] = "open",
    [WEFT_WAITPOINT_CLOSED] = "closed",
};

/* ---- Suspend --------------------------------------------------------------------------------- */

#define OF struct weft_suspend_at

static const struct weft_wire_field suspend_at[] = {
    ROW("name", TEXT, name, "Of a new waitpoint"),
    ROW("id", ID, id, "Of a pending waitpoint, instead of a name", OR_NULL),
};
REQUEST(suspend_at, "SuspendAt", "A waitpoint of a suspension.");
#undef OF

#define OF struct weft_suspend

static const struct weft_wire_field suspend[] = {
    ROW("id", ID, id, "The execution", REQUIRED),
    ROW("epoch", I32, epoch, "The epoch of the lease, from the claim", REQUIRED, .max = INT32_MAX),
    ROW("waitpoints", LIST, waitpoint, "Where the signals arrive", COUNT(waitpoint_count),
        .of = &weft_wire_suspend_at, .max = WEFT_WAITPOINTS_MAX),
    ROW("condition", RAW, condition,
        "Which signals let it go on: see docs/waiting.md. Default: one at every waitpoint"),
    ROW("timeout_ms", I64, timeout_ms, "How long from now it waits", CHECKED, .min = 1,
        .max = WEFT_DELAY_MAX_MS),
    ROW("timeout_at", MOMENT, timeout_us, "The same as a moment", .rival = "timeout_ms"),
    ROW("on_timeout", WORD, on_timeout, "What becomes of it then. Default: fail",
        WORDS(weft_wire_on_timeouts)),
    ROW("reason", TEXT, reason, "What it waits for, for people"),
    ROW("resume_delay_ms", I64, resume_delay_ms, "From the resumption to ready. Default: 0",
        .max = WEFT_DELAY_MAX_MS),
};
REQUEST(suspend, "Suspend", "Gives an execution back until signals have come.");

enum { OF_THE_LEASE = 2 }; /* id and epoch */
const struct weft_wire_type weft_wire_suspend_file = {
    .field = suspend + OF_THE_LEASE,
    .count = WEFT_LEN(suspend) - OF_THE_LEASE,
    .size = sizeof(OF),
    .name = "SuspendFile",
    .about = "The same without the lease.",
};
#undef OF

#define OF struct weft_waitpoint

static const struct weft_wire_field waitpoint_made[] = {
    ROW("id", ID, id, "The waitpoint", REQUIRED),
    ROW("name", TEXT, name, "Its name", REQUIRED),
    ROW("token", TEXT, token, "For POST /v1/signals/TOKEN", REQUIRED),
};
ANSWER(waitpoint_made, "WaitpointMade", "A waitpoint and the right to send signals to it.");

static const struct weft_wire_field waitpoint[] = {
    ROW("id", ID, id, "The waitpoint", REQUIRED),
    ROW("name", TEXT, name, "Its name", REQUIRED),
    ROW("state", WORD, state,
        "pending: no suspension has taken it; open: it takes signals; closed: it does not",
        WORDS(weft_wire_waitpoint_states)),
    ROW("created_at", MOMENT, created_us, "When it was made"),
    ROW("expires_at", MOMENT, expires_us, "When it closes if it is still pending"),
    ROW("signals", I32, signals, "How many have come", .max = INT32_MAX),
    ROW("key_id", I32, key_id, "The signing key of its first token", .max = INT32_MAX),
};
ANSWER(waitpoint, "Waitpoint", "A place where signals arrive.");

static const struct weft_wire_field waitpoint_token[] = {
    ROW("token", TEXT, token, "For POST /v1/signals/TOKEN", REQUIRED),
};
ANSWER(waitpoint_token, "WaitpointToken", "The right to send signals to a waitpoint.");
#undef OF

#define OF struct weft_signal_info

static const struct weft_wire_field signal_info[] = {
    ROW("waitpoint", ID, waitpoint, "Where it arrived", REQUIRED),
    ROW("waitpoint_name", TEXT, waitpoint_name, "The name of that"),
    ROW("n", I32, n, "Its number there, from 1", .max = INT32_MAX),
    ROW("name", TEXT, name, "What it says"),
    ROW("source", TEXT, source, "Who sent it, as the sender says"),
    ROW("key", TEXT, key, "Its key; a second one with it is a duplicate"),
    ROW("at", MOMENT, at_us, "When it came"),
    BYTES("payload", , payload, "As it was given; absent when none was"),
    ROW("content_type", CONTENT_TYPE, content_type, "Of the payload"),
};
ANSWER(signal_info, "Signal", "A signal that has come.");
#undef OF

#define OF struct weft_suspend_result

static const struct weft_wire_field suspended[] = {
    ROW("state", STATE, state, "suspended, or running when it is satisfied", REQUIRED),
    ROW("satisfied", BOOL, satisfied,
        "Signals that had come satisfy the condition: the worker keeps its lease and goes on"),
    ROW("waitpoints", LIST, waitpoint, "In the order of the request; none when it is satisfied",
        COUNT(waitpoint_count), .of = &weft_wire_waitpoint_made, .max = WEFT_WAITPOINTS_MAX),
    ROW("signals", LIST, signal, "When it is satisfied", COUNT(signal_count),
        .of = &weft_wire_signal_info),
    ROW("more", BOOL, more_signals, "There are more than 64 KiB of them"),
};
ANSWER(suspended, "Suspended", "The execution waits, or goes on at once.");
#undef OF

/* ---- Pending waitpoints ---------------------------------------------------------------------- */

#define OF struct weft_waitpoint_new

static const struct weft_wire_field waitpoint_new[] = {
    ROW("id", ID, id, "The execution", REQUIRED),
    ROW("epoch", I32, epoch, "The epoch of the lease, from the claim", REQUIRED, .max = INT32_MAX),
    ROW("name", TEXT, name, "A pending waitpoint of this name is given again", REQUIRED),
    ROW("expires_ms", I64, expires_ms, "It closes then. Default: with its execution", CHECKED,
        .min = 1, .max = WEFT_DELAY_MAX_MS),
};
REQUEST(waitpoint_new, "WaitpointNew", "Makes a waitpoint before the execution is suspended.");
#undef OF

#define OF struct weft_waitpoint_result

static const struct weft_wire_field waitpoint_pending_of[] = {
    ROW("id", ID, waitpoint.id, "The waitpoint", REQUIRED),
    ROW("name", TEXT, waitpoint.name, "Its name", REQUIRED),
    ROW("token", TEXT, waitpoint.token, "For POST /v1/signals/TOKEN", REQUIRED),
    ROW("expires_at", MOMENT, waitpoint.expires_us, "When it closes if it is still pending"),
};
static const struct weft_wire_field waitpoint_pending[] = {
    OBJECT("waitpoint", waitpoint_pending_of, "The waitpoint"),
};
ANSWER(waitpoint_pending, "WaitpointPending", "The waitpoint is there.");
#undef OF

/* ---- Signals --------------------------------------------------------------------------------- */

#define OF struct weft_signal

static const struct weft_wire_field signal[] = {
    ROW("token", TEXT, token, "Of the waitpoint", REQUIRED),
    ROW("name", TEXT, name, "What it says; conditions may ask for it"),
    ROW("source", TEXT, source, "Who sends it; conditions may count these"),
    ROW("key", TEXT, key, "A second signal with it is a duplicate"),
    BYTES("payload", , payload, "Any JSON; it is kept byte for byte"),
    ROW("content_type", CONTENT_TYPE, content_type,
        "Of the payload. Default: application/json, or application/octet-stream with "
        "payload_base64"),
};
REQUEST(signal, "SignalSent", "An answer of the outside.");
#undef OF

#define OF struct weft_signal_result

static const struct weft_wire_field signalled[] = {
    ROW("waitpoint", ID, waitpoint, "Where it arrived", REQUIRED),
    ROW("effect", WORD, effect,
        "resumed: the execution goes on; recorded: it counts, more is needed; buffered: the "
        "execution is not suspended yet; duplicate: its key has come before; ignored: kept, but "
        "the condition does not ask for it",
        WORDS(effects)),
    ROW("first_effect", WORD, first, "Of a duplicate: what the first one did", OR_NULL,
        WORDS(effects)),
};
ANSWER(signalled, "Signalled", "What a signal did.");
#undef OF

/* ---- What an execution waits for ------------------------------------------------------------- */

#define OF struct weft_waiting

static const struct weft_wire_field waiting_suspension[] = {
    ROW("at", MOMENT, suspended_us, "Since when it is suspended"),
    ROW("reason", TEXT, reason, "What it waits for, as its worker says"),
    ROW("condition", RAW, condition, "Which signals let it go on: see docs/waiting.md"),
    ROW("timeout_at", MOMENT, timeout_us, "When it times out; null: never, or it has"),
    ROW("on_timeout", WORD, on_timeout, "What becomes of it then", WORDS(weft_wire_on_timeouts)),
    ROW("resume_delay_ms", I64, resume_delay_ms, "From the resumption to ready",
        .max = WEFT_DELAY_MAX_MS),
    ROW("escalated_at", MOMENT, escalated_us, "When its timeout left it to an operator"),
};
static const struct weft_wire_field waiting_resumed[] = {
    ROW("by", WORD, resumed_by, "What let it go on", WORDS(weft_wire_resumed_by)),
    ROW("at", MOMENT, resumed_us, "When"),
    ROW("reason", TEXT, resume_reason, "As the operator said"),
};
static const struct weft_wire_field waiting[] = {
    OBJECT("suspension", waiting_suspension, "Null: it is not suspended",
           .flags = WEFT_WIRE_BY_FLAG, COUNT(suspended)),
    ROW("waitpoints", LIST, waitpoint, "Of the suspension", COUNT(waitpoint_count),
        .of = &weft_wire_waitpoint, .max = WEFT_WAITPOINTS_MAX),
    OBJECT("resumed", waiting_resumed, "How it went on the last time; null: it never has",
           .flags = WEFT_WIRE_BY_FLAG, COUNT(resumed)),
};
ANSWER(waiting, "Waiting", "What an execution waits for, and how it went on.");
#undef OF

/* ---- Signing keys ---------------------------------------------------------------------------- */

#define OF struct weft_signing_key_info

static const struct weft_wire_field signing_key[] = {
    ROW("key_id", I32, key_id, "Its number", REQUIRED, .max = INT32_MAX),
    ROW("created_at", MOMENT, created_us, "When it was made"),
    ROW("retires_at", MOMENT, retires_us, "Until then its tokens are good; null: no end is set"),
    ROW("current", BOOL, current, "It signs new tokens"),
};
ANSWER(signing_key, "SigningKey", "A key that signs or verifies signal tokens.");
#undef OF

#define OF struct weft_key_rotation

static const struct weft_wire_field key_rotation[] = {
    ROW("grace_ms", I64, grace_ms,
        "How long tokens of the keys before stay good. Default: 86400000, a day", CHECKED,
        .max = WEFT_DELAY_MAX_MS, .normally = 86400000),
};
REQUEST(key_rotation, "KeyRotation", "Makes a new signing key.");
#undef OF
