#!/usr/bin/env python3
# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
"""Whether programs are built so that a memory fault is hard to exploit.

    hardening.py PROGRAM...

Prints what each PROGRAM, or shared library, lacks; exit code 1 if any lacks
something. What is looked for: a position-independent executable, which a shared
library always is, relocations that are all resolved at start and read-only
afterwards, the stack protector, and calls of the C library that check their
bounds. The last two only say that a program was built with them, not that each
function of it was.
"""

import re
import shutil
import subprocess
import sys

# What a program must show to `readelf`: words, and what finds them. Only a shared
# library has a soname.
WANTED = {
    "a position-independent executable": r"\(FLAGS_1\).*\bPIE\b|\(SONAME\)",
    "read-only relocations (-z relro)": r"^\s*GNU_RELRO\b",
    "relocations resolved at start (-z now)": r"\(FLAGS\).*\bBIND_NOW\b|\(FLAGS_1\).*\bNOW\b",
    "the stack protector (-fstack-protector-strong)": r"\b__stack_chk_fail\b",
    "checked calls of the C library (-D_FORTIFY_SOURCE=2)": r"\b__(?!stack_)\w+_chk\b",
}


def missing_in(program: str) -> list[str]:
    """What `program` lacks, in words. Raises if it cannot be read."""
    shown = subprocess.run(
        ["readelf", "--wide", "--program-headers", "--dynamic", "--dyn-syms", program],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if shown.returncode != 0 or "Program Headers:" not in shown.stdout:
        raise ValueError(f"{program} is no program: {shown.stderr.strip()}")
    return [what for what, sign in WANTED.items()
            if not re.search(sign, shown.stdout, re.MULTILINE)]


def main(programs: list[str]) -> int:
    if not programs:
        print("usage: hardening.py PROGRAM...", file=sys.stderr)
        return 2
    if shutil.which("readelf") is None:
        print("cannot check: there is no readelf; install binutils", file=sys.stderr)
        return 1
    code = 0
    for program in programs:
        try:
            missing = missing_in(program)
        except ValueError as error:
            missing = [str(error)]
        for what in missing:
            print(f"{program}: lacks {what}" if what in WANTED else what)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
