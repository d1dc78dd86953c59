/* SPDX-License-Identifier: Apache-2.0 */

/* Streams folded into what a call without streaming would have given. In texts ' stands for ". */

#include "core/sse_fold.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "core/json_mend.h"
#include "tap.h"

#include <stdlib.h>

static struct weft_arena *arena;

#define E(data)     "data: " data "\n\n"
#define NAMED(name) "event: " name "\n"
#define HEAD        "'id':'c1','object':'chat.completion.chunk','created':5,'model':'m'"
#define CHUNK(more) E("{" HEAD "," more "}")
#define DELTA(more) CHUNK("'choices':[{'index':0,'delta':{" more "},'finish_reason':null}]")
#define DONE        E("[DONE]")
#define OBJECT      "{'id':'c1','object':'chat.completion','created':5,'model':'m','choices':["
#define STOP        CHUNK("'choices':[{'index':0,'delta':{},'finish_reason':'stop'}]")

struct row {
    const char *what, *stream, *result; /* NULL: an error code */
    enum weft_folded_kind kind;
    int status; /* of an error in the stream; an error code */
};

/* clang-format off */
static const struct row chat[] = {
    {"a completion",
     DELTA("'role':'assistant','content':'','refusal':null") DELTA("'content':'Hel'")
     DELTA("'content':'lo'") STOP
     CHUNK("'choices':[],'usage':{'total_tokens': 7}") DONE,
     OBJECT "{'index':0,'message':{'role':'assistant','content':'Hello','refusal':null},"
     "'finish_reason':'stop'}],'usage':{'total_tokens': 7}}", WEFT_FOLDED_JSON, 0},
    {"one chunk", E("{'object':'chat.completion.chunk','choices':[]}") DONE,
     "{'object':'chat.completion','choices':[]}", WEFT_FOLDED_JSON, 0},
    {"without [DONE], finished", DELTA("'content':'x'") STOP,
     OBJECT "{'index':0,'message':{'content':'x'},'finish_reason':'stop'}]}", WEFT_FOLDED_JSON, 0},
    {"without [DONE], cut", DELTA("'content':'x'"), NULL, 0, WEFT_UNAVAILABLE},
    {"one choice of two finished", STOP CHUNK("'choices':[{'index':1,'delta':{}}]"), NULL, 0,
     WEFT_UNAVAILABLE},
    {"[DONE] without a reason", DELTA("'content':'x'") DONE,
     OBJECT "{'index':0,'message':{'content':'x'},'finish_reason':null}]}", WEFT_FOLDED_JSON, 0},
    {"what follows [DONE] is ignored", STOP DONE DELTA("'content':'x'") E("junk")
     E("{'error':'x'}"),
     OBJECT "{'index':0,'message':{},'finish_reason':'stop'}]}", WEFT_FOLDED_JSON, 0},
    {"choices out of order",
     CHUNK("'choices':[{'index':2,'delta':{'content':'c'}}]")
     CHUNK("'choices':[{'index':0,'delta':{'content':'a'}},{'index':1,'delta':{'content':'b'}}]")
     CHUNK("'choices':[{'index':2,'delta':{'content':'C'},'finish_reason':'length'}]") DONE,
     OBJECT "{'index':0,'message':{'content':'a'}},{'index':1,'message':{'content':'b'}},"
     "{'index':2,'message':{'content':'cC'},'finish_reason':'length'}]}", WEFT_FOLDED_JSON, 0},
    {"choices without an index", CHUNK("'choices':[{'delta':{'content':'a'}},{'delta':{'content':"
     "'b'}}]")
     CHUNK("'choices':[{'delta':{'content':'A'}}]") DONE,
     OBJECT "{'message':{'content':'aA'}},{'message':{'content':'b'}}]}", WEFT_FOLDED_JSON, 0},
    {"tool calls",
     DELTA("'role':'assistant','content':null,'tool_calls':[{'index':0,'id':'t0','type':'function',"
           "'function':{'name':'f','arguments':''}}]")
     DELTA("'tool_calls':[{'index':0,'function':{'arguments':'{\\'a\\''}}]")
     DELTA("'tool_calls':[{'index':1,'id':'t1','type':'function','function':{'name':'g',"
     "'arguments':'{}'}}]")
     DELTA("'tool_calls':[{'index':0,'id':'','function':{'name':null,'arguments':': 1}'}}]")
     CHUNK("'choices':[{'index':0,'delta':{},'finish_reason':'tool_calls'}]") DONE,
     OBJECT "{'index':0,'message':{'role':'assistant','content':null,'tool_calls':["
     "{'id':'t0','type':'function','function':{'name':'f','arguments':'{\\'a\\': 1}'}},"
     "{'id':'t1','type':'function','function':{'name':'g','arguments':'{}'}}]},"
     "'finish_reason':'tool_calls'}]}", WEFT_FOLDED_JSON, 0},
    {"tool calls without an index",
     DELTA("'tool_calls':[{'id':'a','function':{'arguments':'1'}}]")
     DELTA("'tool_calls':[{'id':'b','function':{'arguments':'2'}}]") STOP,
     OBJECT "{'index':0,'message':{'tool_calls':[{'id':'a','function':{'arguments':'1'}},"
     "{'id':'b','function':{'arguments':'2'}}]},'finish_reason':'stop'}]}", WEFT_FOLDED_JSON, 0},
    {"a function call, as it once was",
     DELTA("'function_call':{'name':'f','arguments':'{'}") DELTA("'function_call':{'arguments':'}"
     "'}") STOP,
     OBJECT "{'index':0,'message':{'function_call':{'name':'f','arguments':'{}'}},"
     "'finish_reason':'stop'}]}", WEFT_FOLDED_JSON, 0},
    {"log probabilities",
     CHUNK("'choices':[{'index':0,'delta':{'content':'a'},'logprobs':{'content':[{'token':'a'}],"
     "'refusal':null}}]")
     CHUNK("'choices':[{'index':0,'delta':{'content':'b'},'logprobs':{'content':[{'token':'b'},1]}"
     "}]")
     CHUNK("'choices':[{'index':0,'delta':{},'logprobs':null,'finish_reason':'stop'}]") DONE,
     OBJECT "{'index':0,'message':{'content':'ab'},'logprobs':{'content':[{'token':'a'},{'token':"
     "'b'},1],"
     "'refusal':null},'finish_reason':'stop'}]}", WEFT_FOLDED_JSON, 0},
    {"no log probabilities",
     CHUNK("'choices':[{'index':0,'delta':{},'logprobs':null,'finish_reason':'stop'}]"),
     OBJECT "{'index':0,'message':{},'logprobs':null,'finish_reason':'stop'}]}",
     WEFT_FOLDED_JSON, 0},
    {"audio",
     DELTA("'audio':{'id':'x','transcript':'Hi'}") DELTA("'audio':{'data':'AA','transcript':"
     "' you'}")
     DELTA("'audio':{'data':'BB','expires_at':9}") STOP,
     OBJECT "{'index':0,'message':{'audio':{'id':'x','transcript':'Hi you','data':'AABB',"
     "'expires_at':9}},"
     "'finish_reason':'stop'}]}", WEFT_FOLDED_JSON, 0},
    {"members that are not known",
     CHUNK("'choices':[{'index':0,'delta':{'role':'assistant','reasoning_content':'th','x':[1]},"
     "'a':1}],'fp':null,'tier':'t'")
     CHUNK("'choices':[{'index':0,'delta':{'role':'assistant','reasoning_content':'ink','x':[2,{}"
     "],'n':3},'a':2}],'fp':'f','tier':''")
     CHUNK("'choices':[{'index':0,'delta':{'n':4},'a':null,'finish_reason':'stop'}],'fp':null,"
     "'last':[ 1 ]"),
     OBJECT "{'index':0,'message':{'role':'assistant','reasoning_content':'think','x':[1,2,{}],"
     "'n':4},'a':2,"
     "'finish_reason':'stop'}],'fp':'f','tier':'t','last':[ 1 ]}", WEFT_FOLDED_JSON, 0},
    {"a first chunk that says little, and padding",
     E("{'choices':[],'created':0,'id':'','model':'','object':'','filters':[1]}")
     DELTA("'content':'x'")
     CHUNK("'choices':[{'index':0,'delta':{},'finish_reason':'stop'}],'obfuscation':'zz'") DONE,
     "{'choices':[{'index':0,'message':{'content':'x'},'finish_reason':'stop'}],'created':5,"
     "'id':'c1','model':'m','object':'chat.completion','filters':[1]}", WEFT_FOLDED_JSON, 0},
    {"comments, empty events and others between",
     ": hi\n\ndata\n\n" DELTA("'content':'x'") NAMED("ping") E("{}") E("[1]")
     E("{'object':'x','id':'y'}")
     E("{'error':null}") E("{'error':''}") STOP DONE,
     OBJECT "{'index':0,'message':{'content':'x'},'finish_reason':'stop'}]}", WEFT_FOLDED_JSON, 0},
    {"escapes and other characters",
     DELTA("'content':'\\u0000\\n\\\\'") DELTA("'content':'\\ud83d\\ude00\xf0\x9f\x98\x80'")
     DELTA("'content':'\\u00e9\\/'") STOP,
     OBJECT "{'index':0,'message':{'content':"
     "'\\u0000\\n\\\\\\ud83d\\ude00\xf0\x9f\x98\x80\\u00e9\\/'},"
     "'finish_reason':'stop'}]}", WEFT_FOLDED_JSON, 0},
    {"a surrogate pair in two chunks", DELTA("'content':'a\\ud83d'")
     DELTA("'content':'\\ude00b'") STOP,
     OBJECT "{'index':0,'message':{'content':'a\\ud83d\\ude00b'},'finish_reason':'stop'}]}",
     WEFT_FOLDED_JSON, 0},
    {"a character in three chunks", DELTA("'content':'a\xe2'") DELTA("'content':'\x82'")
     DELTA("'content':'\xac'") STOP,
     OBJECT "{'index':0,'message':{'content':'a\xe2\x82\xac'},'finish_reason':'stop'}]}",
     WEFT_FOLDED_JSON, 0},
    {"halves that stay halves", DELTA("'content':'a\\ud83d','x':'\\udc00'")
     DELTA("'content':'\xe2\x82'")
     DELTA("'content':'b'") CHUNK("'choices':[{'index':0,'delta':{},'finish_reason':'\\ud800'}]"),
     OBJECT "{'index':0,'message':{'content':'a\\ufffd\\ufffd\\ufffdb','x':'\\ufffd'},"
     "'finish_reason':'\\ufffd'}]}", WEFT_FOLDED_JSON, 0},
    {"keys in other words", DELTA("'\\u0063ontent':'a','tool\\u005fcalls':null")
     DELTA("'content':'b'") STOP,
     OBJECT "{'index':0,'message':{'content':'ab','tool_calls':null},'finish_reason':'stop'}]}",
     WEFT_FOLDED_JSON, 0},
    {"values of changing kinds", DELTA("'content':5,'tool_calls':null,'audio':null")
     DELTA("'content':'a','tool_calls':[],'audio':{}") DELTA("'content':[1],'tool_calls':'x',"
     "'audio':7")
     DELTA("'content':null,'tool_calls':null,'audio':null") STOP,
     OBJECT "{'index':0,'message':{'content':[1],'tool_calls':[],'audio':{}},'finish_reason':"
     "'stop'}]}",
     WEFT_FOLDED_JSON, 0},
    {"a message before the delta",
     CHUNK("'choices':[{'message':{'content':'y'},'delta':{'content':'x'},"
           "'finish_reason':'stop'}]"),
     OBJECT "{'message':{'content':'x'},'finish_reason':'stop'}]}", WEFT_FOLDED_JSON, 0},
    {"a message behind it",
     CHUNK("'choices':[{'delta':{'content':'x'},'message':{'content':'y'},"
           "'finish_reason':'stop'}]"),
     OBJECT "{'message':{'content':'x'},'finish_reason':'stop'}]}", WEFT_FOLDED_JSON, 0},
    {"an event that is not JSON", DELTA("'content':'x'") E("{") STOP, NULL, 0, WEFT_INVALID_JSON},
    {"a choice that is no object", CHUNK("'choices':[1]"), NULL, 0, WEFT_INVALID_VALUE},
    {"a negative index", CHUNK("'choices':[{'index':-1}]"), NULL, 0, WEFT_INVALID_VALUE},
    {"a NUL in a key", CHUNK("'a\\u0000b':1"), NULL, 0, WEFT_INVALID_VALUE},
    {"an error in the middle", DELTA("'content':'x'") E("{'error':{'code':429,'message':"
     "'slow down'}}") DONE,
     "{'error':{'code':429,'message':'slow down'}}", WEFT_FOLDED_ERROR, 429},
    {"an error event in the middle", DELTA("'content':'x'") NAMED("error") E("overloaded"),
     "overloaded", WEFT_FOLDED_ERROR, 500},
    {"no last line end", DELTA("'content':'x'") STOP "data: [DONE]",
     OBJECT "{'index':0,'message':{'content':'x'},'finish_reason':'stop'}]}", WEFT_FOLDED_JSON, 0},
};

