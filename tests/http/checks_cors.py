# SPDX-License-Identifier: Apache-2.0
"""Pages in browsers: which origins may call the server, and the CORS headers they get."""
from checks import Caller, same, server_of_its_own

APP, OTHER = "https://app.example", "http://dev.example:8080"
ALLOWED, VARY = "Access-Control-Allow-Origin", "Vary"
EXPOSED = "Access-Control-Expose-Headers"


def ask(caller, method, path, origin, status, headers=(), body=None):
    """Sends what a browser would; the answer."""
    return caller.send(method, path, body, status, [("Origin", origin), *headers])


def preflight(caller, path, origin, status):
    return ask(caller, "OPTIONS", path, origin, status,
               [("Access-Control-Request-Method", "POST"),
                ("Access-Control-Request-Headers", "content-type,authorization")])


def listed_origins(bench):
    """cors: pages of listed origins may call and read, also errors"""
    with server_of_its_own(bench, "cors", ["--cors-origin", f"{APP},{OTHER}"]) as server:
        caller = Caller(bench, "cors", server)
        for origin in (APP, OTHER):
            for method, path, status, body in (
                    ("POST", "/v1/executions", 201, {"kind": "k"}),
                    ("POST", "/v1/executions", 400, {"kind": ""}),
                    ("GET", "/v1/executions", 200, None), ("GET", "/v1/nowhere", 404, None),
                    ("DELETE", "/v1/executions", 405, None), ("GET", "/healthz", 200, None)):
                answer = ask(caller, method, path, origin, status, body=body)
                same((answer.header(ALLOWED), answer.header(VARY)), (origin, "Origin"),
                     f"{method} {path}: the CORS headers")
                for name in ("X-Request-Id", "Retry-After", "Location"):
                    assert name in answer.header(EXPOSED).split(", "), f"{name} is not exposed"
                same(answer.header("Access-Control-Allow-Credentials"), None, "credentials")
        lines = ask(caller, "GET", "/v1/executions", APP, 200, [("Accept", "application/x-ndjson")])
        same((lines.header(ALLOWED), len(lines.body.splitlines())), (APP, 2), "a stream")
        plain = caller.send("GET", "/v1/executions")
        same((plain.header(ALLOWED), plain.header(VARY)), (None, "Origin"),
             "the CORS headers of a client without an origin")


def other_origins(bench):
    """cors: origins are compared exactly; pages of others are refused with what to do"""
    with server_of_its_own(bench, "other", ["--cors-origin", APP]) as server:
        caller = Caller(bench, "other-origins", server)
        for origin in ("https://evil.example", "http://app.example", APP + ":8443", APP + ".evil",
                       "https://app.exampl", "https://APP.example", APP + "/", "null"):
            answer = ask(caller, "POST", "/v1/executions", origin, 403, body={"kind": "k"})
            error = answer.json()["error"]
            same(error["code"], "forbidden", f"the code of {origin}")
            assert "--cors-origin" in error["hint"], error
            same(answer.header(ALLOWED), None, f"Access-Control-Allow-Origin for {origin}")
            same(preflight(caller, "/v1/executions", origin, 403).header(ALLOWED), None, origin)
        same(caller.send("GET", "/v1/executions").json()["items"], [], "stored executions")


