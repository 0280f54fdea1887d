#!/usr/bin/env python3
# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy, with the checks of .clang-tidy, over the project's sources.

    tidy.py [--root DIR] [--jobs N] BUILD [PREFIX...]

BUILD is a build folder with compile_commands.json in which the generated headers
have been built. With PREFIX only the sources are looked at whose path in the
project begins with one. Prints each finding as PATH:LINE: TEXT; exit code 1 if
there is any.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import shutil
import subprocess
import sys

PROGRAM = "clang-tidy-14"
FOLDERS = ("common/", "daemon/", "client/", "tests/")
FINDING = re.compile(r"^(?P<path>/\S+?):(?P<line>\d+):\d+: (?:warning|error): (?P<text>.*)$")


def sources(root: pathlib.Path, build: pathlib.Path, prefixes: list[str]) -> list[str]:
    """Paths in the project of what BUILD compiles, without generated files."""
    with open(build / "compile_commands.json", encoding="utf-8") as file:
        entries = json.load(file)
    found = set()
    for entry in entries:
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if not path.is_relative_to(root) or path.is_relative_to(build):
            continue
        name = path.relative_to(root).as_posix()
        if name.startswith(FOLDERS) and name.startswith(tuple(prefixes or FOLDERS)):
            found.add(name)
    return sorted(found)


def look_at(root: pathlib.Path, build: pathlib.Path, source: str) -> list[str]:
    """Findings in one source and in the project's headers that it includes."""
    result = subprocess.run([PROGRAM, "--quiet", "-p", build, source], cwd=root, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    findings = []
    for line in result.stdout.splitlines():
        match = FINDING.match(line)
        if match:
            path = pathlib.Path(match["path"])
            name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
            findings.append(f"{name}:{match['line']}: {match['text']}")
    if result.returncode != 0 and not findings:
        findings.append(f"{source}:1: {PROGRAM} failed: {result.stdout}{result.stderr}".rstrip())
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("prefixes", nargs="*", metavar="PREFIX")
    arguments = parser.parse_args()
    root, build = arguments.root.resolve(), arguments.build.resolve()
    if shutil.which(PROGRAM) is None:
        print(f"{PROGRAM} is missing: apt-get install -y --no-install-recommends {PROGRAM}")
        return 1
    files = sources(root, build, arguments.prefixes)
    if not files:
        print(f"{build} compiles no source of the project that was asked for")
        return 1
    seen: set[str] = set()  # A header's finding comes with each source that includes it.
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for findings in pool.map(lambda source: look_at(root, build, source), files):
            for finding in findings:
                if finding not in seen:
                    seen.add(finding)
                    print(finding, flush=True)
    print(f"{len(files)} sources looked at, {len(seen)} findings")
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
