/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_FUZZ_FUZZ_H
#define WEFT_TESTS_FUZZ_FUZZ_H

/*
 * A target takes any bytes and ends the process when something that must hold does not. With
 * libFuzzer (`make fuzz`) it looks for such bytes; in `make test` the same target is a plain
 * program that replays its corpus and a fixed number of mutations of it (replay.c).
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold for every input. */
#define must(truth)                                                                                \
    do {                                                                                           \
        if (!(truth)) {                                                                            \
            (void)fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #truth);       \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The bytes as a text of exactly their size; it ends at the first NUL. The caller frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    must(text);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    size_t used = strlen(text);
    return realloc(text, used + 1);
}

#endif