static const struct row others[] = {
    {"a response",
     NAMED("response.created") E("{'type':'response.created','response':{'id':'r','status':"
     "'in_progress'}}")
     NAMED("response.output_text.delta") E("{'type':'response.output_text.delta','delta':'Hi'}")
     NAMED("response.completed") E("{'type':'response.completed','response':{ 'id':'r','error':"
     "null,'status':'completed'}}"),
     "{ 'id':'r','error':null,'status':'completed'}", WEFT_FOLDED_JSON, 0},
    {"an incomplete response", E("{'type':'response.in_progress'}")
     E("{'response':{'id':'r'},'type':'response.incomplete'}") E("junk"), "{'id':'r'}",
     WEFT_FOLDED_JSON, 0},
    {"a response that is cut", E("{'type':'response.created','response':{'id':'r'}}"), NULL, 0,
     WEFT_UNAVAILABLE},
    {"a response without one", E("{'type':'response.completed','response':1}"), NULL, 0,
     WEFT_INVALID_VALUE},
    {"half a character in a response", E("{'type':'response.completed','response':{'a':"
     "'\\ud800\xff'}}"),
     "{'a':'\\ufffd?'}", WEFT_FOLDED_JSON, 0},
    {"a failed response", E("{'type':'response.created'}")
     E("{'type':'response.failed','response':{'error':{'code':'rate_limit_exceeded'}}}"),
     "{'type':'response.failed','response':{'error':{'code':'rate_limit_exceeded'}}}",
     WEFT_FOLDED_ERROR, 429},
    {"a failed response without a reason", E("{'type':'response.failed'}"),
     "{'type':'response.failed'}",
     WEFT_FOLDED_ERROR, 500},
    {"an error of a response", E("{'type':'response.created'}")
     E("{'type':'error','code':'server_error','message':'x'}"),
     "{'type':'error','code':'server_error','message':'x'}", WEFT_FOLDED_ERROR, 500},
    {"an error at once", E("{'error':{'status':'503'}}"), "{'error':{'status':'503'}}",
     WEFT_FOLDED_ERROR, 503},
    {"a status that is too large", E("{'error':{'status':600}}"), "{'error':{'status':600}}",
     WEFT_FOLDED_ERROR, 500},
    {"a status that is a text", E("{'error':{'status':'0429'}}"), "{'error':{'status':'0429'}}",
     WEFT_FOLDED_ERROR, 500},
    {"a status that is null", E("{'error':{'status':null,'code':'429'}}"),
     "{'error':{'status':null,'code':'429'}}", WEFT_FOLDED_ERROR, 429},
    {"an error in words", E("{'error':'no','code':418}"), "{'error':'no','code':418}",
     WEFT_FOLDED_ERROR, 418},
    {"a status that is none", E("{'error':{'code':200,'status':'4000','type':'x'}}"),
     "{'error':{'code':200,'status':'4000','type':'x'}}", WEFT_FOLDED_ERROR, 500},
    {"a bad request", E("{'error':{'code':null,'type':'invalid_request_error'}}"),
     "{'error':{'code':null,'type':'invalid_request_error'}}", WEFT_FOLDED_ERROR, 400},
    {"an error event without JSON", NAMED("error") E(""), "", WEFT_FOLDED_ERROR, 500},
    {"an error event in a text", E("a") NAMED("error") E("{'type':'error','error':{'type':"
     "'overloaded_error'}}") E("b"),
     "{'type':'error','error':{'type':'overloaded_error'}}", WEFT_FOLDED_ERROR, 529},
    {"no events", ": hi\n", ": hi\n", WEFT_FOLDED_TEXT, 0},
    {"nothing", "", "", WEFT_FOLDED_TEXT, 0},
    {"another stream", "id: 1\r" NAMED("message_start") E("{'type':'message_start'}") E("x") DONE,
     "id: 1\r" NAMED("message_start") E("{'type':'message_start'}") E("x") DONE,
     WEFT_FOLDED_TEXT, 0},
    {"[DONE] in another stream", E("a") DONE E("b"), E("a") DONE E("b"), WEFT_FOLDED_TEXT, 0},
    {"[DONE] first", DONE E("b"), DONE E("b"), WEFT_FOLDED_TEXT, 0},
    {"JSON that is no chunk", E("{'object':'text_completion','choices':[]}") DELTA("'content':'x'"),
     E("{'object':'text_completion','choices':[]}") DELTA("'content':'x'"), WEFT_FOLDED_TEXT, 0},
    {"errors that are none", E("{'error':null}") E("{'error':false}") E("{'error':''}"),
     E("{'error':null}") E("{'error':false}") E("{'error':''}"), WEFT_FOLDED_TEXT, 0},
    {"no event stream at all", "{'error':'x'}\n", "{'error':'x'}\n", WEFT_FOLDED_TEXT, 0},
};
/* clang-format on */

