#!/usr/bin/env python3
# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
"""A fault planted in a small tree must be found, in a source or in a header that
it includes, and nothing else."""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import tidy  # noqa: E402

CLEAN = "int Half(int number) { return number / 2; }\n"
FAULT = "double Half(int number) { return number / 2 + 0.5; }\n"
FAULT_NAME = "bugprone-integer-division"


class TidyTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="hb-tidy-")).resolve()
        self.addCleanup(shutil.rmtree, self.root)
        checks = pathlib.Path(__file__).resolve().parents[2] / ".clang-tidy"
        shutil.copy(checks, self.root)
        self.build = self.root / "build"
        self.build.mkdir()
        self.compiled = []

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def compile(self, path, text):
        self.write(path, text)
        self.compiled.append({"directory": str(self.build), "file": str(self.root / path),
                              "command": f"clang++ -std=c++20 -c {self.root / path}"})
        (self.build / "compile_commands.json").write_text(json.dumps(self.compiled))

    def findings(self, source):
        return tidy.look_at(self.root, self.build, source)

    def test_a_clean_source_has_no_findings(self):
        self.compile("daemon/core/x.cc", CLEAN)
        self.assertEqual([], self.findings("daemon/core/x.cc"))

    def test_a_fault_is_found_in_its_line(self):
        self.compile("daemon/core/x.cc", CLEAN + FAULT.replace("Half", "Other"))
        (finding,) = self.findings("daemon/core/x.cc")
        self.assertTrue(finding.startswith("daemon/core/x.cc:2: "), finding)
        self.assertIn(FAULT_NAME, finding)

    def test_a_fault_in_a_header_is_found_there(self):
        self.write("daemon/core/x.h", "inline " + FAULT)
        self.compile("daemon/core/x.cc", '#include "x.h"\n')
        (finding,) = self.findings("daemon/core/x.cc")
        self.assertTrue(finding.startswith("daemon/core/x.h:1: "), finding)

    def test_a_source_that_does_not_compile_is_a_finding(self):
        self.compile("daemon/core/x.cc", '#include "missing.h"\n')
        (finding,) = self.findings("daemon/core/x.cc")
        self.assertIn("missing.h", finding)

    def test_generated_and_foreign_sources_are_left_out(self):
        for path in ("daemon/core/b.cc", "tests/a.cc", "build/daemon/generated.cc", "elsewhere/x.cc"):
            self.compile(path, CLEAN)
        self.assertEqual(["daemon/core/b.cc", "tests/a.cc"],
                         tidy.sources(self.root, self.build, []))
        self.assertEqual(["tests/a.cc"], tidy.sources(self.root, self.build, ["tests/"]))


if __name__ == "__main__":
    unittest.main()
