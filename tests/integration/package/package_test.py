#!/usr/bin/env python3
# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
"""The installed client library, as an application meets it.

    package_test.py BUILD_FOLDER [CMAKE_OPTION...] [TestCase.test]

Installs the component `client` into a temporary prefix, copies the examples to where
nothing of this repository is around them, builds them there through CMake's package and
through pkg-config, and runs them with a daemon of BUILD_FOLDER.
"""

import glob
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
import exports  # noqa: E402

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = REPOSITORY / "client/examples"
HEADER_FOLDERS = (REPOSITORY / "client/include/heapbroker",
                  REPOSITORY / "common/base/heapbroker")
BUILD: pathlib.Path
CMAKE_OPTIONS: list[str]


def run(*command, where=None, given="", **environment):
    """What the command printed; raises with all of it if it fails."""
    result = subprocess.run([str(part) for part in command], cwd=where, input=given, text=True,
                            env={**os.environ, **environment}, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    if result.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))}\nended with code "
                             f"{result.returncode} and printed:\n{result.stdout}")
    return result.stdout


def needed(binary):
    """Sonames of the libraries that a program or library asks for by itself."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "--dynamic", "--wide", binary))


class Daemon:
    """heapbrokerd of BUILD in a directory of its own, once it answers."""

    def __init__(self, directory):
        self.process = subprocess.Popen([BUILD / "bin/heapbrokerd", "--runtime-dir", directory],
                                        stdin=subprocess.DEVNULL)
        health = [BUILD / "bin/heapbrokerctl", "--runtime-dir", directory, "health"]
        deadline = time.monotonic() + 30
        while subprocess.run(health, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise AssertionError("the daemon did not come up")
            time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        finally:
            self.process.kill()
            self.process.wait()


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="hb-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "prefix"
        cls.examples = cls.folder / "examples"
        cls.run_dir = cls.folder / "run"
        cls.run_dir.mkdir(mode=0o700)
        run("cmake", "--install", BUILD, "--component", "client", "--prefix", cls.prefix)
        shutil.copytree(EXAMPLES, cls.examples)
        # CMAKE_INSTALL_LIBDIR is the build's own choice.
        cls.package, = cls.prefix.glob("**/heapbroker.pc")
        cls.library = (cls.package.parents[1] / "libheapbroker.so").resolve()

    def pkg_config(self, *arguments):
        path = str(self.package.parent)
        return shlex.split(run("pkg-config", *arguments, PKG_CONFIG_PATH=path))

    def headers(self):
        return sorted(path.name for folder in HEADER_FOLDERS for path in folder.glob("*.h"))

    def own_headers(self):
        """Without the one that only those include who have ExecuTorch."""
        return [name for name in self.headers() if name != "executorch.h"]

    def check_examples(self, bin_dir):
        """Runs what was built into `bin_dir`, which must find the library by itself."""
        daemon = Daemon(self.run_dir)
        try:
            environment = {"HEAPBROKER_RUNTIME_DIR": str(self.run_dir)}
            for program in ("digits", "share_buffer", "import_descriptor", "dynamic_buffers"):
                self.assertIn(self.soname(), needed(bin_dir / program))
            digits = run(bin_dir / "digits", **environment)
            self.assertIn("\n963 of 1000 correct\n", digits)
            self.assertIn("descriptor ", run(bin_dir / "import_descriptor", **environment))
            dynamic = run(bin_dir / "dynamic_buffers", "50", **environment)
            self.assertRegex(dynamic, r"^50 tensors in [2-9] blocks of .*\n.* are idle and go back")

            # Two processes at the same time: the first one waits for a line of input.
            writer = subprocess.Popen([bin_dir / "share_buffer", "written by the first"],
                                      env={**os.environ, **environment}, text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            try:
                self.assertEqual("wrote: written by the first\n", writer.stdout.readline())
                self.assertEqual("found: written by the first\n",
                                 run(bin_dir / "share_buffer", "ignored", **environment))
                self.assertIsNone(writer.poll())
            finally:
                writer.communicate("\n")
            self.assertEqual(0, writer.returncode)
        finally:
            daemon.stop()

    def soname(self):
        return re.search(r"\(SONAME\).*\[(.*)\]",
                         run("readelf", "--dynamic", "--wide", self.library)).group(1)

    def test_the_component_is_the_library_its_headers_and_what_finds_them(self):
        files = {path.relative_to(self.prefix).as_posix()
                 for path in self.prefix.rglob("*") if not path.is_dir()}
        lib = self.package.parents[1].relative_to(self.prefix).as_posix()
        version = self.library.name.removeprefix("libheapbroker.so.")
        expected = {f"include/heapbroker/{name}" for name in self.headers()}
        expected |= {f"{lib}/libheapbroker.so{end}"
                     for end in ("", "." + version.rpartition(".")[0], "." + version)}
        expected |= {f"{lib}/pkgconfig/heapbroker.pc"}
        files = {path for path in files if "heapbrokerTargets" not in path}
        expected |= {f"{lib}/cmake/heapbroker/heapbrokerConfig{end}.cmake"
                     for end in ("", "Version")}
        self.assertEqual(expected, files)

    def test_all_parts_say_the_same_version_and_the_soname_has_major_and_minor(self):
        version, = self.pkg_config("--modversion", "heapbroker")
        self.assertEqual(f"libheapbroker.so.{version}", self.library.name)
        self.assertEqual(f"libheapbroker.so.{version.rpartition('.')[0]}", self.soname())
        config, = self.prefix.glob("**/heapbrokerConfigVersion.cmake")
        self.assertIn(f'set(PACKAGE_VERSION "{version}")', config.read_text(encoding="utf-8"))

    def test_the_headers_need_nothing_but_the_package(self):
        source = self.folder / "headers.cc"
        source.write_text("".join(f"#include <heapbroker/{name}>\n" for name in self.own_headers()),
                          encoding="utf-8")
        run("g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
            *self.pkg_config("--cflags", "heapbroker"), source)

    def test_the_library_exports_what_the_headers_declare_and_nothing_else(self):
        self.assertEqual([], exports.differences(
            "heapbroker", str(self.library), [f"heapbroker/{name}" for name in self.own_headers()],
            self.pkg_config("--cflags", "heapbroker")))

    def test_the_daemon_and_its_command_do_not_load_the_library(self):
        for program in ("heapbrokerd", "heapbrokerctl"):
            self.assertNotIn(self.soname(), run("ldd", BUILD / "bin" / program))

    def test_cmake_finds_it_and_the_examples_work(self):
        build = self.folder / "cmake"
        run("cmake", "-S", self.examples, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            *CMAKE_OPTIONS)
        run("cmake", "--build", build)
        bin_dir = self.folder / "cmake-bin"
        bin_dir.mkdir()
        for program in ("digits/digits", "share_buffer", "import_descriptor", "dynamic_buffers"):
            (bin_dir / os.path.basename(program)).symlink_to(build / program)
        self.check_examples(bin_dir)

    def test_pkg_config_finds_it_and_the_examples_work(self):
        digits = self.examples / "digits"
        run("glslc", "--target-env=vulkan1.1", "-mfmt=num", digits / "shaders/linear.comp",
            "-o", digits / "linear.comp.inc")
        bin_dir = self.folder / "pkg-config-bin"
        bin_dir.mkdir()
        flags = self.pkg_config("--cflags", "--libs", "heapbroker")
        rpath = "-Wl,-rpath," + self.pkg_config("--variable=libdir", "heapbroker")[0]
        small = [(name, [self.examples / f"{name}.cc"])
                 for name in ("share_buffer", "import_descriptor", "dynamic_buffers")]
        for program, sources in (("digits", sorted(glob.glob(f"{digits}/*.cc"))), *small):
            run("g++", "-std=c++20", f'-DDIGITS_DATA_DIR="{digits}/data"', *sources, *flags, rpath,
                "-o", bin_dir / program)
        self.check_examples(bin_dir)


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv[1]).resolve()
    CMAKE_OPTIONS = [option for option in sys.argv[2:] if option.startswith("-")]
    names = [name for name in sys.argv[2:] if not name.startswith("-")]
    unittest.main(argv=[sys.argv[0], *names], verbosity=2)
