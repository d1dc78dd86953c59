/* SPDX-License-Identifier: Apache-2.0 */

#include "cmd/cli/line.h"

#include "base/arena.h"
#include "base/buf.h"

#include <errno.h>
#include <string.h>

char *weft_cli_read_file(const struct weft_cli *cli, const char *path, size_t max, size_t *ret_size,
                         const char **ret_why)
{
    bool input = strcmp(path, "-") == 0;
    char part[16384], *data = NULL;
    struct weft_buf buf;
    size_t size;
    weft_buf_init(&buf, max);
    FILE *file = input ? stdin : fopen(path, "re");
    while (file && !buf.full && (size = fread(part, 1, sizeof(part), file)) > 0)
        weft_buf_add(&buf, part, size);
    if (!file || ferror(file))
        *ret_why = strerrordesc_np(errno);
    else if (buf.full)
        *ret_why = weft_arena_printf(cli->arena, "it is larger than %zu bytes", max);
    else
        data = weft_arena_dup(cli->arena, buf.data, buf.size + 1);
    *ret_size = buf.size;
    weft_buf_done(&buf);
    if (file && !input)
        (void)fclose(file);
    return data;
}
