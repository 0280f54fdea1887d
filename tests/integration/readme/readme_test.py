#!/usr/bin/env python3
# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
"""Does what the README says, block by block, as a newcomer would.

Fenced blocks with a file's name become that file in a client's folder; `sh`
blocks run where their first line says: in the repository, in the client's
folder, and with a daemon or without. Every block must succeed, and the output of
some is compared with what the README promises. A block with any other heading is
an error, so that none is skipped by mistake.

The quick start runs twice, the second time where nothing can be downloaded, and
must leave no process behind.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

REPOSITORY = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The block that runs all tests cannot run inside one of them.
TESTS_COMMAND = "tests/run"
QUICKSTART = "deploy/quickstart"
# What the quick start, or a build that it starts, could download with.
DOWNLOADERS = ("apt", "apt-get", "aptitude", "curl", "dpkg", "git", "pip", "pip3", "wget")


def blocks():
    with open(os.path.join(REPOSITORY, "README.md"), encoding="utf-8") as readme:
        return [match.groups() for match in FENCE.finditer(readme.read())]


def running_from_build():
    """Pids of the processes whose program lies in build/release."""
    pids = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            program = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue  # It has ended, or is none of ours.
        if program.startswith(os.path.join(REPOSITORY, "build/release/")):
            pids.add(int(pid))
    return pids


def sections(output):
    """What the quick start printed, by headline."""
    parts = re.split(r"^=== (.*)\n", output, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def total(stats, column):
    """Of all pools together, by a table of heapbrokerctl stats."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in stats.splitlines()]
    index = next(row.index(column) for row in rows if column in row)
    return int(next(row for row in rows if row[0] == "total")[index])


class Daemon:
    """build/release/bin/heapbrokerd in a directory of its own."""

    def __init__(self, directory):
        self.directory = directory
        self.process = subprocess.Popen(
            [os.path.join(REPOSITORY, "build/release/bin/heapbrokerd"), "--runtime-dir", directory],
            stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        socket = os.path.join(directory, "broker.sock")
        while not os.path.exists(socket):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("the daemon did not come up")
            time.sleep(0.02)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=10)
        finally:
            self.process.kill()


class ReadmeTest(unittest.TestCase):
    maxDiff = None

    def run_block(self, text, where, environment):
        result = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=where,
                                env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                check=False)
        sys.stdout.write(result.stdout)
        self.assertEqual(result.returncode, 0, f"this block failed:\n{text}\n{result.stdout}")
        return result.stdout

    def test_every_block_does_what_the_readme_says(self):
        with tempfile.TemporaryDirectory() as scratch:
            client = os.path.join(scratch, "client")
            runtime = os.path.join(scratch, "run")
            os.makedirs(client)
            environment = {"PREFIX": os.path.join(scratch, "prefix"),
                           "HEAPBROKER_RUNTIME_DIR": runtime}
            output = {}
            daemon = None
            try:
                for language, name, text in blocks():
                    if language != "sh":
                        self.assertIsNotNone(name, f"a {language} block without a file's name")
                        with open(os.path.join(client, name), "w", encoding="utf-8") as file:
                            file.write(text)
                        continue
                    heading, _, commands = text.partition("\n")
                    self.assertRegex(
                        heading, r"^# in the (repository|client's folder)(, with a daemon)?$")
                    where = REPOSITORY if "repository" in heading else client
                    if heading.endswith("with a daemon") and daemon is None:
                        daemon = Daemon(runtime)
                    if commands.strip() == TESTS_COMMAND:
                        self.check_tests_command()
                        continue
                    if commands.strip() == QUICKSTART:
                        self.check_quickstart(commands, environment, scratch)
                        continue
                    output[commands.strip()] = self.run_block(commands, where, environment)
            finally:
                code = daemon.stop() if daemon is not None else None
            self.assertEqual(code, 0)
            self.check_output(output)

    def check_tests_command(self):
        self.assertTrue(os.access(os.path.join(REPOSITORY, TESTS_COMMAND), os.X_OK))
        with open(os.path.join(REPOSITORY, ".ci/run"), encoding="utf-8") as ci:
            self.assertIn(TESTS_COMMAND, ci.read())

    def check_quickstart(self, commands, environment, scratch):
        before = running_from_build()
        self.check_quickstart_output(self.run_block(commands, REPOSITORY, environment))
        self.assertEqual(running_from_build() - before, set(), "left by the quick start")

        # Everything is there now: it must not even try to fetch anything.
        calls, without_network = self.stand_in_downloaders(scratch)
        output = self.run_block(commands, REPOSITORY, {**environment, **without_network})
        self.check_quickstart_output(output)
        self.assertEqual(sections(output)["Packages"].strip(),
                         "All packages of deploy/packages-build.txt are installed.")
        self.assertFalse(os.path.exists(calls), "the second quick start called a downloader")
        self.assertEqual(running_from_build() - before, set(), "left by the second quick start")

    def stand_in_downloaders(self, scratch):
        """Programs that fail instead of downloading, and a file that is made when
        one is called. Returns the file and the environment in which they are found."""
        folder = os.path.join(scratch, "downloaders")
        calls = os.path.join(folder, "calls")
        os.makedirs(folder)
        for name in DOWNLOADERS:
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as program:
                program.write(f'#!/bin/sh\necho "$0 $*" | tee -a {calls} >&2\nexit 100\n')
            os.chmod(path, 0o755)
        return calls, {"PATH": folder + os.pathsep + os.environ["PATH"]}

    def check_quickstart_output(self, output):
        shown = sections(output)
        results = re.findall(r"^classifier \d \| 963 of 1000 correct$",
                             shown["4 classifiers at the same time"], re.MULTILINE)
        self.assertEqual(len(results), 4)
        self.assertIn("All 4 classifiers agree: 963 of 1000 correct.", shown["End"])

        # Each holds blocks of its own, and all hold the segment's one.
        held = shown["heapbrokerctl stats, while they hold memory"]
        self.assertIn("sessions: 4 clients", held)
        self.assertRegex(held, r"\b1 segment of [1-9]")
        self.assertGreaterEqual(total(held, "leased blocks"), 5)
        # The segment stays, for the next one; their blocks are idle.
        after = shown["heapbrokerctl stats, after they have gone"]
        self.assertIn("sessions: 0 clients", after)
        self.assertEqual(total(after, "leased blocks"), 1)
        self.assertGreaterEqual(total(after, "idle blocks"), 4)

        self.assertEqual("[software]" in held, "WARNING: no GPU was found" in shown["Daemon"])

    def check_output(self, output):
        hello = output["build/hello"]
        self.assertIn("leased 64.0 MiB", hello)
        self.assertIn("hello from the first process", hello)
        tables = next(text for commands, text in output.items() if "heapbrokerctl" in commands)
        self.assertIn("greeting", tables)


if __name__ == "__main__":
    unittest.main(verbosity=2)
