/* SPDX-License-Identifier: Apache-2.0 */

/* Files of batches: written in chunks, seen when they are whole, gone at their time. */

#include "conformance.h"

#include "base/clock.h"
#include "engine/batch/files.h"
#include "engine/engine.h"
#include "engine/ready/poll.h"
#include "engine/scan/pass.h"
#include "weft/weft.h"

#include <string.h>

static struct weft_id begin(struct fixture *f)
{
    struct weft_id id;
    is_int(weft_engine_file_begin(f->a, "default", "in.jsonl", &id, &f->err), WEFT_OK,
           "an upload begins");
    return id;
}

static enum weft_rc put(struct fixture *f, const struct weft_id *file, uint64_t at,
                        const char *text)
{
    const struct weft_file_chunk chunk = {
        .file = *file, .at = at, .line = at, .data = text, .size = strlen(text)};
    return weft_engine_file_put(f->a, &chunk, &f->err);
}

static enum weft_rc seal(struct fixture *f, const struct weft_id *file, weft_usec expires_us)
{
    const struct weft_file sealed = {
        .id = *file, .purpose = "batch", .requests = 2, .flaws = "", .expires_us = expires_us};
    return weft_engine_file_seal(f->a, &sealed, &f->err);
}

static struct weft_id whole(struct fixture *f, weft_usec expires_us)
{
    struct weft_id id = begin(f);
    is_int(put(f, &id, 0, "one\n"), WEFT_OK, "a chunk");
    is_int(put(f, &id, 4, "two\n"), WEFT_OK, "another one");
    is_int(seal(f, &id, expires_us), WEFT_OK, "it is sealed");
    return id;
}

static enum weft_rc look(struct fixture *f, const struct weft_id *id, const char *ns)
{
    struct weft_file file;
    return weft_engine_file(f->b, ns, id, f->arena, &file, &f->err);
}

static struct weft_file_list list(struct fixture *f, struct weft_files_asking asking)
{
    struct weft_file_list files = {0};
    asking.ns = asking.ns ? asking.ns : "default";
    is_int(weft_engine_files(f->b, &asking, f->arena, &files, &f->err), WEFT_OK, "list");
    return files;
}

CASE(file_is_seen_when_it_is_whole)
{
    struct weft_file file;
    struct weft_file_chunk chunk;
    struct weft_id id = begin(f);
    is_int(put(f, &id, 0, "one\n"), WEFT_OK, "the first chunk");
    is_int(look(f, &id, "default"), WEFT_NOT_FOUND, "an upload under way is not seen");
    is_int(list(f, (struct weft_files_asking){.limit = 10}).count, 0, "nor listed");
    is_int(put(f, &id, 4, "two\n"), WEFT_OK, "the second chunk");
    is_int(seal(f, &id, 0), WEFT_OK, "it is sealed");
    is_int(weft_engine_file(f->b, "default", &id, f->arena, &file, &f->err), WEFT_OK, "it is seen");
    is_int(file.bytes, 8, "with its size");
    is_str(file.filename, "in.jsonl", "its name");
    is_str(file.purpose, "batch", "and its purpose");
    is_int(look(f, &id, "other"), WEFT_NOT_FOUND, "another namespace does not see it");
    is_int(weft_engine_file_read(f->b, &id, 5, f->arena, &chunk, &f->err), WEFT_OK, "byte 5");
    is_int(chunk.at, 4, "is in the second chunk");
    ok(chunk.size == 4 && memcmp(chunk.data, "two\n", 4) == 0, "whose bytes are as they came");
    is_int(weft_engine_file_read(f->b, &id, 8, f->arena, &chunk, &f->err), WEFT_NOT_FOUND,
           "there is no byte behind the end");
    is_int(put(f, &id, 8, "no\n"), WEFT_UNAVAILABLE, "a sealed file takes no chunk");
    is_int(seal(f, &id, 0), WEFT_UNAVAILABLE, "and is not sealed again");
}

CASE(file_lists_in_pages)
{
    struct weft_id id[5];
    for (int i = 0; i < 5; i++) {
        id[i] = whole(f, 0);
        forward_ms(f, 10);
    }
    struct weft_file_list page = list(f, (struct weft_files_asking){.limit = 2});
    ok(page.count == 2 && page.more, "two files and more");
    ok(same_id(&page.item[0].id, &id[4]) && same_id(&page.item[1].id, &id[3]), "newest first");
    page = list(f, (struct weft_files_asking){.limit = 3, .has_after = true, .after = id[3]});
    ok(page.count == 3 && !page.more && same_id(&page.item[2].id, &id[0]), "the rest");
    page = list(f, (struct weft_files_asking){.limit = 9, .oldest_first = true});
    ok(page.count == 5 && same_id(&page.item[0].id, &id[0]), "oldest first");
    is_int(list(f, (struct weft_files_asking){.limit = 9, .purpose = "x"}).count, 0,
           "none of another purpose");
    is_int(list(f, (struct weft_files_asking){.limit = 9, .ns = "other"}).count, 0,
           "none of another namespace");
}