static char *json(const char *text)
{
    char *copy = weft_arena_strdup(arena, text);
    for (char *c = copy; (c = strchr(c, '\''));)
        *c = '"';
    return copy;
}

/* Feeds a stream in pieces, each in memory of exactly its size. */
static enum weft_rc feed(struct weft_sse_fold *fold, const char *stream, size_t cut, size_t step)
{
    size_t size = strlen(stream);
    enum weft_rc rc = WEFT_OK;
    for (size_t at = 0; at < size && !rc;) {
        size_t end = at < cut ? cut : size, piece = end - at < step ? end - at : step;
        void *copy = malloc(piece);
        memcpy(copy, stream + at, piece);
        rc = weft_sse_fold_add(fold, copy, piece, NULL);
        free(copy);
        at += piece;
    }
    return rc;
}

/* A result in one text: the code, or what it is and the data. */
static const char *run(const char *stream, size_t size_max, size_t cut, size_t step)
{
    struct weft_sse_fold *fold = weft_sse_fold_new(size_max);
    struct weft_folded folded = {0};
    const char *text;
    enum weft_rc rc = feed(fold, stream, cut, step);
    if (!rc)
        rc = weft_sse_fold_end(fold, &folded, NULL);
    if (rc)
        text = weft_arena_printf(arena, "code %d", rc);
    else
        text = weft_arena_printf(arena, "kind %d, status %d: %s", folded.kind, folded.status,
                                 folded.data);
    struct weft_json value;
    if (!rc && folded.kind == WEFT_FOLDED_JSON)
        ok(!weft_json_check(folded.data, folded.size, &value, NULL), "the result is JSON");
    weft_sse_fold_free(fold);
    return text;
}

