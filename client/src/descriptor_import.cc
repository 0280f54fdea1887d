// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/descriptor_import.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "client/transport/descriptor_turn.h"
#include "common/base/status_macros.h"
#include "common/posix/unique_fd.h"

namespace heapbroker {
namespace {

// The block's file for this import alone. A software driver's is a memory file,
// whose header it reads at the file offset; all that were sent the descriptor
// share that offset, and two processes that import at the same time would read
// each other's position. Opened anew it has an offset of its own. Device memory
// cannot be opened anew, and has no offset that a driver would use.
absl::StatusOr<UniqueFd> OpenForImport(int original) {
  struct stat facts {};
  if (fstat(original, &facts) == 0 && S_ISREG(facts.st_mode)) {
    const std::string path = absl::StrCat("/proc/self/fd/", original);
    UniqueFd own(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (own) return own;
    // Without /proc, a duplicate is the best there is.
  }
  return DuplicateFd(original);
}

}  // namespace

OpenFileComparer::Answer KcmpComparer::Compare(int known, int questionable) {
  const pid_t self = getpid();
  const long order = syscall(SYS_kcmp, self, self, KCMP_FILE, static_cast<unsigned long>(known),
                             static_cast<unsigned long>(questionable));
  if (order == 0) return Answer::kSame;
  if (order > 0) return Answer::kDifferent;
  return errno == EBADF ? Answer::kNotOpen : Answer::kUnknown;
}

absl::Status DescriptorImporter::Import(int original, const CallLimits& limits,
                                        absl::FunctionRef<absl::Status(int duplicate)> driver) {
  TurnHolder turn(DescriptorTurn(), limits, "an import or a fetch of this process did not end");
  HB_RETURN_IF_ERROR(turn.status());
  HB_ASSIGN_OR_RETURN(const UniqueFd file, OpenForImport(original));
  HB_ASSIGN_OR_RETURN(UniqueFd owned, DuplicateFd(file.get()));
  const int duplicate = owned.Release();
  const absl::Status status = driver(duplicate);
  if (status.ok()) return status;
  ++failed_;
  switch (comparer_.Compare(file.get(), duplicate)) {
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
