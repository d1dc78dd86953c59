/* SPDX-License-Identifier: Apache-2.0 */

/* How often each pair of execution and epoch was seen, and how many requests of it a path had. */

#include "upstream/upstream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The path is empty in a row that counts all requests of an execution in one epoch. */
struct row {
    char execution[NAME_MAX_SIZE];
    char path[NAME_MAX_SIZE]; /* cut */
    int64_t epoch;
    uint64_t count; /* 0: free */
};

static struct row *table;
static size_t capacity, used;

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return (hash ^ 0xff) * 0x100000001b3u;
}

static struct row *find(const char *execution, const char *path, int64_t epoch)
{
    uint64_t hash = hash_text(hash_text(0xcbf29ce484222325u, execution), path) + (uint64_t)epoch;
    hash *= 0x9e3779b97f4a7c15u;
    for (size_t i = (size_t)(hash >> 32);; i++) {
        struct row *row = &table[i & (capacity - 1)];
        if (row->count == 0 || (row->epoch == epoch && strcmp(row->execution, execution) == 0 &&
                                strcmp(row->path, path) == 0))
            return row;
    }
}

static void grow(void)
{
    struct row *old = table;
    size_t old_capacity = capacity;
    capacity = capacity ? capacity * 2 : 1024;
    table = calloc(capacity, sizeof(*table));
    if (!table)
        abort();
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].count > 0)
            *find(old[i].execution, old[i].path, old[i].epoch) = old[i];
    free(old);
}

static uint64_t count(const char *execution, const char *path, int64_t epoch)
{
    if (used * 4 >= capacity * 3)
        grow();
    char cut[NAME_MAX_SIZE];
    (void)snprintf(cut, sizeof(cut), "%s", path);
    struct row *row = find(execution, cut, epoch);
    if (row->count == 0) {
        (void)snprintf(row->execution, sizeof(row->execution), "%s", execution);
        (void)snprintf(row->path, sizeof(row->path), "%s", cut);
        row->epoch = epoch;
        used++;
    }
    return ++row->count;
}

void seen_add(const char *execution, int64_t epoch)
{
    if (*execution)
        (void)count(execution, "", epoch);
}

uint64_t seen_turn(const char *execution, const char *path)
{
    return count(execution, path, 0);
}

static int by_execution(const void *a, const void *b)
{
    const struct row *x = *(struct row *const *)a, *y = *(struct row *const *)b;
    int order = strcmp(x->execution, y->execution);
    return order ? order : (x->epoch > y->epoch) - (x->epoch < y->epoch);
}

void seen_print(struct bytes *bytes, uint64_t requests)
{
    struct row **sorted = calloc(used + 1, sizeof(void *));
    if (!sorted)
        abort();
    size_t rows = 0, repeated = 0;
    for (size_t i = 0; i < capacity; i++) {
        if (table[i].count == 0 || *table[i].path)
            continue;
        sorted[rows++] = &table[i];
        repeated += table[i].count > 1;
    }
    qsort(sorted, rows, sizeof(void *), by_execution);
    bytes_print(bytes, "{\"requests\":%" PRIu64 ",\"repeated\":%zu,\"seen\":[", requests, repeated);
    for (size_t i = 0; i < rows; i++)
        bytes_print(bytes, "%s{\"execution\":\"%s\",\"epoch\":%" PRId64 ",\"count\":%" PRIu64 "}",
                    i > 0 ? "," : "", sorted[i]->execution, sorted[i]->epoch, sorted[i]->count);
    bytes_print(bytes, "]}");
    free(sorted);
}

void seen_clear(void)
{
    free(table);
    table = NULL;
    capacity = used = 0;
}
