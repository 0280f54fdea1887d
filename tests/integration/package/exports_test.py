#!/usr/bin/env python3
# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
"""A symbol that a library shows or hides against its headers must be reported, and
nothing else."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import exports  # noqa: E402

HEADER = """
#include <memory>
#define SHOWN __attribute__((visibility("default")))
#define KEPT __attribute__((visibility("hidden")))
namespace box {
class SHOWN Lid {
 public:
  Lid();
  virtual ~Lid();
  Lid(const Lid&) = delete;
  virtual void Turn() = 0;
  int inline_one() const { return 1; }
  static const int kTurns;
 private:
  friend SHOWN int Open(const Lid& lid);
  struct KEPT State;
  std::unique_ptr<State> state_;
};
SHOWN int Open(const Lid& lid);
int Close();
inline int later();
int later() { return 2; }
template <typename T> T Any();
}
"""
SOURCE = """
namespace box {
struct Lid::State { int Spring(); };
int Lid::State::Spring() { return 1; }
Lid::Lid() : state_(new State) {}
Lid::~Lid() {}
const int Lid::kTurns = 3;
int Open(const Lid&) { return 1; }
SHOWN int Close() { return 0; }
}
"""
FLAGS = ["-std=c++20", "-w", "-shared", "-fPIC", "-fvisibility=hidden",
         "-fvisibility-inlines-hidden"]


class ExportsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hb-exports-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def differences(self, changes=(), header=HEADER):
        """What is reported of a library of SOURCE with `changes` made to it."""
        text = HEADER + SOURCE
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        (self.folder / "box.h").write_text(header, encoding="utf-8")
        library = str(self.folder / "libbox.so")
        subprocess.run(["g++", *FLAGS, "-x", "c++", "-", "-o", library], input=text, text=True,
                       check=True)
        return exports.differences("box", library, [str(self.folder / "box.h")], [])

    def test_a_library_that_shows_what_its_header_declares_is_not_reported(self):
        self.assertEqual([], self.differences())

    def test_a_declared_function_that_is_hidden_is_reported(self):
        self.assertEqual(["declared in a public header, but not exported: box::Close()"],
                         self.differences([("SHOWN int Close", "int Close")]))

    def test_a_class_that_is_hidden_is_reported_with_all_its_members(self):
        self.assertEqual(
            ["declared in a public header, but not exported: " + name for name in (
                "box::Lid::Lid()", "box::Lid::kTurns", "box::Lid::~Lid()",
                "typeinfo for box::Lid")],
            self.differences([("class SHOWN Lid", "class KEPT Lid")]))

    def test_a_private_class_that_is_shown_is_reported(self):
        self.assertEqual(
            ["exported, but declared in no public header: box::Lid::State::Spring()"],
            self.differences([("struct KEPT State", "struct State")]))

    def test_what_no_header_declares_is_reported_whatever_its_namespace(self):
        self.assertEqual(
            ["exported, but declared in no public header: " + name
             for name in ("box::Extra()", "crate::Extra()", "extra")],
            self.differences([("SHOWN int Close()", """
                SHOWN int Extra() { return 0; }
                } namespace crate { SHOWN int Extra() { return 0; } }
                extern "C" { SHOWN int extra() { return 0; } }
                namespace box { SHOWN int Close()""")]))

    def test_headers_that_do_not_compile_are_an_error(self):
        with self.assertRaises(ValueError):
            self.differences(header="#include <no/such/header.h>\n")


if __name__ == "__main__":
    unittest.main()
