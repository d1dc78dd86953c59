#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the .sql files into C tables.

    embed_sql.py statements OUT.h OUT_IO.h OUT.c STATES.def TABLES.def HEADER.h... FILE.sql...
    embed_sql.py migrations OUT.c STATES.def SCHEMA.pg.sql SCHEMA.sqlite.sql FILE.sql...

A statement file is a list of

    -- name: renew (now bigint, id uuid[], epoch int[], worker int?[])
    -- returns: id uuid, due bigint?
    -- moves: running RENEW running
    -- only: pg, because ...
    -- A sentence on locking.
    SELECT ...

`:id` stands for a parameter (PostgreSQL gets $2::uuid[]). `@ready`, `@WEFT_NAME_LANE` and `@{live_columns l}`
are numbers and fragments: see tools/sql_text.py.
A type with `?` may be null. Of a row that an outer join left empty only the key is declared so: its
other columns read as zero. C code fills and reads a struct of each statement:

    struct weft_renew_in    the scalars, and in `row` an array of
    struct weft_renew_item  the parameters that are columns (`type[]`)
    struct weft_renew_out   a row of the result
    weft_call_renew(call, arena, rows)  prepares a call, returns its struct weft_renew_in
    weft_in_renew(call)                 the same of a call that is prepared
    weft_out_renew(rows)                the rows of its result, an array

Statements that declare the same parameters or results may share these functions: weft_in_renew()
takes a call of any of them. GROUPS below are nested structs that several statements share.
Files under a folder named pg and files under a folder named sqlite are twins: the same statements
with the same parameters and results, unless `-- only:` says why not.

A migration may hold a line `-- oldest_binary: N`: from then on a binary that knows fewer than N
migrations must not use the store. Without it that number stays as it was. Migrations whose text is
fixed have theirs in sql/migrations/oldest_binary.

