// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <cmath>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace digits {
namespace {

constexpr absl::string_view kUsage = R"(Usage: digits [flags]

Classifies images of handwritten digits on the GPU, in memory that heapbrokerd
lends, and says how many answers agree with the labels. Processes that run the
same model share one copy of its weights.

  --model FILE         the classifier, a safetensors file with fc1.weight, fc1.bias, ...
  --images FILE        the images, an IDX file
  --labels FILE        their digits, an IDX file
                       (the files that come with the program, if not given)
  --runtime-dir DIR    the daemon's directory ($HEAPBROKER_RUNTIME_DIR, /run/heapbroker
                       or $XDG_RUNTIME_DIR/heapbroker, if not given)
  --name NAME          what the daemon's listings call this process (digits)
  --segment NAME       the weights' segment (if not given, a name that depends on
                       the weights)
  --hold SECONDS       keep the memory for so long after the result
  --hold-until-stdin-closes
                       keep it until standard input is at its end
  --help               print this

Exit codes: 0 done, 1 something failed, 2 wrong flags.
)";

absl::Status ParseHold(const std::string& value, std::optional<absl::Duration>& hold) {
  double seconds = 0;
  if (!absl::SimpleAtod(value, &seconds) || !std::isfinite(seconds) || seconds < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hold takes a number of seconds from 0, not \"", value, "\""));
  }
  hold = absl::Seconds(seconds);
  return absl::OkStatus();
}

// The flags that take text, and where it goes.
std::map<std::string, std::string*> TextFlags(Options& options) {
  return {{"--model", &options.model},   {"--images", &options.images},
          {"--labels", &options.labels}, {"--runtime-dir", &options.runtime_dir},
          {"--name", &options.name},     {"--segment", &options.segment}};
}

struct Flag {
  std::string name;
  std::optional<std::string> value;  // What follows "=".
};

Flag SplitFlag(const std::string& argument) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos) return {argument, std::nullopt};
  return {argument.substr(0, equals), argument.substr(equals + 1)};
}

}  // namespace

absl::string_view Usage() { return kUsage; }

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  options.model = DIGITS_DATA_DIR "/mlp.safetensors";
  options.images = DIGITS_DATA_DIR "/test-images.idx3-ubyte";
  options.labels = DIGITS_DATA_DIR "/test-labels.idx1-ubyte";
  const std::map<std::string, std::string*> text_flags = TextFlags(options);

  for (size_t i = 0; i < arguments.size(); ++i) {
    Flag flag = SplitFlag(arguments[i]);
    if (flag.name == "--help" || flag.name == "--hold-until-stdin-closes") {
      if (flag.value) {
        return absl::InvalidArgumentError(absl::StrCat(flag.name, " takes no value"));
      }
      if (flag.name == "--help") options.help = true;
      if (flag.name != "--help") options.hold = absl::InfiniteDuration();
      continue;
    }
    const auto text = text_flags.find(flag.name);
    if (text == text_flags.end() && flag.name != "--hold") {
      return absl::InvalidArgumentError(absl::StrCat("there is no flag \"", arguments[i], "\""));
    }
    if (!flag.value) {
      if (++i == arguments.size()) {
        return absl::InvalidArgumentError(absl::StrCat(flag.name, " needs a value"));
      }
      flag.value = arguments[i];
    }
    if (flag.name == "--hold") {
      absl::Status status = ParseHold(*flag.value, options.hold);
      if (!status.ok()) return status;
    } else if (flag.value->empty()) {
      return absl::InvalidArgumentError(absl::StrCat(flag.name, " is empty"));
    } else {
      *text->second = *flag.value;
    }
  }
  return options;
}

}  // namespace digits
