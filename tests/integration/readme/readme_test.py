#!/usr/bin/env python3
# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
"""Does what the README says, block by block, as a newcomer would.

Fenced blocks with a file's name become that file in a client's folder; `sh`
blocks run where their first line says: in the repository, in the client's
folder, and with a daemon or without. Every block must succeed, and the output of
some is compared with what the README promises. A block with any other heading is
an error, so that none is skipped by mistake.
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


def blocks():
    with open(os.path.join(REPOSITORY, "README.md"), encoding="utf-8") as readme:
        return [match.groups() for match in FENCE.finditer(readme.read())]


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
                    output[commands.strip()] = self.run_block(commands, where, environment)
            finally:
                code = daemon.stop() if daemon is not None else None
            self.assertEqual(code, 0)
            self.check_output(output)

    def check_tests_command(self):
        self.assertTrue(os.access(os.path.join(REPOSITORY, TESTS_COMMAND), os.X_OK))
        with open(os.path.join(REPOSITORY, ".ci/run"), encoding="utf-8") as ci:
            self.assertIn(TESTS_COMMAND, ci.read())

    def check_output(self, output):
        quickstart = output["deploy/quickstart"]
        self.assertEqual(quickstart.count("963 of 1000 correct"), 4, quickstart)
        hello = output["build/hello"]
        self.assertIn("leased 64.0 MiB", hello)
        self.assertIn("hello from the first process", hello)
        tables = next(text for commands, text in output.items() if "heapbrokerctl" in commands)
        self.assertIn("greeting", tables)


if __name__ == "__main__":
    unittest.main(verbosity=2)
