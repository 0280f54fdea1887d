// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A process that can start no thread.
#ifndef TESTS_SUPPORT_NO_MORE_THREADS_H_
#define TESTS_SUPPORT_NO_MORE_THREADS_H_

#include <pthread.h>

#include <cstddef>
#include <cstdlib>

namespace heapbroker {

// While it lives, threads that are started without a stack size of their own get none:
// what they would have by default is more than there are addresses. As at a limit on
// threads, that is EAGAIN; but it needs no other user, and root meets it as well. One at
// a time.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_attr_t attributes;
    if (pthread_getattr_default_np(&attributes) != 0) std::abort();
    pthread_attr_getstacksize(&attributes, &stack_size_);
    pthread_attr_destroy(&attributes);
    SetStackSize(size_t{1} << 62);
  }
  ~NoMoreThreads() { SetStackSize(stack_size_); }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  static void SetStackSize(size_t size) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, size) != 0 ||
        pthread_setattr_default_np(&attributes) != 0) {
      std::abort();
    }
    pthread_attr_destroy(&attributes);
  }

  size_t stack_size_ = 0;
};

}  // namespace heapbroker
#endif  // TESTS_SUPPORT_NO_MORE_THREADS_H_