static void test_rows(const struct row *row, size_t count)
{
    for (size_t i = 0; i < count; i++, row++) {
        const char *stream = json(row->stream);
        size_t size = strlen(stream);
        const char *want = row->result
                               ? weft_arena_printf(arena, "kind %d, status %d: %s", row->kind,
                                                   row->status, json(row->result))
                               : weft_arena_printf(arena, "code %d", row->status);
        is_str(run(stream, 4096, 0, size), want, "%s", row->what);
        is_str(run(stream, 4096, 0, 1), want, "%s, byte by byte", row->what);
        size_t different = 0;
        for (size_t cut = 1; cut < size; cut += 7)
            different += strcmp(run(stream, 4096, cut, size), want) != 0;
        is_int(different, 0, "%s, in two pieces", row->what);
    }
}

static void test_over(void)
{
    struct weft_sse_fold *fold = weft_sse_fold_new(4096);
    is_int(feed(fold, json(STOP), 0, 4096), WEFT_OK, "a chunk");
    ok(!weft_sse_fold_over(fold), "more may come");
    is_int(feed(fold, json(DONE), 0, 4096), WEFT_OK, "the last event");
    ok(weft_sse_fold_over(fold), "the result is known");
    weft_sse_fold_free(fold);
    weft_sse_fold_free(NULL);
}

