# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
"""Which folder may include what. Linking alone does not hold this: a target
that links nothing from another layer still compiles that layer's headers.

Every folder with C++ sources is a layer here; the one with the longest path
counts. `project` lists the folders (or single headers) it may include besides
itself, `third_party` the groups of THIRD_PARTY. The C++ standard library is
free for all.
"""

from typing import NamedTuple

# Group -> what its headers' names look like.
THIRD_PARTY = {
    "abseil": r"absl/",
    "benchmark": r"benchmark/",
    "cli11": r"CLI/",
    "executorch": r"executorch/",
    "grpc": r"grpc/(?!health/)|grpcpp/|.*\.grpc\.pb\.h$",
    "gtest": r"gtest/|gmock/",
    "json": r"nlohmann/",
    "ncurses": r"ncurses\.h$|curses\.h$",
    "protobuf": r"google/protobuf/",
    "spdlog": r"spdlog/",
    # Compute shaders, made into numbers by the build.
    "shader": r"\w+\.comp\.inc$",
    # The C library, POSIX and Linux: system calls.
    "system": r"[a-z_0-9]+\.h$|(sys|linux|arpa|net|netinet)/[a-z_0-9]+\.h$",
    "systemd": r"systemd/",
    "toml": r"toml\+\+/",
    "vulkan": r"vulkan/",
    "xxhash": r"xxhash\.h$",
}


class Layer(NamedTuple):
    project: tuple[str, ...] = ()
    third_party: tuple[str, ...] = ()


BASE = "common/base"
POSIX = "common/posix"
CORE = "daemon/core"
MESSAGES = "daemon/messages"
PUBLIC = "client/include"
SRC = "client/src"
TRANSPORT = "client/transport"
PROTO = "proto"
FAULT_PLAN = "tests/faults/plan"

LAYERS = {
    BASE: Layer((), ("abseil",)),
    POSIX: Layer((BASE,), ("abseil", "system")),
    "common/grpc": Layer((BASE,), ("abseil", "grpc")),
    CORE: Layer((BASE,), ("abseil",)),
    MESSAGES: Layer((CORE, BASE, PROTO), ("abseil", "protobuf")),
    "daemon/vulkan": Layer((CORE, BASE, POSIX), ("abseil", "system", "vulkan")),
    "daemon/rpc": Layer(
        (CORE, MESSAGES, "common", PROTO), ("abseil", "grpc", "protobuf", "system")),
    "daemon/session": Layer(
        (CORE, MESSAGES, BASE, POSIX, PROTO), ("abseil", "protobuf", "system")),
    "daemon/trace": Layer(
        (CORE, BASE, POSIX, PROTO), ("abseil", "protobuf", "system")),
    "daemon/app": Layer(
        ("daemon", "common"), ("abseil", "cli11", "system", "systemd", "toml")),
    PUBLIC: Layer(("common/base/heapbroker",), ("abseil",)),
    # The library's two halves, private both; the lower one is TRANSPORT.
    SRC: Layer(
        (PUBLIC, TRANSPORT, "common", PROTO),
        ("abseil", "grpc", "protobuf", "system", "vulkan", "xxhash")),
    TRANSPORT: Layer(
        (PUBLIC, "common", PROTO), ("abseil", "grpc", "protobuf", "system")),
    # Examples live off what is installed, and bring what they need.
    "client/examples": Layer(
        (PUBLIC, "common/base/heapbroker"),
        ("abseil", "cli11", "json", "shader", "system", "vulkan")),
    "client/ctl": Layer(
        (PUBLIC, TRANSPORT, "common", PROTO),
        ("abseil", "cli11", "grpc", "ncurses", "protobuf", "system")),
    # The fault layer is loaded into the processes under test: it shares as little
    # with them as it can, and what it decides needs no device.
    FAULT_PLAN: Layer((BASE,), ("abseil", "vulkan")),
    "tests/faults/layer": Layer((FAULT_PLAN, BASE), ("abseil", "system", "vulkan")),
    # Tests look at everything.
    "tests": Layer(
        ("client", "common", "daemon", PROTO), tuple(THIRD_PARTY)),
}

# Files that may include more than their layer: path prefix -> groups.
FILES = {
    "common/posix/logging": ("spdlog",),
    # Used only where ExecuTorch is present.
    "client/include/heapbroker/executorch.h": ("executorch",),
    "client/include/heapbroker/vulkan_importer.h": ("vulkan",),
}

# Where an include that is no path from the project's root may be found.
INCLUDE_ROOTS = ("common/base", "client/include")
