// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Handing a descriptor to a driver without losing it, or closing a stranger's.
#ifndef CLIENT_SRC_DESCRIPTOR_IMPORT_H_
#define CLIENT_SRC_DESCRIPTOR_IMPORT_H_

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/transport/call_limits.h"

namespace heapbroker {

// Whether two descriptors of this process are one open file.
class OpenFileComparer {
 public:
  enum class Answer {
    kSame,
    kDifferent,
    kNotOpen,  // The second one names no open file.
    kUnknown,  // The kernel does not say: kcmp is missing or forbidden here.
  };
  virtual ~OpenFileComparer() = default;
  virtual Answer Compare(int known, int questionable) = 0;
};

// kcmp(KCMP_FILE). Device and inode number would not do: two opens of one device
// node have the same.
class KcmpComparer final : public OpenFileComparer {
 public:
  Answer Compare(int known, int questionable) override;
};

// A successful import makes the driver the owner of the descriptor. After a
// failed one some drivers have closed it and some have not, and in the first
// case its number may already belong to another thread's file. So the driver
// gets a duplicate and what it was made of stays ours: after a failure the
// duplicate is closed only if it still is that open file. In doubt it leaks, and is
// counted. Another descriptor of that file must not get the number meanwhile, so
// the imports of the whole process take turns: see DescriptorTurn.
//
// Thread-safe.
class DescriptorImporter {
 public:
  // `comparer` is borrowed, and asked by one thread at a time.
  explicit DescriptorImporter(OpenFileComparer& comparer) : comparer_(comparer) {}

  // Calls `driver` with a duplicate of `original`, which is borrowed; `driver`
  // must neither import nor fetch. Returns what it returned, or, where it was not called,
  //   RESOURCE_EXHAUSTED  no descriptor for the duplicate
  //   DEADLINE_EXCEEDED, CANCELLED  as `limits` say, while others had the turn
  absl::Status Import(int original, const CallLimits& limits,
                      absl::FunctionRef<absl::Status(int duplicate)> driver);

  uint64_t failed() const { return failed_; }
  uint64_t leaked() const { return leaked_; }

 private:
  OpenFileComparer& comparer_;
  std::atomic<uint64_t> failed_ = 0;
  std::atomic<uint64_t> leaked_ = 0;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_DESCRIPTOR_IMPORT_H_
