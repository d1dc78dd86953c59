/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The certificate and its key, and the certificates of authorities that calls of ours trust.
 *
 * A handshake that has been given a certificate may need it for as long as it takes, and says
 * nothing when it is done with it. So a replaced one goes on a list, and is freed when a later one
 * comes after the time in which every handshake is over: the sweep hangs up on slower clients.
 *
 * All handshakes of a server are made by the thread that turns its loop, and the callback of GnuTLS
 * has no room for a pointer of ours; so that thread says once which server's it is.
 */

#include "net/http/tls.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "net/http/authorities.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* TLS 1.2 and 1.3, forward secrecy, authenticated encryption. */
const char weft_tls_priorities[] =
    "NONE:+VERS-TLS1.3:+VERS-TLS1.2:+ECDHE-ECDSA:+ECDHE-RSA:+AES-256-GCM:+AES-128-GCM:"
    "+CHACHA20-POLY1305:+AEAD:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:"
    "+SIGN-ECDSA-SHA256:+SIGN-ECDSA-SHA384:+SIGN-ECDSA-SHA512:+SIGN-ECDSA-SECP256R1-SHA256:"
    "+SIGN-ECDSA-SECP384R1-SHA384:+SIGN-ECDSA-SECP521R1-SHA512:+SIGN-EDDSA-ED25519:"
    "+SIGN-RSA-PSS-RSAE-SHA256:+SIGN-RSA-PSS-RSAE-SHA384:+SIGN-RSA-PSS-RSAE-SHA512:"
    "+SIGN-RSA-PSS-SHA256:+SIGN-RSA-SHA256:+SIGN-RSA-SHA384:+SIGN-RSA-SHA512:+COMP-NULL:"
    "+CTYPE-X509:%SERVER_PRECEDENCE";

enum { CHAIN_MAX = 16, KEY_ID_MAX = 64, FILE_MAX = 1 << 20 };

struct pair {
    struct pair *next; /* replaced before this one */
    gnutls_pcert_st chain[CHAIN_MAX];
    unsigned count;
    gnutls_privkey_t key;
    weft_usec replaced_us; /* boot time */
};

struct weft_tls {
    weft_usec handshake_us;
    pthread_mutex_t lock; /* over all below */
    struct pair *current; /* behind it the pairs that it replaced; NULL: none yet */
};

static _Thread_local struct weft_tls *serving;

/* A whole small file with a NUL behind it; the caller frees it. `field` is blamed. */
static enum weft_rc read_file(const char *path, const char *field, char **ret_text,
                              struct weft_err *err)
{
    char reason[100];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return weft_invalid(err, field, "cannot read %.120s: %s", path,
                            strerror_r(errno, reason, sizeof(reason)));
    char *text = weft_alloc(1, FILE_MAX + 1);
    size_t size = 0;
    ssize_t got = 1;
    while (size < FILE_MAX && got > 0) {
        got = read(fd, text + size, FILE_MAX - size);
        size += got > 0 ? (size_t)got : 0;
    }
    (void)close(fd);
    text[size] = '\0';
    if (got == 0) {
        *ret_text = text;
        return WEFT_OK;
    }
    free(text);
    return weft_invalid(err, field, "cannot read %.120s: %s", path,
                        got < 0 ? strerror_r(errno, reason, sizeof(reason)) : "it is too large");
}

enum weft_rc weft_authorities_read(const char *path, char **ret_pem, struct weft_err *err)
{
    char *text;
    gnutls_x509_crt_t *cert = NULL;
    unsigned count = 0;
    enum weft_rc rc = read_file(path, "ca_file", &text, err);
    if (rc)
        return rc;
    const gnutls_datum_t datum = {.data = (unsigned char *)text, .size = (unsigned)strlen(text)};
    int code = gnutls_x509_crt_list_import2(&cert, &count, &datum, GNUTLS_X509_FMT_PEM, 0);
    for (unsigned i = 0; code >= 0 && i < count; i++)
        gnutls_x509_crt_deinit(cert[i]);
    gnutls_free(cert);
    if (code >= 0) {
        *ret_pem = text;
        return WEFT_OK;
    }
    free(text);
    return weft_hint(
        err,
        weft_invalid(err, "ca_file", "%.120s has no certificates: %s", path, gnutls_strerror(code)),
        "it holds the certificates of authorities, one after the other, in PEM");
}

static void free_pair(struct pair *pair)
{
    for (unsigned i = 0; i < pair->count; i++)
        gnutls_pcert_deinit(&pair->chain[i]);
    if (pair->key)
        gnutls_privkey_deinit(pair->key);
    free(pair);
}

struct weft_tls *weft_tls_new(weft_usec handshake_us)
{
    struct weft_tls *tls = weft_alloc(1, sizeof(*tls));
    tls->handshake_us = handshake_us;
    pthread_mutex_init(&tls->lock, NULL);
    return tls;
}

/* Frees this pair and all pairs that were replaced before it. */
static void free_all(struct pair *pair)
{
    while (pair) {
        struct pair *next = pair->next;
        free_pair(pair);
        pair = next;
    }
}