A migration for PostgreSQL with a line `-- concurrently` is one statement, CREATE INDEX CONCURRENTLY IF
NOT EXISTS, which runs outside of a transaction and does not block writers: see src/store/migrate.c.
"""
import collections
import hashlib
import os
import re
import sys

from sql_text import Fragments, fail, put_numbers, read_numbers, read_sides, split_file

TYPES = {"bool": "BOOL", "smallint": "I16", "int": "I32", "bigint": "I64",
         "uuid": "ID", "text": "TEXT", "bytea": "BYTES"}

# What C code fills and reads. An integer that goes in is checked by the store, so it is never narrowed before.
C_IN = {"bool": "bool", "smallint": "int64_t", "int": "int64_t", "bigint": "int64_t",
        "uuid": "struct weft_id", "text": "const char *", "bytea": "struct weft_blob"}
C_OUT = {**C_IN, "smallint": "int32_t", "int": "int32_t"}
C_NULLABLE_IN = {"bool": "struct weft_opt_i64", "smallint": "struct weft_opt_i64", "int": "struct weft_opt_i64",
                 "bigint": "struct weft_opt_i64", "uuid": "struct weft_opt_id"}
C_NULLABLE_OUT = {"bool": "struct weft_opt_i32", "smallint": "struct weft_opt_i32", "int": "struct weft_opt_i32",
                  "bigint": "struct weft_opt_i64", "uuid": "struct weft_opt_id"}

# Neighbours in a list of parameters or results that form a struct of their own, as a member of that name.
GROUPS = {
    "in": {
        "scope": "batch ns first last",
        "span": "span_namespace span_first span_count",
        "interned": "what id",
        "values": "flag small num big id word bytes",
        "take": "want queue lane counted worker lease skip upto bytes",
    },
    "out": {
        # live, execution, waitpoint, budget, dimension, endpoint: the columns of the fragments live_columns and so on
        "flow_head": "name state revision nodes created finished cancel reason",
        "settings": "paused max_running retention_us weights window_limit window_us rate_limit rate_us rate_burst",
        "promoted": "id queue seen",
        "values": "flag small num big id word bytes",
    },
}

# ISO C promises 4095 characters to a string; every compiler we use takes more.
LONG_TEXT = '#pragma GCC diagnostic ignored "-Woverlength-strings"\n'


def c_string(text, indent="     "):
    def quoted(line):
        return line.replace("\\", "\\\\").replace('"', '\\"')
    return "\n".join(f'{indent}"{quoted(line)}\\n"' for line in text.splitlines())


Field = collections.namedtuple("Field", "name type column nullable")


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
        self.returns = [self.result(r) for r in re.split(r"\s*,\s*", self.notes.get("returns", "")) if r]

    def param(self, text):
        found = re.fullmatch(r"(\w+) (\w+)(\?)?(\[\])?", text)
        if not found or found.group(2) not in TYPES:
            fail(self.where, f"bad parameter '{text}'")
        return Field(found.group(1), found.group(2), bool(found.group(4)), bool(found.group(3)))

    def result(self, text):
        found = re.fullmatch(r"(\w+) (\w+)(\?)?", text)
        if not found or found.group(2) not in TYPES:
            fail(self.where, f"bad result '{text}'")
        return Field(found.group(1), found.group(2), False, bool(found.group(3)))

    def scalars(self):
        return [p for p in self.params if not p.column]

    def columns(self):
        return [p for p in self.params if p.column]

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
    for group in ("live", "execution", "waitpoint", "budget", "dimension", "endpoint"):
        columns = fragments["pg"].text.get(f"{group}_columns")
        if columns:
            GROUPS["out"][group] = " ".join(re.findall(r"@\w+\.(\w+)", columns))
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


def c_member(field, way):
    plain, nullable = (C_IN, C_NULLABLE_IN) if way == "in" else (C_OUT, C_NULLABLE_OUT)
    sort = nullable.get(field.type, plain[field.type]) if field.nullable else plain[field.type]
    return sort + ("" if sort.endswith("*") else " ") + field.name


def find_groups(fields, way):
    """A list of (group or None, fields): the members of a struct in their order."""
    parts, at = [], 0
    while at < len(fields):
        for group, words in GROUPS[way].items():
            size = len(words.split())
            if [f.name for f in fields[at:at + size]] == words.split():
                break
        else:
            group, size = None, 1
        parts.append((group, fields[at:at + size]))
        at += size
    return parts


def collect_groups(statements):
    """The fields of each group, as all statements that have it declare them."""
    found = {}
    for statement in statements:
        for way, fields in (("in", statement.scalars()), ("in", statement.columns()), ("out", statement.returns)):
            for group, members in find_groups(fields, way):
                plain = [field._replace(column=False) for field in members]
                if group and found.setdefault((way, group), plain) != plain:
                    fail(statement.where, f"the group {group} is declared otherwise elsewhere")
    for statement in statements:
        if ("in", statement.name) in found or ("out", statement.name) in found:
            fail(statement.where, "a group has this name")
    return found


def c_struct(tag, fields, way, last=""):
    lines = [f"    struct weft_{group}_{way} {group};\n" if group else f"    {c_member(members[0], way)};\n"
             for group, members in find_groups(fields, way)]
    return f"struct {tag} {{\n{''.join(lines)}{last}}};\n"


def c_places(name, statement, way):
    """For each field its place in the structs of the statement."""
    structs = {"in": [("in", statement.scalars()), ("item", statement.columns())],
               "out": [("out", statement.returns)]}
    for suffix, fields in structs[way]:
        for group, members in find_groups(fields, way):
            for field in members:
                member = f"{group}.{field.name}" if group else field.name
                yield field.name, f"offsetof(struct weft_{name}_{suffix}, {member})"


def write_structs(f, name, statement):
    columns = statement.columns()
    here = f"WEFT_STMT_{name.upper()}"
    if columns:
        f.write("\n" + c_struct(f"weft_{name}_item", columns, "in"))
    if statement.params:
        last = f"    struct weft_{name}_item *const row; /* as many as the call has rows */\n" if columns else ""
        f.write("\n" + c_struct(f"weft_{name}_in", statement.scalars(), "in", last))
        f.write(f"\nstatic inline struct weft_{name}_in *weft_in_{name}(const struct weft_call *call)\n"
                f"{{\n    return weft_call_in(call, {here});\n}}\n")
    back = f"struct weft_{name}_in *" if statement.params else "void "
    count = ", size_t rows" if columns else ""
    f.write(f"\nstatic inline {back}weft_call_{name}(struct weft_call *call, struct weft_arena *arena{count})\n"
            f"{{\n    weft_call_init(call, arena, {here}, {'rows' if columns else '0'});\n")
    if statement.params:
        f.write("    return call->in;\n")
    f.write("}\n")
    if statement.returns:
        f.write("\n" + c_struct(f"weft_{name}_out", statement.returns, "out"))
        f.write(f"\nstatic inline struct weft_{name}_out *weft_out_{name}(const struct weft_rows *rows)\n"
                f"{{\n    return weft_rows_out(rows, {here});\n}}\n")


def write_groups(f, groups):
    for (way, group), fields in groups.items():
        lines = "".join(f"    {c_member(field, way)};\n" for field in fields)
        f.write(f"\nstruct weft_{group}_{way} {{\n{lines}}};\n")
        if way == "out":
            f.write(f"\n/* Of a row of any statement that has this group. */\n"
                    f"static inline struct weft_{group}_out *weft_out_{group}(const struct weft_rows *rows, size_t row)\n"
                    f'{{\n    return weft_rows_group(rows, row, "{group}");\n}}\n')


def write_headers(out_h, out_io_h, one):
    with open(out_h, "w", encoding="utf-8") as f:
        f.write("/* Generated by tools/embed_sql.py from sql/. */\n#ifndef WEFT_STMT_H\n#define WEFT_STMT_H\n\nenum weft_stmt {\n")
        f.writelines(f"    WEFT_STMT_{name.upper()},\n" for name in one)
        f.write("    WEFT_STMT_COUNT\n};\n\n#endif\n")
    with open(out_io_h, "w", encoding="utf-8") as f:
        f.write("/* Generated by tools/embed_sql.py from sql/; a part of store/store.h. */\n"
                "#ifndef WEFT_STMT_IO_H\n#define WEFT_STMT_IO_H\n")
        write_groups(f, collect_groups(one.values()))
        for name in one:
            write_structs(f, name, one[name])
        f.write("\n#endif\n")


def write_fields(f, name, statement, way):
    fields = statement.params if way == "in" else statement.returns
    places = dict(c_places(name, statement, way))
    if fields:
        f.write(f"\nstatic const struct weft_stmt_field {way}_{name}[] = {{\n")
        f.writelines(f'    {{"{p.name}", WEFT_TYPE_{TYPES[p.type]}, {str(p.column).lower()}, '
                     f"{str(p.nullable).lower()}, {places[p.name]}}},\n" for p in fields)
        f.write("};\n")


def c_info(name, statement, shapes):
    """The part of a statement's description that tells how it is called."""
    text = f"        .result_count = {len(statement.returns)},\n"
    if statement.params:
        text += (f"        .param = in_{name},\n        .param_count = {len(statement.params)},\n"
                 f"        .in_size = sizeof(struct weft_{name}_in),\n")
    if statement.columns():
        text += (f"        .item_size = sizeof(struct weft_{name}_item),\n"
                 f"        .items = offsetof(struct weft_{name}_in, row),\n")
    if statement.returns:
        text += f"        .result = out_{name},\n        .out_size = sizeof(struct weft_{name}_out),\n"
        for group, _ in find_groups(statement.returns, "out"):
            if group:
                text += (f'        .group = "{group}",\n'
                         f"        .group_place = offsetof(struct weft_{name}_out, {group}),\n")
    for way, fields in (("in", statement.params), ("out", statement.returns)):
        text += f"        .{way}_like = WEFT_STMT_{shapes.setdefault((way, tuple(fields)), name).upper()},\n"
    return text