/* Many chunks of a text: memory is that of the result. */
static void test_sizes(void)
{
    enum { MAX = 1000 };
    static const struct {
        const char *what, *first, *event;
        size_t times;
        bool good;
    } row[] = {
        {"joined texts up to the limit", "", DELTA("'content':'xxxxxxxx'"), 105, true},
        {"joined texts beyond it", "", DELTA("'content':'xxxxxxxx'"), 130, false},
        {"values that replace each other", "", CHUNK("'choices':[],'x':'xxxxxxxxxxxx'"), 1000,
         true},
        {"events without end that do not count", DELTA("'content':'x'"),
         E("{'x':'xxxxxxxxxxxxxx'}"), 1000, true},
        {"comments without end", DELTA("'content':'x'"), ": xxxxxxxxxxxxxxx\n\n", 1000, true},
        {"items without end", "", DELTA("'x':[1,2]"), 500, false},
        {"another stream up to the limit", "", "data: 78\n\n", 100, true},
        {"another stream beyond it", "", "data: 78\n\n", 101, false},
        {"a line without end", DELTA("'content':'x'"), "xxxxxxxxxx", 200, false},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_sse_fold *fold = weft_sse_fold_new(MAX);
        struct weft_folded folded;
        const char *event = json(row[i].event);
        enum weft_rc rc = feed(fold, json(row[i].first), 0, MAX);
        for (size_t j = 0; j < row[i].times && !rc; j++)
            rc = feed(fold, event, 0, MAX);
        if (!rc && strstr(json(row[i].first), "chunk"))
            rc = feed(fold, json(DONE), 0, MAX);
        if (!rc && row[i].good && strstr(event, "chunk"))
            rc = feed(fold, json(DONE), 0, MAX);
        if (!rc)
            rc = weft_sse_fold_end(fold, &folded, NULL);
        is_int(rc, row[i].good ? WEFT_OK : WEFT_TOO_LARGE, "%s", row[i].what);
        weft_sse_fold_free(fold);
    }
}

