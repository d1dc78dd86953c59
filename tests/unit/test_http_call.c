/* SPDX-License-Identifier: Apache-2.0 */

/* The payload of kind `http`: what is read, what is refused and which field is to blame. */

#include "core/http_call.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "tap.h"

static struct weft_arena *arena;

static const char *replace(const char *text, char from, char to)
{
    char *copy = weft_arena_strdup(arena, text);
    for (char *c = copy; (c = strchr(c, from));)
        *c = to;
    return copy;
}

/* Reads a payload that is written with ' in place of ". */
static enum weft_rc read_call(const char *quoted, struct weft_http_call *ret_call,
                              struct weft_err *err)
{
    struct weft_json payload;
    const char *text = replace(quoted, '\'', '"');
    enum weft_rc rc = weft_json_check(text, strlen(text), &payload, err);
    return rc ? rc : weft_http_call_read(&payload, arena, ret_call, err);
}

/* A call in one line, in the arena. */
static const char *show(const struct weft_http_call *call)
{
    const char *text =
        weft_arena_printf(arena, "%s %s%s%s", call->method, call->endpoint ? call->endpoint : "",
                          call->path ? call->path : "", call->url.text ? call->url.text : "");
    for (size_t i = 0; i < call->header_count; i++)
        text = weft_arena_printf(arena, "%s [%s: %s]", text, call->header[i].name,
                                 call->header[i].value);
    if (call->body)
        text = weft_arena_printf(arena, "%s %s=%.*s", text, call->json.text ? "json" : "bytes",
                                 (int)call->body_size, call->body);
    for (size_t i = 0; i < call->from_count; i++)
        text = weft_arena_printf(arena, "%s (%s < %s %s)", text, call->from[i].target,
                                 call->from[i].node, call->from[i].pointer);
    return weft_arena_printf(arena, "%s%s", text, call->stream ? " stream" : "");
}

static void test_good(void)
{
    /* clang-format off */
    static const struct {
        const char *payload, *shown;
    } row[] = {
        {"{'endpoint':'openai'}", "GET openai"},
        {"{'endpoint':'a/b:c','path':'/x?y','method':'DELETE'}", "DELETE a/b:c/x?y"},
        {"{'url':'HTTPS://H:443'}", "GET https://h/"},
        {"{'url':'http://127.1','body':{ 'a' : 1.0 }}",
         "POST http://127.0.0.1/ json={ 'a' : 1.0 }"},
        {"{'endpoint':'e','body':false,'method':'PUT'}", "PUT e json=false"},
        {"{'endpoint':'e','body':''}", "POST e json=''"},
        {"{'endpoint':'e','body_base64':'aGk=','stream':true}", "POST e bytes=hi stream"},
        {"{'endpoint':'e','body_base64':''}", "POST e bytes="},
        {"{'endpoint':'e','url':null,'path':null,'method':null,'headers':null,'body':null,"
         "'body_base64':null,'stream':null,'from':null}", "GET e"},
        {"{'endpoint':'e','headers':{}}", "GET e"},
        {"{'endpoint':'e','headers':{'X-A':'b; c=\\'d\\'','x_!#$%&*+.^`|~-':'','U':'\\u00e9'}}",
         "GET e [X-A: b; c='d'] [x_!#$%&*+.^`|~-: ] [U: \xc3\xa9]"},
        {"{'endpoint':'e','body':{'m':[{'c':null}],'':0},"
         "'from':{'/body/m/0/c':'draft#/body/x~1y','/body/':'a/b#','/body':'c#/#'}}",
         "POST e json={'m':[{'c':null}],'':0} (/m/0/c < draft /body/x~1y) (/ < a/b ) ( < c /#)"},
    };
    /* clang-format on */
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_http_call call;
        struct weft_err err = {0};
        enum weft_rc rc = read_call(row[i].payload, &call, &err);
        const char *shown = replace(rc ? err.text : show(&call), '"', '\'');
        is_str(shown, row[i].shown, "%s", row[i].payload);
    }
}

struct bad {
    const char *payload, *field, *why; /* why: a part of the error */
};

/* clang-format off */
static const struct bad bad_payload[] = {
    {"[]", "payload", "must be an object"},
    {"'x'", "payload", "must be an object"},
    {"{}", "endpoint", "either an endpoint or a url"},
    {"{'endpoint':1}", "endpoint", "must be a string"},
    {"{'endpoint':'e\\u0000'}", "endpoint", "U+0000"},
    {"{'endpoint':''}", "endpoint", "1 to 128"},
    {"{'endpoint':'a b'}", "endpoint", "1 to 128"},
    {"{'url':{}}", "url", "must be a string"},
    {"{'url':'h'}", "url", "must begin with"},
    {"{'url':'http://u:p@h/'}", "url", "has a user"},
    {"{'url':'http://h','path':'/x'}", "path", "goes with an endpoint"},
};

