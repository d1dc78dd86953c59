/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_UPSTREAM_UPSTREAM_H
#define WEFT_TESTS_UPSTREAM_UPSTREAM_H

/*
 * A web server for tests and benchmarks of outgoing calls, which misbehaves as the path says.
 *
 *     upstream [--address 127.0.0.1] [--port 0]
 *
 * It prints its port on stdout and ends at SIGTERM or when its stdin closes (not where stdin is a
 * file or /dev/null). One thread, plain HTTP/1.1, connections are kept alive. Requests are counted
 * by their headers X-Weft-Execution and X-Weft-Epoch.
 *
 * Each path takes ?wait=MS: so long nothing is said. What a server should not do but a path does is
 * told as "..., but". N, K, MS are numbers.
 *
 *     /seen                  {"requests":N,"repeated":N,"seen":[{"execution","epoch","count"}]};
 *                            repeated: how many of these pairs came more than once
 *     /open                  {"open":N,"accepted":N,"left":N}: connections now and ever; how often
 *                            a client closed one before the end of an answer
 *     /reset                 forget what was seen
 *
 *     /ok (and any other)    {"ok":true}
 *     /echo                  {"method","path","query","head","size","body"} of the request
 *     /status/CODE           ?retry-after=SECONDS, or ?retry-date=SECONDS for a date from now on
 *     /first/K/CODE          CODE for the first K requests of an execution, then 200
 *     /every/K/CODE          CODE for every K-th request of all, else 200
 *     /delay/MS              {"ok":true} after a while
 *     /bytes/N               N bytes; /bytes/N/K/MS: in pieces of K bytes, one each MS
 *     /http10                HTTP/1.0, the end of the body is the end of the connection
 *     /continue              100 before the body is read; /hints 103 before the answer;
 *     /only-continue         100, then nothing, but for ever
 *     /early                 413 as soon as the head is there, without reading the body
 *     /gzip /deflate         {"ok":true}, compressed; /gzip-cut: its end is missing
 *     /gzip-bomb             zeros, but endless, about 160 for each byte sent
 *     /redirect/K            K redirects in this origin, then {"ok":true}; ?status=CODE (302)
 *     /redirect/host/PORT    to http://localhost:PORT/ok; /redirect/port/PORT: to 127.0.0.1:PORT
 *     /v1/chat/completions /v1/responses   in the form of OpenAI, a stream if the body says
 *                            "stream":true; ?n=WORDS (5), ms=MS between events, bytes=K: in pieces
 *                            of K bytes, comment=1: with comments, crlf=1: lines end with CRLF,
 *                            stop=K: hangs up after K events, stall=K: says nothing more after them
 *     /sse/chat /sse/responses             the same, always a stream
 *
 *     /hang-up/before        closes instead of answering; /hang-up/head, /hang-up/body: in there
 *     /drop/before           the same with a reset; also /drop/head and /drop/body
 *     /hang-up/next          answers, but closes when the next request comes on the connection
 *     /hang-up/after         answers, but closes behind it
 *     /stray                 answers, and again 20 ms later though no second request came
 *     /length/long           says more bytes than it sends and closes; /length/open: does not close
 *     /length/short          says fewer bytes than it sends; /length/two, /length/word,
 *                            /length/negative, /length/huge: two lengths, no number, -1, 2^70
 *     /chunked               a body in chunks; /chunked/bad: no size; /chunked/huge: a size of
 *                            2^68; /chunked/cut: closes before the last one
 *     /head/N/K              N header lines of K bytes; /head/endless, /head/line: lines, or one
 *                            line, without end; /head/nul, /head/bytes: NUL, invalid UTF-8 in one
 *     /body/endless          a body without end; /body/bytes: NUL bytes and invalid UTF-8
 *     /garbage               bytes that are no HTTP; /garbage/status: "HTTP/1.1 abc";
 *                            /garbage/short: "HTTP" and the end; /garbage/endless: without end
 *     /switch                101, though no upgrade was asked for
 *     /silent                never answers; /unread: nor reads any further
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    char *data; /* owned */
    size_t size, capacity;
};

