// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/version.h"

namespace heapbroker {

const char kVersion[] = HEAPBROKER_VERSION;

}  // namespace heapbroker
