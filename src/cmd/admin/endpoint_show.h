/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_ADMIN_ENDPOINT_SHOW_H
#define WEFT_CMD_ADMIN_ENDPOINT_SHOW_H

/* What weft endpoint shows: endpoints, one of them, and a call that tries one. */

#include "cmd/cli/output.h"

/* clang-format off */
#define WEFT_ENDPOINT_TEST_OPTIONS                                                                 \
    {"path", 0, "PATH", "test: what follows the URL, like /models", NULL},                         \
    {"method", 0, "METHOD", "test: instead of GET", "GET HEAD OPTIONS POST PUT DELETE"}
/* clang-format on */

enum weft_exit weft_endpoint_list(const struct weft_cli *cli, struct weft *weft);
enum weft_exit weft_endpoint_show(const struct weft_cli *cli, struct weft *weft, const char *name);
enum weft_exit weft_endpoint_try(const struct weft_cli *cli, struct weft *weft, const char *name);

#endif