void weft_tls_free(struct weft_tls *tls)
{
    if (!tls)
        return;
    free_all(tls->current);
    pthread_mutex_destroy(&tls->lock);
    free(tls);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static gnutls_datum_t datum_of(char *text)
{
    return (gnutls_datum_t){.data = (unsigned char *)text, .size = (unsigned)strlen(text)};
}

/* True when the key is that of the first certificate. */
static bool belong_together(struct pair *pair)
{
    unsigned char id[2][KEY_ID_MAX];
    size_t size[2] = {KEY_ID_MAX, KEY_ID_MAX};
    gnutls_pubkey_t public_key;
    if (gnutls_pubkey_init(&public_key) < 0)
        return false;
    bool same = gnutls_pubkey_import_privkey(public_key, pair->key, 0, 0) >= 0 &&
                gnutls_pubkey_get_key_id(public_key, 0, id[0], &size[0]) >= 0 &&
                gnutls_pubkey_get_key_id(pair->chain[0].pubkey, 0, id[1], &size[1]) >= 0 &&
                size[0] == size[1] && memcmp(id[0], id[1], size[0]) == 0;
    gnutls_pubkey_deinit(public_key);
    return same;
}

static bool has_expired(struct pair *pair)
{
    gnutls_x509_crt_t cert = NULL;
    if (gnutls_pcert_export_x509(&pair->chain[0], &cert) < 0)
        return false;
    bool expired = gnutls_x509_crt_get_expiration_time(cert) < time(NULL);
    gnutls_x509_crt_deinit(cert);
    return expired;
}

static enum weft_rc import(struct pair *pair, const struct weft_tls_files *files, char *cert,
                           char *key, struct weft_err *err)
{
    gnutls_datum_t text = datum_of(cert);
    unsigned count = CHAIN_MAX;
    int got = gnutls_pcert_list_import_x509_raw(pair->chain, &count, &text, GNUTLS_X509_FMT_PEM,
                                                GNUTLS_X509_CRT_LIST_SORT);
    if (got < 0 || count == 0)
        return weft_invalid(err, "tls_cert",
                            "cannot serve TLS: %.100s is no chain of certificates in PEM (%s)",
                            files->cert, gnutls_strerror(got));
    pair->count = count;
    text = datum_of(key);
    got = gnutls_privkey_init(&pair->key);
    if (got >= 0)
        got = gnutls_privkey_import_x509_raw(pair->key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (got < 0)
        return weft_invalid(err, "tls_key",
                            "cannot serve TLS: %.100s is no private key in PEM (%s)", files->key,
                            gnutls_strerror(got));
    if (!belong_together(pair))
        return weft_invalid(err, "tls_key", "cannot serve TLS: %.100s is not the key of %.100s",
                            files->key, files->cert);
    return WEFT_OK;
}

static enum weft_rc read_pair(struct pair *pair, const struct weft_tls_files *files,
                              struct weft_err *err)
{
    char *cert = NULL, *key = NULL;
    enum weft_rc rc = read_file(files->cert, "tls_cert", &cert, err);
    if (!rc)
        rc = read_file(files->key, "tls_key", &key, err);
    if (!rc && cert && key)
        rc = import(pair, files, cert, key, err);
    if (key)
        explicit_bzero(key, strlen(key));
    free(cert);
    free(key);
    return rc;
}

enum weft_rc weft_tls_load(struct weft_tls *tls, const struct weft_tls_files *files,
                           bool *ret_expired, struct weft_err *err)
{
    struct pair *pair = weft_alloc(1, sizeof(*pair));
    enum weft_rc rc = read_pair(pair, files, err);
    bool expired = !rc && has_expired(pair);
    if (expired && tls->current)
        rc = weft_invalid(err, "tls_cert", "%.100s has expired", files->cert);
    if (rc) {
        free_pair(pair);
        return rc;
    }
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&tls->lock);
    pair->next = tls->current;
    tls->current = pair;
    if (pair->next)
        pair->next->replaced_us = now_us;
    /* They are in the order of their replacement: behind an old one all are older. */
    struct pair **at = &pair->next;
    while (*at && now_us - (*at)->replaced_us <= tls->handshake_us)
        at = &(*at)->next;
    struct pair *old = *at;
    *at = NULL;
    pthread_mutex_unlock(&tls->lock);
    free_all(old);
    *ret_expired = expired;
    return WEFT_OK;
}

/* ---- Handshakes ------------------------------------------------------------------------------ */

void weft_tls_serve(struct weft_tls *tls)
{
    serving = tls;
}

/* NOLINTNEXTLINE(readability-function-size): GnuTLS says what it passes */
int weft_tls_retrieve(gnutls_session_t session, const gnutls_datum_t *authority, int authorities,
                      const gnutls_pk_algorithm_t *algorithm, int algorithms,
                      gnutls_pcert_st **ret_chain, unsigned *ret_count, gnutls_privkey_t *ret_key)
{
    (void)session;
    (void)authority;
    (void)authorities;
    (void)algorithm;
    (void)algorithms;
    if (!serving)
        return -1;
    pthread_mutex_lock(&serving->lock);
    struct pair *pair = serving->current;
    pthread_mutex_unlock(&serving->lock);
    *ret_chain = pair->chain;
    *ret_count = pair->count;
    *ret_key = pair->key;
    return 0;
}
