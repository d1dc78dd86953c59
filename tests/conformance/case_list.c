/* SPDX-License-Identifier: Apache-2.0 */

/* Lists: newest first, each row exactly once whatever happens between two pages, filters exact. */

#include "conformance.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/limits.h"
#include "engine/job/claim.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "weft/weft.h"

#include <stdlib.h>

CASE(list_empty)
{
    struct weft_read_page page = list_page(f, &(struct weft_listing){0});
    ok(page.count == 0 && !page.next, "an empty store has one empty page");
    page = list_page(f, &(struct weft_listing){.filter = {.ns = "nowhere"}});
    ok(page.count == 0 && !page.next, "an unknown namespace has one empty page");
    (void)submit_job(f);
    static const struct weft_tag tag = {"k", "v"};
    static const struct weft_filter row[] = {
        {.lane = "nowhere"}, {.kind = "nothing"},           {.tenant = "absent"},
        {.key = "none"},     {.state = WEFT_STATE_BLOCKED}, {.state = WEFT_STATE_SKIPPED},
        {.tag = &tag},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        page = list_page(f, &(struct weft_listing){.filter = row[i]});
        ok(page.count == 0 && !page.next, "filter %zu fits nothing: one empty page", i);
    }
}

CASE(list_newest_first)
{
    struct weft_id id[60];
    for (size_t i = 0; i < WEFT_LEN(id); i++) {
        id[i] = submit_job(f);
        forward_ms(f, 1);
    }
    struct weft_read_page page = list_page(f, &(struct weft_listing){0});
    is_int(page.count, 50, "a page has 50 items by default");
    size_t wrong = 0;
    for (size_t i = 0; i < page.count; i++)
        wrong += !same_id(&page.item[i].id, &id[59 - i]);
    is_int(wrong, 0, "newest first");
    ok(page.next, "there is more");
    page = list_page(f, &(struct weft_listing){.after = page.next});
    is_int(page.count, 10, "the second page has the rest");
    ok(page.count && same_id(&page.item[0].id, &id[9]), "the cursor is exclusive");
    ok(!page.next, "the second page is the last");
}

/* ---- Paging while the world turns ------------------------------------------------------------ */

enum { ROWS = 2345 };

static void submit_rows(struct fixture *f, size_t count)
{
    struct weft_spec *spec = weft_new_array(f->arena, struct weft_spec, count);
    struct weft_tag *tag = weft_new_array(f->arena, struct weft_tag, count);
    for (size_t i = 0; i < count; i++) {
        tag[i] = (struct weft_tag){"n", weft_arena_printf(f->arena, "%zu", i)};
        spec[i] = (struct weft_spec){
            .kind = "job", .tags = &tag[i], .tag_count = 1, .delay_ms = i % 5 ? 0 : 60000};
    }
    (void)submit_many(f, f->a, spec, count);
}

/* Claims, ends, cancels, adds: between two pages anything may happen to any row. */
static void stir(struct fixture *f, size_t turn)
{
    struct weft_claim_result got = claim(f, f->a, 5);
    for (size_t i = 0; i < got.count; i++) {
        if (i % 3 == 0)
            (void)complete(f, f->a, &got.item[i], NULL);
        else if (i % 3 == 1)
            (void)steer(f, WEFT_STEER_CANCEL, &(struct weft_steer){.id = got.item[i].id});
    }
    if (turn % 2 == 0) {
        forward_ms(f, 1); /* a newer row sorts before the cursor and must not shift what follows */
        (void)submit_ok(f, &(struct weft_spec){.kind = "newer", .lane = "other"});
    }
}

