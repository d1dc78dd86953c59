/* SPDX-License-Identifier: Apache-2.0 */

/* Bad input to leases and steering: see case_input.c. */

#include "conformance.h"
#include "direct.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/limits.h"
#include "engine/job/claim.h"
#include "engine/job/leases.h"
#include "weft/weft.h"

static char class_65[WEFT_CLASS_MAX + 2], reason_513[WEFT_REASON_MAX + 2];
static char type_129[WEFT_CONTENT_TYPE_MAX + 2], large[WEFT_PAYLOAD_MAX + 1];

static void fill_all(void)
{
    memset(class_65, 'x', sizeof(class_65) - 1);
    memset(reason_513, 'x', sizeof(reason_513) - 1);
    memset(type_129, 'x', sizeof(type_129) - 1);
}

/* What every lease operation must refuse about an item, and with which words. */
struct expected {
    const char *name;
    enum weft_rc rc;
    const char *field;
};

static void expect_answers(const struct weft_lease_answer *answer, const struct expected *want,
                           size_t stride, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        expect_err(&answer[i].err, want->rc, want->field, want->name);
        want = (const struct expected *)((const char *)want + stride);
    }
    is_int(answer[count].err.rc, WEFT_OK, "the good one at the end of the call is carried out");
}

CASE(input_renew)
{
    static const struct {
        struct expected want;
        struct weft_renew item;
    } row[] = {
        {{"epoch 0", WEFT_INVALID_VALUE, "epoch"}, {.epoch = 0}},
        {{"epoch negative", WEFT_INVALID_VALUE, "epoch"}, {.epoch = -1}},
        {{"lease of 999 ms", WEFT_INVALID_VALUE, "lease_ms"}, {.epoch = 1, .lease_ms = 999}},
        {{"lease above a day", WEFT_INVALID_VALUE, "lease_ms"}, {.epoch = 1, .lease_ms = 86400001}},
        {{"percent 101", WEFT_INVALID_VALUE, "progress.percent"},
         {.epoch = 1, .has_progress = true, .percent = 101}},
        {{"percent -1", WEFT_INVALID_VALUE, "progress.percent"},
         {.epoch = 1, .has_progress = true, .percent = -1}},
        {{"note not UTF-8", WEFT_INVALID_VALUE, "progress.note"},
         {.epoch = 1, .has_progress = true, .note = "\xff"}},
        {{"note with a newline", WEFT_INVALID_VALUE, "progress.note"},
         {.epoch = 1, .has_progress = true, .note = "a\nb"}},
        {{"note too long", WEFT_TOO_LARGE, "progress.note"},
         {.epoch = 1, .has_progress = true, .note = reason_513}},
        {{"an epoch that is to come", WEFT_FENCED, "epoch"}, {.epoch = 2}},
    };
    enum { ROWS = WEFT_LEN(row) };
    fill_all();
    (void)submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    struct weft_renew item[ROWS + 1];
    struct weft_lease_answer answer[ROWS + 1];
    for (size_t i = 0; i < ROWS; i++) {
        item[i] = row[i].item;
        item[i].id = lease.id;
    }
    item[ROWS] = (struct weft_renew){
        .id = lease.id, .epoch = 1, .lease_ms = 86400000, .has_progress = true, .percent = 100};
    is_int(engine_renew(f->b, item, ROWS + 1, answer, &f->err), WEFT_OK, "the call succeeds");
    expect_answers(answer, &row[0].want, sizeof(row[0]), ROWS);
    struct weft_execution now = describe(f, &lease.id);
    is_int(now.percent, 100, "progress is that of the good one");
    is_int(now.lease_expires_us, f->now_us + 86400 * WEFT_SECOND,
           "the lease is that of the good one");
}

