/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The result is a tree of nodes. A chunk is merged into it member by member, each by a rule; rules
 * name the rules of what lies below, so the depth of the tree is that of the tables.
 */

#include "core/chat_chunks.h"

#include "base/arena.h"
#include "base/buf.h"
#include "core/json_mend.h"

#include <assert.h>
#include <string.h>

enum { NODES_MAX = 16384, CHILDREN_MAX = 512 };

/* How the values that a member has in the chunks become one. */
enum how {
    LAST,     /* the last one that is neither null nor an empty string */
    JOIN,     /* strings and arrays: all of them, one behind the other; others as LAST */
    MEMBERS,  /* objects: member by member; others as LAST */
    BY_INDEX, /* arrays of objects: those with the same index are one; others as LAST */
    CONSTANT, /* whatever it is, `as` */
    SKIP,
};

struct rule {
    const char *key; /* NULL: any other member; the last of its table */
    enum how how;
    const struct rule *below; /* MEMBERS; for each element of BY_INDEX */
    const char *as;           /* its key in the result, where that is another one */
};

/* clang-format off */
static const struct rule function_rules[] = {
    {.key = "arguments", .how = JOIN},
    {.how = LAST},
};
static const struct rule tool_call_rules[] = {
    {.key = "index", .how = SKIP},
    {.key = "function", .how = MEMBERS, .below = function_rules},
    {.how = LAST},
};
static const struct rule audio_rules[] = {
    {.key = "data", .how = JOIN},
    {.key = "transcript", .how = JOIN},
    {.how = LAST},
};
static const struct rule delta_rules[] = {
    {.key = "role", .how = LAST},
    {.key = "tool_calls", .how = BY_INDEX, .below = tool_call_rules},
    {.key = "function_call", .how = MEMBERS, .below = function_rules},
    {.key = "audio", .how = MEMBERS, .below = audio_rules},
    {.how = JOIN}, /* content, refusal, and what other servers have: reasoning_content */
};
static const struct rule logprobs_rules[] = {
    {.how = JOIN},
};
static const struct rule choice_rules[] = {
    {.key = "delta", .how = MEMBERS, .below = delta_rules, .as = "message"},
    {.key = "logprobs", .how = MEMBERS, .below = logprobs_rules},
    {.how = LAST},
};
static const struct rule chunk_rules[] = {
    {.key = "object", .how = CONSTANT, .as = "\"chat.completion\""},
    {.key = "choices", .how = BY_INDEX, .below = choice_rules},
    {.key = "obfuscation", .how = SKIP}, /* padding that hides the sizes of chunks */
    {.how = LAST},
};
/* clang-format on */

enum form {
    UNSET,
    VALUE,  /* buf: any JSON value */
    TEXT,   /* buf: a string without its last quote */
    ITEMS,  /* buf: an array without its last bracket */
    OBJECT, /* children with keys */
    LIST,   /* children by index */
};

struct node {
    struct node *next;         /* the next child of the same parent */
    struct node *first, *last; /* children */
    struct node *made_before;  /* of all nodes */
    const char *key;           /* of a member, decoded, in arena */
    int64_t index;             /* of an element */
    size_t children;
    enum form form;
    struct weft_buf buf;
};

struct weft_chat_chunks {
    struct weft_arena *arena;
    struct node root;
    struct node *made;  /* the newest node */
    size_t nodes, size; /* bytes in keys and buffers */
    size_t size_max;
    bool masked; /* some chunk was */

    /* While a chunk is added. */
    const char *text, *original; /* of the chunk */
    struct weft_err *err;
    enum weft_rc rc;
};

struct weft_chat_chunks *weft_chat_chunks_new(size_t size_max)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_chat_chunks *chunks = weft_new(arena, struct weft_chat_chunks);
    chunks->arena = arena;
    chunks->size_max = size_max;
    chunks->root.form = OBJECT;
    return chunks;
}