void bytes_add(struct bytes *bytes, const void *data, size_t size);
__attribute__((format(printf, 2, 3))) void bytes_print(struct bytes *bytes, const char *fmt, ...);
void bytes_done(struct bytes *bytes);

enum { PATH_MAX_SIZE = 512, NAME_MAX_SIZE = 48, KEPT_BODY_MAX = 4 << 20 };

struct request {
    char method[16];
    char path[PATH_MAX_SIZE];  /* without the query */
    char query[PATH_MAX_SIZE]; /* without the "?" */
    char execution[NAME_MAX_SIZE];
    int64_t epoch;
    bool keep_alive, expects_continue, chunked;
    int64_t length;
    struct bytes head; /* the header lines */
    struct bytes body; /* its first KEPT_BODY_MAX bytes */
    int64_t body_size;
    int64_t chunk_left; /* of the chunk that is being read; -1: its size comes next */
    uint64_t number;    /* of this request among all */
};

enum phase {
    READ_HEAD,
    READ_BODY,
    ANSWER, /* `step` makes the rest when `out` is sent and `wake_us` has come */
    HOLD,   /* nothing is said any more; the client will have to close */
};

enum ending { KEEP, CLOSE, RESET };

struct connection {
    struct connection *next, **previous; /* in the list of all */
    int fd;
    unsigned watched; /* events that epoll knows of */
    enum phase phase;
    enum ending ending; /* what becomes of it after the answer */
    bool unread;        /* do not read */
    bool close_at_next; /* close when the next request comes */
    struct bytes in, out;
    size_t taken; /* of `in` */
    size_t sent;  /* of `out` */
    struct request request;
    void (*step)(struct connection *connection); /* NULL: the answer is complete */
    int64_t wake_us;                             /* 0: does not wait */
    size_t heap_at;                              /* its place in the heap of waiters, from 1 */
    int64_t count, limit;                        /* of the steps */
    struct bytes more;                           /* sent piece by piece */
    size_t more_at;
};

/* How a path is answered. */
struct behaviour {
    const char *path; /* "/delay": also what is below it */
    void (*begin)(struct connection *connection);
    bool early;     /* begins when the head is there, without the body */
    bool continues; /* says 100 when the head is there, asked or not */
};

/* broken.c, plain.c, streams.c: end with a path of NULL. */
extern const struct behaviour plain_behaviour[], stream_behaviour[], broken_behaviour[];

/* What a behaviour does with its connection. */
void say(struct connection *connection, const char *text);
/* The head of an answer; lines: further header lines, each with CRLF. */
enum { NO_LENGTH = -1, IN_CHUNKS = -2 };
void say_head(struct connection *connection, int status, const char *lines, int64_t length);
void say_chunk(struct connection *connection, const char *data, size_t size);
void say_json(struct connection *connection, int status, const char *lines, const char *json);
/* Goes on with step when all is sent and so much time has passed. */
void step_after(struct connection *connection, int64_t ms,
                void (*step)(struct connection *connection));
void end_answer(struct connection *connection, enum ending ending);
void hold(struct connection *connection);

/* The index-th part of the path as a number: 1 in "/delay/1"; `otherwise` when there is none. */
int64_t path_number(const struct request *request, int index, int64_t otherwise);
bool path_is(const struct request *request, const char *path);
/* ?name=NUMBER */
int64_t query_number(const struct request *request, const char *name, int64_t otherwise);

/* seen.c: requests by execution and epoch. */
void seen_add(const char *execution, int64_t epoch);
/* Counts the requests of an execution for a path; returns how many there were, with this one. */
uint64_t seen_turn(const char *execution, const char *path);
void seen_print(struct bytes *bytes, uint64_t requests);
void seen_clear(void);

/* Of all connections. */
struct totals {
    uint64_t open, accepted, left, requests;
};
extern struct totals totals;

#endif
