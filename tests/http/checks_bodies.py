# SPDX-License-Identifier: Apache-2.0
"""What request bodies may look like: none, compressed, lines."""
import json

from checks import Caller, same


def empty_bodies(bench):
    """openapi: a body is required where the document says so, and only there"""
    caller = Caller(bench, "empty-bodies")
    made = caller.post("/v1/executions", {"kind": "k"}, 201)["id"]
    for operation in bench.document.operations:
        declared = operation.content.get("requestBody")
        if declared is None:
            continue
        path = operation.path.replace("{id}", made).replace("{lane}", "l").replace("{worker}", "w")
        answer = caller.send(operation.method, path.replace("{name}", "intake"), None, None)
        said = "has no body" in answer.body.decode()
        same(said, declared["required"], f"{operation}: refused for want of a body")


ALL = [empty_bodies]
