#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document passes redocly (recommended rules) and spectral (spectral:oas) without a
warning.

The linters are npm packages, fixed by openapi-lint/package-lock.json. They are installed once into
the build folder, under a name with the hash of the lock file, and found there from then on. On a
machine without npm, or where the packages cannot be had, the points are skipped with the reason;
what needs no linter is checked by unit/openapi.
"""
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile

from harness import BUILD, HERE, Tap, scratch, serve

SOURCE = os.path.join(HERE, "openapi-lint")
FILES = ("package.json", "package-lock.json", ".npmrc")
INSTALL_S, LINT_S = 300, 120
ENV = {**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
       "NO_COLOR": "1"}


class Missing(Exception):
    """The linters cannot be had here; the text says why."""


def install():
    """The folder with the linters' programs; made when it is not there."""
    npm = shutil.which("npm")
    if not npm:
        raise Missing("npm is not installed")
    with open(os.path.join(SOURCE, "package-lock.json"), "rb") as lock:
        name = hashlib.sha256(lock.read()).hexdigest()[:16]
    folder = os.path.join(BUILD, "openapi-lint")
    home = os.path.join(folder, name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w", encoding="ascii") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)  # two runs may want it at the same time
        if not os.path.isdir(home):
            fetch(npm, folder, home)
    return os.path.join(home, "node_modules", ".bin")


def fetch(npm, folder, home):
    """Installs beside the final place and renames: half an installation is never found."""
    with tempfile.TemporaryDirectory(prefix="new.", dir=folder) as new:
        for file in FILES:
            shutil.copy(os.path.join(SOURCE, file), new)
        try:
            done = subprocess.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                                  cwd=new, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=INSTALL_S, check=False)
        except subprocess.TimeoutExpired as late:
            raise Missing(f"npm ci was not done after {INSTALL_S} s") from late
        if done.returncode:
            reason = next((line for line in done.stdout.splitlines() if "error" in line), "no reason")
            raise Missing(f"npm ci failed: {reason}")
        os.mkdir(home + ".part")
        for name in os.listdir(new):
            os.rename(os.path.join(new, name), os.path.join(home + ".part", name))
        os.rename(home + ".part", home)


def lint(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=ENV, timeout=LINT_S, check=False)
    return done.stdout, f"exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def redocly(programs, path):
    """What is wrong with a document, as rules; and all that was printed."""
    text, all_of_it = lint([os.path.join(programs, "redocly"), "lint", "--extends=recommended",
                            "--format=json", path])
    return {problem["ruleId"] for problem in json.loads(text)["problems"]}, all_of_it


def spectral(programs, path):
    text, all_of_it = lint([os.path.join(programs, "spectral"), "lint", "--quiet", "--format=json",
                            "--ruleset", os.path.join(SOURCE, "spectral.yaml"), path])
    return {problem["code"] for problem in json.loads(text)}, all_of_it


def spoil(document):
    """The same document with an operation without a description."""
    operation = document["paths"]["/v1/lanes"]["get"]
    del operation["description"]
    operation["responses"] = {"200": operation["responses"]["200"]}
    return document


def judge(tap, programs, folder, text):
    good, bad = (os.path.join(folder, name) for name in ("good.json", "bad.json"))
    with open(good, "wb") as file:
        file.write(text)
    with open(bad, "w", encoding="utf-8") as file:
        json.dump(spoil(json.loads(text)), file)
    for name, linter, rule in (("redocly", redocly, "operation-4xx-response"),
                               ("spectral", spectral, "operation-description")):
        rules, output = linter(programs, good)
        tap.ok(not rules, f"{name} finds nothing wrong with the document", output)
        rules, output = linter(programs, bad)
        tap.ok(rule in rules, f"{name} finds an operation without {rule.split('-', 1)[1]}", output)


def main():
    tap = Tap()
    try:
        programs = install()
    except Missing as missing:
        tap.skip(str(missing))
        tap.done()
    store = scratch("sqlite", "lint")
    server = serve(store)
    try:
        text = server.client().send("GET", "/openapi.json").body
    finally:
        server.stop()
        store.remove()
    with tempfile.TemporaryDirectory() as folder:
        judge(tap, programs, folder, text)
    tap.done()


if __name__ == "__main__":
    main()
