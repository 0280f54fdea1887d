// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "heapbroker/units.h"

#include <cstdio>
#include <iterator>

namespace heapbroker {

std::string FormatBytes(Bytes bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < KiB(1)) return std::to_string(bytes.count()) + " B";
  double value = static_cast<double>(bytes.count()) / 1024;
  size_t unit = 0;
  // 1023.95 would print as "1024.0", which is one of the next unit.
  while (value >= 1023.95 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f %s", value, kUnits[unit]);
  return text;
}

}  // namespace heapbroker
