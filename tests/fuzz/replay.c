/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replays the corpus of a target, and mutations of it that are the same in every run:
 *
 *     fuzz_TARGET CORPUS-FOLDER ROUNDS      prints TAP
 *     fuzz_TARGET FILE                      that input alone, for a crash that was found
 *
 * A target that finds something ends the process, so a point stands for an input that was survived.
 */

#include "fuzz/fuzz.h"
#include "tap.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>

enum { INPUT_MAX = 1 << 16, FILES_MAX = 1024, EDITS_MAX = 4 };

struct input {
    uint8_t *data;
    size_t size;
};

/* ---- Mutations: xorshift with a fixed seed --------------------------------------------------- */

static uint64_t seed = 0x9e3779b97f4a7c15u;

static size_t random_below(size_t bound)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return bound ? (size_t)((seed >> 11) % bound) : 0;
}

/* Bytes that parsers care about more than about others. */
static uint8_t random_byte(void)
{
    static const char special[] = "\"\\{}[],:%&=?/+-.eE0129_ \t\n\r*#uTZ";
    return random_below(2) ? (uint8_t)special[random_below(sizeof(special))]
                           : (uint8_t)random_below(256);
}

static void cut(struct input *input, size_t at, size_t size)
{
    memmove(input->data + at, input->data + at + size, input->size - at - size);
    input->size -= size;
}

static void paste(struct input *input, size_t at, const uint8_t *from, size_t size)
{
    if (size > INPUT_MAX - input->size)
        return;
    memmove(input->data + at + size, input->data + at, input->size - at);
    memcpy(input->data + at, from, size);
    input->size += size;
}

static void edit(struct input *input, const struct input *other)
{
    size_t at = random_below(input->size + 1), left = input->size - at;
    uint8_t byte = random_byte();
    switch (random_below(6)) {
    case 0:
        if (left > 0)
            input->data[at] = byte;
        break;
    case 1:
        if (left > 0)
            input->data[at] ^= (uint8_t)(1u << random_below(8));
        break;
    case 2:
        paste(input, at, &byte, 1);
        break;
    case 3:
        cut(input, at, random_below(left < 16 ? left + 1 : 16));
        break;
    case 4: { /* a piece of another one */
        size_t from = random_below(other->size + 1);
        paste(input, at, other->data + from, random_below(other->size - from + 1));
        break;
    }
    default: { /* a piece of itself, again */
        uint8_t piece[64];
        size_t size = random_below(left < sizeof(piece) ? left + 1 : sizeof(piece));
        memcpy(piece, input->data + at, size);
        paste(input, at, piece, size);
        break;
    }
    }
}

/* ---- Running --------------------------------------------------------------------------------- */

/* In memory of exactly its size, so that a sanitizer sees a read past its end. */
static void run(const struct input *input)
{
    uint8_t *copy = malloc(input->size ? input->size : 1);
    must(copy);
    memcpy(copy, input->data, input->size);
    (void)LLVMFuzzerTestOneInput(copy, input->size);
    free(copy);
}

static bool read_file(const char *path, struct input *ret_input)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    ret_input->data = malloc(INPUT_MAX);
    must(ret_input->data);
    ret_input->size = fread(ret_input->data, 1, INPUT_MAX, file);
    (void)fclose(file);
    return true;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static size_t replay(const char *folder, struct input corpus[FILES_MAX])
{
    struct dirent **entry = NULL;
    int found = scandir(folder, &entry, NULL, by_name);
    size_t count = 0;
    for (int i = 0; i < found; i++) {
        char path[1024];
        struct stat about;
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entry[i]->d_name);
        if (count < FILES_MAX && stat(path, &about) == 0 && S_ISREG(about.st_mode) &&
            read_file(path, &corpus[count])) {
            run(&corpus[count++]);
            ok(true, "%s", entry[i]->d_name);
        }
        free(entry[i]);
    }
    free((void *)entry);
    return count;
}

static void mutate(const struct input *corpus, size_t count, size_t rounds)
{
    struct input input = {.data = malloc(INPUT_MAX)};
    must(input.data);
    for (size_t round = 0; round < rounds; round++) {
        const struct input *from = &corpus[random_below(count)];
        memcpy(input.data, from->data, from->size);
        input.size = from->size;
        for (size_t edits = 1 + random_below(EDITS_MAX); edits > 0; edits--)
            edit(&input, &corpus[random_below(count)]);
        run(&input);
    }
    free(input.data);
    ok(true, "%zu mutations", rounds);
}

int main(int argc, char **argv)
{
    static struct input corpus[FILES_MAX];
    if (argc == 2 && read_file(argv[1], &corpus[0])) {
        run(&corpus[0]);
        free(corpus[0].data);
        return 0;
    }
    if (argc != 3) {
        (void)fprintf(stderr, "usage: %s CORPUS-FOLDER ROUNDS | FILE\n", argv[0]);
        return 2;
    }
    size_t count = replay(argv[1], corpus);
    ok(count > 0, "there is a corpus in %s", argv[1]);
    if (count > 0)
        mutate(corpus, count, strtoul(argv[2], NULL, 10));
    for (size_t i = 0; i < count; i++)
        free(corpus[i].data);
    return tap_done();
}