void weft_chat_chunks_free(struct weft_chat_chunks *chunks)
{
    if (!chunks)
        return;
    for (struct node *node = chunks->made; node; node = node->made_before)
        weft_buf_done(&node->buf);
    weft_arena_free(chunks->arena);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

/*
 * The first failure stays in chunks->rc, and nothing is merged after it. Functions that give a node
 * give NULL then.
 */
static struct node *refuse(struct weft_chat_chunks *chunks, enum weft_rc rc, const char *why)
{
    if (!chunks->rc)
        chunks->rc = weft_fail(chunks->err, rc, "%s", why);
    return NULL;
}

static bool take_room(struct weft_chat_chunks *chunks, size_t size)
{
    if (chunks->rc || size > chunks->size_max - chunks->size) {
        (void)refuse(chunks, WEFT_TOO_LARGE, "the streamed completion is larger than its limit");
        return false;
    }
    chunks->size += size;
    return true;
}

/* A new child behind `before`; NULL: as the first. */
static struct node *add_child(struct weft_chat_chunks *chunks, struct node *parent,
                              struct node *before)
{
    if (chunks->nodes == NODES_MAX || parent->children == CHILDREN_MAX)
        return refuse(chunks, WEFT_TOO_LARGE, "the streamed completion has too many members");
    struct node *node = weft_new(chunks->arena, struct node);
    weft_buf_init(&node->buf, chunks->size_max + 1); /* with the quote or bracket at its end */
    node->made_before = chunks->made;
    chunks->made = node;
    chunks->nodes++;
    parent->children++;
    struct node **link = before ? &before->next : &parent->first;
    node->next = *link;
    *link = node;
    if (!node->next)
        parent->last = node;
    return node;
}

static void put(struct weft_chat_chunks *chunks, struct node *node, const char *text, size_t size)
{
    if (take_room(chunks, size))
        weft_buf_add(&node->buf, text, size);
}

/* Makes a node one of another form, without what its buffer had; children stay. */
static void reform(struct weft_chat_chunks *chunks, struct node *node, enum form form)
{
    chunks->size -= node->buf.size;
    weft_buf_clear(&node->buf);
    node->form = form;
}

static bool is_null(const struct node *node)
{
    return node->form == UNSET || (node->form == VALUE && strcmp(node->buf.data, "null") == 0);
}

/* The child of an object with the key of a member, made if it is not there. */
static struct node *member_of(struct weft_chat_chunks *chunks, struct node *parent,
                              const struct weft_json *key, const char *as)
{
    for (struct node *node = parent->first; node; node = node->next)
        if (as ? strcmp(node->key, as) == 0 : weft_json_is(key, node->key))
            return node;
    const char *name = as;
    if (!as && weft_json_string(key, chunks->arena, &name, NULL))
        return refuse(chunks, WEFT_INVALID_VALUE, "a chunk has U+0000 in a key");
    struct node *node =
        take_room(chunks, strlen(name)) ? add_child(chunks, parent, parent->last) : NULL;
    if (node)
        node->key = name;
    return node;
}

/* The child of a list with that index, made in its place if it is not there. */
static struct node *element_of(struct weft_chat_chunks *chunks, struct node *list, int64_t index)
{
    struct node *before = NULL, *node = list->first;
    if (index < 0 || index == INT64_MAX)
        return refuse(chunks, WEFT_INVALID_VALUE, "a chunk has an index that is none");
    while (node && node->index < index) {
        before = node;
        node = node->next;
    }
    if (node && node->index == index)
        return node;
    node = add_child(chunks, list, before);
    if (node) {
        node->index = index;
        node->form = OBJECT;
    }
    return node;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static void set_last(struct weft_chat_chunks *chunks, struct node *node,
                     const struct weft_json *value)
{
    bool says_nothing = value->kind == WEFT_JSON_NULL || weft_json_is(value, "");
    bool leaf = node->form != OBJECT && node->form != LIST;
    if (node->form != UNSET && (says_nothing || !leaf))
        return;
    reform(chunks, node, VALUE);
    put(chunks, node, value->text, value->size);
}

/* Makes a leaf what strings or items are joined in. */
static void open_leaf(struct weft_chat_chunks *chunks, struct node *node, enum form form)
{
    if (node->form == form)
        return;
    reform(chunks, node, form);
    put(chunks, node, form == TEXT ? "\"" : "[", 1);
}

static void join_text(struct weft_chat_chunks *chunks, struct node *node,
                      const struct weft_json *value)
{
    const char *inside = chunks->original + (value->text - chunks->text) + 1;
    open_leaf(chunks, node, TEXT);
    put(chunks, node, inside, value->size - 2);
}

static void join_items(struct weft_chat_chunks *chunks, struct node *node,
                       const struct weft_json *value)
{
    struct weft_json_iter item;
    open_leaf(chunks, node, ITEMS);
    weft_json_iter_init(&item, value);
    while (!chunks->rc && weft_json_next(&item)) {
        put(chunks, node, ",", node->buf.size > 1);
        put(chunks, node, item.value.text, item.value.size);
    }
}

/* The index that an element gives itself; else what there is to go by. */
static int64_t index_of(const struct node *list, const struct weft_json *element, int64_t place)
{
    struct weft_json_iter member;
    int64_t index;
    bool has_id = false;
    weft_json_iter_init(&member, element);
    while (weft_json_next(&member)) {
        if (weft_json_is(&member.key, "index") && weft_json_i64(&member.value, &index))
            return index;
        has_id |= weft_json_is(&member.key, "id");
    }
    /* Without an index, an id begins another tool call; a choice is known by its place. */
    return has_id && list->last ? list->last->index + 1 : place;
}

static void merge_members(struct weft_chat_chunks *chunks, struct node *node,
                          const struct weft_json *object, const struct rule *rules);

/* NOLINTNEXTLINE(misc-no-recursion): bounded by the depth of the tables of rules */
static void merge_list(struct weft_chat_chunks *chunks, struct node *list,
                       const struct weft_json *array, const struct rule *below)
{
    struct weft_json_iter item;
    weft_json_iter_init(&item, array);
    for (int64_t place = 0; !chunks->rc && weft_json_next(&item); place++) {
        struct node *element =
            item.value.kind == WEFT_JSON_OBJECT
                ? element_of(chunks, list, index_of(list, &item.value, place))
                : refuse(chunks, WEFT_INVALID_VALUE, "a chunk has a choice that is no object");
        if (element)
            merge_members(chunks, element, &item.value, below);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by the depth of the tables of rules */
static void merge_value(struct weft_chat_chunks *chunks, struct node *node,
                        const struct weft_json *value, const struct rule *rule)
{
    enum weft_json_kind kind = value->kind;
    if (rule->how == CONSTANT) {
        reform(chunks, node, VALUE);
        put(chunks, node, rule->as, strlen(rule->as));
    } else if (rule->how == JOIN && kind == WEFT_JSON_STRING) {
        join_text(chunks, node, value);
    } else if (rule->how == JOIN && kind == WEFT_JSON_ARRAY) {
        join_items(chunks, node, value);
    } else if (rule->how == MEMBERS && kind == WEFT_JSON_OBJECT) {
        reform(chunks, node, OBJECT);
        merge_members(chunks, node, value, rule->below);
    } else if (rule->how == BY_INDEX && kind == WEFT_JSON_ARRAY) {
        reform(chunks, node, LIST);
        merge_list(chunks, node, value, rule->below);
    } else {
        set_last(chunks, node, value);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by the depth of the tables of rules */
static void merge_members(struct weft_chat_chunks *chunks, struct node *node,
                          const struct weft_json *object, const struct rule *rules)
{
    struct weft_json_iter member;
    weft_json_iter_init(&member, object);
    while (!chunks->rc && weft_json_next(&member)) {
        const struct rule *rule = rules;
        while (rule->key && !weft_json_is(&member.key, rule->key))
            rule++;
        if (rule->how == SKIP)
            continue;
        const char *as = rule->how == CONSTANT ? NULL : rule->as;
        struct node *child = member_of(chunks, node, &member.key, as);
        if (child)
            merge_value(chunks, child, &member.value, rule);
    }
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

bool weft_chat_chunk_is(const struct weft_json *value)
{
    struct weft_json_iter member;
    bool choices = false;
    if (value->kind != WEFT_JSON_OBJECT)
        return false;
    weft_json_iter_init(&member, value);
    while (weft_json_next(&member)) {
        if (weft_json_is(&member.key, "choices"))
            choices = member.value.kind == WEFT_JSON_ARRAY;
        else if (weft_json_is(&member.key, "object") && member.value.kind != WEFT_JSON_NULL &&
                 !weft_json_is(&member.value, ""))
            return weft_json_is(&member.value, "chat.completion.chunk");
    }
    return choices;
}

enum weft_rc weft_chat_chunks_add(struct weft_chat_chunks *chunks, const struct weft_json *chunk,
                                  const char *original, struct weft_err *err)
{
    assert(chunk->kind == WEFT_JSON_OBJECT);
    chunks->text = chunk->text;
    chunks->original = original;
    chunks->masked |= original != chunk->text;
    chunks->err = err;
    chunks->rc = WEFT_OK;
    merge_members(chunks, &chunks->root, chunk, chunk_rules);
    chunks->err = NULL;
    return chunks->rc;
}

static const struct node *child_named(const struct node *parent, const char *key)
{
    const struct node *node = parent->first;
    while (node && strcmp(node->key, key) != 0)
        node = node->next;
    return node;
}

bool weft_chat_chunks_finished(const struct weft_chat_chunks *chunks)
{
    const struct node *choices = child_named(&chunks->root, "choices");
    if (!choices || choices->form != LIST || !choices->first)
        return false;
    for (const struct node *choice = choices->first; choice; choice = choice->next) {
        const struct node *reason = child_named(choice, "finish_reason");
        if (!reason || is_null(reason))
            return false;
    }
    return true;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void write_text(const struct weft_chat_chunks *chunks, struct node *node,
                       struct weft_json_writer *out)
{
    struct weft_buf *text = &node->buf, mended;
    weft_buf_add_char(text, '"');
    if (!chunks->masked) {
        weft_json_put_raw(out, text->data, text->size);
        return;
    }
    weft_buf_init(&mended, WEFT_MEND_SIZE(text->size));
    weft_json_mend(text->data, text->size, &mended);
    weft_json_put_raw(out, mended.data, mended.size);
    weft_buf_done(&mended);
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by the depth of the tables of rules */
static void write_node(const struct weft_chat_chunks *chunks, struct node *node,
                       struct weft_json_writer *out)
{
    switch (node->form) {
    case UNSET:
        weft_json_put_null(out);
        return;
    case TEXT:
        write_text(chunks, node, out);
        return;
    case ITEMS:
        weft_buf_add_char(&node->buf, ']');
        weft_json_put_raw(out, node->buf.data, node->buf.size);
        return;
    case VALUE:
        weft_json_put_raw(out, node->buf.data, node->buf.size);
        return;
    case OBJECT:
    case LIST:
        break;
    }
    bool object = node->form == OBJECT;
    weft_json_begin(out, object);
    for (struct node *child = node->first; child; child = child->next) {
        if (object)
            weft_json_key(out, child->key);
        write_node(chunks, child, out);
    }
    weft_json_end(out, object);
}

void weft_chat_chunks_write(struct weft_chat_chunks *chunks, struct weft_buf *buf)
{
    struct weft_json_writer out;
    weft_json_writer_init(&out, buf);
    write_node(chunks, &chunks->root, &out);
}
