# SPDX-License-Identifier: Apache-2.0
"""Reads what statement files share: numbers by the names they have in C, and fragments of SQL.

`@ready` is the number of a state (states.def) and `@WEFT_NAME_LANE` that of an enumerator in one of the
headers that the build names. A fragment is a piece of SQL under a name:

    -- fragment: of_partition (id)
    -- A sentence about it.
    (:last - :first = 255 OR weft.partition(@id) BETWEEN :first AND :last)

A statement of the same store, or another fragment, says `@{of_partition l.id}` where it wants the text; in
the text `@id` is then `l.id`. Several arguments are separated by ` | `. `@{each side_removed}` is the fragment
side_removed once for each SIDE table of src/core/tables.def, with the table and its bit as arguments, or the
table alone. A
fragment that no statement uses, and a use of one that is not there, end the build.
"""
import re
import sys

HEAD = re.compile(r"^-- (name|fragment): +(\w+) *\(([^)]*)\) *\n", re.M)
USE = re.compile(r"@\{(\w+)\s*([^{}]*)\}")


def fail(where, what):
    sys.exit(f"{where}: {what}")


def read_states(path):
    rows = re.findall(r'^X\(\w+,\s*(\d+),\s*"(\w+)"', open(path, encoding="utf-8").read(), re.M)
    return {word: number for number, word in rows}


def read_enumerators(path, numbers):
    """Adds the enumerators of a header whose values are numbers, shifts or plain successors."""
    text = re.sub(r"/\*.*?\*/", "", open(path, encoding="utf-8").read(), flags=re.S)
    for body in re.findall(r"^enum\s*\w*\s*\{([^}]*)\}", text, re.M):
        following = 0
        for item in filter(None, (part.strip() for part in body.split(","))):
            found = re.fullmatch(r"(WEFT_\w+)(?:\s*=\s*(-?\d+)(?:\s*<<\s*(\d+))?)?", item)
            if not found:
                break
            name, value, shift = found.groups()
            following = int(value) << int(shift or 0) if value else following
            if numbers.setdefault(name, str(following)) != str(following):
                fail(path, f"{name} has two values")
            following += 1


def read_sides(path):
    """The tables beside executions and their bits, as they stand in tables.def."""
    return re.findall(r"^SIDE\((\w+), +\w+, +(\d+)\)", open(path, encoding="utf-8").read(), re.M)


def read_numbers(paths):
    numbers = {}
    for path in paths:
        if path.endswith("tables.def"):
            numbers.update({f"WEFT_HAS_{table.upper()}": bit for table, bit in read_sides(path)})
        elif path.endswith(".def"):
            numbers.update(read_states(path))
        else:
            read_enumerators(path, numbers)
    return numbers


def put_numbers(text, numbers, where):
    def number(found):
        return numbers.get(found.group(1)) or fail(where, f"@{found.group(1)} is no state and no enumerator")
    return re.sub(r"@(\w+)", number, text)


def code_of(body):
    """The text without lines that are comments."""
    lines = (line.rstrip() for line in body.splitlines() if not line.lstrip().startswith("--"))
    return "\n".join(lines).strip()


def split_file(path):
    """The pieces of a file: (sort, name, words in parentheses, body)."""
    parts = HEAD.split(open(path, encoding="utf-8").read())
    if code_of(parts[0]):
        fail(path, "SQL before the first '-- name:' or '-- fragment:' line")
    return list(zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4]))


class Fragments:
    """The fragments of one store."""

    def __init__(self, sides):
        self.text, self.words, self.where, self.used, self.sides = {}, {}, {}, set(), sides

    def add(self, path, name, words, body):
        where = f"{path}: {name}"
        if name in self.text:
            fail(where, "this fragment is defined twice")
        self.text[name], self.words[name], self.where[name] = code_of(body), words.replace(",", " ").split(), where
        for word in self.words[name]:
            if not re.search(rf"@{word}\b", self.text[name]):
                fail(where, f"the parameter {word} is not used")

    def put(self, text, where, within=()):
        """The text with each use of a fragment replaced, from the inside out."""
        def replaced(found):
            name, given = found.group(1), found.group(2).strip()
            if name == "each":
                given_words = len(self.words.get(given, ()))
                return "\n".join("@{%s %s}" % (given, " | ".join(side[:given_words])) for side in self.sides)
            if name not in self.text:
                fail(where, f"there is no fragment {name}")
            if name in within:
                fail(where, f"the fragment {name} uses itself")
            values = [value.strip() for value in re.split(r"\s\|\s", given)] if given else []
            if len(values) != len(self.words[name]):
                fail(where, f"the fragment {name} takes {len(self.words[name])} arguments")
            self.used.add(name)
            argument = dict(zip(self.words[name], values))
            body = re.sub(r"@(\w+)", lambda word: argument.get(word.group(1), word.group(0)), self.text[name])
            return self.put(body, self.where[name], within + (name,))
        while USE.search(text):
            text = USE.sub(replaced, text)
        return text

    def check(self):
        for name in sorted(set(self.text) - self.used):
            fail(self.where[name], "no statement uses this fragment")
