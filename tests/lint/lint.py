#!/usr/bin/env python3
# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the sources that no compiler makes.

    lint.py [--root DIR] CHECK...    CHECK: includes guards heads words tree mentions format

Prints each violation as PATH:LINE: TEXT; exit code 1 if there is any.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Iterator, NamedTuple

sys.dont_write_bytecode = True
import layers  # noqa: E402


class Violation(NamedTuple):
    path: str
    line: int
    text: str


CPP = (".h", ".cc")
# May stand in the top-level folder, beside dot files and what is built.
TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "build",
    "client", "common", "daemon", "deploy", "proto", "tests",
}
# Files that cannot carry the two lines, or need none: data and prose.
NO_HEAD = re.compile(r"LICENSE$|.*\.(md|json|safetensors|idx[13]-ubyte|trace)$|\.[a-z-]+$")
HEAD = ("SPDX-FileCopyrightText: The heapbroker authors", "SPDX-License-Identifier: Apache-2.0")
# Split, so that this file does not hold them.
FORBIDDEN_WORDS = re.compile(rb"\b(" + b"TO" + b"DO|FIX" + b"ME|XX" + rb"X)\b")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^">]+)[">]')
# Is copied out of the project, so its files include each other by their names alone.
COPIED_OUT = "client/examples"


