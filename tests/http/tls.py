#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TLS: which versions are spoken, and certificates that change while the server runs. Prints TAP."""
import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading

from harness import Tap, scratch, serve, until

SLACK_S = 20
KINDS = {"ec": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
         "rsa": ["-newkey", "rsa:2048"]}


class Files:
    """Certificates and keys, and the place where the server reads its own."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="weft-tls.")
        self.cert, self.key = self.path("cert.pem"), self.path("key.pem")

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    def make(self, name, kind="ec"):
        """A certificate for 127.0.0.1 signed by itself, as NAME.pem and NAME.key."""
        self.openssl("req", "-x509", "-nodes", *KINDS[kind], "-days", "2", "-subj", f"/CN={name}",
                     "-addext", "subjectAltName=IP:127.0.0.1",
                     "-keyout", self.path(name + ".key"), "-out", self.path(name + ".pem"))

    def make_expired(self, name):
        """The same, signed once more for a time that is over."""
        self.make(name)
        self.openssl("x509", "-in", self.path(name + ".pem"), "-signkey", self.path(name + ".key"),
                     "-days", "-1", "-out", self.path(name + ".pem"))

    def install(self, cert, key=None):
        """What the server reads next; no half of a file is ever to be seen."""
        for source, target in ((cert + ".pem", self.cert), ((key or cert) + ".key", self.key)):
            shutil.copy(self.path(source), target + ".new")
            os.rename(target + ".new", target)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def context(files, names):
    trusted = ssl.create_default_context()
    for name in names:
        trusted.load_verify_locations(files.path(name + ".pem"))
    return trusted


def connect(server, trusted):
    return http.client.HTTPSConnection(server.host, int(server.port), timeout=60, context=trusted)


def name_of(server, trusted):
    """The name in the certificate that a new connection is shown."""
    connection = connect(server, trusted)
    try:
        connection.connect()
        subject = connection.sock.getpeercert()["subject"]
        return dict(pair[0] for pair in subject)["commonName"]
    finally:
        connection.close()


def speaks(server, version, ciphers=None):
    """Whether a handshake in this version, with these ciphers, comes to an end."""
    loose = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    loose.check_hostname, loose.verify_mode = False, ssl.CERT_NONE
    loose.set_ciphers(ciphers or "ALL:@SECLEVEL=0")
    loose.minimum_version = loose.maximum_version = version
    connection = connect(server, loose)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (ssl.SSLError, ConnectionError):
        return False
    finally:
        connection.close()


def versions(tap, files, kind):
    store = scratch("sqlite", "tls_" + kind)
    files.install(kind)
    server = serve(store, "--tls-cert", files.cert, "--tls-key", files.key)
    found = {version.name: speaks(server, version) for version in
             (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2,
              ssl.TLSVersion.TLSv1_3)}
    tap.equal(found, {"TLSv1": False, "TLSv1_1": False, "TLSv1_2": True, "TLSv1_3": True},
              f"{kind}: versions")
    sign = "ECDSA" if kind == "ec" else "RSA"
    old = {name: speaks(server, ssl.TLSVersion.TLSv1_2, name + ":@SECLEVEL=0")
           for name in (f"ECDHE-{sign}-AES128-SHA", f"ECDHE-{sign}-AES128-SHA256", "AES128-SHA",
                        "AES128-GCM-SHA256")}
    tap.ok(not any(old.values()), f"{kind}: no CBC, and nothing without forward secrecy", old)
    tap.ok(refusal(server) == (400, "invalid_value"), f"{kind}: no HTTP is refused in JSON")
    tap.ok(speaks(server, ssl.TLSVersion.TLSv1_2, f"ECDHE-{sign}-AES128-GCM-SHA256"),
           f"{kind}: AES-GCM with forward secrecy")
    tap.equal(server.stop(), 0, f"{kind}: the server stops")
    store.remove()


def refusal(server):
    """What a request gets that is no HTTP: the answer of libmicrohttpd would be HTML."""
    loose = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    loose.check_hostname, loose.verify_mode = False, ssl.CERT_NONE
    connection = connect(server, loose)
    try:
        connection.connect()
        connection.sock.sendall(b"GET /healthz\r\n\r\n")
        answer = http.client.HTTPResponse(connection.sock)
        answer.begin()
        return answer.status, json.loads(answer.read())["error"]["code"]
    finally:
        connection.close()


def said(server, text, since):
    return until(lambda: any(text in line for line in server.lines[since:]), SLACK_S)


def hang_up_signal(server):
    since = len(server.lines)
    server.process.send_signal(signal.SIGHUP)
    return since


def ask(connection, path, body=None):
    connection.request("POST" if body else "GET", path, json.dumps(body) if body else None)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def reload(tap, files):
    store = scratch("sqlite", "tls_reload")
    files.install("first")
    server = serve(store, "--tls-cert", files.cert, "--tls-key", files.key)
    trusted = context(files, ("first", "second"))
    kept, claimer, found = connect(server, trusted), connect(server, trusted), []
    tap.equal(ask(kept, "/v1/executions")[0], 200, "a connection is open")
    kept_socket = kept.sock
    waiting = threading.Thread(target=lambda: found.append(ask(
        claimer, "/v1/claims", {"worker": "w", "kinds": ["late"], "wait_ms": 60000})))
    waiting.start()
    tap.equal(name_of(server, trusted), "first", "new ones get the certificate of the start")
    files.install("second")
    since = hang_up_signal(server)
    tap.ok(said(server, "the certificate was read anew", since),
           "SIGHUP reads the certificate again")
    tap.equal(name_of(server, trusted), "second", "new connections get the new one")
    tap.equal((ask(kept, "/v1/executions")[0], kept.sock is kept_socket), (200, True),
              "open ones go on")
    tap.equal(ask(kept, "/v1/executions", {"kind": "late"})[0], 201, "work comes")
    waiting.join(SLACK_S)
    tap.ok(found and found[0][0] == 200 and len(found[0][1]["items"]) == 1,
           "a claim that waited meanwhile gets the work", found)
    with open(files.path("garbage.pem"), "w", encoding="utf-8") as file:
        file.write("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    for cert, key, why in (("garbage", "first", "no chain of certificates"),
                           ("first", "second", "is not the key of"),
                           ("expired", "expired", "has expired")):
        files.install(cert, key)
        since = hang_up_signal(server)
        tap.ok(said(server, why, since), f"{cert} with the key of {key}: the log says why",
               server.lines[since:])
        tap.equal(name_of(server, trusted), "second", "the old certificate stays")
    os.unlink(files.key)
    since = hang_up_signal(server)
    tap.ok(said(server, "the certificate stays as it was", since), "a missing key: so it says")
    for _ in range(20):
        files.install("first")
        since = hang_up_signal(server)
        said(server, "the certificate was read anew", since)
    tap.equal(name_of(server, trusted), "first", "after many changes the last one holds")
    tap.equal(ask(kept, "/v1/executions")[0], 200, "the oldest connection is still served")
    for connection in (kept, claimer):
        connection.close()
    tap.equal(server.stop(), 0, "the server stops")
    store.remove()


def in_the_clear(tap, files):
    warning = "travel in the clear"
    files.install("first")
    for options, wanted in ((("--listen", "0.0.0.0:0"), True), ((), False),
                            (("--listen", "0.0.0.0:0", "--tls-cert", files.cert, "--tls-key",
                              files.key), False)):
        store = scratch("sqlite", "tls_clear")
        server = serve(store, *options)
        server.stop()
        tap.equal(any(warning in line for line in server.lines), wanted,
                  f"a warning about tokens in the clear: {' '.join(options[:3]) or 'loopback'}")
        store.remove()


def main():
    tap = Tap()
    files = Files()
    try:
        for name in ("first", "second", "ec"):
            files.make(name)
        files.make("rsa", "rsa")
        files.make_expired("expired")
        versions(tap, files, "ec")
        versions(tap, files, "rsa")
        reload(tap, files)
        in_the_clear(tap, files)
    finally:
        files.remove()
    tap.done()


main()
