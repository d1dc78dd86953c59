/* SPDX-License-Identifier: Apache-2.0 */

/* A handle over https and with a token: which servers are trusted, and what is never sent to
 * others. */

#include "server_fixture.h"
#include "tap.h"

#include "base/base.h"
#include "core/token.h"
#include "engine/admin/tokens.h"
#include "engine/engine.h"
#include "weft/weft.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <unistd.h>

static struct weft_err err;
static char cert_path[300], key_path[300], store[320];

static void add_extension(X509 *cert, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    (void)X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
}

/* A certificate for 127.0.0.1, signed by itself, and its key, in two files. */
static bool make_certificate(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    (void)X509_set_version(cert, 2);
    (void)ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    (void)X509_gmtime_adj(X509_getm_notBefore(cert), -86400);
    (void)X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
    (void)X509_set_pubkey(cert, key);
    X509_NAME *name = X509_get_subject_name(cert);
    (void)X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"weft test",
                                     -1, -1, 0);
    (void)X509_set_issuer_name(cert, name);
    add_extension(cert, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(cert, NID_subject_alt_name, "IP:127.0.0.1");
    bool made = X509_sign(cert, key, EVP_sha256()) > 0;
    FILE *out = fopen(cert_path, "w");
    made = made && out && PEM_write_X509(out, cert);
    if (out)
        (void)fclose(out);
    out = fopen(key_path, "w");
    made = made && out && PEM_write_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL);
    if (out)
        (void)fclose(out);
    X509_free(cert);
    EVP_PKEY_free(key);
    return made;
}

static enum weft_rc submit_at(const char *url, const struct weft_options *options)
{
    struct weft *weft = NULL;
    struct weft_submitted answer = {0};
    err = (struct weft_err){0};
    enum weft_rc rc = weft_open(url, options, &weft, &err);
    if (!rc)
        rc = weft_submit(weft, &(struct weft_spec){.kind = "k"}, 1, &answer, &err);
    weft_close(weft);
    return rc;
}

static void test_tls(void)
{
    struct weft_server *server = NULL;
    const struct weft_server_config config = {
        .store = store, .listen = "127.0.0.1:0", .tls_cert = cert_path, .tls_key = key_path};
    ok(make_certificate(), "a certificate");
    if (!ok(weft_server_start(&config, &server, &err) == WEFT_OK, "a server %s", err.text))
        return;
    const char *url = weft_server_url(server);
    ok(strncmp(url, "https://", 8) == 0, "speaks TLS at %s", url);
    is_int(submit_at(url, &(struct weft_options){.ca_file = cert_path}), WEFT_OK,
           "a client that trusts the authority is served %s", err.text);
    is_int(submit_at(url, NULL), WEFT_UNAVAILABLE,
           "a client that does not trust the authority is refused: %s", err.text);
    ok(err.hint && strstr(err.hint, "authority"), "the hint names the authority: %s", err.hint);
    is_int(submit_at(url, &(struct weft_options){.ca_file = "/no/such/file"}), WEFT_UNAVAILABLE,
           "an authority that is not there: %s", err.text);
    char plain[100];
    (void)snprintf(plain, sizeof(plain), "http%.90s", url + 5);
    ok(submit_at(plain, NULL) != WEFT_OK, "a client without TLS is refused: %s", err.text);
    weft_server_free(server);
}

/* A token for submitting, bound to a namespace. */
static bool make_token(char ret_text[WEFT_TOKEN_TEXT])
{
    struct weft_engine *engine = NULL;
    struct weft_token_row row = {.name = "test", .ns = "blue", .scopes = WEFT_SCOPE_SUBMIT};
    char secret[WEFT_TOKEN_SECRET + 1];
    weft_token_secret(secret);
    weft_token_hash(secret, row.hash);
    enum weft_rc rc = weft_engine_open(&(struct weft_engine_config){.url = store}, &engine, &err);
    if (!rc)
        rc = weft_engine_token_add(engine, &row, &err);
    weft_engine_close(engine);
    weft_token_print(row.id, secret, ret_text);
    return rc == WEFT_OK;
}

static void test_token(void)
{
    char token[WEFT_TOKEN_TEXT];
    ok(make_token(token), "a token %s", err.text);
    struct weft_server *server = NULL;
    const struct weft_server_config config = {
        .store = store, .listen = "127.0.0.1:0", .tokens = true};
    if (!ok(weft_server_start(&config, &server, &err) == WEFT_OK, "a server with tokens %s",
            err.text))
        return;
    const char *url = weft_server_url(server);
    is_int(submit_at(url, NULL), WEFT_UNAUTHORIZED, "without a token: %s", err.text);
    is_int(submit_at(url, &(struct weft_options){.token = "wrong"}), WEFT_UNAUTHORIZED,
           "a wrong token is unauthorized: %s", err.text);
    ok(!strstr(err.text, "wrong"), "the error does not show the token");
    is_int(submit_at(url, &(struct weft_options){.token = token}), WEFT_OK,
           "a good token is accepted in its namespace: %s", err.text);
    is_int(submit_at(url, &(struct weft_options){.token = token, .ns = "red"}), WEFT_FORBIDDEN,
           "a good token is forbidden in another namespace: %s", err.text);
    struct weft *weft = NULL;
    struct weft_counts counts = {0};
    ok(weft_open(url, &(struct weft_options){.token = token}, &weft, &err) == WEFT_OK &&
           weft_counts(weft, NULL, &counts, &err) == WEFT_FORBIDDEN,
       "a token without the read scope cannot read: %s", err.text);
    weft_close(weft);
    weft_server_free(server);
}

int main(void)
{
    const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): one thread yet */
    folder = folder ? folder : "/tmp";
    (void)snprintf(cert_path, sizeof(cert_path), "%s/weft-tls-%d.crt", folder, (int)getpid());
    (void)snprintf(key_path, sizeof(key_path), "%s/weft-tls-%d.key", folder, (int)getpid());
    (void)snprintf(store, sizeof(store), "sqlite:%s/weft-tls-%d.db", folder, (int)getpid());
    test_tls();
    test_token();
    static const char *const suffix[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < WEFT_LEN(suffix); i++) {
        char path[340];
        (void)snprintf(path, sizeof(path), "%s%s", store + strlen("sqlite:"), suffix[i]);
        (void)unlink(path);
    }
    (void)unlink(cert_path);
    (void)unlink(key_path);
    return tap_done();
}