def source_files(root: pathlib.Path) -> Iterator[str]:
    """Paths below `root`, without version control and build folders."""
    for entry in sorted(root.iterdir()):
        if entry.name == ".git" or entry.name.startswith("build"):
            continue
        if entry.is_file():
            yield entry.name
            continue
        for path in sorted(entry.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(root).as_posix()


def lines_of(root: pathlib.Path, path: str) -> list[str]:
    return (root / path).read_text(encoding="utf-8", errors="replace").splitlines()


def layer_of(path: str) -> str | None:
    inside = [name for name in layers.LAYERS if path.startswith(name + "/")]
    return max(inside, key=len, default=None)


def project_path(root: pathlib.Path, header: str) -> str | None:
    """Where in the project a header lies; None if it is not the project's."""
    if re.fullmatch(r"((heapbroker|grpc/health)/v1|google/rpc)/\w+(\.grpc)?\.pb\.h", header):
        return "proto/" + header
    for folder in ("",) + layers.INCLUDE_ROOTS:
        candidate = pathlib.PurePosixPath(folder, header).as_posix()
        if (root / candidate).is_file():
            return candidate
    return None


def groups_of(header: str) -> list[str]:
    groups = [name for name, shape in layers.THIRD_PARTY.items() if re.match(shape, header)]
    return [g for g in groups if g != "system"] or groups


def refusal(root: pathlib.Path, path: str, layer: str, header: str) -> str | None:
    """Why `path`, which is in `layer`, may not include `header`; None if it may."""
    rule = layers.LAYERS[layer]
    beside = pathlib.PurePosixPath(path).parent / header
    if "/" not in header and (root / beside).is_file():
        return None if layer == COPIED_OUT else f"is included as {beside.as_posix()}"
    target = project_path(root, header)
    if target is not None:
        allowed = (layer,) + rule.project
        if not any(target == a or target.startswith(a + "/") for a in allowed):
            return f"{layer} may not include {target}; it may include {', '.join(allowed)}"
        if not header.endswith(".grpc.pb.h"):
            return None
    elif re.fullmatch(r"[a-z_0-9]+", header):
        return None  # The C++ standard library.
    groups = groups_of(header)
    if not groups:
        return f"{header} is neither the project's nor known to tests/lint/layers.py"
    extra = [g for prefix, more in layers.FILES.items() if path.startswith(prefix) for g in more]
    for group in groups:
        if group not in rule.third_party and group not in extra:
            return f"{layer} may not include {group} ({header})"
    return None


def check_includes(root: pathlib.Path) -> Iterator[Violation]:
    for path in source_files(root):
        if not path.endswith(CPP):
            continue
        layer = layer_of(path)
        if layer is None:
            yield Violation(path, 1, "is in no layer of tests/lint/layers.py")
            continue
        for number, line in enumerate(lines_of(root, path), 1):
            include = INCLUDE.match(line)
            reason = include and refusal(root, path, layer, include.group(2))
            if reason:
                yield Violation(path, number, reason)


def check_guards(root: pathlib.Path) -> Iterator[Violation]:
    """A guard is the path by which the header is included; public headers are
    included as heapbroker/NAME.h."""
    for path in source_files(root):
        if not path.endswith(".h"):
            continue
        name = path[path.index("/heapbroker/") + 1:] if "/heapbroker/" in path else path
        guard = re.sub(r"[^A-Z0-9]", "_", name.upper()) + "_"
        lines = [line.strip() for line in lines_of(root, path)]
        if f"#ifndef {guard}" not in lines or f"#define {guard}" not in lines:
            yield Violation(path, 1, f"has no include guard {guard}")


def check_heads(root: pathlib.Path) -> Iterator[Violation]:
    for path in source_files(root):
        if NO_HEAD.match(path):
            continue
        lines = lines_of(root, path)[:4]
        if lines and lines[0].startswith("#!"):
            lines = lines[1:]
        found = [line.lstrip("/#.\\\" ") for line in lines[:2]]
        if tuple(found) != HEAD:
            yield Violation(path, 1, "does not begin with the two SPDX lines")


def check_words(root: pathlib.Path) -> Iterator[Violation]:
    for path in source_files(root):
        for number, line in enumerate((root / path).read_bytes().splitlines(), 1):
            if FORBIDDEN_WORDS.search(line):
                yield Violation(path, number, "holds a word that puts work off")


def prose_of(root: pathlib.Path, path: str) -> str:
    """The text with the marks of comments blanked, so that a sentence can be read
    across lines; every character stays where it was."""
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    return re.sub(r"^[ \t]*(//|#)+", lambda mark: " " * len(mark.group()), text, flags=re.MULTILINE)


def line_at(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def anchor_of(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


class Documents:
    """The Markdown files, and where others speak of them."""

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.headings: dict[pathlib.Path, list[str]] = {}

    def find(self, mention: str, path: str) -> pathlib.Path | None:
        """Named from the file's own folder or from the top."""
        for folder in ((self.root / path).parent, self.root):
            candidate = (folder / mention).resolve()
            if candidate.is_relative_to(self.root.resolve()) and candidate.exists():
                return candidate
        return None

    def headings_of(self, document: pathlib.Path) -> list[str]:
        if document not in self.headings:
            text = document.read_text(encoding="utf-8", errors="replace")
            self.headings[document] = re.findall(r"^#+ +(.*\S)", text, re.MULTILINE)
        return self.headings[document]

    def refuse(self, mention: str, section: str, path: str) -> str | None:
        """Why there is no such section; None if there is."""
        document = self.find(mention, path)
        if document is None:
            return f"{mention} does not exist"
        section = re.sub(r"\s+", " ", section)
        if section not in self.headings_of(document):
            return f'{mention} has no section "{section}"'
        return None


def sections_mentioned(text: str) -> Iterator[tuple[int, str, str]]:
    """Offset, document and section of each `a/README.md, "Section"`, also as a link,
    and of each `"Section" in a/README.md`."""
    for found in re.finditer(r'([\w./-]+\.md)\)?,\s+"([^"]+)"', text):
        yield found.start(), found.group(1), found.group(2)
    for found in re.finditer(r'"([^"\n]+)"\s+in\s+\[?([\w./-]+\.md)\b', text):
        yield found.start(), found.group(2), found.group(1)


def links_of(text: str) -> Iterator[tuple[int, str, str]]:
    """Offset, file and anchor of each link to a place in the project; not in code."""
    without_code = re.sub(r"```.*?```|`[^`\n]*`", lambda code: re.sub(r"[^\n]", " ", code.group()),
                          text, flags=re.DOTALL)
    for found in re.finditer(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)", without_code):
        if "://" not in found.group(1) and not found.group(1).startswith("mailto:"):
            yield found.start(), found.group(1), found.group(2) or ""


def tests_of(root: pathlib.Path) -> list[re.Pattern]:
    """The names of all tests, of GoogleTest and of CTest; of the latter, what a
    variable stands for may be anything."""
    names = []
    for path in source_files(root):
        if path.endswith(".cc"):
            text = (root / path).read_text(encoding="utf-8", errors="replace")
            for found in re.finditer(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", text):
                names.append(re.escape(f"{found.group(1)}.{found.group(2)}"))
        elif path.endswith("CMakeLists.txt"):
            text = (root / path).read_text(encoding="utf-8", errors="replace")
            for name in re.findall(r"add_test\(NAME\s+(\S+)", text):
                names.append(r"\w+".join(re.escape(p) for p in re.split(r"\$\{\w+\}", name)))
    return [re.compile(name) for name in set(names)]


def check_mentions(root: pathlib.Path) -> Iterator[Violation]:
    """What Markdown and comments name of tests, sections and files exists."""
    documents, tests = Documents(root), None
    for path in source_files(root):
        if not path.endswith(CPP + (".md", ".proto", ".py", "CMakeLists.txt")):
            continue
        if path.startswith("tests/lint/"):
            continue  # Speaks of what must not be.
        text = prose_of(root, path) if not path.endswith(".md") else "\n".join(lines_of(root, path))
        for offset, mention, section in sections_mentioned(text):
            reason = documents.refuse(mention, section, path)
            if reason:
                yield Violation(path, line_at(text, offset), reason)
        if not path.endswith(".md"):
            continue
        for offset, mention, anchor in links_of(text):
            document = documents.find(mention, path) if mention else root / path
            if document is None:
                yield Violation(path, line_at(text, offset), f"{mention} does not exist")
            elif anchor and anchor not in map(anchor_of, documents.headings_of(document)):
                yield Violation(path, line_at(text, offset), f"{mention}#{anchor} does not exist")
        for found in re.finditer(r"\b[A-Z]\w*Test\.[A-Z]\w+", text):
            tests = tests or tests_of(root)
            if not any(test.fullmatch(found.group()) for test in tests):
                yield Violation(path, line_at(text, found.start()),
                                f"there is no test {found.group()}")


def check_tree(root: pathlib.Path) -> Iterator[Violation]:
    for entry in sorted(root.iterdir()):
        name = entry.name
        if name not in TOP_LEVEL and not name.startswith((".", "build")):
            yield Violation(name, 1, "does not belong in the top-level folder")


def check_format(root: pathlib.Path) -> Iterator[Violation]:
    program = shutil.which("clang-format-14")
    if program is None:
        yield Violation(".clang-format", 1, "cannot check: install clang-format-14")
        return
    files = [path for path in source_files(root) if path.endswith(CPP)]
    if not files:
        return
    result = subprocess.run(
        [program, "--dry-run", "-Werror", "--ferror-limit=1", *files],
        cwd=root, stderr=subprocess.PIPE, text=True, check=False)
    for path, line in re.findall(r"^(\S+):(\d+):\d+: error:", result.stderr, re.MULTILINE):
        yield Violation(path, int(line), "is not formatted; run clang-format-14 -i on it")


CHECKS = {
    "includes": check_includes,
    "guards": check_guards,
    "heads": check_heads,
    "words": check_words,
    "tree": check_tree,
    "mentions": check_mentions,
    "format": check_format,
}


def main() -> int:
    default_root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=default_root)
    parser.add_argument("checks", nargs="+", choices=CHECKS, metavar="CHECK")
    arguments = parser.parse_args()
    violations = [v for check in arguments.checks for v in CHECKS[check](arguments.root)]
    for violation in violations:
        print(f"{violation.path}:{violation.line}: {violation.text}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
