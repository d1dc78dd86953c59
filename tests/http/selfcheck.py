# SPDX-License-Identifier: Apache-2.0
"""Tests of the runner itself: patterns and schemas must refuse answers that do not fit."""
import json
import time

from openapi import Schemas
from pattern import Mismatch, moment_of, read_json, read_pattern

BEGUN = time.time()  # the moments below are about then, however long it takes to get to them

# (pattern, what fits, what does not)
PATTERNS = [
    ('{"a": 1}', ['{"a":1}'],
     ['{"a":2}', '{"a":1.0}', '{"a":true}', '{"a":"1"}', '{}', '{"a":1,"b":2}', '{"a":1,"a":1}']),
    ('{"a": 1, ...}', ['{"a":1}', '{"b":0,"a":1}'], ['{"b":1}', '[]', 'null']),
    ('[1, 2]', ['[1,2]'], ['[2,1]', '[1]', '[1,2,3]', '{}']),
    ('[..., 2, ...]', ['[2]', '[1,2,3]'], ['[]', '[1,3]']),
    ('[1, ...]', ['[1]', '[1,2]'], ['[]', '[2,1]']),
    ('[..., 1]', ['[1]', '[0,1]'], ['[1,0]', '[]']),
    ('[any order: 1, 2, 2]', ['[1,2,2]', '[2,1,2]'], ['[1,2]', '[1,1,2]', '[1,2,2,2]', '{}']),
    ('<int>', ['7', '-1'], ['true', '1.5', '"7"', 'null']),
    ('<int or null>', ['7', 'null'], ['"7"']),
    ('<string>', ['"a"'], ['""', '1', 'null']),
    ('<id>', ['"01890000-0000-7000-8000-000000000000"'],
     ['"01890000-0000-4000-8000-000000000000"', '"x"', '"01890000-0000-7000-8000-00000000000A"']),
    ('<moment>', ['"2026-01-02T03:04:05.678Z"'],
     ['"2026-01-02T03:04:05Z"', '"2026-01-02 03:04:05.678Z"', '1']),
    ('<in 60 s>', [json.dumps(moment_of(time.time() + 60))],
     [json.dumps(moment_of(time.time())), json.dumps(moment_of(time.time() + 120)), 'null']),
    ('/^a+$/', ['"aa"'], ['"ab"', '1']),
    ('$seven', ['7'], ['8', '"7"']),
    ('"n$seven"', ['"n7"'], ['"n$seven"']),
    ('null', ['null'], ['0', 'false', '""']),
]

# (schema, what fits, what does not)
SCHEMAS = [
    ({"type": "integer", "minimum": 1, "maximum": 3}, ['1', '3'], ['0', '4', '"1"', 'true', '1.5']),
    ({"type": ["string", "null"]}, ['"a"', 'null'], ['1']),
    ({"enum": ["a", None]}, ['"a"', 'null'], ['"b"', '0']),
    ({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/x"}},
      "additionalProperties": False}, ['{"a":1}'], ['{}', '{"a":"1"}', '{"a":1,"b":1}', '[]']),
    ({"additionalProperties": {"type": "string"}}, ['{"a":"b"}'], ['{"a":1}']),
    ({"type": "array", "maxItems": 2, "items": {"type": "boolean"}}, ['[true]'],
     ['[1]', '[true,true,true]']),
    ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, ['{"a":1}'], ['{"a":1,"b":1}', '{}']),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ['null'], ['1']),
    ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, ['{"a":1,"b":1}'], ['{"a":1}']),
    ({"format": "date-time"}, ['"2026-01-02T03:04:05.678Z"'], ['"soon"']),
    ({"format": "uuid"}, ['"01890000-0000-7000-8000-000000000000"'], ['"7"']),
    ({"pattern": "^a"}, ['"ab"'], ['"ba"']),
]


class Context:
    def __init__(self):
        self.values, self.begun, self.sent, self.received = {"seven": 7}, BEGUN, BEGUN, BEGUN

    @staticmethod
    def fill(text):
        return text.replace("$seven", "7")


def fits_pattern(pattern, text):
    try:
        read_pattern(pattern).match(read_json(text), Context(), "value")
        return True
    except Mismatch:
        return False


def fits_schema(schema, text):
    return not Schemas({"x": {"type": "integer"}}).check(schema, json.loads(text), "value")


def judge(table, fits):
    """What was judged wrongly."""
    return [f"{rule} and {text}" for rule, good, bad in table
            for text in good + bad if fits(rule, text) != (text in good)]


def patterns():
    return judge(PATTERNS, fits_pattern)


def schemas():
    return judge(SCHEMAS, fits_schema)
