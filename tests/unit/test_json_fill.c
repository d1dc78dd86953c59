/* SPDX-License-Identifier: Apache-2.0 */

/* JSON pointers, and bodies filled from other documents. */

#include "core/json_fill.h"

#include "base/buf.h"
#include "base/limits.h"
#include "tap.h"

static struct weft_json json(const char *text)
{
    struct weft_json value = {0};
    struct weft_err err = {0};
    ok(weft_json_check(text, strlen(text), &value, &err) == WEFT_OK, "JSON: %.60s", text);
    return value;
}

static void test_check(void)
{
    static const struct {
        const char *pointer;
        enum weft_rc rc;
    } row[] = {
        {"", WEFT_OK},
        {"/", WEFT_OK},
        {"/a/0/b", WEFT_OK},
        {"/~0~1", WEFT_OK},
        {"/-", WEFT_OK},
        {"a", WEFT_INVALID_VALUE},
        {"#/a", WEFT_INVALID_VALUE},
        {"/~", WEFT_INVALID_VALUE},
        {"/~2", WEFT_INVALID_VALUE},
        {"/a~/b", WEFT_INVALID_VALUE},
    };
    struct weft_err err = {0};
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_int(weft_json_pointer_check(row[i].pointer, &err), row[i].rc, "pointer '%s'",
               row[i].pointer);
    is_str(err.field, "from", "the error names the field");

    char longest[WEFT_JSON_POINTER_MAX + 2];
    memset(longest, '/', sizeof(longest));
    longest[WEFT_JSON_POINTER_MAX] = '\0';
    is_int(weft_json_pointer_check(longest, &err), WEFT_OK, "a pointer of the greatest length");
    longest[WEFT_JSON_POINTER_MAX] = '/';
    longest[WEFT_JSON_POINTER_MAX + 1] = '\0';
    is_int(weft_json_pointer_check(longest, &err), WEFT_TOO_LARGE, "a longer one");
}

