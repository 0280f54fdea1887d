// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the shared library shows: everything else in it is hidden. Installed for
// clients.
#ifndef HEAPBROKER_EXPORT_H_
#define HEAPBROKER_EXPORT_H_

// For each class and free function of a public header that is not all inline.
#define HEAPBROKER_EXPORT __attribute__((visibility("default")))

// For what is declared inside such a class and defined in the library's sources:
// it would be shown with the class.
#define HEAPBROKER_LOCAL __attribute__((visibility("hidden")))

#endif  // HEAPBROKER_EXPORT_H_
