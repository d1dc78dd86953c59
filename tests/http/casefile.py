# SPDX-License-Identifier: Apache-2.0
"""Case files taken apart into cases and steps. The language is described in run.py."""
import base64
import json
import os
import re

from pattern import Broken, NAME, duration, moment_of, read_pattern

STEP = re.compile(r"(GET|POST|PUT|DELETE|HEAD|PATCH|OPTIONS) (/\S*)$")
HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*): ?(.*)$")
ARROW = re.compile(r"--> (\d{3})((?: \([^)]*\))*)$")
LIMIT = re.compile(r"\((within|after|before) ([\d.]+) (ms|s|min)\)")
TOKEN = re.compile(rf"token \$({NAME}): ([a-z,]+)(?: in (\S+))?(?: for ([\d.]+) (ms|s|min|h|d))?$")
REVOKE = re.compile(rf"revoke \$({NAME})$")
REPEAT = re.compile(r"<<(\d+) x ")
BODY_WORDS = ("exactly", "bytes", "contains", "lacks")
WORDS = ("while", "then", "end")


class Step:
    """One request and what is expected of its answer."""

    def __init__(self, line, method, path):
        self.line, self.method, self.path = line, method, path
        self.headers, self.body = [], None
        self.status = None
        self.within = self.after = self.before = None
        self.wanted_headers = []
        self.wanted_body = []  # (word, text)
        self.pattern = None


class Token:
    """A token to be made, or (scopes None) revoked."""

    def __init__(self, line, name, scopes, namespace=None, lifetime=None):
        self.line, self.name, self.scopes = line, name, scopes
        self.namespace, self.lifetime = namespace, lifetime


class Block:
    """while: requests that wait for their answers; then: steps meanwhile."""

    def __init__(self, line):
        self.line, self.waiting, self.steps = line, [], []


class Case:
    def __init__(self, path, line, title):
        self.file = os.path.splitext(os.path.basename(path))[0]
        self.path, self.line, self.title, self.steps = path, line, title, []


def repeat(text):
    """<<3 x {"n": #}>> is {"n": 0},{"n": 1},{"n": 2}; <<3 x a>> is aaa; the innermost first."""
    while True:
        begins = list(REPEAT.finditer(text))
        end = text.find(">>", begins[-1].end()) if begins else -1
        if end < 0:
            return text
        count, what = int(begins[-1].group(1)), text[begins[-1].end():end]
        if what[0] in "{\"<" or "#" in what:
            what = ",".join(what.replace("#", str(i)) for i in range(count))
        else:
            what *= count
        text = text[:begins[-1].start()] + what + text[end + 2:]


def fill(text, values, now):
    """Puts values in the place of $name, and moments in the place of $(now+5s)."""
    def moment(found):
        sign = -1 if found.group(1) == "-" else 1
        offset = sign * duration(found.group(2), found.group(3)) if found.group(1) else 0
        return moment_of(now + offset)

    def value(found):
        if found.group(1) not in values:
            raise Broken(f"${found.group(1)} has no value")
        given = values[found.group(1)]
        return given if isinstance(given, str) else json.dumps(given)
    text = re.sub(r"\$\(now(?:([+-])([\d.]+)(ms|s|min|h|d))?\)", moment, text)
    return re.sub(rf"\$({NAME})", value, text)


class Parser:
    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8", newline="\n") as file:
            self.lines = file.read().split("\n")
        self.at = 0

    def fail(self, what):
        raise Broken(f"{self.path}:{self.at + 1}: {what}")

    def line(self):
        return self.lines[self.at] if self.at < len(self.lines) else None

    @staticmethod
    def is_idle(line):
        return not line.strip() or line.lstrip().startswith("#")

    def begins_something(self, line):
        return (line.startswith("=== ") or line in WORDS or STEP.match(line) or
                TOKEN.match(line) or REVOKE.match(line))

    def cases(self):
        found = []
        while self.line() is not None:
            line = self.line()
            if self.is_idle(line):
                self.at += 1
            elif line.startswith("=== "):
                found.append(Case(self.path, self.at + 1, line[4:].strip()))
                self.at += 1
                found[-1].steps = self.steps(())
            else:
                self.fail(f"a case must begin with '=== title': {line}")
        return found

    def steps(self, ends):
        """Steps up to one of the words, which is left, or up to the next case."""
        steps = []
        while self.line() is not None and not self.line().startswith("=== "):
            line = self.line()
            if line in ends:
                return steps
            if self.is_idle(line):
                self.at += 1
            elif line == "while":
                steps.append(self.block())
            elif TOKEN.match(line):
                name, scopes, namespace, number, unit = TOKEN.match(line).groups()
                steps.append(Token(self.at + 1, name, scopes, namespace,
                                   duration(number, unit) if number else None))
                self.at += 1
            elif REVOKE.match(line):
                steps.append(Token(self.at + 1, REVOKE.match(line).group(1), None))
                self.at += 1
            else:
                steps.append(self.step())
        if ends:
            self.fail(f"'{ends[0]}' is missing")
        return steps

    def block(self):
        block = Block(self.at + 1)
        self.at += 1
        block.waiting = self.steps(("then",))
        self.at += 1
        block.steps = self.steps(("end",))
        self.at += 1
        return block

    def step(self):
        found = STEP.match(self.line())
        if not found:
            self.fail(f"neither a request nor anything else that is known: {self.line()}")
        step = Step(self.at + 1, *found.groups())
        self.at += 1
        self.request(step)
        self.answer(step)
        return step

    def request(self, step):
        while self.line() is not None and HEADER.match(self.line()):
            step.headers.append(HEADER.match(self.line()).groups())
            self.at += 1
        body = []
        while self.line() is not None and not self.line().startswith("-->"):
            if self.begins_something(self.line()):
                self.fail("the request before this has no answer")
            if not self.line().startswith("#"):
                body.append(self.line())
            self.at += 1
        text = "\n".join(body).rstrip("\n")
        for i, (name, value) in enumerate(step.headers):
            if name == "Body-Base64":
                del step.headers[i]
                step.body = base64.b64decode(value)
                break
        if text:
            step.body = repeat(text)

    def answer(self, step):
        found = ARROW.match(self.line() or "")
        if not found:
            self.fail(f"the answer should begin with '--> STATUS': {self.line()}")
        step.status = int(found.group(1))
        for word, number, unit in LIMIT.findall(found.group(2)):
            setattr(step, word, duration(number, unit))
        self.at += 1
        rest = []
        while self.line() is not None and not self.begins_something(self.line()):
            line = self.line()
            header = HEADER.match(line)
            if header and header.group(1) in BODY_WORDS:
                step.wanted_body.append((header.group(1), repeat(header.group(2))))
            elif line == "empty":
                step.wanted_body.append(("exactly", ""))
            elif header and not rest:
                step.wanted_headers.append(header.groups())
            elif not self.is_idle(line):
                rest.append(line)
            self.at += 1
        if rest:
            try:
                step.pattern = read_pattern(repeat("\n".join(rest)))
            except Broken as broken:
                raise Broken(f"{self.path}:{step.line}: {broken}") from broken


def read_cases(folder):
    cases = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".http"):
            cases += Parser(os.path.join(folder, name)).cases()
    return cases