/* RFC 6901, section 5, and what leads nowhere. `value` NULL: the text of the error. */
static void test_find(void)
{
    struct weft_json document = json(
        "{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,\"g|h\":4,"
        "\"i\\\\j\":5,\"k\\\"l\":6,\" \":7,\"m~n\":8,\"\\u00e9\":9,\"~1\":10,"
        "\"two\":1,\"two\":2,\"o\":{ \"p\" : [[ ],{\"q\":1.50e+3}] },\"0\":11}");
    static const struct {
        const char *pointer, *value, *error;
    } row[] = {
        {"/foo", "[\"bar\",\"baz\"]", NULL},
        {"/foo/0", "\"bar\"", NULL},
        {"/foo/1", "\"baz\"", NULL},
        {"/", "0", NULL},
        {"/a~1b", "1", NULL},
        {"/c%d", "2", NULL},
        {"/e^f", "3", NULL},
        {"/g|h", "4", NULL},
        {"/i\\j", "5", NULL},
        {"/k\"l", "6", NULL},
        {"/ ", "7", NULL},
        {"/m~0n", "8", NULL},
        {"/\xc3\xa9", "9", NULL},
        {"/~01", "10", NULL},
        {"/0", "11", NULL},
        {"/o/p/0", "[ ]", NULL},
        {"/o/p/1/q", "1.50e+3", NULL},
        {"/two", NULL, "/two in x is there more than once"},
        {"/foo/2", NULL, "/foo/2 in x does not exist"},
        {"/foo/-", NULL, "/foo/- in x is no index of that array"},
        {"/foo/00", NULL, "/foo/00 in x is no index of that array"},
        {"/foo/01", NULL, "/foo/01 in x is no index of that array"},
        {"/foo/+1", NULL, "/foo/+1 in x is no index of that array"},
        {"/foo/1 ", NULL, "/foo/1  in x is no index of that array"},
        {"/foo/", NULL, "/foo/ in x is no index of that array"},
        {"/foo/999999999999999", NULL, "/foo/999999999999999 in x does not exist"},
        {"/foo/18446744073709551616", NULL,
         "/foo/18446744073709551616 in x is no index of that array"},
        {"/o/p/2/q/r", NULL, "/o/p/2 in x does not exist"},
        {"/foo/0/1", NULL,
         "/foo/0/1 in x lies below a value that is neither an object nor an array"},
        {"/o/", NULL, "/o/ in x does not exist"},
        {"/nothing", NULL, "/nothing in x does not exist"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_json value = {0};
        struct weft_err err = {0};
        enum weft_rc rc = weft_json_pointer_find(&document, row[i].pointer, "x", &value, &err);
        char got[64] = "";
        memcpy(got, value.text ? value.text : "", value.size);
        is_str(rc ? NULL : got, row[i].value, "value of '%s'", row[i].pointer);
        is_str(rc ? err.text : NULL, row[i].error, "error of '%s'", row[i].pointer);
        is_int(rc, row[i].value ? WEFT_OK : WEFT_INVALID_VALUE, "code of '%s'", row[i].pointer);
    }
    struct weft_json value = {0};
    is_int(weft_json_pointer_find(&document, "", "x", &value, NULL), WEFT_OK, "the empty pointer");
    is_int(value.size, document.size, "leads to the whole document");
}

/* Fills and gives the text or the error, in static memory. */
static const char *fill(const char *body, const struct weft_json_fill *part, size_t count,
                        size_t max)
{
    static char text[4096];
    struct weft_json value = json(body);
    struct weft_err err = {0};
    struct weft_buf buf;
    weft_buf_init(&buf, max);
    enum weft_rc rc = weft_json_fill(&value, part, count, &buf, &err);
    (void)snprintf(text, sizeof(text), "%s", rc ? err.text : buf.data);
    if (rc)
        is_str(err.field, "from", "the error names the field");
    weft_buf_done(&buf);
    return text;
}

static void test_fill(void)
{
    struct weft_json draft = json(
        " {\"content\":\"a\\u0000\\ud83d\\ude00\\n\", \"n\":1e400,"
        "\"list\":[ 1 , 2 ]} ");
    struct weft_json text = json("\"plain\"");
#define DRAFT .document = draft, .name = "the result of draft"
    const struct weft_json_fill part[] = {
        {.target = "/m/1/content", .pointer = "/content", DRAFT},
        {.target = "/n", .pointer = "/n", DRAFT},
        {.target = "/m/0/content", .pointer = "", .document = text, .name = "the result of text"},
        {.target = "/all", .pointer = "/list", DRAFT},
    };
    const char *body =
        " {\"m\": [{\"content\":null} ,{\"content\":null}],\"n\":-0.0,"
        "\"all\":{\"x\":[]} , \"rest\":\"\\u0041\"}\n";
    is_str(fill(body, part, 4, 4096),
           "{\"m\": [{\"content\":\"plain\"} ,{\"content\":\"a\\u0000\\ud83d\\ude00\\n\"}],"
           "\"n\":1e400,\"all\":[ 1 , 2 ] , \"rest\":\"\\u0041\"}",
           "parts are copied byte for byte, in any order");
    is_str(fill(body, part, 0, 4096),
           "{\"m\": [{\"content\":null} ,{\"content\":null}],\"n\":-0.0,\"all\":{\"x\":[]} , "
           "\"rest\":\"\\u0041\"}",
           "without parts the body stays as it is");
    is_str(fill("null", &(struct weft_json_fill){.target = "", .pointer = "/list", DRAFT}, 1, 99),
           "[ 1 , 2 ]", "the whole body is filled");
    is_str(fill("[0]", &(struct weft_json_fill){.target = "/0", .pointer = "", DRAFT}, 1, 18),
           "the body has more than 18 bytes with what from puts into it",
           "a body that grows beyond its limit is refused");
}

static void test_refused(void)
{
    struct weft_json draft = json("{\"a\":[1]}");
    static const struct {
        const char *what, *one[2], *other[2], *error;
    } row[] = {
        {"no such place", {"/y", "/a"}, {0}, "/y in the body does not exist"},
        {"the end of an array",
         {"/list/-", "/a"},
         {0},
         "/list/- in the body is no index of that array"},
        {"no such value", {"/x", "/b/c"}, {0}, "/b in the result of draft does not exist"},
        {"the same place twice",
         {"/x", "/a"},
         {"/x", ""},
         "'/x' of the body would be filled twice, by '/x'"},
        {"the same place in other words",
         {"/~0", "/a"},
         {"/~0", ""},
         "'/~0' of the body would be filled twice, by '/~0'"},
        {"a place within another",
         {"/x/y", "/a"},
         {"/x", ""},
         "'/x/y' of the body would be filled twice, by '/x'"},
        {"a place within the whole",
         {"", "/a"},
         {"/list/0", ""},
         "'/list/0' of the body would be filled twice, by ''"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        const struct weft_json_fill part[] = {
            {.target = row[i].one[0], .pointer = row[i].one[1], DRAFT},
            {.target = row[i].other[0], .pointer = row[i].other[1], DRAFT},
        };
        is_str(fill("{\"x\":{\"y\":1},\"list\":[2],\"~\":3}", part, row[i].other[0] ? 2 : 1, 99),
               row[i].error, "%s", row[i].what);
    }
    struct weft_json_fill many[WEFT_HTTP_FILLS_MAX + 1];
    for (size_t i = 0; i < WEFT_LEN(many); i++)
        many[i] = (struct weft_json_fill){.target = "/x", .pointer = "", DRAFT};
    is_str(fill("{\"x\":0}", many, WEFT_LEN(many), 99), "from has at most 32 members, not 33",
           "too many parts");
#undef DRAFT
}

static void test_depth(void)
{
    enum { HALF = WEFT_JSON_DEPTH_MAX / 2 };
    char nested[2 * HALF + 2] = "", target[2 * HALF + 1] = "";
    memset(nested, '[', HALF);
    nested[HALF] = '1';
    memset(nested + HALF + 1, ']', HALF);
    for (size_t i = 0; i < HALF; i++) {
        target[2 * i] = '/';
        target[2 * i + 1] = '0';
    }
    struct weft_json_fill part = {
        .target = target, .pointer = "", .document = json(nested), .name = "itself"};
    size_t depth = strspn(fill(nested, &part, 1, 999), "[");
    is_int(depth, WEFT_JSON_DEPTH_MAX, "a body of the greatest depth");
    char deep[2 * WEFT_JSON_DEPTH_MAX + 1] = "";
    memset(deep, '[', WEFT_JSON_DEPTH_MAX);
    memset(deep + WEFT_JSON_DEPTH_MAX, ']', WEFT_JSON_DEPTH_MAX);
    part = (struct weft_json_fill){
        .target = "/0", .pointer = "", .document = json(deep), .name = "deep"};
    is_str(fill("[0]", &part, 1, 999),
           "the body is nested more than 64 deep with what from puts into it", "a deeper one");
}

int main(void)
{
    test_check();
    test_find();
    test_fill();
    test_refused();
    test_depth();
    return tap_done();
}
