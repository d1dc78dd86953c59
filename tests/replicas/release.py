# SPDX-License-Identifier: Apache-2.0
"""The binary of the last release, built from its commit in the build folder."""
import fcntl
import os
import shutil
import subprocess

from harness import BUILD, ROOT

TAG = "0.1.0"
COMMIT = "6cc711ef849f40a9ef3b8dd7531f66fe3d09f07e"  # of the tag, which a clone need not have
BUILD_S = 1500


def quiet(*command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=BUILD_S, **more)


def build_release():
    """The path of the binary and None, or None and why there is none. Tests that run at the same
    time build it once."""
    folder = os.path.join(BUILD, "release-" + TAG)
    with open(folder + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build_in(folder)


def build_in(folder):
    binary = os.path.join(folder, "build", "weft")
    if os.path.exists(binary):
        return binary, None
    if not os.path.exists(os.path.join(ROOT, ".git")) or not shutil.which("git"):
        return None, "there is no git history here to build the last release from"
    # The folder may belong to another user than the one who runs the tests.
    git = ["git", "-c", "safe.directory=*", "-C", ROOT]
    if quiet(*git, "cat-file", "-e", COMMIT).returncode:
        return None, f"this clone does not reach back to {TAG}: git fetch --unshallow"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    archive = os.path.join(folder, "source.tar")
    for command in ([*git, "archive", "-o", archive, COMMIT], ["tar", "-xf", archive, "-C", folder],
                    ["meson", "setup", os.path.join(folder, "build"), folder, "-Dtests=false",
                     "-Dexamples=false"],
                    ["nice", "ninja", "-C", os.path.join(folder, "build"), "weft"]):
        done = quiet(*command)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            return None, f"cannot build {TAG}: {' '.join(command)}: {done.stdout[-500:]!r}"
    return binary, None