CASE(file_that_is_deleted_is_gone)
{
    struct weft_id id = whole(f, 0);
    is_int(weft_engine_file_remove(f->a, "other", &id, &f->err), WEFT_NOT_FOUND,
           "another namespace does not delete it");
    is_int(weft_engine_file_remove(f->a, "default", &id, &f->err), WEFT_OK, "it is deleted");
    is_int(look(f, &id, "default"), WEFT_NOT_FOUND, "it is not seen");
    is_int(weft_engine_file_remove(f->a, "default", &id, &f->err), WEFT_NOT_FOUND, "once");
}

CASE(file_expires_at_its_time)
{
    weft_usec now_us = weft_clock_now(weft_engine_clock(f->a));
    struct weft_id id = whole(f, now_us + WEFT_SECOND), kept = whole(f, 0);
    is_int(run_pass(f, f->a, WEFT_SCANNER_FILE_EXPIRY).handled, 0, "nothing is due");
    forward_ms(f, 1000);
    is_int(look(f, &id, "default"), WEFT_NOT_FOUND, "it is gone before any pass");
    is_int(run_pass(f, f->b, WEFT_SCANNER_FILE_EXPIRY).handled, 1, "the pass hides it");
    is_int(run_pass(f, f->a, WEFT_SCANNER_FILE_EXPIRY).handled, 0, "once");
    is_int(look(f, &kept, "default"), WEFT_OK, "a file without a time stays");
}

CASE(file_upload_that_broke_off_is_given_up)
{
    struct weft_id id = begin(f), slow = begin(f);
    forward_ms(f, 1800000);
    is_int(put(f, &slow, 0, "one\n"), WEFT_OK, "a slow upload goes on");
    forward_ms(f, 1800000);
    is_int(run_pass(f, f->b, WEFT_SCANNER_FILE_EXPIRY).handled, 1, "an hour without a chunk");
    is_int(put(f, &id, 0, "one\n"), WEFT_UNAVAILABLE, "its next chunk is refused");
    is_int(put(f, &slow, 4, "two\n"), WEFT_OK, "the slow one still goes on");
    weft_engine_file_give_up(f->a, &slow);
    is_int(seal(f, &slow, 0), WEFT_UNAVAILABLE, "what was given up is not sealed");
}

static uint64_t counted(const struct weft_pass_report *report, const char *name)
{
    for (size_t i = 0; i < report->counter_count; i++)
        if (strcmp(report->counter[i].name, name) == 0)
            return report->counter[i].value;
    ok(false, "there is a counter %s", name);
    return 0;
}

static bool purge_is_due(struct fixture *f)
{
    struct weft_poll poll;
    is_int(weft_engine_poll(f->b, f->arena, &poll, &f->err), WEFT_OK, "poll");
    return poll.due_us[WEFT_SCANNER_PURGE] != WEFT_NEVER;
}

CASE(file_that_is_deleted_is_purged)
{
    enum { CHUNKS = 150 };
    struct weft_id kept = whole(f, 0), gone = begin(f), expiring = whole(f, f->now_us + 1000000);
    for (int i = 0; i < CHUNKS; i++)
        is_int(put(f, &gone, 2 * (uint64_t)i, "x\n"), WEFT_OK, "chunk %d", i);
    is_int(seal(f, &gone, 0), WEFT_OK, "it is sealed");
    ok(!purge_is_due(f), "nothing is deleted");
    is_int(weft_engine_file_remove(f->a, "default", &gone, &f->err), WEFT_OK, "it is deleted");
    ok(purge_is_due(f), "purge is due");
    const struct weft_pass_config config = {.batch = 100};
    struct weft_pass_report report = pass_with(f, WEFT_SCANNER_PURGE, &config);
    is_int(counted(&report, "chunks"), 100, "a batch of chunks");
    ok(report.more && counted(&report, "tombstones") == 0, "the file goes last");
    report = pass_with(f, WEFT_SCANNER_PURGE, &config);
    is_int(counted(&report, "chunks"), CHUNKS - 100, "the rest");
    is_int(counted(&report, "tombstones"), 1, "and the file");
    ok(!purge_is_due(f), "nothing is left to do");
    forward_ms(f, 1000);
    (void)run_pass(f, f->a, WEFT_SCANNER_FILE_EXPIRY);
    report = run_pass(f, f->b, WEFT_SCANNER_PURGE);
    ok(counted(&report, "chunks") == 2 && counted(&report, "tombstones") == 1,
       "a file whose time has come goes the same way");
    is_int(look(f, &expiring, "default"), WEFT_NOT_FOUND, "it is gone");
    is_int(look(f, &kept, "default"), WEFT_OK, "the other one is there");
    struct weft_file_chunk chunk;
    is_int(weft_engine_file_read(f->a, &kept, 4, f->arena, &chunk, &f->err), WEFT_OK,
           "with its chunks");
}
