#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker process that asks a server what it is told to: tests/replicas/puppet.py HOST PORT

A line of input is a JSON array of a path and a body to POST; a line of output is the status and the
answer. Calls are made one after the other, over a connection that is kept. See fleet.Puppet.
"""
import json
import sys

import fleet  # finds the harness
from harness import Calls


class Address:
    def __init__(self, host, port):
        self.host, self.port = host, port


def main():
    calls = Calls(Address(*sys.argv[1:3]), timeout=fleet.BOUND_S)
    for line in sys.stdin:
        path, body = json.loads(line)
        status, _, answer = calls("POST", path, body)
        sys.stdout.write(json.dumps([status, answer]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
