/* SPDX-License-Identifier: Apache-2.0 */

/* What every driver must do, run over each of them. */

#include "store_fixture.h"

#include "base/arena.h"
#include "store/store.h"

#include <stdint.h>

static char large[100000];

/* ---- Values ---------------------------------------------------------------------------------- */

static struct weft_values_in values_of(int64_t number, const struct weft_id *id)
{
    return (struct weft_values_in){
        .flag = weft_some(number & 1),
        .small = weft_some(number % 30000),
        .num = weft_some(-number),
        .big = weft_some(number * 1000000007),
        .id = weft_some_id(*id),
        .word = number % 3 ? "w\xc3\xb6rt" : "",
        .bytes = {large, number % 5 ? (size_t)number : 0},
    };
}

static bool same_number(struct weft_opt_i64 want, bool set, int64_t value)
{
    return want.set == set && want.value == value;
}

static bool same_word(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_row(const struct weft_values_in *want, const struct weft_rows *rows, size_t row)
{
    const struct weft_values_out *got = weft_out_values(rows, row);
    return same_number(want->flag, got->flag.set, got->flag.value) &&
           same_number(want->small, got->small.set, got->small.value) &&
           same_number(want->num, got->num.set, got->num.value) &&
           same_number(want->big, got->big.set, got->big.value) && want->id.set == got->id.set &&
           memcmp(&want->id.value, &got->id.value, sizeof(want->id.value)) == 0 &&
           same_word(want->word, got->word) && !want->bytes.data == !got->bytes.data &&
           want->bytes.size == got->bytes.size &&
           (want->bytes.size == 0 || !want->bytes.data ||
            memcmp(want->bytes.data, got->bytes.data, want->bytes.size) == 0);
}

static void test_scalars(struct fixture *f, struct weft_conn *conn)
{
    static const int64_t small[] = {0, 1, -1, INT16_MIN, INT16_MAX};
    static const int64_t num[] = {0, 1, -1, INT32_MIN, INT32_MAX};
    static const int64_t big[] = {0, 1, -1, INT64_MIN, INT64_MAX};
    const struct weft_id id = {{0, 1, 2, 0xff, 0x80, 7}};
    struct weft_call call[5];
    struct weft_rows rows[5] = {0};
    for (size_t i = 0; i < 5; i++) {
        weft_call_echo(&call[i], f->arena)->values = (struct weft_values_in){
            .flag = weft_some(i == 1),
            .small = weft_some(small[i]),
            .num = weft_some(num[i]),
            .big = weft_some(big[i]),
            .id = weft_some_id(id),
            .word = i == 0 ? "" : "word",
            .bytes = {large, i * 20000},
        };
    }
    ok(f->driver->begin(conn, WEFT_TX_READ, &f->err) == WEFT_OK, "begin to read");
    ok(f->driver->run(conn, call, 5, f->arena, rows, &f->err) == WEFT_OK, "five calls in one run");
    for (size_t i = 0; i < 5; i++)
        ok(rows[i].count == 1 && same_row(&weft_in_echo(&call[i])->values, &rows[i], 0),
           "%s: every type there and back, values %zu", f->driver->name, i);
    is_str(weft_out_values(&rows[0], 0)->word, "", "an empty text is not a null");
    struct weft_id got = weft_out_values(&rows[2], 0)->id.value;
    ok(memcmp(&got, &id, sizeof(id)) == 0, "an id");

    weft_call_echo(&call[0], f->arena);
    ok(f->driver->run(conn, call, 1, f->arena, rows, &f->err) == WEFT_OK, "a call of nulls");
    ok(same_row(&weft_in_echo(&call[0])->values, &rows[0], 0), "nulls stay nulls");
    const struct weft_values_out *none = weft_out_values(&rows[0], 0);
    ok(!none->word && none->big.value == 0, "and read as nothing");
    ok(f->driver->commit(conn, &f->err) == WEFT_OK, "commit");
}

static void test_columns(struct fixture *f, struct weft_conn *conn)
{
    struct weft_id id[1000];
    struct weft_call call[3];
    struct weft_rows rows[3];
    struct weft_echo_rows_in *many = weft_call_echo_rows(&call[0], f->arena, 1000);
    weft_call_echo_rows(&call[1], f->arena, 0);
    struct weft_echo_rows_in *two = weft_call_echo_rows(&call[2], f->arena, 2);
    for (size_t i = 0; i < 1000; i++) {
        memset(&id[i], (int)i, sizeof(id[i]));
        if (i % 10)
            many->row[i].values = values_of((int64_t)i, &id[i]);
    }
    two->row[1].values.bytes = (struct weft_blob){large, sizeof(large)};
    ok(f->driver->begin(conn, WEFT_TX_READ, &f->err) == WEFT_OK, "begin to read");
    ok(f->driver->run(conn, call, 3, f->arena, rows, &f->err) == WEFT_OK, "columns of 1000 rows");
    size_t same = 0;
    for (size_t i = 0; i < rows[0].count; i++)
        same += same_row(&many->row[i].values, &rows[0], i);
    ok(rows[0].count == 1000 && same == 1000, "%s: all came back in order: %zu", f->driver->name,
       same);
    ok(rows[1].count == 0 && rows[1].stmt == WEFT_STMT_ECHO_ROWS, "no rows run nothing");
    ok(rows[2].count == 2 && same_row(&two->row[1].values, &rows[2], 1), "100 KB beside nulls");
    ok(f->driver->commit(conn, &f->err) == WEFT_OK, "commit");
}

/* Both sides send 8 MiB at once: neither may wait for the other to read first. */
static void test_large_batch(struct fixture *f, struct weft_conn *conn)
{
    struct weft_call call[8];
    struct weft_rows rows[8];
    size_t size = 1 << 20, same = 0;
    char *data = weft_arena_alloc(f->arena, size, 1);
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 31 >> 7);
    for (size_t i = 0; i < 8; i++) {
        weft_call_echo_rows(&call[i], f->arena, 1)->row[0].values.bytes =
            (struct weft_blob){data, size};
    }
    ok(f->driver->begin(conn, WEFT_TX_READ, &f->err) == WEFT_OK, "begin to read");
    ok(f->driver->run(conn, call, 8, f->arena, rows, &f->err) == WEFT_OK, "8 MiB in a run: %s",
       f->err.text);
    for (size_t i = 0; i < 8; i++)
        same += same_row(&weft_in_echo_rows(&call[i])->row[0].values, &rows[i], 0);
    ok(same == 8, "%s: 8 MiB there and back", f->driver->name);
    ok(f->driver->commit(conn, &f->err) == WEFT_OK, "commit");
}

