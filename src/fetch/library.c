/* SPDX-License-Identifier: Apache-2.0 */

#include "fetch/library.h"

#include <curl/curl.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode ready;

static void init_curl(void)
{
    ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

enum weft_rc weft_fetch_library(struct weft_err *err)
{
    (void)pthread_once(&once, init_curl);
    if (ready == CURLE_OK)
        return WEFT_OK;
    return weft_fail(err, WEFT_INTERNAL, "libcurl does not start: %s", curl_easy_strerror(ready));
}
