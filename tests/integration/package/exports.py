#!/usr/bin/env python3
# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a shared library exports what its headers declare, and nothing else.

    exports.py --namespace N LIBRARY HEADER... [-- COMPILER FLAG...]

Prints each difference; exit code 1 if there is any. Declared is, inside the
namespace, every function without a body that is neither pure, defaulted nor deleted,
every static data member that is not inline, and the type information of classes with
virtual functions. clang reads the headers, nm the library.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile

FUNCTIONS = ("FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXDestructorDecl",
             "CXXConversionDecl")
# What the compiler makes of a class with virtual functions, as c++filt calls it.
OF_A_CLASS = re.compile(r"^(?:vtable|typeinfo|typeinfo name) for (.*)$")


def output_of(command: list[str], **options) -> str:
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            check=False, **options)
    if result.returncode != 0:
        raise ValueError(f"{command[0]} failed:\n{result.stderr}")
    return result.stdout


def demangled(names: set[str]) -> set[str]:
    """Constructors and destructors have several names each, but one in words."""
    return set(output_of(["c++filt"], input="\n".join(names)).split("\n")) - {""}


def exported(library: str) -> set[str]:
    lines = output_of(["nm", "--dynamic", "--defined-only", "--format=posix", library])
    return demangled({line.split()[0] for line in lines.splitlines()})


class Declarations:
    """What headers declare: functions and data in words, and classes with virtual
    functions by their names."""

    def __init__(self, namespace: str, headers: list[str], flags: list[str]):
        self.polymorphic: set[str] = set()
        self._declared: set[str] = set()
        self._defined: set[str] = set()
        with tempfile.NamedTemporaryFile("w", suffix=".cc") as file:
            file.writelines(f'#include "{header}"\n' for header in headers)
            file.flush()
            text = output_of(["clang++", "-std=c++20", "-fsyntax-only", *flags, "-Xclang",
                              "-ast-dump=json", "-Xclang", f"-ast-dump-filter={namespace}",
                              file.name])
        decoder = json.JSONDecoder()
        position = 0
        while position < len(text):
            tree, position = decoder.raw_decode(text, position)
            if tree.get("kind") == "NamespaceDecl" and tree.get("name") == namespace:
                self._visit(tree, namespace)
            while position < len(text) and text[position].isspace():
                position += 1
        self.names = demangled(self._declared - self._defined)

    def _visit(self, node: dict, scope: str):
        for child in node.get("inner", []):
            kind = child.get("kind")
            if kind in FUNCTIONS:
                self._function(child)
            elif kind == "VarDecl" and node["kind"] == "CXXRecordDecl":
                if not child.get("inline") and not child.get("constexpr"):
                    self._declared.add(child["mangledName"])
            elif kind == "CXXRecordDecl" and child.get("completeDefinition"):
                name = f"{scope}::{child.get('name', '')}"
                if child["definitionData"].get("isPolymorphic"):
                    self.polymorphic.add(name)
                self._visit(child, name)
            elif kind in ("NamespaceDecl", "FriendDecl", "LinkageSpecDecl"):
                name = child.get("name")
                self._visit(child, f"{scope}::{name}" if name else scope)

    def _function(self, node: dict):
        if node.get("isImplicit") or node.get("pure") or node.get("explicitlyDefaulted") or \
                node.get("explicitlyDeleted") or "mangledName" not in node:
            return
        body = any(part.get("kind") == "CompoundStmt" for part in node.get("inner", []))
        (self._defined if body else self._declared).add(node["mangledName"])


def differences(namespace: str, library: str, headers: list[str],
                flags: list[str]) -> list[str]:
    """In words, sorted. Raises if the headers do not compile or there is no library."""
    declared = Declarations(namespace, headers, flags)
    shown = exported(library)
    wrong = []
    for name in shown - declared.names:
        of_class = OF_A_CLASS.match(name)
        if of_class is None or of_class.group(1) not in declared.polymorphic:
            wrong.append(f"exported, but declared in no public header: {name}")
    wanted = declared.names | {f"typeinfo for {name}" for name in declared.polymorphic}
    for name in wanted - shown:
        wrong.append(f"declared in a public header, but not exported: {name}")
    return sorted(wrong)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--namespace", required=True)
    parser.add_argument("library")
    parser.add_argument("headers", nargs="+")
    own, flags = arguments, []
    if "--" in arguments:
        own = arguments[:arguments.index("--")]
        flags = arguments[arguments.index("--") + 1:]
    options = parser.parse_args(own)
    found = differences(options.namespace, options.library, options.headers, flags)
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
