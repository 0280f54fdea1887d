#!/usr/bin/env python3
# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
"""A program that was built without one of the protections must be reported for
that one, and for nothing else."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import hardening  # noqa: E402

# Has a buffer to protect and a call to check.
PROGRAM = """
#include <cstring>
int main(int count, char** arguments) {
  char text[16];
  for (int i = 0; i < count; ++i) std::strcpy(text, arguments[i]);
  return text[0];
}
"""
# Said in full, as compilers differ in what they do unasked.
FLAGS = {
    "a position-independent executable": (["-fPIE", "-pie"], ["-fno-pie", "-no-pie"]),
    "read-only relocations (-z relro)": (["-Wl,-z,relro"], ["-Wl,-z,norelro"]),
    "relocations resolved at start (-z now)": (["-Wl,-z,now"], ["-Wl,-z,lazy"]),
    "the stack protector (-fstack-protector-strong)":
        (["-fstack-protector-strong"], ["-fno-stack-protector"]),
    "checked calls of the C library (-D_FORTIFY_SOURCE=2)":
        (["-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"], ["-U_FORTIFY_SOURCE"]),
}


class HardeningTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hb-hardening-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def missing_without(self, *without, library=False):
        """What is reported about PROGRAM built with all of FLAGS but these."""
        program = self.folder / "program"
        flags = [flag for what, (good, bad) in FLAGS.items()
                 for flag in (bad if what in without else good)]
        if library:
            flags += ["-fPIC", "-no-pie", "-shared", "-Wl,-soname,libprogram.so.1"]
        subprocess.run(["g++", "-O2", "-w", "-x", "c++", "-", "-o", program, *flags],
                       input=PROGRAM, text=True, check=True)
        return hardening.missing_in(str(program))

    def test_a_program_with_everything_is_not_reported(self):
        self.assertEqual([], self.missing_without())

    def test_a_program_built_without_flags_is_reported_for_each(self):
        self.assertEqual(list(hardening.WANTED), self.missing_without(*FLAGS))

    def test_one_missing_protection_is_reported_alone(self):
        for what in hardening.WANTED:
            with self.subTest(what):
                self.assertEqual([what], self.missing_without(what))

    def test_a_shared_library_lacks_what_a_program_does(self):
        everything = [what for what in hardening.WANTED if "executable" not in what]
        self.assertEqual([], self.missing_without(library=True))
        self.assertEqual(everything, self.missing_without(*everything, library=True))

    def test_what_is_no_program_is_an_error(self):
        text = self.folder / "text"
        text.write_text("no program\n", encoding="utf-8")
        for path in (text, self.folder / "missing"):
            with self.assertRaises(ValueError):
                hardening.missing_in(str(path))


if __name__ == "__main__":
    unittest.main()