/* Members behind the name of an endpoint. */
static const struct bad bad_member[] = {
    {"'timeout':1", "payload", "unknown field \"timeout\""},
    {"'Body':1", "payload", "unknown field \"Body\""},
    {"'':null", "payload", "unknown field \"\""},
    {"'endpoint':'f'", "endpoint", "given twice"},
    {"'body':null,'body':1", "body", "given twice"},
    {"'url':'http://h'", "endpoint", "either an endpoint or a url"},
    {"'path':'x'", "path", "one slash"},
    {"'path':'//h/'", "path", "one slash"},
    {"'path':'/a/../b'", "path", "segment . or .."},
    {"'path':'/a\\r\\nb'", "path", "%XX"},
    {"'path':5", "path", "must be a string"},
    {"'method':''", "method", "capital letters"},
    {"'method':'post'", "method", "capital letters"},
    {"'method':'GET /'", "method", "capital letters"},
    {"'method':'GET\\r\\n'", "method", "capital letters"},
    {"'method':'ABCDEFGHIJKLMNOPQ'", "method", "capital letters"},
    {"'method':'CONNECT'", "method", "not allowed"},
    {"'method':'TRACE'", "method", "not allowed"},
    {"'headers':[]", "headers", "must be an object"},
    {"'headers':{'A':1}", "headers", "must be strings"},
    {"'headers':{'A':'x\\u0000'}", "headers", "U+0000"},
    {"'headers':{'A':'x\\r\\nB: y'}", "headers", "line break"},
    {"'headers':{'A':'x\\ny'}", "headers", "line break"},
    {"'headers':{'A':'x\\ty'}", "headers", "control character"},
    {"'headers':{'A':'x\\u007f'}", "headers", "control character"},
    {"'headers':{'A':'x\\u0085'}", "headers", "control character"},
    {"'headers':{'A':' x'}", "headers", "begins or ends"},
    {"'headers':{'A':'x '}", "headers", "begins or ends"},
    {"'headers':{'':'x'}", "headers", "the name of a header"},
    {"'headers':{'A:':'x'}", "headers", "the name of a header"},
    {"'headers':{'A B':'x'}", "headers", "the name of a header"},
    {"'headers':{':path':'x'}", "headers", "the name of a header"},
    {"'headers':{'A\\r\\nB':'x'}", "headers", "the name of a header"},
    {"'headers':{'\\u00e9':'x'}", "headers", "the name of a header"},
    {"'headers':{'x-a':'1','X-A':'2'}", "headers", "given twice"},
    {"'body':1,'body_base64':''", "body", "cannot both"},
    {"'body_base64':5", "body_base64", "must be a string"},
    {"'body_base64':'aGk'", "body_base64", "base64"},
    {"'body_base64':'a-k='", "body_base64", "base64"},
    {"'stream':'true'", "stream", "true or false"},
    {"'stream':1", "stream", "true or false"},
    {"'from':{'/body':'a#'}", "from", "needs a body"},
    {"'body_base64':'','from':{}", "from", "needs a body"},
    {"'body':0,'from':[]", "from", "must be an object"},
    {"'body':0,'from':{'/body':1}", "from", "pointers to strings"},
    {"'body':0,'from':{'/path':'a#'}", "from", "begin with /body"},
    {"'body':0,'from':{'/bodyx':'a#'}", "from", "begin with /body"},
    {"'body':0,'from':{'':'a#'}", "from", "begin with /body"},
    {"'body':0,'from':{'/body':'a'}", "from", "name of an upstream, #"},
    {"'body':0,'from':{'/body':'#/x'}", "from", "name of an upstream, #"},
    {"'body':0,'from':{'/body':'a b#'}", "from", "name of an upstream, #"},
    {"'body':0,'from':{'/body':'a#x'}", "from", "x is not a JSON pointer"},
    {"'body':[0],'from':{'/body/~':'a#'}", "from", "/~ is not a JSON pointer"},
    {"'body':[0],'from':{'/body/1':'a#'}", "from", "/1 in the body does not exist"},
    {"'body':[0],'from':{'/body/-':'a#'}", "from", "/- in the body is no index"},
};
/* clang-format on */

static void be_refused(const char *payload, const struct bad *row)
{
    struct weft_http_call call;
    struct weft_err err = {.text = "nothing"};
    enum weft_rc rc = read_call(payload, &call, &err);
    ok(rc == WEFT_INVALID_VALUE || rc == WEFT_UNKNOWN_FIELD, "%s is refused", payload);
    is_str(err.field, row->field, "the field of %s", payload);
    ok(strstr(err.text, row->why), "%s: %s", payload, err.text);
}

static void test_bad(void)
{
    for (size_t i = 0; i < WEFT_LEN(bad_payload); i++)
        be_refused(bad_payload[i].payload, &bad_payload[i]);
    for (size_t i = 0; i < WEFT_LEN(bad_member); i++)
        be_refused(weft_arena_printf(arena, "{'endpoint':'e',%s}", bad_member[i].payload),
                   &bad_member[i]);
}