/* Pages through everything, stirring every so often; each of `rows` must be seen once. */
static void page_through(struct fixture *f, uint32_t limit, size_t rows, size_t stir_every)
{
    unsigned char *seen = weft_arena_alloc(f->arena, rows, 1);
    struct weft_listing listing = {.filter = {.kind = "job"}, .limit = limit};
    size_t total = 0, pages = 0, disorder = 0, large = 0;
    struct weft_id last;
    memset(&last, 0xff, sizeof(last));
    do {
        struct weft_arena *arena = weft_arena_new();
        struct weft_read_page page = {0};
        listing.filter.ns = "default";
        if (weft_engine_list(f->b, &listing, arena, &page, &f->err))
            ok(false, "list: %s", f->err.text);
        for (size_t i = 0; i < page.count; i++) {
            disorder += weft_id_cmp(&page.item[i].id, &last) >= 0;
            last = page.item[i].id;
            size_t n = strtoul(page.item[i].tags[0].value, NULL, 10);
            total += n < rows && seen[n]++ == 0;
            disorder += n >= rows || seen[n] > 1;
        }
        large += page.count > limit;
        listing.after = weft_arena_strdup(f->arena, page.next);
        weft_arena_free(arena);
        if (++pages % stir_every == 0)
            stir(f, pages);
    } while (listing.after && pages < rows + 10);
    is_int(total, rows, "pages of %u: every row is seen", limit);
    is_int(disorder, 0, "pages of %u: once, in order", limit);
    is_int(large, 0, "pages of %u: none is larger", limit);
}

CASE(list_pages_of_1000)
{
    submit_rows(f, ROWS);
    page_through(f, 1000, ROWS, 1);
}

CASE(list_pages_of_7)
{
    submit_rows(f, ROWS);
    page_through(f, 7, ROWS, 10);
}

CASE(list_pages_of_1)
{
    submit_rows(f, ROWS);
    page_through(f, 1, ROWS, 100);
}

/* Keys decide about their ids, which so do not follow the order of submission. */
CASE(list_pages_of_keyed)
{
    enum { KEYS = 100 };
    bool seen[KEYS] = {false};
    for (size_t i = 0; i < KEYS; i++)
        (void)submit_ok(
            f, &(struct weft_spec){.kind = "job", .key = weft_arena_printf(f->arena, "%zu", i)});
    struct weft_listing listing = {.limit = 7};
    size_t total = 0, pages = 0;
    do {
        struct weft_read_page page = list_page(f, &listing);
        for (size_t i = 0; i < page.count; i++) {
            size_t n = strtoul(page.item[i].key, NULL, 10);
            total += n < KEYS && !seen[n];
            seen[n % KEYS] = true;
        }
        listing.after = page.next;
    } while (listing.after && ++pages < KEYS);
    is_int(total, KEYS, "every row of one millisecond is seen");
    is_int(pages, KEYS / 7, "no row is on two pages");
}

/* A filter on a state may lose or win rows meanwhile, but never shows one twice or out of order. */
CASE(list_pages_of_a_state)
{
    submit_rows(f, 300);
    struct weft_listing listing = {.filter = {.state = WEFT_STATE_READY}, .limit = 10};
    struct weft_id last;
    memset(&last, 0xff, sizeof(last));
    size_t wrong = 0, total = 0, pages = 0;
    do {
        struct weft_read_page page = list_page(f, &listing);
        for (size_t i = 0; i < page.count; i++) {
            wrong +=
                weft_id_cmp(&page.item[i].id, &last) >= 0 || page.item[i].state != WEFT_STATE_READY;
            last = page.item[i].id;
        }
        total += page.count;
        listing.after = page.next;
        stir(f, ++pages);
    } while (listing.after && pages < 100);
    is_int(wrong, 0, "only ready ones, in order, none twice");
    /* 240 were ready, at most five of them are taken between two pages. */
    ok(total <= 240 && total >= 240 - 5 * pages, "every execution that stayed ready is listed: %zu",
       total);
}

/* ---- Filters --------------------------------------------------------------------------------- */

static const struct weft_tag red = {"color", "red"}, blue = {"color", "blue"};

static void submit_filterable(struct fixture *f)
{
    static const struct weft_tag two[] = {{"size", "red"}, {"color", "blue"}};
    const struct weft_spec spec[] = {
        {.kind = "mail", .tenant = "acme", .tags = &red, .tag_count = 1, .key = "k1"},
        {.kind = "mail", .lane = "fast", .tenant = "acme"},
        {.kind = "sms", .lane = "fast", .tags = two, .tag_count = 2},
        {.kind = "sms", .tenant = "zeta", .delay_ms = 1000, .tags = &red, .tag_count = 1},
        {.kind = "mail", .ns = "other", .tenant = "acme", .tags = &red, .tag_count = 1},
    };
    (void)submit_many(f, f->a, spec, WEFT_LEN(spec));
    static const char *const fast[] = {"fast"};
    struct weft_claim_result got = claim_with(
        f, f->a, &(struct weft_claim){.worker = "w", .max = 2, .lanes = fast, .lane_count = 1});
    for (size_t i = 0; i < got.count; i++)
        if (strcmp(got.item[i].kind, "sms") == 0)
            (void)complete(f, f->a, &got.item[i], NULL);
}