static void test_range(struct fixture *f, struct weft_conn *conn)
{
    static const struct {
        const char *name;
        struct weft_values_in values;
    } row[] = {
        {"bool", {.flag = {2, true}}},
        {"smallint", {.small = {INT16_MAX + 1, true}}},
        {"int", {.num = {(int64_t)INT32_MIN - 1, true}}},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_call call;
        weft_call_echo(&call, f->arena)->values = row[i].values;
        ok(f->driver->begin(conn, WEFT_TX_READ, &f->err) == WEFT_OK, "begin to read");
        ok(f->driver->run(conn, &call, 1, f->arena, NULL, &f->err) == WEFT_INTERNAL,
           "%s: a number too large for its %s", f->driver->name, row[i].name);
        f->driver->rollback(conn);
    }
    struct weft_call rows;
    weft_call_echo_rows(&rows, f->arena, 3)->row[2].values.small = weft_some(INT16_MAX + 1);
    ok(f->driver->begin(conn, WEFT_TX_READ, &f->err) == WEFT_OK, "begin to read");
    ok(f->driver->run(conn, &rows, 1, f->arena, NULL, &f->err) == WEFT_INTERNAL,
       "%s: a number too large for a column", f->driver->name);
    f->driver->rollback(conn);
}

/* ---- Transactions ---------------------------------------------------------------------------- */

