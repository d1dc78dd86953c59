# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document held against what the server takes and gives.

Knows the part of JSON Schema that the document uses; a word it does not know is an error, so that
nothing is passed over in silence.
"""
import base64
import binascii
import json
import re
import threading

from pattern import is_whole

TYPES = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: is_whole(value) or isinstance(value, float) and value.is_integer(),
    "number": lambda value: is_whole(value) or isinstance(value, float),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
NOTES = {"description", "title", "default", "examples", "example", "deprecated", "readOnly",
         "writeOnly", "$comment", "contentMediaType"}
METHODS = ("get", "put", "post", "delete", "head", "patch", "options", "trace")


def same(a, b):
    return type(a) is type(b) and a == b


def is_base64(text):
    try:
        base64.b64decode(text, validate=True)
        return True
    except (binascii.Error, ValueError):
        return False


class Schemas:
    """Checks values against schemas of one document."""

    def __init__(self, document):
        self.document = document

    def resolve(self, ref):
        if not ref.startswith("#/"):
            raise ValueError(f"{ref} leads out of the document")
        at = self.document
        for part in ref[2:].split("/"):
            at = at[part.replace("~1", "/").replace("~0", "~")]
        return at

    def check(self, schema, value, where):
        """What is wrong, as a list of sentences."""
        if schema is True or schema == {}:
            return []
        if schema is False:
            return [f"{where}: nothing is allowed here"]
        wrong = []
        for word, argument in schema.items():
            if word not in NOTES:
                rule = getattr(self, "rule_" + word.replace("$", ""), None)
                if not rule:
                    raise ValueError(f"the word '{word}' of JSON Schema is not known to this check")
                wrong += rule(argument, value, where, schema)
        return wrong

    def rule_ref(self, ref, value, where, _schema):
        return self.check(self.resolve(ref), value, where)

    def rule_type(self, types, value, where, _schema):
        types = [types] if isinstance(types, str) else types
        if any(TYPES[name](value) for name in types):
            return []
        return [f"{where}: {json.dumps(value)[:80]} is not of type {' or '.join(types)}"]

    def rule_enum(self, words, value, where, _schema):
        if any(same(word, value) for word in words):
            return []
        return [f"{where}: {json.dumps(value)[:80]} is none of {words}"]

    def rule_const(self, word, value, where, _schema):
        return [] if same(word, value) else [f"{where}: {json.dumps(value)[:80]} is not {word}"]

    def rule_properties(self, properties, value, where, _schema):
        if not isinstance(value, dict):
            return []
        return [line for name, schema in properties.items() if name in value
                for line in self.check(schema, value[name], f"{where}.{name}")]

    def rule_required(self, names, value, where, _schema):
        if not isinstance(value, dict):
            return []
        return [f"{where}: '{name}' is missing" for name in names if name not in value]

    def rule_additionalProperties(self, inner, value, where, schema):
        if not isinstance(value, dict):
            return []
        known = schema.get("properties", {})
        return [line for name in value if name not in known
                for line in ([f"{where}: '{name}' is not in the schema"] if inner is False
                             else self.check(inner, value[name], f"{where}.{name}"))]

    def rule_propertyNames(self, inner, value, where, _schema):
        if not isinstance(value, dict):
            return []
        return [line for name in value for line in self.check(inner, name, f"{where}.{name}")]

    def rule_items(self, inner, value, where, _schema):
        if not isinstance(value, list):
            return []
        return [line for i, element in enumerate(value)
                for line in self.check(inner, element, f"{where}[{i}]")]

    def rule_allOf(self, inner, value, where, _schema):
        return [line for schema in inner for line in self.check(schema, value, where)]

    def rule_anyOf(self, inner, value, where, _schema):
        tried = [self.check(schema, value, where) for schema in inner]
        return [] if not all(tried) else [f"{where}: fits none of {len(inner)}: {tried}"]

    def rule_oneOf(self, inner, value, where, _schema):
        tried = [self.check(schema, value, where) for schema in inner]
        fits = sum(1 for wrong in tried if not wrong)
        if fits == 1:
            return []
        return [f"{where}: fits {fits} of oneOf, not 1: {tried if not fits else ''}"]

    def rule_not(self, inner, value, where, _schema):
        return [] if self.check(inner, value, where) else [f"{where}: fits what it must not"]

    def rule_format(self, name, value, where, _schema):
        known = {"uuid": UUID, "date-time": DATE_TIME}
        if not isinstance(value, str) or name not in known or known[name].fullmatch(value):
            return []
        return [f"{where}: '{value}' is not of the format {name}"]

    def rule_pattern(self, expression, value, where, _schema):
        if not isinstance(value, str) or re.search(expression, value):
            return []
        return [f"{where}: '{value[:80]}' does not match {expression}"]

    def rule_contentEncoding(self, name, value, where, _schema):
        if name != "base64" or not isinstance(value, str) or is_base64(value):
            return []
        return [f"{where}: '{value[:80]}' is not base64"]

    def bound(self, holds, value, where, what):
        number = is_whole(value) or isinstance(value, float)
        return [] if not number or holds else [f"{where}: {value} is not {what}"]

    def rule_minimum(self, least, value, where, _schema):
        number = is_whole(value) or isinstance(value, float)
        return self.bound(number and value >= least, value, where, f"at least {least}")

    def rule_maximum(self, most, value, where, _schema):
        number = is_whole(value) or isinstance(value, float)
        return self.bound(number and value <= most, value, where, f"at most {most}")

    def rule_minLength(self, least, value, where, _schema):
        fine = not isinstance(value, str) or len(value) >= least
        return [] if fine else [f"{where}: shorter than {least}"]

    def rule_maxLength(self, most, value, where, _schema):
        fine = not isinstance(value, str) or len(value) <= most
        return [] if fine else [f"{where}: longer than {most}"]

    def rule_minItems(self, least, value, where, _schema):
        fine = not isinstance(value, list) or len(value) >= least
        return [] if fine else [f"{where}: fewer than {least}"]

    def rule_maxItems(self, most, value, where, _schema):
        fine = not isinstance(value, list) or len(value) <= most
        return [] if fine else [f"{where}: more than {most}"]

    def rule_minProperties(self, least, value, where, _schema):
        fine = not isinstance(value, dict) or len(value) >= least
        return [] if fine else [f"{where}: fewer than {least} members"]

    def rule_maxProperties(self, most, value, where, _schema):
        fine = not isinstance(value, dict) or len(value) <= most
        return [] if fine else [f"{where}: more than {most} members"]


class Operation:
    """One route of the document, and what was seen of it."""

    def __init__(self, method, path, content):
        self.method, self.path, self.content = method, path, content
        expression = re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(path))
        self.regex = re.compile(expression + r"/?")
        self.plain = "{" not in path
        self.seen = {}  # how often each status came
        self.wrong = []

    def __str__(self):
        return f"{self.method} {self.path}"


class Document:
    def __init__(self, text):
        self.content = json.loads(text)
        self.schemas = Schemas(self.content)
        self.lock = threading.Lock()
        self.operations = [Operation(method.upper(), path, content)
                           for path, methods in self.content["paths"].items()
                           for method, content in methods.items() if method in METHODS]

    def find(self, method, path):
        path = path.split("?")[0].split("#")[0]
        method = "GET" if method == "HEAD" else method
        fits = [o for o in self.operations if o.method == method and o.regex.fullmatch(path)]
        return sorted(fits, key=lambda o: not o.plain)[0] if fits else None

    def response(self, operation, status):
        responses = operation.content["responses"]
        found = responses.get(str(status))  # `default` is for others: every own answer is named
        if found and "$ref" in found:
            found = self.schemas.resolve(found["$ref"])
        return found

    def check_answer(self, operation, answer):
        response = self.response(operation, answer.status)
        if response is None:
            return [f"the status {answer.status} is not in the document"]
        kind = (answer.header("Content-Type") or "").split(";")[0].strip()
        content = response.get("content", {})
        entry = content.get(kind) or content.get("*/*")
        if entry is None:
            return [f"{answer.status} with the content type '{kind}', which is not in the document"]
        if kind != "application/json" or kind not in content or not answer.body:
            return []
        return self.schemas.check(entry["schema"], json.loads(answer.body), "answer")

    def check_request(self, operation, body, answer, headers):
        """A request that was accepted must fit what the document says about requests."""
        if answer.status >= 300:
            return []
        declared = operation.content.get("requestBody")
        if declared is None:
            return ["a body was taken and the document has none"] if body else []
        if not body:
            return ["no body was taken and the document requires one"] \
                if declared.get("required") else []
        given = {name.lower(): value for name, value in headers}
        if "content-encoding" in given:
            return []  # what is inside is looked at where it is sent plainly
        kind = given.get("content-type", "").split(";")[0].strip()
        if "*/*" in declared["content"] or kind in declared["content"] and kind != "application/json":
            return []  # no JSON as a whole
        schema = declared["content"]["application/json"]["schema"]
        return self.schemas.check(schema, json.loads(body), "request")

    def see(self, method, path, body, answer, headers=()):
        """Notes an exchange and what is wrong with it."""
        operation = self.find(method, path)
        if not operation or answer.status in (404, 405) and not answer.body:
            return
        wrong = [] if method == "HEAD" else self.check_answer(operation, answer)
        if not self.holds_errors(answer):
            wrong += self.check_request(operation, body, answer, headers)
        with self.lock:
            operation.seen[answer.status] = operation.seen.get(answer.status, 0) + 1
            operation.wrong += [f"{method} {path} -> {answer.status}: {line}" for line in wrong]

    @staticmethod
    def holds_errors(answer):
        """Items of a bulk request that were refused need not fit."""
        return b'"error":{"code"' in answer.body