/* An error that comes with the bytes that exceed the limit. */
static void test_error_at_the_limit(void)
{
    struct weft_sse_fold *fold = weft_sse_fold_new(100);
    struct weft_folded folded = {0};
    for (size_t i = 0; i < 11; i++)
        ok(!feed(fold, "data: 7\n\n", 0, 100), "bytes of a text");
    is_int(feed(fold, json(E("{'error':{'code':404}}")), 0, 100), WEFT_OK, "an error");
    is_int(weft_sse_fold_end(fold, &folded, NULL), WEFT_OK, "is a result");
    is_int(folded.status, 404, "with its status");
    weft_sse_fold_free(fold);
}

/* More members and elements than a completion has. */
static void test_counts(void)
{
    struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    for (size_t count = 512; count <= 513; count++) {
        weft_buf_clear(&buf);
        weft_buf_add_text(&buf, "data: {\"object\":\"chat.completion.chunk\",\"choices\":[");
        for (size_t i = 0; i < count; i++)
            weft_buf_printf(&buf, "%s{\"index\":%zu}", i ? "," : "", count - i);
        weft_buf_add_text(&buf, "]}\n\ndata: [DONE]\n\n");
        const char *got = run(buf.data, 1 << 20, 0, buf.size);
        is_int(strncmp(got, "kind 0", 6) == 0, count == 512, "%zu choices", count);
    }
    weft_buf_done(&buf);
}