def write_tables(out_c, one, found, numbers):
    shapes = {}
    with open(out_c, "w", encoding="utf-8") as f:
        f.write('/* Generated by tools/embed_sql.py from sql/. */\n#include "store/store.h"\n' + LONG_TEXT)
        for name in one:
            write_fields(f, name, one[name], "in")
            write_fields(f, name, one[name], "out")
        f.write("\nconst struct weft_stmt_info weft_stmts[WEFT_STMT_COUNT] = {\n")
        for name in one:
            f.write(f'    [WEFT_STMT_{name.upper()}] = {{\n        .name = "{name}",\n{c_info(name, one[name], shapes)}')
            for driver in ("pg", "sqlite"):
                if name in found[driver]:
                    f.write(f"        .{driver} =\n{c_string(found[driver][name].sql(numbers), '            ')},\n")
            if "moves" in one[name].notes:
                f.write(f'        .moves = "{one[name].notes["moves"]}",\n')
            f.write("    },\n")
        f.write("};\n")


def write_statements(out, numbers, sides, paths):
    found = read_statements(paths, sides)
    check_twins(found)
    names = sorted(set(found["pg"]) | set(found["sqlite"]))
    one = {name: found["pg"].get(name) or found["sqlite"][name] for name in names}
    write_headers(out[0], out[1], one)
    write_tables(out[2], one, found, numbers)


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
    """The indexes that a file written by tools/schema shows.

    SQLite keeps the indexes of keys inside their tables."""
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
    named = [path for path in sys.argv[5:] if not path.endswith(".sql")]
    tables = [side for path in named if path.endswith("tables.def") for side in read_sides(path)]
    write_statements(sys.argv[2:5], read_numbers(named), tables, sys.argv[5 + len(named):])
else:
    write_migrations(sys.argv[2], read_numbers(sys.argv[3:4]), sys.argv[4:6], sys.argv[6:])
