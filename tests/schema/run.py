#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sql/schema.*.sql show what the migrations make, and tools/sql_text.py refuses what it must."""
import difflib
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
points = 0


def load(path, name):
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(ROOT, path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def ok(passed, what, detail=""):
    global points
    points += 1
    print(f"{'ok' if passed else 'not ok'} {points} - {what}")
    for line in detail.splitlines():
        print("# " + line)


def test_schema(schema, store, made):
    shown = open(schema.path_of(store), encoding="utf-8").read()
    diff = "\n".join(difflib.unified_diff(shown.splitlines(), made.splitlines(), "shown", "made", lineterm="", n=1))
    ok(shown == made, f"sql/schema.{store}.sql is what the migrations make (else run tools/schema)", diff)


def read_registry():
    """The columns that src/core/tables.def names."""
    text = open(os.path.join(ROOT, "src/core/tables.def"), encoding="utf-8").read()
    sides = re.findall(r"^SIDE\((\w+),", text, re.M)
    return {(table, "id") for table in sides} | set(re.findall(r"^(?:MENTION|OTHER)\((\w+), +(\w+)\)", text, re.M)), sides


def tables_of(made):
    return dict(re.findall(r"^CREATE TABLE (?:weft\.)?(\w+) \((.*?)\)(?: WITH[^;]*| WITHOUT[^;]*)?;$", made, re.M | re.S))


# Their bits are set together with that of `waitpoint` (0025); those of `cost` and `detail` by the one
# statement that writes them.
WITHOUT_TRIGGER = {"suspension", "resumption", "signal", "cost", "detail"}


def test_registry(postgres, sqlite):
    """A table with an execution in it that nothing removes would keep rows for ever."""
    named, sides = read_registry()
    there = {(table, column) for table, text in tables_of(postgres).items()
             for column in re.findall(r"^ +(\w+) uuid\b", text, re.M)}
    ok(there == named, "src/core/tables.def names all columns of type uuid",
       "\n".join([f"not named: {row}" for row in sorted(there - named)] + [f"not there: {row}" for row in sorted(named - there)]))
    only = set(tables_of(postgres)) ^ set(tables_of(sqlite))
    ok(only == {"inbox", "inbox_refused"}, "both stores have the same tables, but for the inbox", str(only))
    for store, text in (("pg", postgres), ("sqlite", sqlite)):
        marked = re.findall(r"CREATE TRIGGER (\w+)_has AFTER INSERT ON (?:weft\.)?(\w+)", text)
        ok(sorted(marked) == sorted((table, table) for table in sides if table not in WITHOUT_TRIGGER),
           f"{store}: each SIDE table has the trigger that sets its bit", str(marked))


def embed(folder, pg, sqlite="-- name: one ()\n-- returns: n int\nSELECT 1;\n"):
    """What the embedder says of two statement files: its exit, its complaint, the C text."""
    for store, text in (("pg", pg), ("sqlite", sqlite)):
        os.makedirs(os.path.join(folder, store), exist_ok=True)
        with open(os.path.join(folder, store, "x.sql"), "w", encoding="utf-8") as file:
            file.write(text)
    out = [os.path.join(folder, name) for name in ("out.h", "out_io.h", "out.c")]
    done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tools/embed_sql.py"), "statements", *out,
                           os.path.join(ROOT, "include/weft/states.def"), os.path.join(ROOT, "src/core/stored.h"),
                           os.path.join(folder, "pg/x.sql"), os.path.join(folder, "sqlite/x.sql")],
                          capture_output=True, text=True)
    return done.returncode, done.stderr, open(out[2], encoding="utf-8").read() if done.returncode == 0 else ""


def test_fragments(folder):
    head = "-- name: one ()\n-- returns: n int\n"
    code, said, text = embed(folder, "-- fragment: sum (a, b)\n@a + @b * @ready\n\n"
                             + head + "SELECT @{sum 1 | (2 - @WEFT_NAME_LANE)};\n")
    ok(code == 0 and "SELECT 1 + (2 - 2) * 1;" in text, "a fragment is put in with its arguments and numbers", said)
    for what, body, complaint in (
            ("a fragment that is not there", head + "SELECT @{sum 1};\n", "there is no fragment sum"),
            ("a fragment that no statement uses", "-- fragment: sum ()\n1\n" + head + "SELECT 1;\n",
             "no statement uses this fragment"),
            ("a fragment that uses itself", "-- fragment: sum ()\n@{sum}\n" + head + "SELECT @{sum};\n",
             "the fragment sum uses itself"),
            ("too few arguments", "-- fragment: sum (a, b)\n@a + @b\n" + head + "SELECT @{sum 1};\n",
             "the fragment sum takes 2 arguments"),
            ("a number without a name in C", head + "SELECT @WEFT_NAME_LANES;\n", "@WEFT_NAME_LANES is no")):
        code, said, _ = embed(folder, body)
        ok(code != 0 and complaint in said, f"{what}: the build ends with '{complaint}'", "" if code else said)


def main():
    schema = load("tools/schema", "schema")
    weft = os.path.join(os.environ["WEFT_BUILD"], "weft")
    with tempfile.TemporaryDirectory() as folder:
        test_fragments(folder)
    sqlite = schema.of_sqlite(weft)
    test_schema(schema, "sqlite", sqlite)
    url = os.environ.get("WEFT_TEST_PG")
    if url:
        postgres = schema.of_postgres(weft, url)
        test_schema(schema, "pg", postgres)
        test_registry(postgres, sqlite)
    print(f"1..{points}")


main()
