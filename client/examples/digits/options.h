// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The program's flags.
#ifndef CLIENT_EXAMPLES_DIGITS_OPTIONS_H_
#define CLIENT_EXAMPLES_DIGITS_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace digits {

struct Options {
  std::string model;
  std::string images;
  std::string labels;
  std::string runtime_dir;             // Empty: where the client library looks.
  std::string name = "digits";         // Of the session, for the daemon's listings.
  std::string segment;                 // Empty: SegmentName of the weights.
  std::optional<absl::Duration> hold;  // Unset: leave at once.
  bool help = false;
};

// What --help prints.
absl::string_view Usage();

// `arguments` without the program's name. `--flag value` and `--flag=value` are
// the same. INVALID_ARGUMENT names the flag and what it takes.
absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments);

}  // namespace digits
#endif  // CLIENT_EXAMPLES_DIGITS_OPTIONS_H_