CASE(list_filters)
{
    static const struct weft_tag size_red = {"size", "red"}, part = {"color", "re"};
    static const struct {
        const char *name;
        struct weft_filter filter;
        size_t count;
    } row[] = {
        {"none", {0}, 4},
        {"namespace", {.ns = "other"}, 1},
        {"lane", {.lane = "fast"}, 2},
        {"default lane", {.lane = "default"}, 2},
        {"kind", {.kind = "mail"}, 2},
        {"tenant", {.tenant = "acme"}, 2},
        {"ready", {.state = WEFT_STATE_READY}, 1},
        {"delayed", {.state = WEFT_STATE_DELAYED}, 1},
        {"running", {.state = WEFT_STATE_RUNNING}, 1},
        {"succeeded", {.state = WEFT_STATE_SUCCEEDED}, 1},
        {"failed", {.state = WEFT_STATE_FAILED}, 0},
        {"tag", {.tag = &red}, 2},
        {"another value", {.tag = &blue}, 1},
        {"another key", {.tag = &size_red}, 1},
        {"a part of a value", {.tag = &part}, 0},
        {"key", {.key = "k1"}, 1},
        {"a part of a key", {.key = "k"}, 0},
        {"lane and kind", {.lane = "fast", .kind = "mail"}, 1},
        {"lane and tenant", {.lane = "default", .tenant = "zeta"}, 1},
        {"tenant and state", {.tenant = "acme", .state = WEFT_STATE_RUNNING}, 1},
        {"tag and state", {.tag = &red, .state = WEFT_STATE_DELAYED}, 1},
        {"tag and another state", {.tag = &blue, .state = WEFT_STATE_READY}, 0},
        {"key and all that fits",
         {.key = "k1",
          .kind = "mail",
          .lane = "default",
          .tenant = "acme",
          .tag = &red,
          .state = WEFT_STATE_READY},
         1},
        {"key and another lane", {.key = "k1", .lane = "fast"}, 0},
        {"key and another kind", {.key = "k1", .kind = "sms"}, 0},
        {"key and another tenant", {.key = "k1", .tenant = "zeta"}, 0},
        {"key and another state", {.key = "k1", .state = WEFT_STATE_RUNNING}, 0},
        {"key and another tag", {.key = "k1", .tag = &blue}, 0},
        {"key elsewhere", {.key = "k1", .ns = "other"}, 0},
        {"everything",
         {.lane = "fast", .kind = "sms", .tag = &blue, .state = WEFT_STATE_SUCCEEDED},
         1},
    };
    submit_filterable(f);
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_int(count_rows(f, &row[i].filter), row[i].count, "filter: %s", row[i].name);
}

/* What SQL, LIKE or JSON could misread must be matched as it is. */
CASE(list_tag_values)
{
    static const char *const value[] = {
        "",
        "\"",
        "\\",
        "\\\"",
        "%",
        "_",
        "a\"b",
        "a\\",
        "a'b",
        "\xc3\xa9",
        "e\xcc\x81",
        "\xf0\x9f\x92\xa9",
        "\",\"k\":\"x",
        "a/b",
        "\\u0041",
        "A",
        "{}",
        "null",
        " a",
        "k\":\"",
        "a",
    };
    struct weft_tag tag[WEFT_LEN(value)][2];
    for (size_t i = 0; i < WEFT_LEN(value); i++) {
        tag[i][0] = (struct weft_tag){"k", value[i]};
        tag[i][1] = (struct weft_tag){"kk", "x"};
        (void)submit_ok(f, &(struct weft_spec){.kind = "job", .tags = tag[i], .tag_count = 2});
    }
    for (size_t i = 0; i < WEFT_LEN(value); i++) {
        struct weft_read_page page =
            list_page(f, &(struct weft_listing){.filter = {.tag = &tag[i][0]}});
        is_int(page.count, 1, "value %zu is found once", i);
        is_str(page.item[0].tags[0].value, value[i], "value %zu reads as given", i);
    }
    static const struct weft_tag inside = {"k", "x"};
    is_int(count_rows(f, &(struct weft_filter){.tag = &inside}), 0,
           "a tag spelled out inside a value is not that tag");
    is_int(count_rows(f, &(struct weft_filter){.tag = &tag[0][1]}), WEFT_LEN(value),
           "a shared tag finds all");
}

