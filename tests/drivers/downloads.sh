# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the scripts here share: how they say that they cannot do their work.
# CTest takes status 77 for a skipped test.

# A package could not be downloaded: whether it can is not this project's to say,
# so this skips everywhere.
not_downloaded() {
  echo "SKIPPED: $*" >&2
  exit 77
}

# Something is missing on this machine. Where everything is expected to be there
# (CI=true), a test that does not run is a failure.
missing() {
  if [ "${CI:-}" = true ]; then
    echo "FAILED, since CI=true: $*" >&2
    exit 1
  fi
  echo "SKIPPED: $*" >&2
  exit 77
}

# One at a time for the rest of the script; DIR is created.
take_turns() {
  mkdir -p "$1"
  exec {turn}>"$1/turn"
  flock "$turn"
}
