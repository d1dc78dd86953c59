/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_UNIT_SERVER_FIXTURE_H
#define WEFT_TESTS_UNIT_SERVER_FIXTURE_H

#include "net/server.h"

/* A server that listens and has its store open: one try. The caller ends it with _free(). */
WEFT_MUST_CHECK static inline enum weft_rc
weft_server_start(const struct weft_server_config *config, struct weft_server **ret_server,
                  struct weft_err *err)
{
    struct weft_server *server;
    enum weft_rc rc = weft_server_listen(config, &server, err);
    if (rc)
        return rc;
    rc = weft_server_open(server, err);
    if (rc)
        weft_server_free(server);
    else
        *ret_server = server;
    return rc;
}

#endif
