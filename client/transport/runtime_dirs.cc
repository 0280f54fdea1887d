// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/runtime_dirs.h"

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace heapbroker {
namespace {

constexpr char kSystemDir[] = "/run/heapbroker";

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

RuntimeDirSources ReadRuntimeDirSources(const std::string& option) {
  if (!option.empty()) return {.option = option, .environment = "", .xdg_runtime_dir = ""};
  return {.option = "",
          .environment = Environment("HEAPBROKER_RUNTIME_DIR"),
          .xdg_runtime_dir = Environment("XDG_RUNTIME_DIR")};
}

std::vector<std::string> RuntimeDirCandidates(const RuntimeDirSources& sources) {
  if (!sources.option.empty()) return {sources.option};
  if (!sources.environment.empty()) return {sources.environment};
  std::vector<std::string> candidates = {kSystemDir};
  if (!sources.xdg_runtime_dir.empty()) {
    candidates.push_back(absl::StrCat(sources.xdg_runtime_dir, "/heapbroker"));
  }
  return candidates;
}

std::string GrpcTarget(const std::string& socket_path) {
  // A target is a URI: what RFC 3986 does not call unreserved is encoded.
  constexpr absl::string_view kPlain = "-._~/";
  std::string target = "unix:";
  for (const unsigned char c : socket_path) {
    if (absl::ascii_isalnum(c) || kPlain.find(static_cast<char>(c)) != absl::string_view::npos) {
      target += static_cast<char>(c);
    } else {
      absl::StrAppend(&target, "%", absl::Hex(c, absl::kZeroPad2));
    }
  }
  return target;
}

}  // namespace heapbroker
