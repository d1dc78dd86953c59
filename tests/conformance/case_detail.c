/* SPDX-License-Identifier: Apache-2.0 */

/* Details of failures: any JSON, kept byte for byte, shown with the error. */

#include "conformance.h"

#include "base/arena.h"
#include "engine/job/detail.h"

#include <string.h>

static const char detail[] =
    "{ \"status\" :503,\"body\":[1.0,1e3, \"\\u00e9\\ud83d\\ude00 caf\xc3\xa9\"], \"a\":1, "
    "\"a\":2}";

static struct weft_lease_answer fail_with(struct fixture *f, const struct weft_claimed *lease,
                                          const char *text, bool permanent)
{
    return fail_as(f, f->a, lease,
                   &(struct weft_failure){.error_class = "http_503",
                                          .message = "no",
                                          .detail = text,
                                          .permanent = permanent,
                                          .retry_after_ms = permanent ? 0 : -1});
}

CASE(detail_of_an_outcome_comes_back_as_it_was)
{
    struct weft_claimed lease = start(f, NULL);
    is_int(fail_with(f, &lease, detail, true).state, WEFT_STATE_FAILED, "it has failed");
    is_str(describe(f, &lease.id).error_detail, detail, "byte for byte");
    struct weft_attempts list = attempts(f, &lease.id);
    is_int(list.count, 1, "attempts");
    is_str(list.item[0].error_detail, detail, "of the attempt too");
    is_int(fail_with(f, &lease, "{\"other\":1}", true).err.rc, WEFT_OK, "a repeat is answered");
    is_str(describe(f, &lease.id).error_detail, detail, "and changes nothing");
}

CASE(detail_of_an_attempt_stays_with_it)
{
    struct weft_claimed first = start(f, NULL);
    is_int(fail_with(f, &first, detail, false).state, WEFT_STATE_READY, "it is tried again");
    ok(!describe(f, &first.id).error_detail, "an execution that lives has no error");
    struct weft_claimed second = take(f, f->a, first.lane);
    is_int(fail_with(f, &second, NULL, false).state, WEFT_STATE_READY, "a failure without one");
    struct weft_claimed third = take(f, f->a, first.lane);
    is_int(fail_with(f, &third, "null", true).state, WEFT_STATE_FAILED, "a null");
    is_str(describe(f, &first.id).error_detail, "null", "is a detail in the library");
    struct weft_attempts list = attempts(f, &first.id);
    is_int(list.count, 3, "attempts");
    is_str(list.item[0].error_detail, detail, "the first has its own");
    ok(!list.item[1].error_detail, "the second has none");
    is_str(list.item[2].error_detail, "null", "the third has its own");
    (void)steer_id(f, WEFT_STEER_REPLAY, &first.id);
    ok(!describe(f, &first.id).error_detail, "a replayed execution has no error");
    is_str(attempts(f, &first.id).item[2].error_detail, "null", "its history has it still");
}

CASE(detail_goes_with_its_execution)
{
    struct weft_claimed lease = start(f, NULL);
    is_int(fail_with(f, &lease, detail, true).state, WEFT_STATE_FAILED, "it has failed");
    forward_ms(f, (int64_t)31 * 86400 * 1000);
    (void)run_pass(f, f->b, WEFT_SCANNER_RETENTION);
    is_int(state_of(f, &lease.id), WEFT_STATE_NONE, "retention has removed it");
    /* A detail that is left would be found by the checks behind the case. */
}

CASE(detail_is_shown_in_lists)
{
    struct weft_claimed lease = start(f, NULL);
    (void)fail_with(f, &lease, "[1]", true);
    const struct weft_listing listing = {.filter = {.state = WEFT_STATE_FAILED, .ns = "default"}};
    struct weft_read_page page = {0};
    is_int(weft_engine_list(f->b, &listing, f->arena, &page, &f->err), WEFT_OK, "the list");
    is_int(page.count, 1, "items");
    is_str(page.item[0].error_detail, "[1]", "with the detail");
}

CASE(detail_that_is_not_allowed_is_refused)
{
    static char large[WEFT_DETAIL_MAX + 2];
    memset(large, ' ', sizeof(large) - 1);
    large[0] = '1';
    static const struct {
        const char *text;
        enum weft_rc rc;
    } row[] = {{"", WEFT_INVALID_VALUE},
               {"{", WEFT_INVALID_VALUE},
               {"{} {}", WEFT_INVALID_VALUE},
               {"\"\xff\"", WEFT_INVALID_VALUE},
               {large, WEFT_TOO_LARGE}};
    struct weft_claimed lease = start(f, NULL);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_lease_answer answer = fail_with(f, &lease, row[i].text, true);
        is_int(answer.err.rc, row[i].rc, "row %zu is refused", i);
        is_str(answer.err.field, "detail", "row %zu names the field", i);
    }
    large[WEFT_DETAIL_MAX] = '\0';
    is_int(fail_with(f, &lease, large, true).err.rc, WEFT_OK, "64 KiB are allowed");
    is_int(strlen(describe(f, &lease.id).error_detail), WEFT_DETAIL_MAX, "and come back");
}

/* Many large ones in one call take several transactions; a page of them stays within bounds. */
CASE(details_of_many_are_bounded)
{
    enum { COUNT = 200 };
    char *large = weft_arena_alloc(f->arena, WEFT_DETAIL_MAX + 1, 1);
    memset(large, '1', WEFT_DETAIL_MAX);
    large[0] = large[WEFT_DETAIL_MAX - 1] = '"';
    struct weft_id *id = submit_copies(f, &(struct weft_spec){.kind = "job"}, COUNT);
    struct weft_failure *item = weft_new_array(f->arena, struct weft_failure, COUNT);
    struct weft_lease_result *answer = weft_new_array(f->arena, struct weft_lease_result, COUNT);
    struct weft_claim_result leases = claim(f, f->a, COUNT);
    is_int(leases.count, COUNT, "claimed");
    for (size_t i = 0; i < leases.count; i++)
        item[i] = (struct weft_failure){.id = leases.item[i].id,
                                        .epoch = leases.item[i].epoch,
                                        .permanent = true,
                                        .detail = large};
    is_int(weft_engine_fail(f->a, item, COUNT, f->arena, answer, &f->err), WEFT_OK, "they fail");
    struct weft_execution *shown = weft_new_array(f->arena, struct weft_execution, COUNT);
    is_int(weft_engine_describe(f->b, "default", id, COUNT, f->arena, shown, &f->err), WEFT_OK,
           "they are read");
    size_t with = 0;
    for (size_t i = 0; i < COUNT; i++)
        with += shown[i].error_detail != NULL;
    is_int(with, 128, "8 MiB of details are shown");
    is_str(describe(f, &id[COUNT - 1]).error_detail, large, "one alone has its own");
}