CASE(input_complete)
{
    static const struct {
        struct expected want;
        struct weft_complete item;
    } row[] = {
        {{"epoch 0", WEFT_INVALID_VALUE, "epoch"}, {.epoch = 0}},
        {{"result too large", WEFT_TOO_LARGE, "result"},
         {.epoch = 1, .result = large, .result_size = sizeof(large)}},
        {{"result NULL with a size", WEFT_INVALID_VALUE, "result"}, {.epoch = 1, .result_size = 1}},
        {{"content type too long", WEFT_TOO_LARGE, "content_type"},
         {.epoch = 1, .result = "1", .result_size = 1, .content_type = type_129}},
        {{"content type with a line break", WEFT_INVALID_VALUE, "content_type"},
         {.epoch = 1, .result = "1", .result_size = 1, .content_type = "a\r\nb"}},
        {{"empty content type", WEFT_INVALID_VALUE, "content_type"},
         {.epoch = 1, .result = "1", .result_size = 1, .content_type = ""}},
    };
    enum { ROWS = WEFT_LEN(row) };
    fill_all();
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, ROWS + 1);
    struct weft_claim_result got = claim(f, f->a, ROWS + 1);
    struct weft_complete item[ROWS + 1];
    struct weft_lease_answer answer[ROWS + 1];
    for (size_t i = 0; i < ROWS; i++) {
        item[i] = row[i].item;
        item[i].id = got.item[i].id;
    }
    item[ROWS] = (struct weft_complete){.id = got.item[ROWS].id, .epoch = 1};
    is_int(engine_complete(f->b, item, ROWS + 1, answer, &f->err), WEFT_OK, "the call succeeds");
    expect_answers(answer, &row[0].want, sizeof(row[0]), ROWS);
    is_int(count_rows(f, &(struct weft_filter){.state = WEFT_STATE_RUNNING}), ROWS,
           "the others run on");
}

CASE(input_fail)
{
    static const struct {
        struct expected want;
        struct weft_failure item;
    } row[] = {
        {{"epoch 0", WEFT_INVALID_VALUE, "epoch"}, {.epoch = 0}},
        {{"class too long", WEFT_TOO_LARGE, "class"}, {.epoch = 1, .error_class = class_65}},
        {{"class not UTF-8", WEFT_INVALID_VALUE, "class"}, {.epoch = 1, .error_class = "\xff"}},
        {{"class with a tab", WEFT_INVALID_VALUE, "class"}, {.epoch = 1, .error_class = "a\t"}},
        {{"message not UTF-8", WEFT_INVALID_VALUE, "message"}, {.epoch = 1, .message = "\xc3("}},
        {{"retry_after below -1", WEFT_INVALID_VALUE, "retry_after_ms"},
         {.epoch = 1, .retry_after_ms = -2}},
        {{"retry_after beyond all", WEFT_INVALID_VALUE, "retry_after_ms"},
         {.epoch = 1, .retry_after_ms = INT64_MAX}},
    };
    enum { ROWS = WEFT_LEN(row), LONG = 3 * WEFT_MESSAGE_MAX };
    fill_all();
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, ROWS + 1);
    struct weft_claim_result got = claim(f, f->a, ROWS + 1);
    struct weft_failure item[ROWS + 1];
    struct weft_lease_answer answer[ROWS + 1];
    for (size_t i = 0; i < ROWS; i++) {
        item[i] = row[i].item;
        item[i].id = got.item[i].id;
    }
    /* Characters of three bytes, so that the limit falls inside one. Line breaks are welcome. */
    char *message = weft_arena_alloc(f->arena, LONG + 2, 1);
    message[0] = '\n';
    for (size_t i = 0; i < LONG; i++)
        message[1 + i] = "\xe2\x82\xac"[i % 3];
    item[ROWS] = (struct weft_failure){
        .id = got.item[ROWS].id, .epoch = 1, .message = message, .permanent = true};
    is_int(engine_fail(f->b, item, ROWS + 1, answer, &f->err), WEFT_OK, "the call succeeds");
    expect_answers(answer, &row[0].want, sizeof(row[0]), ROWS);
    is_int(count_rows(f, &(struct weft_filter){.state = WEFT_STATE_RUNNING}), ROWS,
           "the others run on");
    struct weft_execution end = describe(f, &got.item[ROWS].id);
    is_str(end.error_class, "error", "the class has a default");
    is_int(strlen(end.error_message), 1 + (WEFT_MESSAGE_MAX - 1) / 3 * 3,
           "a long message is cut between characters");
}

