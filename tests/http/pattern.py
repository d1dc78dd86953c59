# SPDX-License-Identifier: Apache-2.0
"""Patterns of JSON: what a case file expects of an answer. The language is described in run.py."""
import datetime
import json
import re

ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
NAME = r"[a-z_][a-z0-9_]*"
SLACK_S = 2.0  # how far a moment may be from where it is expected
UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
REST = object()  # "..."


class Mismatch(Exception):
    """An answer is not what was expected."""


class Broken(Exception):
    """A pattern or a case file cannot be read."""


class Object(dict):
    """An object of an answer that remembers names which came twice."""

    def __init__(self, pairs):
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.twice = sorted({name for name in names if names.count(name) > 1})


def read_json(text):
    def refuse(word):
        raise ValueError(f"{word} is not JSON")
    return json.loads(text, object_pairs_hook=Object, parse_constant=refuse)


def seconds_of(moment):
    if not isinstance(moment, str) or not MOMENT.fullmatch(moment):
        raise Mismatch(f"{moment!r} is no moment")
    at = datetime.datetime.strptime(moment, "%Y-%m-%dT%H:%M:%S.%fZ")
    return at.replace(tzinfo=datetime.timezone.utc).timestamp()


def moment_of(seconds):
    at = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def duration(number, unit):
    return float(number) * UNITS[unit]


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


TYPES = {
    "any": lambda value: True,
    "null": lambda value: value is None,
    "id": lambda value: isinstance(value, str) and ID.fullmatch(value),
    "moment": lambda value: isinstance(value, str) and MOMENT.fullmatch(value),
    "int": is_whole,
    "number": lambda value: is_whole(value) or isinstance(value, float),
    "string": lambda value: isinstance(value, str) and value,
    "bool": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
}


class Blank:
    """<id>, <moment or null>, <int $epoch>, <in 5 s>, <moment after $lease>"""

    def __init__(self, text):
        self.text = text
        found = re.fullmatch(rf"(.*?)(?:\s*\$({NAME}))?", text)
        words, self.name = found.group(1).strip(), found.group(2)
        self.offset = self.after = None
        near = re.fullmatch(r"in (-?[\d.]+) (ms|s|min|h|d)", words)
        if words == "now":
            self.offset, self.types = 0.0, []
        elif near:
            self.offset, self.types = duration(*near.groups()), []
        elif words == "moment after":
            self.after, self.name, self.types = self.name, None, ["moment"]
        else:
            self.types = words.split(" or ")
            if not all(word in TYPES for word in self.types):
                raise Broken(f"<{text}> is not known")

    def match(self, value, context, where):
        if self.offset is not None:
            # Since the case began: between what happened and the look at it a slow machine may take
            # any time, but nothing that a case looks at is older than the case.
            low = context.begun + self.offset - SLACK_S
            high = context.received + self.offset + SLACK_S
            if not low <= seconds_of(value) <= high:
                raise Mismatch(f"{where}: {value} is not <{self.text}> of {context.received:.3f}")
        elif not any(TYPES[word](value) for word in self.types):
            raise Mismatch(f"{where}: {json.dumps(value)[:200]} is not <{self.text}>")
        if self.after and seconds_of(value) <= seconds_of(context.values[self.after]):
            raise Mismatch(f"{where}: {value} is not after {context.values[self.after]}")
        if self.name:
            context.values[self.name] = value


class Value:
    """$name: what was captured before."""

    def __init__(self, name):
        self.name = name

    def match(self, value, context, where):
        if self.name not in context.values:
            raise Mismatch(f"{where}: ${self.name} has no value")
        match_plain(context.values[self.name], value, where)


class Regex:
    def __init__(self, text):
        self.regex = re.compile(text)

    def match(self, value, context, where):
        if not isinstance(value, str) or not self.regex.search(value):
            raise Mismatch(f"{where}: {json.dumps(value)[:200]} does not match "
                           f"/{self.regex.pattern}/")


class Text:
    """A string, in which $name stands for what was captured."""

    def __init__(self, text):
        self.text = text

    def match(self, value, context, where):
        match_plain(context.fill(self.text), value, where)


class Members:
    def __init__(self, members, rest):
        self.members, self.rest = members, rest

    def match(self, value, context, where):
        if not isinstance(value, dict):
            raise Mismatch(f"{where}: {json.dumps(value)[:200]} is no object")
        if getattr(value, "twice", None):
            raise Mismatch(f"{where}: {value.twice} came twice")
        missing = [name for name in self.members if name not in value]
        if missing:
            raise Mismatch(f"{where}: {', '.join(missing)} missing in {json.dumps(value)[:400]}")
        extra = [name for name in value if name not in self.members]
        if extra and not self.rest:
            raise Mismatch(f"{where}: {', '.join(extra)} not expected")
        for name, pattern in self.members.items():
            pattern.match(value[name], context, f"{where}.{name}")


