/* SPDX-License-Identifier: Apache-2.0 */

/* Calls over TLS, to a server that is not ours: nginx, with a certificate of an own authority. */

#include "crowd_fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

static struct weft_err err;
static char folder[] = "/tmp/weft-nginx-XXXXXX";
static int port;
static pid_t nginx;

/* ---- The server ------------------------------------------------------------------------------ */

/* Starts a program in the folder; it writes to the file `log`. */
static pid_t start_program(const char *const argv[])
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int log = chdir(folder) == 0 ? open("log", O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    (void)dup2(log, 1);
    (void)dup2(log, 2);
    (void)execvp(argv[0], (char *const *)argv);
    _exit(127);
}

static bool run_program(const char *const argv[])
{
    int status = 0;
    return waitpid(start_program(argv), &status, 0) > 0 && status == 0;
}

/* An authority, and a certificate of it for 127.0.0.1 and right.test. */
static bool make_certificates(void)
{
    const char *const authority[] = {"openssl",
                                     "req",
                                     "-x509",
                                     "-newkey",
                                     "ec",
                                     "-pkeyopt",
                                     "ec_paramgen_curve:P-256",
                                     "-nodes",
                                     "-days",
                                     "2",
                                     "-subj",
                                     "/CN=weft test authority",
                                     "-keyout",
                                     "ca.key",
                                     "-out",
                                     "ca.pem",
                                     NULL};
    const char *const server[] = {"openssl",
                                  "req",
                                  "-x509",
                                  "-newkey",
                                  "ec",
                                  "-pkeyopt",
                                  "ec_paramgen_curve:P-256",
                                  "-nodes",
                                  "-days",
                                  "2",
                                  "-subj",
                                  "/CN=weft test",
                                  "-CA",
                                  "ca.pem",
                                  "-CAkey",
                                  "ca.key",
                                  "-addext",
                                  "subjectAltName=IP:127.0.0.1",
                                  "-addext",
                                  "basicConstraints=critical,CA:FALSE",
                                  "-keyout",
                                  "server.key",
                                  "-out",
                                  "server.pem",
                                  NULL};
    return run_program(authority) && run_program(server);
}

static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0)
        abort();
    (void)close(fd);
    return ntohs(at.sin_port);
}

static const char settings[] =
    "daemon off; master_process off; pid nginx.pid; error_log error.log;\n"
    "events { worker_connections 2048; }\n"
    "http {\n"
    "  access_log off; default_type application/json; client_max_body_size 1m;\n"
    "  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;\n"
    "  uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n"
    "  ssl_certificate server.pem; ssl_certificate_key server.key;\n"
    "  server {\n"
    "    listen 127.0.0.1:%d ssl http2; keepalive_timeout %d; root .;\n"
    "    location = /ok { return 200 '{\"ok\":true}'; }\n"
    "    location = /echo { return 200 '$request_method $http_authorization $server_protocol'; }\n"
    "    location = /moved { return 307 /ok; }\n"
    "    location = /away { return 302 http://127.0.0.1:%d/ok; }\n"
    "    location = /busy { add_header Retry-After 7 always; return 429; }\n"
    "    location = /large.txt { gzip on; gzip_types *; gzip_min_length 1; }\n"
    "    location = /slow.txt { alias large.txt; limit_rate 10k; }\n"
    "  }\n"
    "}\n";

static void write_file(const char *name, const char *text, size_t size)
{
    char path[200];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    if (!out || fwrite(text, 1, size, out) != size || fclose(out) != 0)
        abort();
}

enum { LARGE_SIZE = 200000, IDLE_S = 1 };

static bool is_listening(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool there = connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
    (void)close(fd);
    return there;
}

static bool start_nginx(void)
{
    char text[4096], *large = weft_alloc(LARGE_SIZE, 1), prefix[200];
    if (!mkdtemp(folder) || !make_certificates())
        return false;
    port = free_port();
    int size = snprintf(text, sizeof(text), settings, port, IDLE_S, port);
    write_file("nginx.conf", text, (size_t)size);
    memset(large, 'w', LARGE_SIZE);
    write_file("large.txt", large, LARGE_SIZE);
    free(large);
    (void)snprintf(prefix, sizeof(prefix), "%s/", folder);
    const char *const argv[] = {"nginx", "-p", prefix, "-e", "error.log", "-c", "nginx.conf", NULL};
    nginx = start_program(argv);
    for (int i = 0; i < 500 && !is_listening(); i++)
        (void)poll(NULL, 0, 20);
    return is_listening();
}

