#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a flow that splits, maps over N parts and reduces: map-reduce.py [N] | weft flow run -"""
import json
import sys

count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
parts = [f"map-{i}" for i in range(count)]
nodes = [{"name": "split", "kind": "step"}]
nodes += [{"name": part, "kind": "step", "payload": {"part": i}, "after": ["split"]} for i, part in enumerate(parts)]
nodes.append({"name": "reduce", "kind": "step", "after": parts})
json.dump({"name": "map-reduce", "nodes": nodes}, sys.stdout)