class Elements:
    """Elements in order; "..." stands for any number of others."""

    def __init__(self, elements):
        self.elements = elements

    def match(self, value, context, where):
        if not isinstance(value, list):
            raise Mismatch(f"{where}: {json.dumps(value)[:200]} is no array")
        if REST not in self.elements:
            if len(value) != len(self.elements):
                raise Mismatch(f"{where}: {len(value)} elements, not {len(self.elements)}: "
                               f"{json.dumps(value)[:400]}")
            for i, pattern in enumerate(self.elements):
                pattern.match(value[i], context, f"{where}[{i}]")
            return
        at = 0
        for i, pattern in enumerate(self.elements):
            if pattern is REST:
                continue
            anywhere = i > 0 and self.elements[i - 1] is REST
            at = self.find(pattern, value, at, context, where, anywhere) + 1
        if self.elements[-1] is not REST and at != len(value):
            raise Mismatch(f"{where}: {len(value) - at} elements more than expected")

    @staticmethod
    def find(pattern, value, at, context, where, anywhere):
        why = "there is none"
        for i in range(at, len(value) if anywhere else min(at + 1, len(value))):
            try:
                pattern.match(value[i], context, f"{where}[{i}]")
                return i
            except Mismatch as mismatch:
                why = mismatch
        raise Mismatch(f"{where}: no element that fits: {why}")


class Unordered:
    """Elements in any order, each pattern for one of them."""

    def __init__(self, elements):
        self.elements = elements

    def match(self, value, context, where):
        if not isinstance(value, list) or len(value) != len(self.elements):
            raise Mismatch(f"{where}: not an array of {len(self.elements)}: "
                           f"{json.dumps(value)[:400]}")
        left = list(value)
        for pattern in self.elements:
            at = Elements.find(pattern, left, 0, context, where, True)
            del left[at]


class Plain:
    def __init__(self, value):
        self.value = value

    def match(self, value, context, where):
        match_plain(self.value, value, where)


def match_plain(wanted, value, where):
    same = type(wanted) is type(value) or {type(wanted), type(value)} == {dict, Object}
    if not same or wanted != value:
        raise Mismatch(f"{where}: {json.dumps(value)[:200]} is not {json.dumps(wanted)[:200]}")


class Reader:
    """Reads one pattern from a text."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def skip(self):
        while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
            self.at += 1

    def peek(self, word):
        self.skip()
        return self.text.startswith(word, self.at)

    def take(self, word):
        if not self.peek(word):
            return False
        self.at += len(word)
        return True

    def need(self, word):
        if not self.take(word):
            raise Broken(f"'{word}' expected at '{self.text[self.at:self.at + 40]}'")

    def regex(self, expression):
        self.skip()
        found = re.compile(expression).match(self.text, self.at)
        if not found:
            raise Broken(f"no pattern at '{self.text[self.at:self.at + 40]}'")
        self.at = found.end()
        return found.group(1)

    def string(self):
        return json.loads(self.regex(r'("(?:[^"\\]|\\.)*")'))

    def value(self):
        if self.peek("{"):
            return self.members()
        if self.peek("["):
            return self.elements()
        if self.peek("<"):
            return Blank(self.regex(r"<([^>]*)>"))
        if self.peek("$"):
            return Value(self.regex(rf"\$({NAME})"))
        if self.peek("/"):
            return Regex(self.regex(r"/((?:[^/\\]|\\.)*)/").replace("\\/", "/"))
        if self.peek('"'):
            return Text(self.string())
        return Plain(json.loads(self.regex(r"(true|false|null|-?\d[-+.\deE]*)")))

    def members(self):
        self.need("{")
        members, rest = {}, False
        while not self.take("}"):
            if self.take("..."):
                rest = True
            else:
                name = self.string()
                self.need(":")
                members[name] = self.value()
            if not self.peek("}"):
                self.need(",")
        return Members(members, rest)

    def elements(self):
        self.need("[")
        unordered = self.take("any order:")
        elements = []
        while not self.take("]"):
            elements.append(REST if not unordered and self.take("...") else self.value())
            if not self.peek("]"):
                self.need(",")
        return Unordered(elements) if unordered else Elements(elements)


def read_pattern(text):
    reader = Reader(text)
    pattern = reader.value()
    reader.skip()
    if reader.at != len(text):
        raise Broken(f"more than one value: '{text[reader.at:reader.at + 40]}'")
    return pattern
