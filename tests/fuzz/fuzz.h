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

int LLVMFuzzerTestOneInput(const uint8_t *data, /* NOLINT(readability-identifier-naming) */
                           size_t size);

/* What must hold for every input. */
static inline void fuzz_must(int truth, const char *file, int line, const char *text)
{
    if (truth)
        return;
    (void)fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, text);
    abort();
}
#define must(truth) fuzz_must((truth) ? 1 : 0, __FILE__, __LINE__, #truth)

/* The bytes up to the first NUL as a text, in memory of exactly its size. The caller frees it. */
static inline char *fuzz_text(const void *data, size_t size)
{
    char *text = strndup(size > 0 ? data : "", size);
    if (!text)
        abort();
    return text;
}

#endif