/* A filter that fits little is looked for beyond one statement, until something fits. */
CASE(list_short_pages)
{
    enum { MANY = WEFT_SCAN_MAX + 500 };
    struct weft_id oldest = submit_ok(f, &(struct weft_spec){.kind = "rare"});
    forward_ms(f, 1);
    (void)submit_copies(f, &(struct weft_spec){.kind = "common"}, MANY);
    struct weft_listing listing = {.filter = {.kind = "rare"}, .look_us = 600 * WEFT_SECOND};
    struct weft_read_page page = list_page(f, &listing);
    ok(page.count == 1 && same_id(&page.item[0].id, &oldest),
       "a list with time left goes on after 10,000 rows that do not fit");
    ok(!page.next && !page.looked_to_us, "the list that reached the end has no cursor");
    listing.look_us = 1;
    page = list_page(f, &listing);
    ok(page.count == 0 && page.next, "a list whose time is up gives an empty page and a cursor");
    struct weft_read_page newest = list_page(f, &(struct weft_listing){.limit = 1});
    ok(page.looked_to_us > 0 && page.looked_to_us <= newest.item[0].created_us,
       "the empty page says how far the list looked");
    listing.after = page.next;
    page = list_page(f, &listing);
    ok(page.count == 1 && same_id(&page.item[0].id, &oldest), "the next page has it");
    ok(!page.next, "the page that found it is the last");
    listing = (struct weft_listing){.filter = {.kind = "common"}, .limit = 10};
    page = list_page(f, &listing);
    ok(page.count == 10 && page.next && !page.looked_to_us, "a full page needs no such word");
}

/* ---- Moments, workers, errors ---------------------------------------------------------------- */

struct timeline {
    weft_usec created_us[4], finished_us[4]; /* the last one is still running */
    struct weft_id id[4];
};

/* Four jobs, a minute between them; three fail, 10 s after each other, an hour later. */
static struct timeline make_timeline(struct fixture *f)
{
    const struct weft_policy once = {.max_attempts = 1};
    static const char *const error[] = {"net", "disk", "net"};
    struct timeline line = {0};
    for (size_t i = 0; i < 4; i++) {
        line.id[i] = submit_ok(f, &(struct weft_spec){.kind = "job", .policy = &once});
        line.created_us[i] = describe(f, &line.id[i]).created_us;
        forward_ms(f, 60000);
    }
    struct weft_claim_result got = claim_with(
        f, f->a, &(struct weft_claim){.worker = "w-1", .max = 3, .lease_ms = WEFT_LEASE_MAX_MS});
    (void)claim_with(
        f, f->a, &(struct weft_claim){.worker = "w-2", .max = 1, .lease_ms = WEFT_LEASE_MAX_MS});
    forward_ms(f, 3600000);
    for (size_t i = 0; i < got.count; i++) {
        (void)fail(f, f->a, &got.item[i], error[i]);
        line.finished_us[i] = describe(f, &got.item[i].id).finished_us;
        forward_ms(f, 10000);
    }
    return line;
}

