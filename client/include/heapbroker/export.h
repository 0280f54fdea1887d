// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the shared library shows: everything else in it is hidden.
#ifndef HEAPBROKER_EXPORT_H_
#define HEAPBROKER_EXPORT_H_

#define HEAPBROKER_EXPORT __attribute__((visibility("default")))

#endif  // HEAPBROKER_EXPORT_H_
