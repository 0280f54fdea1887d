// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Showing figures that change at one place of a terminal.
#ifndef CLIENT_CTL_SCREEN_H_
#define CLIENT_CTL_SCREEN_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace heapbroker {

// What to write so that a terminal of `rows` rows shows `text` and nothing else.
// Overwrites line by line instead of clearing first, which would flicker, and cuts
// lines at the terminal's width; what does not fit below is counted on the last
// row. Leaves the terminal as it was but for the text: the program may end, or be
// ended, after any of these. `text` ends in a newline.
std::string Repaint(absl::string_view text, size_t rows);

}  // namespace heapbroker
#endif  // CLIENT_CTL_SCREEN_H_
