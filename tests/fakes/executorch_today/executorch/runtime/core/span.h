// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A double of ExecuTorch's header, as of 2026.
#ifndef TESTS_FAKES_EXECUTORCH_TODAY_EXECUTORCH_RUNTIME_CORE_SPAN_H_
#define TESTS_FAKES_EXECUTORCH_TODAY_EXECUTORCH_RUNTIME_CORE_SPAN_H_

#include <cstddef>

namespace executorch::runtime {

// Some elements, borrowed.
template <typename T>
class Span {
 public:
  Span() = default;
  Span(T* data, size_t size) : data_(data), size_(size) {}

  T* data() const { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace executorch::runtime

#endif  // TESTS_FAKES_EXECUTORCH_TODAY_EXECUTORCH_RUNTIME_CORE_SPAN_H_