static void stop_nginx(void)
{
    const char *const argv[] = {"rm", "-rf", folder, NULL};
    if (nginx > 0) {
        (void)kill(nginx, SIGTERM);
        (void)waitpid(nginx, NULL, 0);
    }
    (void)run_program(argv);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void trust_ours(struct weft_crowd *crowd)
{
    char path[200], pem[8192] = "";
    (void)snprintf(path, sizeof(path), "%s/ca.pem", folder);
    FILE *file = fopen(path, "re");
    if (!file || fread(pem, 1, sizeof(pem) - 1, file) == 0)
        abort();
    (void)fclose(file);
    weft_crowd_trust(crowd, pem);
}

static struct weft_crowd *start(bool trusting)
{
    struct weft_crowd *crowd = NULL;
    const struct weft_crowd_config config = {.threads = 1};
    if (weft_crowd_start(&config, &crowd, &err) != WEFT_OK)
        abort();
    if (trusting)
        trust_ours(crowd);
    return crowd;
}

static void call(struct weft_crowd *crowd, const char *host, const char *path, struct taken *taken)
{
    static const struct weft_crowd_header header[] = {{"Authorization", "Bearer secret"}};
    char url[200];
    taken_init(taken);
    (void)snprintf(url, sizeof(url), "https://%s:%d%s", host, port, path);
    struct weft_crowd_call call = plain_call(url, taken);
    call.header = header;
    call.header_count = 1;
    call.redirects = call.once = true;
    call.total_ms = strcmp(path, "/slow.txt") == 0 ? 500 : call.total_ms;
    (void)weft_crowd_call(crowd, &call);
    ok(await_end(taken), "%s%s ends", host, path);
}

static void test_answers(void)
{
    struct weft_crowd *crowd = start(true);
    struct taken taken;
    call(crowd, "127.0.0.1", "/ok", &taken);
    const struct weft_crowd_phases *phases = &taken.end.phases;
    is_str(taken.body, "{\"ok\":true}", "answered: %s", taken.text);
    ok(phases->connected_us > 0 && phases->secured_us > phases->connected_us &&
           phases->first_byte_us >= phases->secured_us && phases->total_us >= phases->first_byte_us,
       "the phases follow each other");
    taken_done(&taken);
    call(crowd, "127.0.0.1", "/echo", &taken);
    is_str(taken.body, "GET Bearer secret HTTP/1.1", "what nginx saw");
    is_int(taken.end.phases.secured_us, 0, "the connection was kept");
    taken_done(&taken);
    call(crowd, "127.0.0.1", "/moved", &taken);
    ok(taken.status == 200 && taken.heads == 1, "redirected within the origin: %s", taken.text);
    taken_done(&taken);
    call(crowd, "127.0.0.1", "/away", &taken);
    is_int(taken.end.failure, WEFT_HTTP_REDIRECTED, "not to plain HTTP: %s", taken.text);
    taken_done(&taken);
    call(crowd, "127.0.0.1", "/busy", &taken);
    ok(taken.status == 429 && strstr(taken.header, "Retry-After: 7\n"), "429 with its header");
    taken_done(&taken);
    call(crowd, "127.0.0.1", "/large.txt", &taken);
    ok(taken.size == LARGE_SIZE && strstr(taken.header, "Content-Encoding: gzip\n"), "gzip");
    taken_done(&taken);
    call(crowd, "127.0.0.1", "/slow.txt", &taken);
    ok(taken.end.failure == WEFT_HTTP_TIMEOUT && taken.end.sent && taken.end.status == 200,
       "slow: %s", taken.text);
    taken_done(&taken);
    (void)poll(NULL, 0, IDLE_S * 1000 + 200);
    call(crowd, "127.0.0.1", "/ok", &taken);
    ok(taken.status == 200 && taken.end.phases.secured_us > 0,
       "after nginx closed the idle connection a new one is made: %s", taken.text);
    taken_done(&taken);
    weft_crowd_stop(crowd);
}

static void test_untrusted(void)
{
    static const struct {
        const char *host;
        bool trusting;
    } row[] = {{"127.0.0.1", false}, {"localhost", true}};
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_crowd *crowd = start(row[i].trusting);
        struct taken taken;
        call(crowd, row[i].host, "/ok", &taken);
        ok(taken.end.failure == WEFT_HTTP_UNTRUSTED && !taken.end.sent, "%s: %s", row[i].host,
           taken.text);
        taken_done(&taken);
        weft_crowd_stop(crowd);
    }
}

/* The connection that was made under the authority is not used without it. */
static void test_changed_trust(void)
{
    struct weft_crowd *crowd = start(false);
    for (int i = 0; i < 4; i++) {
        struct taken taken;
        bool trusting = i % 2 == 1;
        if (trusting)
            trust_ours(crowd);
        else if (i > 0)
            weft_crowd_trust(crowd, NULL);
        call(crowd, "127.0.0.1", "/ok", &taken);
        is_int(taken.end.failure, trusting ? WEFT_HTTP_ANSWERED : WEFT_HTTP_UNTRUSTED, "%s: %s",
               trusting ? "trusted from now on" : "not trusted any more", taken.text);
        taken_done(&taken);
    }
    weft_crowd_stop(crowd);
}

static void test_many(void)
{
    enum { CALLS = 120 };
    static struct taken taken[CALLS];
    char url[200];
    int files = count_descriptors();
    struct weft_crowd *crowd = start(true);
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%d/ok", port);
    for (int i = 0; i < CALLS; i++) {
        taken_init(&taken[i]);
        struct weft_crowd_call call = plain_call(url, &taken[i]);
        call.connect_ms = PATIENCE_MS;
        (void)weft_crowd_call(crowd, &call);
    }
    size_t well = 0;
    for (int i = 0; i < CALLS; i++) {
        well += await_end(&taken[i]) && taken[i].status == 200;
        if (taken[i].status != 200)
            printf("# %s\n", taken[i].text);
        taken_done(&taken[i]);
    }
    is_int(well, CALLS, "many at once");
    weft_crowd_stop(crowd);
    is_int(count_descriptors(), files, "no descriptor is left");
}

int main(void)
{
    if (!start_nginx()) {
        tap_skip("there is no nginx: tools/setup test installs it");
    } else {
        test_answers();
        test_untrusted();
        test_changed_trust();
        test_many();
    }
    stop_nginx();
    return tap_done();
}
