// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/descriptor_import.h"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "client/transport/descriptor_turn.h"
#include "common/base/status_macros.h"
#include "common/posix/unique_fd.h"

namespace heapbroker {

OpenFileComparer::Answer KcmpComparer::Compare(int known, int questionable) {
  const pid_t self = getpid();
  const long order = syscall(SYS_kcmp, self, self, KCMP_FILE, static_cast<unsigned long>(known),
                             static_cast<unsigned long>(questionable));
  if (order == 0) return Answer::kSame;
  if (order > 0) return Answer::kDifferent;
  return errno == EBADF ? Answer::kNotOpen : Answer::kUnknown;
}

absl::Status DescriptorImporter::Import(int original,
                                        absl::FunctionRef<absl::Status(int duplicate)> driver) {
  TurnHolder turn(DescriptorTurn());
  HB_ASSIGN_OR_RETURN(UniqueFd owned, DuplicateFd(original));
  const int duplicate = owned.Release();
  const absl::Status status = driver(duplicate);
  if (status.ok()) return status;
  ++failed_;
  switch (comparer_.Compare(original, duplicate)) {
    case OpenFileComparer::Answer::kSame:
      close(duplicate);
      break;
    case OpenFileComparer::Answer::kUnknown:
      ++leaked_;
      break;
    case OpenFileComparer::Answer::kDifferent:
    case OpenFileComparer::Answer::kNotOpen:
      break;
  }
  return status;
}

}  // namespace heapbroker
