#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the .sql files into C tables.

    embed_sql.py statements OUT.h OUT.c STATES.def TABLES.def HEADER.h... FILE.sql...
    embed_sql.py migrations OUT.c STATES.def SCHEMA.pg.sql SCHEMA.sqlite.sql FILE.sql...

A statement file is a list of

    -- name: renew (now bigint, id uuid[], epoch int[])
    -- returns: id due
    -- moves: running RENEW running
    -- only: pg, because ...
    -- A sentence on locking.
    SELECT ...

`:id` stands for a parameter (PostgreSQL gets $2::uuid[]). `@ready`, `@WEFT_NAME_LANE` and `@{live_columns l}`
are numbers and fragments: see tools/sql_text.py.
Files under a folder named pg and files under a folder named sqlite are twins: the same statements
with the same parameters and results, unless `-- only:` says why not.

A migration may hold a line `-- oldest_binary: N`: from then on a binary that knows fewer than N
migrations must not use the store. Without it that number stays as it was. Migrations whose text is
fixed have theirs in sql/migrations/oldest_binary.

A migration for PostgreSQL with a line `-- concurrently` is one statement, CREATE INDEX CONCURRENTLY IF
NOT EXISTS, which runs outside of a transaction and does not block writers: see src/store/migrate.c.
"""
import hashlib
import os
import re
import sys

from sql_text import Fragments, fail, put_numbers, read_numbers, read_sides, split_file

TYPES = {"bool": "BOOL", "smallint": "I16", "int": "I32", "bigint": "I64",
         "uuid": "ID", "text": "TEXT", "bytea": "BYTES"}

# ISO C promises 4095 characters to a string; every compiler we use takes more.
LONG_TEXT = '#pragma GCC diagnostic ignored "-Woverlength-strings"\n'


def c_string(text, indent="     "):
    def quoted(line):
        return line.replace("\\", "\\\\").replace('"', '\\"')
    return "\n".join(f'{indent}"{quoted(line)}\\n"' for line in text.splitlines())


class Statement:
    def __init__(self, where, name, params, body):
        self.where, self.name, self.notes, lines = f"{where}: {name}", name, {}, []
        for line in body.strip().splitlines():
            note = re.match(r"-- (returns|moves|only): *(.*)", line)
            if note:
                self.notes[note.group(1)] = note.group(2).strip()
            elif not line.lstrip().startswith("--"):
                lines.append(line.rstrip())
        self.text = "\n".join(lines).strip()
        if not self.text:
            fail(self.where, "no SQL")
        self.params = [self.param(p) for p in re.split(r"\s*,\s*", params.strip()) if p]
        self.returns = self.notes.get("returns", "").split()

    def param(self, text):
        found = re.fullmatch(r"(\w+) (\w+)(\[\])?", text)
        if not found or found.group(2) not in TYPES:
            fail(self.where, f"bad parameter '{text}'")
        return found.group(1), found.group(2), bool(found.group(3))

    def used(self):
        return set(re.findall(r"(?<![:\w]):([a-z]\w*)", self.text))

    def check(self):
        declared = {p[0] for p in self.params}
        if self.used() - declared:
            fail(self.where, f"undeclared parameter {sorted(self.used() - declared)}")
        if self.driver == "pg" and declared - self.used():
            fail(self.where, f"unused parameter {sorted(declared - self.used())}")

    def sql(self, numbers):
        text = put_numbers(self.text, numbers, self.where)
        if self.driver == "sqlite":
            return text
        place = {p[0]: f"${i}::{p[1]}{'[]' if p[2] else ''}" for i, p in enumerate(self.params, 1)}
        return re.sub(r"(?<![:\w]):([a-z]\w*)", lambda found: place[found.group(1)], text)


def read_statements(paths, sides):
    found = {"pg": {}, "sqlite": {}}
    fragments = {driver: Fragments(sides) for driver in found}
    pieces = [(path, os.path.basename(os.path.dirname(path)), *piece) for path in paths for piece in split_file(path)]
    for path, driver, sort, name, words, body in pieces:
        if sort == "fragment":
            fragments[driver].add(path, name, words, body)
    for path, driver, sort, name, params, body in pieces:
        if sort == "fragment":
            continue
        if name in found[driver]:
            fail(path, f"statement {name} is defined twice")
        statement = Statement(path, name, params, body)
        statement.driver = driver
        statement.text = fragments[driver].put(statement.text, statement.where)
        statement.check()
        found[driver][name] = statement
    for shared in fragments.values():
        shared.check()
    return found


def check_twins(found):
    for here, there in (("pg", "sqlite"), ("sqlite", "pg")):
        for name, statement in found[here].items():
            twin = found[there].get(name)
            if not twin and "only" not in statement.notes:
                fail(statement.where, f"no twin in {there} and no '-- only:' line")
            if twin and (twin.params, twin.returns) != (statement.params, statement.returns):
                fail(statement.where, "parameters or results differ from its twin")
            if twin and twin.notes.get("moves") != statement.notes.get("moves"):
                fail(statement.where, "'-- moves:' differs from its twin")


def write_statements(out_h, out_c, numbers, sides, paths):
    found = read_statements(paths, sides)
    check_twins(found)
    names = sorted(set(found["pg"]) | set(found["sqlite"]))
    one = {name: found["pg"].get(name) or found["sqlite"][name] for name in names}
    with open(out_h, "w", encoding="utf-8") as f:
        f.write("/* Generated by tools/embed_sql.py from sql/. */\n#ifndef WEFT_STMT_H\n#define WEFT_STMT_H\n\nenum weft_stmt {\n")
        f.writelines(f"    WEFT_STMT_{name.upper()},\n" for name in names)
        f.write("    WEFT_STMT_COUNT\n};\n")
        for name in names:
            for sort, words in (("in", [p[0] for p in one[name].params]), ("out", one[name].returns)):
                if words:
                    prefix = f"{name.upper()}_{sort.upper()}"
                    f.write(f"\nenum weft_{name}_{sort} {{\n")
                    f.writelines(f"    {prefix}_{word.upper()},\n" for word in words)
                    f.write("};\n")
        f.write("\n#endif\n")
    with open(out_c, "w", encoding="utf-8") as f:
        f.write('/* Generated by tools/embed_sql.py from sql/. */\n#include "store/store.h"\n' + LONG_TEXT)
        for name in names:
            if one[name].params:
                f.write(f"\nstatic const struct weft_param_info param_{name}[] = {{\n")
                f.writelines(f'    {{"{p[0]}", WEFT_TYPE_{TYPES[p[1]]}, {str(p[2]).lower()}}},\n' for p in one[name].params)
                f.write("};\n")
        f.write("\nconst struct weft_stmt_info weft_stmts[WEFT_STMT_COUNT] = {\n")
        for name in names:
            f.write(f'    [WEFT_STMT_{name.upper()}] = {{\n        .name = "{name}",\n')
            if one[name].params:
                f.write(f"        .param = param_{name},\n        .param_count = {len(one[name].params)},\n")
            f.write(f"        .result_count = {len(one[name].returns)},\n")
            for driver in ("pg", "sqlite"):
                if name in found[driver]:
                    f.write(f"        .{driver} =\n{c_string(found[driver][name].sql(numbers), '            ')},\n")
            if "moves" in one[name].notes:
                f.write(f'        .moves = "{one[name].notes["moves"]}",\n')
            f.write("    },\n")
        f.write("};\n")


def read_oldest(path):
    found = {}
    for line in open(path, encoding="utf-8"):
        row = re.match(r"(\d+) (\d+)  \S", line)
        if row:
            found[int(row.group(1))] = int(row.group(2))
        elif not line.startswith("#"):
            fail(path, f"not a line 'N OLDEST  why': {line.strip()}")
    return found


def read_index(path, text):
    """The name and the table of an index that is built beside the work, or None."""
    if not re.search(r"^-- concurrently$", text, re.M):
        return None
    text = re.sub(r"^\s*--.*\n", "", text, flags=re.M).strip()
    found = re.fullmatch(r"CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS (\w+)\s+ON weft\.(\w+)[^;]*;?",
                         text)
    if not found or not path.endswith(".pg.sql"):
        fail(path, "'-- concurrently' is for one CREATE INDEX CONCURRENTLY IF NOT EXISTS name ON weft.table")
    return found.groups()


def read_indexes(path):
    """The indexes that a file written by tools/schema shows; SQLite keeps those of keys inside their tables."""
    text = open(path, encoding="utf-8").read()
    return sorted(re.findall(r"^CREATE (?:UNIQUE )?INDEX (\w+) ", text, re.M)
                  + re.findall(r"^ +CONSTRAINT (\w+) (?:PRIMARY KEY|UNIQUE) ", text, re.M))


def write_migrations(out_c, states, schemas, paths):
    found = {}
    late = read_oldest(os.path.join(os.path.dirname(paths[0]), "oldest_binary"))
    for path in paths:
        match = re.fullmatch(r"(\d{4})-([\w-]+)\.(pg|sqlite)\.sql", os.path.basename(path))
        if not match:
            fail(path, "not named NNNN-name.{pg,sqlite}.sql")
        number, name, driver = int(match.group(1)), match.group(2), match.group(3)
        raw = open(path, "rb").read()
        oldest = re.search(r"^-- oldest_binary: (\d+)$", raw.decode(), re.M)
        oldest = int(oldest.group(1)) if oldest else late.get(number, 0)
        if oldest > number:
            fail(path, "oldest_binary is a number of migrations and cannot exceed this one's")
        if found.setdefault(number, (name, {}))[0] != name:
            fail(path, f"number {number} is that of the migration '{found[number][0]}'")
        found[number][1][driver] = (raw.decode(), hashlib.sha256(raw).hexdigest(), oldest,
                                    read_index(path, raw.decode()))
    if sorted(found) != list(range(1, len(found) + 1)):
        fail("sql/migrations", "numbers must be 1, 2, 3 ... without a gap")
    with open(out_c, "w", encoding="utf-8") as f:
        f.write('/* Generated by tools/embed_sql.py from sql/migrations/. */\n#include "store/migrate.h"\n' + LONG_TEXT + "\n")
        f.write("const struct weft_migration weft_migrations[] = {\n")
        for number, (name, text) in sorted(found.items()):
            if set(text) != {"pg", "sqlite"}:
                fail(f"migration {number}", "needs a .pg.sql and a .sqlite.sql file")
            if text["pg"][2] != text["sqlite"][2]:
                fail(f"migration {number}", "'-- oldest_binary:' differs from its twin")
            f.write(f'    {{.number = {number},\n     .name = "{name}",\n')
            f.write(f'     .oldest_binary = {text["pg"][2]},\n')
            for driver in ("pg", "sqlite"):
                sql = put_numbers(re.sub(r"^\s*--.*\n", "", text[driver][0], flags=re.M), states, name)
                index = text[driver][3]
                where = f'            .index = "{index[0]}",\n            .table = "{index[1]}",\n' if index else ""
                f.write(f'     .{driver} = {{.sha256 = "{text[driver][1]}",\n{where}            .sql =\n{c_string(sql)}}},\n')
            f.write("    },\n")
        f.write(f"}};\nconst size_t weft_migration_count = {len(found)};\n")
        for path in schemas:
            store = os.path.basename(path).split(".")[1]
            f.write(f"\nconst char *const weft_indexes_{store}[] = {{\n")
            f.writelines(f'    "{name}",\n' for name in read_indexes(path))
            f.write("    NULL\n};\n")


if sys.argv[1] == "statements":
    named = [path for path in sys.argv[4:] if not path.endswith(".sql")]
    tables = [side for path in named if path.endswith("tables.def") for side in read_sides(path)]
    write_statements(sys.argv[2], sys.argv[3], read_numbers(named), tables, sys.argv[4 + len(named):])
else:
    write_migrations(sys.argv[2], read_numbers(sys.argv[3:4]), sys.argv[4:6], sys.argv[6:])