CASE(list_by_moments_and_ends)
{
    struct timeline line = make_timeline(f);
    const struct {
        const char *name;
        struct weft_filter filter;
        size_t fit;
    } row[] = {
        {"created since the second", {.created_since_us = line.created_us[1]}, 3},
        {"created before the second", {.created_until_us = line.created_us[1]}, 1},
        {"created in between",
         {.created_since_us = line.created_us[1], .created_until_us = line.created_us[3]},
         2},
        {"created since, living only",
         {.created_since_us = line.created_us[1], .state = WEFT_STATE_RUNNING},
         1},
        {"created since, ended only",
         {.created_since_us = line.created_us[1], .state = WEFT_STATE_FAILED},
         2},
        {"ended since the second", {.finished_since_us = line.finished_us[1]}, 2},
        {"ended before the second", {.finished_until_us = line.finished_us[1]}, 1},
        {"ended since, by state",
         {.finished_since_us = line.finished_us[1], .state = WEFT_STATE_FAILED},
         2},
        {"ended after all", {.finished_since_us = line.finished_us[2] + 1}, 0},
        {"an error class", {.error_class = "net"}, 2},
        {"another one", {.error_class = "disk", .state = WEFT_STATE_FAILED}, 1},
        {"a part of one", {.error_class = "ne"}, 0},
        {"a worker", {.worker = "w-1"}, 3},
        {"a worker that holds", {.worker = "w-2", .state = WEFT_STATE_RUNNING}, 1},
        {"an unknown worker", {.worker = "w-3"}, 0},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_int(count_rows(f, &row[i].filter), row[i].fit, "%s: as many as fit", row[i].name);
}

CASE(list_by_short_id)
{
    struct timeline line = make_timeline(f);
    char whole[WEFT_ID_TEXT], text[WEFT_ID_TEXT];
    for (size_t i = 0; i < 4; i++) {
        weft_id_short_print(&line.id[i], text);
        struct weft_read_page page = list_page(f, &(struct weft_listing){.filter = {.id = text}});
        ok(page.count == 1 && same_id(&page.item[0].id, &line.id[i]) && !page.next,
           "%s finds the one", text);
    }
    weft_id_print(&line.id[2], whole);
    is_int(count_rows(f, &(struct weft_filter){.id = whole}), 1, "a whole id is a short form too");
    (void)snprintf(text, sizeof(text), "%.4s", whole);
    is_int(count_rows(f, &(struct weft_filter){.id = text}), 4, "four digits fit all");
    is_int(count_rows(f, &(struct weft_filter){.id = text, .state = WEFT_STATE_RUNNING}), 1,
           "the prefix with a state fits the execution in that state");
    (void)snprintf(text, sizeof(text), "%.13s", whole);
    is_int(count_rows(f, &(struct weft_filter){.id = text}), 1, "a millisecond fits one");
    is_int(count_rows(f, &(struct weft_filter){.id = "ffffffff"}), 0,
           "an unknown prefix fits nothing");
    is_int(count_rows(f, &(struct weft_filter){.id = whole, .ns = "other"}), 0,
           "an id of another namespace fits nothing");
}

CASE(list_bad_arguments)
{
    static const struct weft_tag bad_key = {"a b", "v"}, bad_value = {"k", "\xff"};
    static const struct {
        const char *name;
        struct weft_listing listing;
        const char *field;
    } row[] = {
        {"no cursor", {.after = "nonsense"}, "after"},
        {"an empty cursor", {.after = ""}, "after"},
        {"a cursor cut short", {.after = "018bcfe5-6800-7000-8000-00000000000"}, "after"},
        {"a cursor too long", {.after = "018bcfe5-6800-7000-8000-000000000000x"}, "after"},
        {"limit 1,001", {.limit = WEFT_PAGE_MAX + 1}, "limit"},
        {"a limit beyond all", {.limit = UINT32_MAX}, "limit"},
        {"three digits of an id", {.filter = {.id = "018"}}, "id"},
        {"an id that is none", {.filter = {.id = "018bcfxy"}}, "id"},
        {"an end of an id that is none", {.filter = {.id = "018bcf.."}}, "id"},
        {"a worker that is no name", {.filter = {.worker = "a b"}}, "worker"},
        {"an unknown state", {.filter = {.state = WEFT_STATE_COUNT}}, "state"},
        {"a negative state", {.filter = {.state = (enum weft_state)(-1)}}, "state"},
        {"an empty lane", {.filter = {.lane = ""}}, "lane"},
        {"a bad kind", {.filter = {.kind = "a b"}}, "kind"},
        {"a bad tenant", {.filter = {.tenant = "\xff"}}, "tenant"},
        {"a bad namespace", {.filter = {.ns = "a b"}}, "namespace"},
        {"a bad tag", {.filter = {.tag = &bad_key}}, "tags"},
        {"a bad value", {.filter = {.tag = &bad_value}}, "tags"},
        {"a bad key", {.filter = {.key = "\xff"}}, "key"},
    };
    (void)submit_job(f);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_listing listing = row[i].listing;
        struct weft_read_page page;
        struct weft_err err = {0};
        if (!listing.filter.ns)
            listing.filter.ns = "default";
        is_int(weft_engine_list(f->a, &listing, f->arena, &page, &err), WEFT_INVALID_VALUE,
               "%s: refused", row[i].name);
        expect_err(&err, WEFT_INVALID_VALUE, row[i].field, row[i].name);
    }
}