def without_tokens(bench):
    """cors: without tokens foreign hosts and pages neither read nor write"""
    with server_of_its_own(bench, "pages", ["--host", "weft.example"]) as server:
        caller = Caller(bench, "without-tokens", server)
        port = server.port
        own = f"http://127.0.0.1:{port}"
        rows = [  # Host, Origin, Sec-Fetch-Site, served
            (f"localhost:{port}", None, None, True), ("127.9.9.9", None, None, True),
            (f"[::1]:{port}", None, None, True), ("weft.example", None, None, True),
            (None, own, "same-origin", True), (None, None, "none", True),
            (None, None, "same-origin", True),
            ("evil.example", None, None, False), (f"127.0.0.1.evil.com:{port}", None, None, False),
            ("localhost:80evil", None, None, False), ("localhost.evil.com", None, None, False),
            (f"rebound.example:{port}", f"http://rebound.example:{port}", "same-origin", False),
            (None, "http://localhost:80evil", None, False),
            (None, "http://127.0.0.1.evil.com", None, False), (None, own + "evil", None, False),
            (None, f"https://127.0.0.1:{port}", None, False),
            (None, f"http://localhost:{port}", None, False),
            (None, "http://localhost:3000", "same-site", False), (None, "null", None, False),
            (None, None, "cross-site", False), (None, None, "same-site", False),
            (None, own, "cross-site", False)]
        names = ("Host", "Origin", "Sec-Fetch-Site")
        stored = 0
        for row in rows:
            headers = [(name, value) for name, value in zip(names, row) if value]
            stored += row[3]
            for method, path, good, body in (("GET", "/v1/executions", 200, None),
                                             ("GET", "/metrics", 200, None),
                                             ("POST", "/v1/executions", 201, {"kind": "k"})):
                answer = caller.send(method, path, body, good if row[3] else 403, headers)
                same(answer.header(ALLOWED), None, f"Access-Control-Allow-Origin for {row}")
                assert row[3] or answer.json()["error"]["hint"], answer
            caller.send("GET", "/healthz", headers=headers)  # says nothing worth hiding
        same(len(caller.send("GET", "/v1/executions").json()["items"]), stored, "stored executions")
        token = caller.post("/v1/tokens", {"name": "t", "scopes": ["read"]}, 201)["token"]
        caller.send("GET", "/v1/executions", headers=[
            ("Host", "evil.example"), ("Authorization", f"Bearer {token}")])  # no page knows one


def preflights(bench):
    """cors: a preflight lists what a page may send"""
    with server_of_its_own(bench, "preflight", ["--cors-origin", APP, "--tokens"]) as server:
        caller = Caller(bench, "preflights", server)
        for path, methods in (("/v1/executions", {"POST", "GET", "HEAD"}),
                              ("/v1/lanes/l", {"GET", "HEAD", "PUT"}), ("/v1/claims", {"POST"})):
            answer = preflight(caller, path, APP, 204)  # without a token
            same((answer.header(ALLOWED), answer.body, answer.header("Content-Type")),
                 (APP, b"", None), f"the answer about {path}")
            told = set(answer.header("Access-Control-Allow-Methods").split(", "))
            assert methods <= told, f"{path}: {told}"
            headers = {name.lower()
                       for name in answer.header("Access-Control-Allow-Headers").split(", ")}
            assert {"authorization", "content-type", "content-encoding", "x-weft-namespace",
                    "x-request-id"} <= headers, headers
            assert int(answer.header("Access-Control-Max-Age")) > 0
        same(preflight(caller, "/v1/nowhere", APP, 404).header(ALLOWED), APP, "a path that is not")
        ask(caller, "OPTIONS", "/v1/executions", APP, 405)  # it does not say which method
        answer = ask(caller, "GET", "/v1/executions", APP, 401)
        same(answer.header(ALLOWED), APP, "a page without a token can read why it is refused")


def any_origin(bench):
    """cors: with tokens every origin may be let in"""
    with server_of_its_own(bench, "any", ["--cors-origin", "*", "--tokens"]) as server:
        caller = Caller(bench, "any-origin", server)
        answer = ask(caller, "GET", "/v1/executions", "https://who.knows", 401)
        same((answer.header(ALLOWED), answer.header(VARY)), ("*", None),
             "the CORS headers of a server that allows any origin")
        same(preflight(caller, "/v1/claims", "null", 204).header(ALLOWED), "*", "a preflight")


ALL = [listed_origins, other_origins, without_tokens, preflights, any_origin]
