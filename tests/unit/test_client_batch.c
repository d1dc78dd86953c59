/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files, models and batches through the C library: the same calls on a store in this process and
 * through a server, over both databases.
 */

#include "worker_fixture.h"

#include "base/buf.h"
#include "base/id.h"
#include "weft/batch.h"
#include "weft/file.h"

#include <string.h>

enum { LINES = 400, PASSES_MAX = 500 };

/* The lines of a file that is given in odd pieces. */
struct source {
    struct weft_buf text;
    size_t at, fail_at; /* fail_at 0: never */
    uint64_t told;      /* by `progress` */
};

static bool give(void *context, void *ret_data, size_t most, size_t *ret_size)
{
    struct source *source = context;
    size_t left = source->text.size - source->at, piece = most < 1777 ? most : 1777;
    *ret_size = left < piece ? left : piece;
    if (source->fail_at && source->at >= source->fail_at)
        return false;
    memcpy(ret_data, source->text.data + source->at, *ret_size);
    source->at += *ret_size;
    return true;
}

static void tell(void *context, uint64_t bytes)
{
    ((struct source *)context)->told = bytes;
}

static bool take(void *context, const void *data, size_t size)
{
    weft_buf_add(context, data, size);
    return true;
}

static bool take_nothing(void *context, const void *data, size_t size)
{
    (void)context;
    (void)data;
    (void)size;
    return false;
}