static void test_mend(void)
{
    static const struct {
        const char *given, *masked, *mended; /* mended: the inside without the quotes */
    } row[] = {
        {"\"\"", "\"\"", ""},
        {"\"a\\n\\\"\\\\\"", "\"a\\n\\\"\\\\\"", "a\\n\\\"\\\\"},
        {"\"\\ud83d\\ude00\"", "\"\\ud83d\\ude00\"", "\\ud83d\\ude00"},
        {"\"\\ud83d\"", "\"\\ufffd\"", "\\ufffd"},
        {"\"\\uDE00\"", "\"\\ufffd\"", "\\ufffd"},
        {"\"\\ude00\\ud83d\"", "\"\\ufffd\\ufffd\"", "\\ufffd\\ufffd"},
        {"\"\\ud83d\\ud83d\\ude00\"", "\"\\ufffd\\ud83d\\ude00\"", "\\ufffd\\ud83d\\ude00"},
        {"\"\\udc00\\udc00\"", "\"\\ufffd\\ufffd\"", "\\ufffd\\ufffd"},
        {"\"\\u0041\\udc00\"", "\"\\u0041\\ufffd\"", "\\u0041\\ufffd"},
        {"\"\\ud83d\\n\"", "\"\\ufffd\\n\"", "\\ufffd\\n"},
        {"\"\\\\ud83d\"", "\"\\\\ud83d\"", "\\\\ud83d"},
        {"\"\xe2\x82\"", "\"\?\?\"", "\\ufffd\\ufffd"},
        {"\"\xe2\x82\xac\"", "\"\xe2\x82\xac\"", "\xe2\x82\xac"},
        {"\"\xff\xc3\xa9\xc0\"", "\"?\xc3\xa9?\"", "\\ufffd\xc3\xa9\\ufffd"},
        {"{\"\\ud800\":\"\\udbff\"}", "{\"\\ufffd\":\"\\ufffd\"}", NULL},
        {"\xff \\ud800 \"\\u12", "\xff \\ud800 \"\\u12", NULL},
        {"\"\\", "\"\\", NULL},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        char *text = weft_arena_strdup(arena, row[i].given);
        size_t size = strlen(text);
        struct weft_buf buf;
        weft_json_mask(text, size);
        is_str(text, row[i].masked, "row %zu: masked", i);
        if (!row[i].mended)
            continue;
        weft_buf_init(&buf, WEFT_MEND_SIZE(size - 2));
        weft_json_mend(row[i].given + 1, size - 2, &buf);
        is_str(buf.data, row[i].mended, "row %zu: mended", i);
        ok(!buf.full, "row %zu: within the size that is foreseen", i);
        weft_buf_done(&buf);
    }
}

int main(void)
{
    arena = weft_arena_new();
    test_rows(chat, WEFT_LEN(chat));
    test_rows(others, WEFT_LEN(others));
    test_over();
    test_sizes();
    test_error_at_the_limit();
    test_counts();
    test_mend();
    weft_arena_free(arena);
    return tap_done();
}