static void test_forbidden(void)
{
    static const char *const name[] = {
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Authorization",
        "Connection",
        "Keep-Alive",
        "Proxy-Connection",
        "Proxy-Authorization",
        "TE",
        "Trailer",
        "Upgrade",
        "HTTP2-Settings",
        "Expect",
        "Accept-Encoding",
        "aUTHORIZATION",
        "hOST",
        "te",
        "Proxy-Authenticate",
    };
    for (size_t i = 0; i < WEFT_LEN(name); i++) {
        struct weft_http_call call;
        struct weft_err err = {0};
        const char *payload =
            weft_arena_printf(arena, "{'endpoint':'e','headers':{'X-A':'1','%s':'x'}}", name[i]);
        is_int(read_call(payload, &call, &err), WEFT_INVALID_VALUE, "%s is refused", name[i]);
        is_str(err.field, "headers", "%s: the field", name[i]);
    }
}

static void test_endpoint_headers(void)
{
    struct weft_http_call call = {0};
    struct weft_err err = {0};
    const struct weft_http_header set[] = {{"User-Agent", "u"}, {"x-API-key", "secret"}};
    is_int(read_call("{'endpoint':'e','headers':{'Accept':'a','X-Api-Key':'mine'}}", &call, &err),
           WEFT_OK, "a header that only the endpoint knows to be its own");
    is_str(weft_http_call_header(&call, "ACCEPT"), "a", "headers are found in either case");
    is_str(weft_http_call_header(&call, "Accep"), NULL, "by their whole name");
    is_int(weft_http_call_yields(&call, set, 1, &err), WEFT_OK,
           "a call without headers of the endpoint");
    is_int(weft_http_call_yields(&call, set, 2, &err), WEFT_INVALID_VALUE,
           "a call with one is refused");
    is_str(err.text, "the header x-API-key is set by the endpoint", "without a value in the text");
}

/* A payload with `count` members in an object, each made from its number. */
static enum weft_rc read_many(const char *begin, const char *member, size_t count, size_t pad)
{
    struct weft_buf buf;
    struct weft_http_call call;
    struct weft_err err = {0};
    weft_buf_init(&buf, 1 << 20);
    weft_buf_add_text(&buf, begin);
    for (size_t i = 0; i < count; i++) {
        weft_buf_printf(&buf, "%s'%s%zu':'a#", i ? "," : "", member, i);
        for (size_t j = 2; j < pad; j++)
            weft_buf_add_char(&buf, 'a');
        weft_buf_add_text(&buf, "'");
    }
    weft_buf_add_text(&buf, "}}");
    enum weft_rc rc = read_call(buf.data, &call, &err);
    weft_buf_done(&buf);
    return rc;
}

static void test_sizes(void)
{
    const char *headers = "{'endpoint':'e','headers':{";
    is_int(read_many(headers, "h", WEFT_HTTP_HEADERS_MAX, 2), WEFT_OK, "as many headers as may be");
    is_int(read_many(headers, "h", WEFT_HTTP_HEADERS_MAX + 1, 2), WEFT_TOO_LARGE, "one more");
    is_int(read_many(headers, "h", 1, WEFT_HTTP_HEADER_VALUE_MAX), WEFT_OK, "the largest value");
    is_int(read_many(headers, "h", 1, WEFT_HTTP_HEADER_VALUE_MAX + 1), WEFT_TOO_LARGE,
           "a larger one");
    is_int(read_many(headers, "h", 5, WEFT_HTTP_HEADER_VALUE_MAX), WEFT_TOO_LARGE,
           "headers that are too large together");
    const char *from =
        "{'endpoint':'e','body':[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
        "0,0,0,0,0,0,0,0,0,0,0],'from':{";
    is_int(read_many(from, "/body/", WEFT_HTTP_FILLS_MAX, 2), WEFT_OK, "as many parts as may be");
    is_int(read_many(from, "/body/", WEFT_HTTP_FILLS_MAX + 1, 2), WEFT_TOO_LARGE, "one more");
    char name[WEFT_HTTP_HEADER_NAME_MAX + 2] = "";
    memset(name, 'n', WEFT_HTTP_HEADER_NAME_MAX);
    struct weft_http_header header = {name, "v"};
    is_int(weft_http_header_check(&header, NULL), WEFT_OK, "the longest name");
    name[WEFT_HTTP_HEADER_NAME_MAX] = 'n';
    is_int(weft_http_header_check(&header, NULL), WEFT_INVALID_VALUE, "a longer one");
}

int main(void)
{
    arena = weft_arena_new();
    test_good();
    test_bad();
    test_forbidden();
    test_endpoint_headers();
    test_sizes();
    weft_arena_free(arena);
    return tap_done();
}
