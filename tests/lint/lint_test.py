#!/usr/bin/env python3
# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
"""A violation planted in a small tree must be reported, and nothing else."""

import pathlib
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import lint  # noqa: E402

HEAD = "// SPDX-FileCopyrightText: The heapbroker authors\n// SPDX-License-Identifier: Apache-2.0\n"


class LintTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="hb-lint-"))
        self.addCleanup(shutil.rmtree, self.root)
        for header in ("common/base/ids.h", "common/base/heapbroker/units.h",
                       "common/posix/unique_fd.h", "daemon/core/pools.h", "daemon/rpc/server.h",
                       "client/include/heapbroker/lease.h", "tests/support/process.h"):
            self.write(header, "")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def reports(self, check):
        return [(v.path, v.line) for v in lint.CHECKS[check](self.root)]

    def includes(self, path, *headers):
        """Lines that are reported when `path` includes `headers`."""
        self.write(path, "".join(f'#include "{h}"\n' for h in headers))
        return [line for reported, line in self.reports("includes") if reported == path]

    def test_a_layer_may_include_what_the_table_says(self):
        self.assertEqual([], self.includes(
            "daemon/core/x.cc", "vector", "absl/status/status.h", "daemon/core/pools.h",
            "common/base/ids.h", "heapbroker/units.h"))
        self.assertEqual([], self.includes(
            "daemon/session/x.cc", "sys/socket.h", "heapbroker/v1/session.pb.h",
            "common/posix/unique_fd.h"))
        self.assertEqual([], self.includes(
            "client/ctl/x.cc", "CLI/CLI.hpp", "heapbroker/v1/stats.grpc.pb.h", "heapbroker/lease.h"))

    def test_core_includes_no_edge_no_system_call_and_no_library_but_abseil(self):
        self.assertEqual([1, 2, 3, 4, 5, 6], self.includes(
            "daemon/core/x.cc", "daemon/rpc/server.h", "unistd.h", "sys/mman.h",
            "spdlog/spdlog.h", "vulkan/vulkan.h", "heapbroker/v1/memory.pb.h"))

    def test_edges_do_not_include_each_other(self):
        self.assertEqual([1], self.includes("daemon/session/x.cc", "daemon/rpc/server.h"))

    def test_the_session_edge_needs_no_grpc(self):
        self.assertEqual([1, 2], self.includes(
            "daemon/session/x.cc", "heapbroker/v1/stats.grpc.pb.h", "grpcpp/grpcpp.h"))

    def test_the_health_messages_are_the_projects_own(self):
        self.assertEqual([], self.includes("daemon/rpc/x.cc", "grpc/health/v1/health.grpc.pb.h"))

    def test_only_logging_includes_spdlog(self):
        self.assertEqual([], self.includes("common/posix/logging.cc", "spdlog/spdlog.h"))
        self.assertEqual([1], self.includes("common/posix/packet.cc", "spdlog/spdlog.h"))

    def test_only_the_importer_among_public_headers_includes_vulkan(self):
        public = "client/include/heapbroker/"
        self.assertEqual([], self.includes(public + "vulkan_importer.h", "vulkan/vulkan.h"))
        self.assertEqual([1], self.includes(public + "client.h", "vulkan/vulkan.h"))

    def test_public_headers_include_no_private_ones(self):
        self.assertEqual([1, 2], self.includes(
            "client/include/heapbroker/client.h", "common/base/ids.h", "grpcpp/grpcpp.h"))

    def test_the_transport_does_not_include_what_is_built_on_it(self):
        self.write("client/src/arena.h", "")
        self.write("client/transport/turn.h", "")
        self.assertEqual([1], self.includes("client/transport/x.cc", "client/src/arena.h"))
        self.assertEqual([], self.includes("client/src/x.cc", "client/transport/turn.h"))

    def test_examples_include_installed_headers_only(self):
        self.assertEqual([2], self.includes(
            "client/examples/digits/x.cc", "heapbroker/lease.h", "common/base/ids.h"))

    def test_only_examples_include_what_lies_beside_them_by_its_name(self):
        self.write("client/examples/digits/model.h", "")
        self.assertEqual([], self.includes("client/examples/digits/x.cc", "model.h"))
        self.assertEqual([1], self.includes("daemon/rpc/x.cc", "server.h"))

    def test_nothing_but_tests_includes_tests(self):
        self.assertEqual([1], self.includes("daemon/app/x.cc", "tests/support/process.h"))
        self.assertEqual([], self.includes("tests/unit/x.cc", "tests/support/process.h"))

    def test_unknown_headers_and_folders_are_reported(self):
        self.assertEqual([1], self.includes("daemon/core/x.cc", "boost/any.hpp"))
        self.assertEqual([1], self.includes("daemon/elsewhere/x.cc"))

    def test_guards_follow_the_include_path(self):
        for path, guard in (("daemon/core/pools.h", "DAEMON_CORE_POOLS_H_"),
                            ("client/include/heapbroker/lease.h", "HEAPBROKER_LEASE_H_")):
            self.write(path, f"#ifndef {guard}\n#define {guard}\n#endif\n")
        reported = [path for path, _ in self.reports("guards")]
        self.assertNotIn("daemon/core/pools.h", reported)
        self.assertNotIn("client/include/heapbroker/lease.h", reported)
        self.assertIn("daemon/rpc/server.h", reported)

    def test_heads_may_stand_below_an_interpreter_line(self):
        self.write("a.cc", HEAD)
        self.write("b", "#!/bin/sh\n" + HEAD.replace("//", "#"))
        self.write("c.cc", "int x;\n" + HEAD)
        self.write("d.md", "prose\n")
        reported = [path for path, _ in self.reports("heads")]
        self.assertEqual(["c.cc"], [path for path in reported if "/" not in path])

    def test_words_that_put_work_off_are_reported(self):
        self.write("deploy/a", "one\n# TO" "DO: two\n")
        self.write("deploy/b", "TO" "DOS and mktemp /tmp/x.XX" "XXXX are other words\n")
        self.assertEqual([("deploy/a", 2)], self.reports("words"))

    def test_tests_that_a_readme_names_exist(self):
        self.write("tests/unit/a_test.cc",
                   "TEST(SizeTest, Rounds) {}\nTEST_P(\n    DeviceTest, Serves) {}\n")
        self.write("tests/CMakeLists.txt", "add_test(NAME FaultTest.${CLAIM}\n  COMMAND x)\n")
        self.write("README.md", "`SizeTest.Rounds`, `DeviceTest.Serves`, FaultTest.Anything\n"
                                "| a | `SizeTest.Round` |\n\n`OtherTest.Rounds`\n")
        self.assertEqual([("README.md", 2), ("README.md", 4)], self.reports("mentions"))

    def test_sections_that_are_quoted_exist(self):
        self.write("daemon/README.md", "# Daemon\n\n## The life of a lease\n\n### Pools\n")
        self.write("README.md", 'See [daemon](daemon/README.md), "Pools".\n'
                                'See [daemon](daemon/README.md), "Pool".\n'
                                '"Limits" in daemon/README.md\n')
        self.write("daemon/core/a.cc", '// See README.md, "The life\n// of a lease", '
                                       'or daemon/README.md,\n// "Nothing".\n')
        self.write("proto/a.proto", '// "Pools" in daemon/README.md, and "Else" in\n'
                                    '// daemon/README.md and in no.md, "Where".\n')
        self.assertEqual([("README.md", 2), ("README.md", 3), ("daemon/core/a.cc", 1),
                          ("daemon/core/a.cc", 2), ("proto/a.proto", 2), ("proto/a.proto", 1)],
                         self.reports("mentions"))

    def test_what_is_linked_exists(self):
        self.write("daemon/README.md", "[up](../README.md#at-the-top)\n[no](../README.md#below)\n"
                                       "[code](core/pools.h) [none](core/none.h)\n"
                                       "`a[1](x)` [out](https://example.org/x) [here](#there)\n")
        self.write("README.md", "## At the top\n\n```cpp\na[0](none);\n```\n")
        self.assertEqual([("daemon/README.md", 2), ("daemon/README.md", 3),
                          ("daemon/README.md", 4)], self.reports("mentions"))

    def test_the_top_level_folder_holds_nothing_else(self):
        self.write("README.md", "")
        self.write(".hidden", "")
        self.write("build/x", "")
        self.write("scripts/x", "")
        self.assertEqual([("scripts", 1)], self.reports("tree"))

    def test_badly_formatted_sources_are_reported(self):
        self.write(".clang-format", "BasedOnStyle: Google\n")
        self.write("daemon/core/good.cc", "int F() { return 1; }\n")
        self.write("daemon/core/bad.cc", "int x;\nint F( ){ return 1; }\n")
        self.assertEqual([("daemon/core/bad.cc", 2)], self.reports("format"))

    def test_build_folders_and_version_control_are_left_out(self):
        self.write("build/gen/x.cc", '#include "boost/any.hpp"\n')
        self.write(".git/x.cc", '#include "boost/any.hpp"\n')
        self.assertEqual([], self.reports("includes"))


if __name__ == "__main__":
    unittest.main()