CASE(input_put_back)
{
    static const struct {
        struct expected want;
        struct weft_put_back item;
    } row[] = {
        {{"epoch 0", WEFT_INVALID_VALUE, "epoch"}, {.epoch = 0}},
        {{"negative delay", WEFT_INVALID_VALUE, "delay_ms"}, {.epoch = 1, .delay_ms = -1}},
        {{"delay beyond ten years", WEFT_INVALID_VALUE, "delay_ms"},
         {.epoch = 1, .delay_ms = WEFT_DELAY_MAX_MS + 1}},
    };
    enum { ROWS = WEFT_LEN(row) };
    static const enum weft_put_back_kind kind[] = {WEFT_PUT_BACK_DELAY, WEFT_PUT_BACK_RELEASE};
    for (size_t k = 0; k < WEFT_LEN(kind); k++) {
        struct weft_id id = submit_job(f);
        struct weft_claimed lease = claim_one(f, f->a);
        struct weft_put_back item[ROWS + 1];
        struct weft_lease_answer answer[ROWS + 1];
        for (size_t i = 0; i < ROWS; i++) {
            item[i] = row[i].item;
            item[i].id = lease.id;
        }
        item[ROWS] = (struct weft_put_back){
            .id = lease.id, .epoch = lease.epoch, .delay_ms = WEFT_DELAY_MAX_MS};
        is_int(engine_put_back(f->b, kind[k], item, ROWS + 1, answer, &f->err), WEFT_OK,
               "the call succeeds");
        expect_answers(answer, &row[0].want, sizeof(row[0]), ROWS);
        is_int(state_of(f, &id), WEFT_STATE_DELAYED, "ten years are allowed");
    }
}

CASE(input_unknown_lease)
{
    struct weft_claimed lease = {.epoch = 1};
    weft_id_new(&lease.id, f->now_us, -1);
    const struct weft_lease_answer answer[] = {
        renew(f, f->a, &lease),
        complete(f, f->a, &lease, NULL),
        fail(f, f->a, &lease, "net"),
        put_back(f, WEFT_PUT_BACK_DELAY, &lease, 10),
        put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0),
    };
    static const char *const name[] = {"renew", "complete", "fail", "delay", "release"};
    for (size_t i = 0; i < WEFT_LEN(answer); i++)
        expect_err(&answer[i].err, WEFT_NOT_FOUND, "id", name[i]);
}

CASE(input_steer)
{
    static const struct {
        struct expected want;
        enum weft_steer_kind kind;
        struct weft_steer item;
    } row[] = {
        {{"reason not UTF-8", WEFT_INVALID_VALUE, "reason"}, WEFT_STEER_CANCEL, {.reason = "\xff"}},
        {{"reason too long", WEFT_TOO_LARGE, "reason"}, WEFT_STEER_REVOKE, {.reason = reason_513}},
        {{"priority too high", WEFT_INVALID_VALUE, "priority"},
         WEFT_STEER_REPRIORITIZE,
         {.priority = 32768}},
        {{"priority too low", WEFT_INVALID_VALUE, "priority"},
         WEFT_STEER_REPRIORITIZE,
         {.priority = INT32_MIN}},
        {{"deadline now", WEFT_INVALID_VALUE, "deadline_at"},
         WEFT_STEER_SET_DEADLINE,
         {.deadline_us = START_US}},
        {{"deadline after 9999", WEFT_INVALID_VALUE, "deadline_at"},
         WEFT_STEER_SET_DEADLINE,
         {.deadline_us = WEFT_MOMENT_MAX_US + 1}},
    };
    fill_all();
    struct weft_id id = submit_job(f), unknown;
    weft_id_new(&unknown, f->now_us, -1);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_steer item = row[i].item;
        item.id = id;
        struct weft_steered answer = steer(f, row[i].kind, &item);
        expect_err(&answer.err, row[i].want.rc, row[i].want.field, row[i].want.name);
        ok(!answer.changed, "%s: nothing changed", row[i].want.name);
    }
    for (enum weft_steer_kind kind = WEFT_STEER_CANCEL; kind <= WEFT_STEER_SET_DEADLINE; kind++) {
        struct weft_steered answer = steer(f, kind, &(struct weft_steer){.id = unknown});
        expect_err(&answer.err, WEFT_NOT_FOUND, "id", "an unknown id");
    }
    struct weft_execution now = describe(f, &id);
    ok(now.state == WEFT_STATE_READY && now.priority == 0 && now.deadline_us == 0,
       "refused calls leave the execution as it was");
}