static void add_call(struct fixture *f, struct weft_call *call, int64_t number)
{
    struct weft_migration_add_in *in = weft_call_migration_add(call, f->arena);
    in->number = number;
    in->name = "secret value";
    in->sha256 = "0";
    in->applied_us = 0;
}

static enum weft_rc add(struct fixture *f, struct weft_conn *conn, int64_t number)
{
    struct weft_call call;
    add_call(f, &call, number);
    return f->driver->run(conn, &call, 1, f->arena, NULL, &f->err);
}

static size_t count_rows(struct fixture *f, struct weft_conn *conn)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_migration_list(&call, f->arena);
    ok(f->driver->begin(conn, WEFT_TX_READ, &f->err) == WEFT_OK, "begin to count");
    ok(f->driver->run(conn, &call, 1, f->arena, &rows, &f->err) == WEFT_OK, "count");
    ok(f->driver->commit(conn, &f->err) == WEFT_OK, "commit the count");
    return rows.count;
}

static void test_transactions(struct fixture *f, struct weft_conn *conn)
{
    const struct weft_driver *d = f->driver;
    ok(d->begin(conn, WEFT_TX_WRITE, &f->err) == WEFT_OK, "begin to write");
    ok(add(f, conn, 1) == WEFT_OK, "a row");
    ok(d->commit(conn, &f->err) == WEFT_OK && count_rows(f, conn) == 1, "committed");
    ok(d->begin(conn, WEFT_TX_KEYED, &f->err) == WEFT_OK, "begin again");
    ok(add(f, conn, 2) == WEFT_OK, "another row");
    d->rollback(conn);
    ok(count_rows(f, conn) == 1, "%s: rolled back", d->name);
    d->rollback(conn);
    ok(d->commit(conn, &f->err) == WEFT_OK, "nothing in hand: rollback and commit do nothing");
    ok(d->begin(conn, WEFT_TX_WRITE, &f->err) == WEFT_OK, "begin");
    ok(d->commit(conn, &f->err) == WEFT_OK, "commit without a statement");
    ok(d->begin(conn, WEFT_TX_WRITE, &f->err) == WEFT_OK, "begin");
    d->rollback(conn);
    ok(d->begin(conn, WEFT_TX_READ, &f->err) == WEFT_OK && add(f, conn, 3) != WEFT_OK,
       "%s: a read transaction does not write", d->name);
    d->rollback(conn);
    ok(!conn->broken, "the connection lives");
}

static void test_error_in_the_middle(struct fixture *f, struct weft_conn *conn)
{
    const struct weft_driver *d = f->driver;
    struct weft_call call[4];
    struct weft_rows rows[4] = {{.count = 77}};
    add_call(f, &call[0], 10);
    weft_call_echo(&call[1], f->arena);
    add_call(f, &call[2], 10);
    weft_call_echo(&call[3], f->arena);
    ok(d->begin(conn, WEFT_TX_WRITE, &f->err) == WEFT_OK, "begin to write");
    ok(d->run(conn, call, 4, f->arena, rows, &f->err) == WEFT_CONFLICT, "the third call fails");
    ok(f->err.cause == WEFT_CAUSE_DUPLICATE, "%s: a duplicate: %s", d->name, f->err.text);
    ok(strstr(f->err.text, "migration_add") && !strstr(f->err.text, "secret"),
       "the story names the statement and no value");
    ok(rows[0].count == 77, "results are not written");
    ok(add(f, conn, 11) == WEFT_INTERNAL, "a failed transaction takes no more calls");
    ok(d->commit(conn, &f->err) == WEFT_INTERNAL, "a failed transaction does not commit");
    ok(!conn->broken && count_rows(f, conn) == 1, "%s: nothing was written", d->name);
    ok(d->begin(conn, WEFT_TX_WRITE, &f->err) == WEFT_OK && add(f, conn, 10) == WEFT_OK, "again");
    d->rollback(conn);
    ok(fixture_script(f, conn, "SELECT 1; SELECT broken here; SELECT 2") != WEFT_OK,
       "a script with a mistake: %s", f->err.text);
    ok(!conn->broken && fixture_script(f, conn, "SELECT 1; SELECT 2;") == WEFT_OK,
       "%s: usable after it", d->name);
}

