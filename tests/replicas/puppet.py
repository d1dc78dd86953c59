#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker process that sends the calls that a test writes to it: tests/replicas/puppet.py URL

A line of input is a JSON array of a path and a body to POST; a line of output is the status and the
answer. Calls are made one after the other, over a connection that is kept. See fleet.Puppet.
"""
import json
import sys

from fleet import BOUND_S, Address
from harness import Calls


def main():
    calls = Calls(Address(sys.argv[1]), timeout=BOUND_S)
    for line in sys.stdin:
        path, body = json.loads(line)
        status, _, answer = calls("POST", path, body)
        sys.stdout.write(json.dumps([status, answer]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
