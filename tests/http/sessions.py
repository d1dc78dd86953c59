#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Databases whose sessions begin with unusual settings, directly and through a pooler. Prints TAP.

Whatever a database sets for its sessions, the server starts, works and keeps its rows; a database
that is not in UTF8 is refused with what to do.
"""
import subprocess

from harness import BINARY, At, Calls, Cluster, Tap, doctor, serve, until
from pooler import Pooler

SETTINGS = (
    ("standard_conforming_strings", "off"),
    ("default_transaction_read_only", "on"),
    ("default_transaction_isolation", "serializable"),
    ("default_transaction_deferrable", "on"),
    ("statement_timeout", "'200ms'"),
    ("lock_timeout", "'10ms'"),
    ("idle_in_transaction_session_timeout", "'100ms'"),
    ("client_encoding", "'LATIN1'"),
    ("datestyle", "'German'"),
    ("search_path", "evil, pg_catalog"),
)

EVIL = """
CREATE SCHEMA evil;
CREATE FUNCTION evil.unnest(uuid[]) RETURNS SETOF uuid LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
CREATE FUNCTION evil.max(bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
CREATE FUNCTION evil.pg_backend_pid() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION evil.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT '' $$;
CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT '1999-01-01'::timestamptz $$;
"""


def lifecycle(tap, url, name):
    server = serve(At(url), tap=tap)
    calls = Calls(server)
    text = "k\u00e4se \u20ac \\ '"
    made = calls.good("POST", "/v1/executions", {"items": [
        {"kind": "k", "payload": {"text": text}, "key": f"key {i}", "tags": {"a": text}}
        for i in range(20)]})["items"]
    shown = calls.good("GET", f"/v1/executions/{made[0]['id']}")
    tap.equal(shown["tags"], {"a": text}, f"{name}: a text comes back as it was")
    claimed = calls.good("POST", "/v1/claims", {"worker": "w", "max": 20, "wait_ms": 20000})["items"]
    calls.good("POST", "/v1/leases/complete", {"items": [
        {"id": item["id"], "epoch": item["epoch"]} for item in claimed]})
    done = [calls.good("GET", f"/v1/executions/{item['id']}")["state"] for item in made]
    tap.equal(done, ["succeeded"] * 20, f"{name}: work is given and completed")
    # The poll, which has no transaction around it, and the scanners look at it meanwhile.
    late = calls.good("POST", "/v1/executions", {"kind": "late", "delay_ms": 1500})["id"]
    ready = until(lambda: calls.good("GET", f"/v1/executions/{late}")["state"] == "ready", 30)
    tap.ok(ready, f"{name}: scanners run")
    tap.equal(calls("GET", "/readyz")[0], 200, f"{name}: the server is ready")
    failures = [line for line in server.lines if "level=error" in line]
    tap.ok(not failures, f"{name}: no error is logged", failures[:3])
    calls.close()
    tap.equal(server.stop(), 0, f"{name}: the server stops by itself")


def main():
    tap, cluster = Tap(), Cluster()
    pooler = None
    try:
        cluster.sql("CREATE DATABASE odd ENCODING 'UTF8' TEMPLATE template0")
        odd = cluster.url.replace("/postgres?", "/odd?")
        subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", odd, "-c", EVIL], check=True,
                       stdin=subprocess.DEVNULL)
        for name, value in SETTINGS:
            cluster.sql(f"ALTER DATABASE odd SET {name} = {value}")
        pooler = Pooler(cluster)
        lifecycle(tap, odd + "&weft_schema=direct", "direct")
        lifecycle(tap, pooler.url("pooled").replace("/postgres?", "/odd?"), "through a pooler")
        for name, _ in SETTINGS:
            cluster.sql(f"ALTER DATABASE odd RESET {name}")
        for schema in ("direct", "pooled"):
            whole, said = doctor(At(f"{odd}&weft_schema={schema}"))
            tap.ok(whole, f"{schema}: every row is whole", said)
        cluster.sql("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
                    " TEMPLATE template0")
        refused = subprocess.run([BINARY, "migrate", "--store",
                                  cluster.url.replace("/postgres?", "/latin?")],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
        tap.ok(refused.returncode and "is LATIN1, and weft needs UTF8" in refused.stdout
               and "CREATE DATABASE weft ENCODING 'UTF8'" in refused.stdout,
               "a database that is not in UTF8 is refused, with what to do", refused.stdout)
    finally:
        if pooler:
            pooler.stop()
        cluster.remove()
    tap.done()


if __name__ == "__main__":
    main()