static void source_init(struct source *source)
{
    *source = (struct source){0};
    weft_buf_init(&source->text, SIZE_MAX);
    for (int i = 0; i < LINES; i++)
        weft_buf_printf(&source->text,
                        "{\"custom_id\":\"c%d\",\"method\":\"POST\",\"url\":\"/v1/x\","
                        "\"body\":{\"model\":\"m\",\"pad\":\"%01500d\"}}\n",
                        i, i);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static void refused_uploads(struct world *w, struct source *source)
{
    struct weft_file_infos files = {0};
    struct weft_err err = {0};
    struct weft_upload upload = {.read = give, .context = source};
    source->at = 0;
    source->fail_at = 300000;
    ok(weft_file_put(w->weft, &upload, &files, &err) == WEFT_UNAVAILABLE &&
           strstr(err.text, "cannot be read"),
       "%s: an upload whose source fails: %s", w->store, err.text);
    source->fail_at = 0;
    source->at = source->text.size;
    ok(weft_file_put(w->weft, &upload, &files, &err) == WEFT_INVALID_VALUE &&
           strcmp(err.field, "file") == 0,
       "%s: an upload without a byte: %s", w->store, err.text);
    upload.expires_ms = 5;
    ok(weft_file_put(w->weft, &upload, &files, &err) == WEFT_INVALID_VALUE &&
           strcmp(err.field, "expires_ms") == 0,
       "%s: an upload that is gone at once", w->store);
    ok(weft_file_put(w->weft, &(struct weft_upload){.fd = -1}, &files, &err) == WEFT_INVALID_VALUE,
       "%s: no descriptor", w->store);
    ok(weft_file_put(w->weft, NULL, &files, &err) == WEFT_INVALID_VALUE, "%s: no upload", w->store);
    ok(weft_files(w->weft, NULL, 0, NULL, &files, &err) == WEFT_OK && files.count == 0,
       "%s: uploads that were refused leave nothing", w->store);
    weft_file_infos_free(&files);
}

static void read_back(struct world *w, const struct weft_id *id, const struct source *source)
{
    struct weft_buf got;
    struct weft_err err = {0};
    uint64_t bytes = 0;
    weft_buf_init(&got, SIZE_MAX);
    struct weft_sink sink = {.write = take, .context = &got};
    ok(weft_content(w->weft, WEFT_CONTENT_FILE, id, &sink, &bytes, &err) == WEFT_OK &&
           bytes == source->text.size && got.size == bytes &&
           memcmp(got.data, source->text.data, got.size) == 0,
       "%s: the bytes of a file come back", w->store);
    sink.write = take_nothing;
    ok(weft_content(w->weft, WEFT_CONTENT_FILE, id, &sink, NULL, &err) == WEFT_UNAVAILABLE &&
           strstr(err.text, "cannot be written"),
       "%s: a sink that fails: %s", w->store, err.text);
    ok(weft_content(w->weft, WEFT_CONTENT_FILE, id, NULL, NULL, &err) == WEFT_INVALID_VALUE,
       "%s: no sink", w->store);
    ok(weft_content(w->weft, WEFT_CONTENT_FILE, &(struct weft_id){.byte = {1}}, &sink, NULL,
                    &err) == WEFT_NOT_FOUND,
       "%s: a file that is not there", w->store);
    weft_buf_done(&got);
}

/* The id of the file; its name is in ret_name. */
static struct weft_id put_file(struct world *w, struct source *source, char ret_name[64])
{
    struct weft_file_infos files = {0}, again = {0};
    struct weft_err err = {0};
    const struct weft_upload upload = {
        .filename = "in.jsonl", .read = give, .progress = tell, .context = source};
    source->at = 0;
    enum weft_rc rc = weft_file_put(w->weft, &upload, &files, &err);
    ok(rc == WEFT_OK && files.count == 1, "%s: a file is put: %s", w->store, err.text);
    if (rc)
        return (struct weft_id){0};
    ok(source->told == source->text.size, "%s: its progress is told", w->store);
    const struct weft_file_info *file = files.item;
    struct weft_id id = file->id;
    (void)snprintf(ret_name, 64, "%s", file->file_id);
    ok(file->bytes == source->text.size && file->requests == LINES && file->error_count == 0 &&
           !file->errors && strcmp(file->filename, "in.jsonl") == 0 && file->expires_us > 0,
       "%s: what it is", w->store);
    ok(weft_files(w->weft, &id, 0, NULL, &again, &err) == WEFT_OK && again.count == 1 &&
           strcmp(again.item->file_id, file->file_id) == 0,
       "%s: it is found by its id", w->store);
    weft_file_infos_free(&again);
    weft_file_infos_free(&files);
    return id;
}

/* A file with two mistakes from a descriptor, on a page behind the first one. */
static void bad_file(struct world *w)
{
    static const char text[] = "{\"custom_id\":1}\nnothing\n";
    struct weft_file_infos files = {0}, page = {0};
    struct weft_err err = {0};
    FILE *file = tmpfile();
    (void)fwrite(text, 1, sizeof(text) - 1, file);
    (void)fflush(file);
    rewind(file);
    ok(weft_file_put(w->weft, &(struct weft_upload){.fd = fileno(file)}, &files, &err) == WEFT_OK,
       "%s: a file from a descriptor", w->store);
    ok(files.count == 1 && files.item->error_count == 2 &&
           strstr(files.item->errors, "\"line\":2") && files.item->errors[0] == '[',
       "%s: its mistakes are listed", w->store);
    ok(weft_files(w->weft, NULL, 1, NULL, &page, &err) == WEFT_OK && page.count == 1 && page.next &&
           weft_id_cmp(&page.item->id, &files.item->id) == 0,
       "%s: the newest file is on the first page", w->store);
    struct weft_file_infos last = {0};
    ok(weft_files(w->weft, NULL, 1, page.next, &last, &err) == WEFT_OK && last.count == 1 &&
           !last.next,
       "%s: and another one on the last", w->store);
    enum weft_rc once = weft_file_remove(w->weft, &files.item->id, &err);
    enum weft_rc twice = weft_file_remove(w->weft, &files.item->id, &err);
    ok(once == WEFT_OK && twice == WEFT_NOT_FOUND, "%s: a file is removed once", w->store);
    weft_file_infos_free(&last);
    weft_file_infos_free(&page);
    weft_file_infos_free(&files);
    (void)fclose(file);
}

/* ---- Models ---------------------------------------------------------------------------------- */

static void models(struct world *w)
{
    struct weft_models found = {0};
    struct weft_err err = {0};
    const struct weft_model m = {.name = "m", .endpoint = "e", .max_running = 7},
                            any = {.name = "*", .endpoint = "other"};
    ok(weft_model_put(w->weft, &m, &err) == WEFT_OK &&
           weft_model_put(w->weft, &any, &err) == WEFT_OK,
       "%s: models are put: %s", w->store, err.text);
    ok(weft_models(w->weft, NULL, 0, NULL, &found, &err) == WEFT_OK && found.count == 2 &&
           strcmp(found.item[0].lane, "models") == 0 && strcmp(found.item[1].lane, "m") == 0 &&
           found.item[1].max_running == 7,
       "%s: they have their lanes", w->store);
    weft_models_free(&found);
    enum weft_rc once = weft_model_remove(w->weft, "*", &err);
    enum weft_rc twice = weft_model_remove(w->weft, "*", &err);
    ok(once == WEFT_OK && twice == WEFT_NOT_FOUND &&
           weft_models(w->weft, "*", 0, NULL, &found, &err) == WEFT_NOT_FOUND,
       "%s: a model is removed once", w->store);
    ok(weft_model_put(w->weft, &(struct weft_model){.name = "a b", .endpoint = "e"}, &err) ==
               WEFT_INVALID_VALUE &&
           weft_model_put(w->weft, &(struct weft_model){.name = "a"}, &err) == WEFT_INVALID_VALUE &&
           weft_model_remove(w->weft, NULL, &err) == WEFT_INVALID_VALUE,
       "%s: names that are none", w->store);
}

/* ---- Batches --------------------------------------------------------------------------------- */

/* Until the batch has that status: the passes do what a server does by itself. */
static bool reaches(struct world *w, const struct weft_id *id, enum weft_batch_status status)
{
    static const enum weft_scanner scanner[] = {
        WEFT_SCANNER_BATCH_PROGRESS, WEFT_SCANNER_CANCEL_BACKLOG, WEFT_SCANNER_DEPENDENCY};
    for (int i = 0; i < PASSES_MAX; i++) {
        struct weft_batch_infos batches = {0};
        struct weft_pass_report report;
        struct weft_err err = {0};
        if (weft_batch_get(w->weft, id, &batches, &err))
            return false;
        bool there = batches.item->status == status;
        weft_batch_infos_free(&batches);
        if (there)
            return true;
        if (weft_run_pass(w->weft, scanner[i % (int)WEFT_LEN(scanner)], 0, &report, &err))
            return false;
    }
    return false;
}

static size_t count_lines(struct world *w, enum weft_content which, const struct weft_id *id)
{
    struct weft_buf got;
    struct weft_err err = {0};
    size_t lines = 0;
    weft_buf_init(&got, SIZE_MAX);
    const struct weft_sink sink = {.write = take, .context = &got};
    enum weft_rc rc = weft_content(w->weft, which, id, &sink, NULL, &err);
    ok(rc == WEFT_OK, "%s: the lines of a batch are read: %s", w->store, err.text);
    for (size_t i = 0; i < got.size; i++)
        lines += got.data[i] == '\n';
    weft_buf_done(&got);
    return lines;
}

static void refused_batches(struct world *w, const char *file)
{
    static const struct {
        const char *what;
        struct weft_batch_spec spec;
        enum weft_rc rc;
    } row[] = {
        {"no file", {.endpoint = "/v1/x"}, WEFT_INVALID_VALUE},
        {"a file that is not there",
         {.input_file = "file-00000000000070008000000000000000", .endpoint = "/v1/x"},
         WEFT_NOT_FOUND},
        {"a name that is none", {.input_file = "in.jsonl", .endpoint = "/v1/x"}, WEFT_NOT_FOUND},
        {"no endpoint", {.input_file = ""}, WEFT_INVALID_VALUE},
        {"an endpoint that is none", {.endpoint = "x"}, WEFT_INVALID_VALUE},
        {"a window that is none", {.endpoint = "/v1/x", .window = "soon"}, WEFT_INVALID_VALUE},
        {"metadata that is no text",
         {.endpoint = "/v1/x", .metadata = "{\"a\":1}"},
         WEFT_INVALID_VALUE},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_batch_infos batches = {0};
        struct weft_err err = {0};
        struct weft_batch_spec spec = row[i].spec;
        if (!spec.input_file && i > 0)
            spec.input_file = file;
        enum weft_rc rc = weft_batch_create(w->weft, &spec, &batches, &err);
        ok(rc == row[i].rc, "%s: %s: %s", w->store, row[i].what, err.text);
        weft_batch_infos_free(&batches);
    }
}

static void keyed(struct world *w, const char *file, struct weft_id *ret_id)
{
    struct weft_batch_infos first = {0}, second = {0};
    struct weft_err err = {0};
    struct weft_batch_spec spec = {
        .input_file = file, .endpoint = "/v1/x", .metadata = "{\"a\":\"b\"}", .key = "k"};
    ok(weft_batch_create(w->weft, &spec, &first, &err) == WEFT_OK && first.count == 1,
       "%s: a batch is created: %s", w->store, err.text);
    if (first.count == 0)
        return;
    ok(strcmp(first.item->input_file, file) == 0 && strcmp(first.item->window, "24h") == 0 &&
           strcmp(first.item->metadata, "{\"a\":\"b\"}") == 0,
       "%s: it is what was asked for", w->store);
    ok(weft_batch_create(w->weft, &spec, &second, &err) == WEFT_OK &&
           weft_id_cmp(&first.item->id, &second.item->id) == 0,
       "%s: the same key gives the same batch", w->store);
    spec.endpoint = "/v1/y";
    struct weft_batch_infos third = {0};
    ok(weft_batch_create(w->weft, &spec, &third, &err) == WEFT_CONFLICT && err.field &&
           strcmp(err.field, "key") == 0,
       "%s: but not with something else: %s", w->store, err.text);
    *ret_id = first.item->id;
    weft_batch_infos_free(&first);
    weft_batch_infos_free(&second);
}

static void batches(struct world *w, const char *file)
{
    struct weft_batch_infos found = {0};
    struct weft_batch_retried retried = {0};
    struct weft_err err = {0};
    struct weft_id id = {0};
    refused_batches(w, file);
    keyed(w, file, &id);
    ok(reaches(w, &id, WEFT_BATCH_STATUS_IN_PROGRESS), "%s: its lines are written", w->store);
    ok(weft_batch_cancel(w->weft, &id, &found, &err) == WEFT_OK, "%s: it is cancelled", w->store);
    weft_batch_infos_free(&found);
    ok(reaches(w, &id, WEFT_BATCH_STATUS_CANCELLED), "%s: and ends", w->store);
    ok(count_lines(w, WEFT_CONTENT_OUTPUT, &id) == 0 &&
           count_lines(w, WEFT_CONTENT_ERRORS, &id) == LINES,
       "%s: all lines are in the errors", w->store);
    ok(weft_batch_retry(w->weft, &id, &retried, &err) == WEFT_OK && retried.retried == LINES,
       "%s: all are retried: %s", w->store, err.text);
    ok(reaches(w, &id, WEFT_BATCH_STATUS_IN_PROGRESS), "%s: it runs again", w->store);
    const struct weft_batch_listing running = {.by_status = true,
                                               .status = WEFT_BATCH_STATUS_IN_PROGRESS},
                                    ended = {.by_status = true,
                                             .status = WEFT_BATCH_STATUS_COMPLETED};
    ok(weft_batch_list(w->weft, &running, &found, &err) == WEFT_OK && found.count == 1 &&
           found.item->total == LINES,
       "%s: it is listed by its status", w->store);
    weft_batch_infos_free(&found);
    ok(weft_batch_list(w->weft, &ended, &found, &err) == WEFT_OK && found.count == 0,
       "%s: and not by another", w->store);
    weft_batch_infos_free(&found);
    ok(weft_batch_list(w->weft, NULL, &found, &err) == WEFT_OK && found.count == 1,
       "%s: all are listed", w->store);
    weft_batch_infos_free(&found);
    enum weft_rc once = weft_batch_remove(w->weft, &id, &err);
    enum weft_rc twice = weft_batch_remove(w->weft, &id, &err);
    ok(once == WEFT_OK && twice == WEFT_NOT_FOUND &&
           weft_batch_get(w->weft, &id, &found, &err) == WEFT_NOT_FOUND &&
           weft_batch_retry(w->weft, &id, &retried, &err) == WEFT_NOT_FOUND,
       "%s: it is removed once, and is seen no more", w->store);
    ok(weft_batch_get(w->weft, NULL, &found, &err) == WEFT_INVALID_VALUE &&
           weft_batch_cancel(w->weft, &id, NULL, &err) == WEFT_INVALID_VALUE,
       "%s: what is missing is refused", w->store);
}

static void run(const char *store)
{
    struct world world;
    struct source source;
    char file[64] = "";
    source_init(&source);
    world_init(&world, store);
    refused_uploads(&world, &source);
    struct weft_id id = put_file(&world, &source, file);
    read_back(&world, &id, &source);
    bad_file(&world);
    models(&world);
    batches(&world, file);
    world_done(&world);
    weft_buf_done(&source.text);
}

int main(void)
{
    for (size_t i = 0; i < WEFT_LEN(world_stores); i++)
        if (world_exists(world_stores[i]))
            run(world_stores[i]);
    return tap_done();
}
