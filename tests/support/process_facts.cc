// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process_facts.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::string> ReadProcFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) return absl::ErrnoToStatus(errno == 0 ? ESRCH : errno, path);
  return text.str();
}

absl::StatusOr<std::vector<std::string>> ListProcDirectory(const std::string& path) {
  std::error_code error;
  std::vector<std::string> entries;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path().string());
  }
  if (error) return absl::ErrnoToStatus(error.value(), path);
  return entries;
}

// The number behind `key` in a file like /proc/PID/status.
absl::StatusOr<uint64_t> StatusField(const std::string& path, absl::string_view key) {
  HB_ASSIGN_OR_RETURN(const std::string text, ReadProcFile(path));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, key)) continue;
    absl::ConsumeSuffix(&line, "kB");
    uint64_t value;
    if (absl::SimpleAtoi(line, &value)) return value;  // Skips the blanks around it.
  }
  return absl::NotFoundError(absl::StrCat(path, " has no number behind ", key));
}

}  // namespace

absl::StatusOr<size_t> OpenDescriptorCount(pid_t pid) {
  HB_ASSIGN_OR_RETURN(const std::vector<std::string> entries,
                      ListProcDirectory(absl::StrCat("/proc/", pid, "/fd")));
  // Reading one's own directory opens it.
  return entries.size() - (pid == getpid() ? 1 : 0);
}

absl::StatusOr<std::vector<std::string>> OpenDescriptors(pid_t pid) {
  HB_ASSIGN_OR_RETURN(const std::vector<std::string> entries,
                      ListProcDirectory(absl::StrCat("/proc/", pid, "/fd")));
  std::vector<std::string> targets;
  for (const std::string& entry : entries) {
    std::error_code closed_meanwhile;
    const fs::path target = fs::read_symlink(entry, closed_meanwhile);
    if (!closed_meanwhile) targets.push_back(target.string());
  }
  return targets;
}

absl::StatusOr<Bytes> ResidentBytes(pid_t pid) {
  HB_ASSIGN_OR_RETURN(const uint64_t kib,
                      StatusField(absl::StrCat("/proc/", pid, "/status"), "VmRSS:"));
  return KiB(kib);
}

absl::StatusOr<uint64_t> VoluntaryContextSwitches(pid_t pid) {
  HB_ASSIGN_OR_RETURN(const std::vector<std::string> threads,
                      ListProcDirectory(absl::StrCat("/proc/", pid, "/task")));
  uint64_t sum = 0;
  for (const std::string& thread : threads) {
    const absl::StatusOr<uint64_t> switches =
        StatusField(absl::StrCat(thread, "/status"), "voluntary_ctxt_switches:");
    if (switches.ok()) sum += *switches;  // Else the thread ended meanwhile.
  }
  return sum;
}

absl::StatusOr<bool> Sleeps(pid_t thread) {
  HB_ASSIGN_OR_RETURN(const std::string text,
                      ReadProcFile(absl::StrCat("/proc/", thread, "/status")));
  return absl::StrContains(text, "\nState:\tS");
}

absl::StatusOr<std::vector<FileMapping>> FileMappings(pid_t pid) {
  HB_ASSIGN_OR_RETURN(const std::string text, ReadProcFile(absl::StrCat("/proc/", pid, "/maps")));
  std::vector<FileMapping> mappings;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    std::istringstream fields{std::string(line)};
    uint64_t start, end, inode;
    char dash;
    std::string permissions, offset, device, path;
    fields >> std::hex >> start >> dash >> end >> permissions >> offset >> device >> std::dec >>
        inode >> std::ws;
    if (!fields || inode == 0) continue;
    std::getline(fields, path);
    mappings.push_back({inode, path, Bytes(end - start)});
  }
  return mappings;
}

}  // namespace heapbroker