static void test_time(struct fixture *f, struct weft_conn *conn)
{
    weft_usec first = 0, second = 0;
    ok(f->driver->time(conn, &first, &f->err) == WEFT_OK, "the time");
    ok(f->driver->time(conn, &second, &f->err) == WEFT_OK, "the time of the store a second time");
    ok(first > 1700000000 * WEFT_SECOND && second >= first && second - first < 60 * WEFT_SECOND,
       "%s: microseconds since 1970", f->driver->name);
}

static void test_driver(const struct weft_driver *driver)
{
    struct fixture f;
    fixture_init(&f, driver);
    struct weft_conn *conn = fixture_open_new(&f);
    test_scalars(&f, conn);
    test_columns(&f, conn);
    test_large_batch(&f, conn);
    test_range(&f, conn);
    test_transactions(&f, conn);
    test_error_in_the_middle(&f, conn);
    test_time(&f, conn);
    weft_conn_close(conn);
    fixture_done(&f);
}

static void test_urls(void)
{
    const struct weft_driver *driver = NULL;
    struct weft_err err;
    ok(weft_driver_for("sqlite:x.db", &driver, &err) == WEFT_OK && driver == &weft_driver_sqlite,
       "sqlite:");
    ok(weft_driver_for("postgres://h/d", &driver, &err) == WEFT_OK && driver == &weft_driver_pg,
       "postgres://");
    ok(weft_driver_for("postgresql://h", &driver, &err) == WEFT_OK && driver == &weft_driver_pg,
       "postgresql://");
    static const struct {
        const char *url, *text, *hint;
    } row[] = {
        {"mysql://u:secret@h", "no store for mysql:// URLs", "postgres://USER@HOST"},
        {"weft.db", "for the file weft.db write sqlite:weft.db", "sqlite:PATH"},
        {"/var/lib/weft.db", "write sqlite:/var/lib/weft.db", "sqlite:PATH"},
        {"http://h:7717", "URL of a server", "--server"},
        {"https://u:secret@h", "URL of a server", "--server"},
        {"sqlite3:weft.db", "is sqlite:", "write sqlite:weft.db"},
        {"file:weft.db", "is sqlite:", "write sqlite:weft.db"},
        {"SQLite:weft.db", "small letters", "write sqlite:weft.db"},
        {"postgres:secret@h", "begins with postgres://", "write postgres://USER@HOST"},
        {"weft:secret@h/d", "must be sqlite:PATH", "postgres://USER@HOST"},
        {"", "must be sqlite:PATH", "postgres://USER@HOST"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        err = (struct weft_err){0};
        is_int(weft_driver_for(row[i].url, &driver, &err), WEFT_INVALID_VALUE, "'%s' is refused",
               row[i].url);
        is_str(err.field, "url", "'%s': the field to blame", row[i].url);
        ok(strstr(err.text, row[i].text) && err.hint && strstr(err.hint, row[i].hint),
           "'%s': the error and the hint name the right form: %s; %s", row[i].url, err.text,
           err.hint ? err.hint : "");
        ok(!strstr(err.text, "secret"), "'%s': repeats no password", row[i].url);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)(i * 7 >> 3);
    test_urls();
    test_driver(&weft_driver_sqlite);
    if (fixture_has_pg())
        test_driver(&weft_driver_pg);
    return tap_done();
}
