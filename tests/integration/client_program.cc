// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// client_program RUNTIME_DIR CONTROL_SOCKET: a client that does what a test tells
// it over a socket; tests/integration/client_process.h is the other end. Each
// packet is a command, each is answered by one packet: "ok TEXT" or "error CODE
// TEXT". MEMORY is a name that the test chooses.
//
//   connect NAME                         session=ID
//   allocate MEMORY SIZE [TERM...]       as HeldMemory::Describe; TERM as AllocateTerms;
//   hold COUNT SIZE                      leases in one call, and their descriptors
//   fetch MEMORY                         files=..., what its descriptors refer to:
//                                        equal for the same memory, whatever its id
//   open MEMORY SEGMENT SIZE             as HeldMemory::Describe; waits
//   attach MEMORY SEGMENT                the same
//   load SEGMENT SIZE SEED               opens, fills as writer, checks, closes
//   fill MEMORY OFFSET SIZE SEED
//   check MEMORY OFFSET SIZE SEED        DATA_LOSS where it differs
//   zeros MEMORY                         DATA_LOSS where it is not zero
//   copy FROM TO                         by the device
//   seal MEMORY; seal-unread MEMORY
//   give-back MEMORY                     releases or closes
//   cycle COUNT SIZE                     allocate, import, fill, release
//   churn SIZE                           allocate, fetch, release until an error
//   watch                                begins to listen to the daemon, as the next three do
//   idle DEVICE HEAP BYTES               reports that as all that is idle
//   asked; sealed                        what came next, as WatchNotes; waits for it
//   lost; reconnected                    what came next of sessions, as SessionNotes;
//                                        waits for it
//   limit-descriptors; unlimit-descriptors   no more than there are now, or as before
//   dynamic-start MILLISECONDS           a DeviceAllocator whose cache keeps idle blocks
//                                        so long; 0: for ever
//   dynamic-allocate MEMORY SIZE; dynamic-free MEMORY
//   dynamic                              as DynamicMemory::Describe
//   fork                                 child=PID; the child waits for the test's end
//
// The control socket's end ends the program.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/posix/packet.h"
#include "common/posix/unix_socket.h"
#include "heapbroker/client.h"
#include "heapbroker/vulkan_importer.h"
#include "tests/integration/allocate_terms.h"
#include "tests/integration/dynamic_memory.h"
#include "tests/integration/held_memory.h"
#include "tests/integration/session_notes.h"
#include "tests/integration/watch_notes.h"

namespace heapbroker {
namespace {

using Words = std::vector<std::string>;
using Answer = absl::StatusOr<std::string>;

absl::StatusOr<uint64_t> Number(const std::string& word) {
  uint64_t number = 0;
  if (absl::SimpleAtoi(word, &number)) return number;
  return absl::InvalidArgumentError(absl::StrCat(word, " is no number"));
}

AllocationRequest HostVisible(uint64_t size) {
  return {.size = Bytes(size), .memory = MemoryKind::kHostVisible};
}

Answer Done(const absl::Status& status) {
  HB_RETURN_IF_ERROR(status);
  return std::string();
}

class Program {
 public:
  Program(std::string runtime_dir, const UniqueFd& control)
      : runtime_dir_(std::move(runtime_dir)), control_(control) {}

  Answer Run(const Words& words);

 private:
  struct Command {
    size_t words;  // At least, its own name included.
    Answer (Program::*run)(const Words&);
  };
  static const std::map<std::string, Command>& Commands();

  Answer Connect(const Words& words);
  Answer Allocate(const Words& words);
  Answer Hold(const Words& words);
  Answer Fetch(const Words& words);
  Answer Open(const Words& words);
  Answer Attach(const Words& words);
  Answer Load(const Words& words);
  Answer Fill(const Words& words);
  Answer Check(const Words& words);
  Answer Zeros(const Words& words);
  Answer Copy(const Words& words);
  Answer Seal(const Words& words);
  Answer SealUnread(const Words& words);
  Answer GiveBack(const Words& words);
  Answer Cycle(const Words& words);
  Answer Churn(const Words& words);
  Answer Watch(const Words& words);
  Answer Idle(const Words& words);
  Answer Asked(const Words& words);
  Answer Sealed(const Words& words);
  Answer Lost(const Words& words);
  Answer Reconnected(const Words& words);
  Answer LimitDescriptors(const Words& words);
  Answer UnlimitDescriptors(const Words& words);
  Answer DynamicStart(const Words& words);
  Answer DynamicAllocate(const Words& words);
  Answer DynamicFree(const Words& words);
  Answer Dynamic(const Words& words);
  Answer Fork(const Words& words);

  Answer Keep(const std::string& name, HeldMemory memory);
  absl::StatusOr<HeldMemory*> Find(const std::string& name);
  absl::StatusOr<HeldMemory*> FindImported(const std::string& name);
  absl::StatusOr<VulkanImporter*> Importer();
  absl::StatusOr<WatchNotes*> Notes();

  const std::string runtime_dir_;
  const UniqueFd& control_;
  rlimit descriptors_{};  // Before they were limited.
  SessionNotes session_notes_;
  std::shared_ptr<Client> client_;
  // In this order, since each needs those before it.
  std::unique_ptr<MinimalDevice> device_;
  std::unique_ptr<VulkanImporter> importer_;
  std::map<std::string, HeldMemory> memories_;
  std::unique_ptr<WatchNotes> watch_;
  std::unique_ptr<DynamicMemory> dynamic_;
};

const std::map<std::string, Program::Command>& Program::Commands() {
  static const auto* const commands =
      new std::map<std::string, Command>{{"connect", {2, &Program::Connect}},
                                         {"allocate", {3, &Program::Allocate}},
                                         {"hold", {3, &Program::Hold}},
                                         {"fetch", {2, &Program::Fetch}},
                                         {"open", {4, &Program::Open}},
                                         {"attach", {3, &Program::Attach}},
                                         {"load", {4, &Program::Load}},
                                         {"fill", {5, &Program::Fill}},
                                         {"check", {5, &Program::Check}},
                                         {"zeros", {2, &Program::Zeros}},
                                         {"copy", {3, &Program::Copy}},
                                         {"seal", {2, &Program::Seal}},
                                         {"seal-unread", {2, &Program::SealUnread}},
                                         {"give-back", {2, &Program::GiveBack}},
                                         {"cycle", {3, &Program::Cycle}},
                                         {"churn", {2, &Program::Churn}},
                                         {"watch", {1, &Program::Watch}},
                                         {"idle", {4, &Program::Idle}},
                                         {"asked", {1, &Program::Asked}},
                                         {"sealed", {1, &Program::Sealed}},
                                         {"lost", {1, &Program::Lost}},
                                         {"reconnected", {1, &Program::Reconnected}},
                                         {"limit-descriptors", {1, &Program::LimitDescriptors}},
                                         {"unlimit-descriptors", {1, &Program::UnlimitDescriptors}},
                                         {"dynamic-start", {2, &Program::DynamicStart}},
                                         {"dynamic-allocate", {3, &Program::DynamicAllocate}},
                                         {"dynamic-free", {2, &Program::DynamicFree}},
                                         {"dynamic", {1, &Program::Dynamic}},
                                         {"fork", {1, &Program::Fork}}};
  return *commands;
}

Answer Program::Run(const Words& words) {
  const auto found = Commands().find(words[0]);
  if (found == Commands().end() || words.size() < found->second.words) {
    return absl::InvalidArgumentError(
        absl::StrCat("no such command, or not enough words: ", absl::StrJoin(words, " ")));
  }
  if (client_ == nullptr && words[0] != "connect") {
    return absl::FailedPreconditionError("not connected yet");
  }
  if (dynamic_ == nullptr && words[0].rfind("dynamic", 0) == 0 && words[0] != "dynamic-start") {
    return absl::FailedPreconditionError("no allocator yet");
  }
  return (this->*found->second.run)(words);
}

Answer Program::Connect(const Words& words) {
  ClientOptions options;
  options.name = words[1];
  options.runtime_dir = runtime_dir_;
  // Sanitizers and a busy machine make everything slow.
  options.call_timeout = absl::Seconds(20);
  options.handlers = session_notes_.Handlers();
  HB_ASSIGN_OR_RETURN(client_, Client::Connect(options));
  return absl::StrCat("session=", client_->session_id());
}

Answer Program::Keep(const std::string& name, HeldMemory memory) {
  memories_[name] = std::move(memory);
  return memories_[name].Describe();
}

absl::StatusOr<HeldMemory*> Program::Find(const std::string& name) {
  const auto found = memories_.find(name);
  if (found == memories_.end()) return absl::InvalidArgumentError(absl::StrCat("no memory ", name));
  return &found->second;
}

absl::StatusOr<HeldMemory*> Program::FindImported(const std::string& name) {
  HB_ASSIGN_OR_RETURN(HeldMemory* const memory, Find(name));
  HB_ASSIGN_OR_RETURN(VulkanImporter* const importer, Importer());
  HB_RETURN_IF_ERROR(memory->Import(*importer));
  return memory;
}

absl::StatusOr<VulkanImporter*> Program::Importer() {
  if (importer_ == nullptr) {
    HB_ASSIGN_OR_RETURN(device_, MinimalDevice::Create(client_->devices().at(0)));
    HB_ASSIGN_OR_RETURN(importer_, VulkanImporter::Create(device_->context()));
  }
  return importer_.get();
}

Answer Program::Allocate(const Words& words) {
  HB_ASSIGN_OR_RETURN(const uint64_t size, Number(words[2]));
  AllocateTerms terms{.request = HostVisible(size)};
  HB_RETURN_IF_ERROR(terms.Read(absl::MakeConstSpan(words).subspan(3)));
  absl::StatusOr<Lease> lease = client_->Allocate(terms.request, terms.options);
  if (!lease.ok()) return WithRefusalText(lease.status());
  return Keep(words[1], HeldMemory(*std::move(lease)));
}

Answer Program::Hold(const Words& words) {
  HB_ASSIGN_OR_RETURN(const uint64_t count, Number(words[1]));
  HB_ASSIGN_OR_RETURN(const uint64_t size, Number(words[2]));
  HB_ASSIGN_OR_RETURN(
      std::vector<Lease> leases,
      client_->AllocateAll(std::vector<AllocationRequest>(count, HostVisible(size))));
  for (size_t i = 0; i < leases.size(); ++i) {
    HB_RETURN_IF_ERROR(leases[i].fd().status());
    memories_[absl::StrCat("hold", i)] = HeldMemory(std::move(leases[i]));
  }
  return std::string();
}

Answer Program::Fetch(const Words& words) {
  HB_ASSIGN_OR_RETURN(HeldMemory* const memory, Find(words[1]));
  std::vector<std::string> files;
  for (const auto& block : memory->Blocks()) {
    HB_ASSIGN_OR_RETURN(const int fd, block->fd());
    struct stat file {};
    if (fstat(fd, &file) != 0) return absl::ErrnoToStatus(errno, "fstat");
    files.push_back(absl::StrCat(file.st_dev, ":", file.st_ino));
  }
  return absl::StrCat("files=", absl::StrJoin(files, ","));
}

Answer Program::Open(const Words& words) {
  HB_ASSIGN_OR_RETURN(const uint64_t size, Number(words[3]));
  SegmentOptions options;
  options.name = words[2];
  options.size = Bytes(size);
  options.memory = MemoryKind::kHostVisible;
  HB_ASSIGN_OR_RETURN(Segment segment, client_->OpenSegment(options));
  return Keep(words[1], HeldMemory(std::move(segment)));
}

Answer Program::Attach(const Words& words) {
  SegmentOptions options;
  options.name = words[2];
  options.mode = SegmentOptions::Mode::kAttach;
  HB_ASSIGN_OR_RETURN(Segment segment, client_->OpenSegment(options));
  return Keep(words[1], HeldMemory(std::move(segment)));
}

Answer Program::Load(const Words& words) {
  const std::string& size = words[2];
  const std::string& seed = words[3];
  HB_ASSIGN_OR_RETURN(const std::string opened, Open({"open", "loaded", words[1], size}));
  HB_ASSIGN_OR_RETURN(HeldMemory* const memory, Find("loaded"));
  if (memory->segment().is_writer()) {
    HB_RETURN_IF_ERROR(Fill({"fill", "loaded", "0", size, seed}).status());
    HB_RETURN_IF_ERROR(Seal({"seal", "loaded"}).status());
  }
  HB_RETURN_IF_ERROR(Check({"check", "loaded", "0", size, seed}).status());
  HB_RETURN_IF_ERROR(GiveBack({"give-back", "loaded"}).status());
  return opened;
}

Answer Program::Fill(const Words& words) {
  HB_ASSIGN_OR_RETURN(HeldMemory* const memory, FindImported(words[1]));
  HB_ASSIGN_OR_RETURN(const uint64_t offset, Number(words[2]));
  HB_ASSIGN_OR_RETURN(const uint64_t size, Number(words[3]));
  HB_ASSIGN_OR_RETURN(const uint64_t seed, Number(words[4]));
  return Done(memory->Fill(Bytes(offset), Bytes(size), seed));
}

Answer Program::Check(const Words& words) {
  HB_ASSIGN_OR_RETURN(HeldMemory* const memory, FindImported(words[1]));
  HB_ASSIGN_OR_RETURN(const uint64_t offset, Number(words[2]));
  HB_ASSIGN_OR_RETURN(const uint64_t size, Number(words[3]));
  HB_ASSIGN_OR_RETURN(const uint64_t seed, Number(words[4]));
  return Done(memory->CheckPattern(Bytes(offset), Bytes(size), seed));
}

Answer Program::Zeros(const Words& words) {
  HB_ASSIGN_OR_RETURN(HeldMemory* const memory, FindImported(words[1]));
  return Done(memory->CheckZeros());
}

Answer Program::Copy(const Words& words) {
  HB_ASSIGN_OR_RETURN(HeldMemory* const from, FindImported(words[1]));
  HB_ASSIGN_OR_RETURN(HeldMemory* const to, FindImported(words[2]));
  return Done(to->CopyFrom(*from, *importer_));
}

Answer Program::Seal(const Words& words) {
  HB_ASSIGN_OR_RETURN(HeldMemory* const memory, FindImported(words[1]));
  return Done(memory->Seal(*importer_));
}

Answer Program::SealUnread(const Words& words) {
  HB_ASSIGN_OR_RETURN(HeldMemory* const memory, Find(words[1]));
  return Done(memory->SealUnread());
}

Answer Program::GiveBack(const Words& words) {
  HB_ASSIGN_OR_RETURN(HeldMemory* const memory, Find(words[1]));
  if (importer_ != nullptr) HB_RETURN_IF_ERROR(memory->Unimport(*importer_));
  HB_RETURN_IF_ERROR(memory->GiveBack());
  memories_.erase(words[1]);
  return std::string();
}

Answer Program::Cycle(const Words& words) {
  HB_ASSIGN_OR_RETURN(const uint64_t count, Number(words[1]));
  for (uint64_t i = 0; i < count; ++i) {
    HB_RETURN_IF_ERROR(Allocate({"allocate", "cycled", words[2]}).status());
    HB_RETURN_IF_ERROR(Fill({"fill", "cycled", "0", "64", absl::StrCat(i)}).status());
    HB_RETURN_IF_ERROR(GiveBack({"give-back", "cycled"}).status());
  }
  return absl::StrCat("imports=", importer_->stats().imports,
                      " leaked=", importer_->stats().leaked_descriptors);
}

Answer Program::Churn(const Words& words) {
  while (true) {
    HB_RETURN_IF_ERROR(Allocate({"allocate", "churned", words[1]}).status());
    HB_RETURN_IF_ERROR(Fetch({"fetch", "churned"}).status());
    HB_RETURN_IF_ERROR(GiveBack({"give-back", "churned"}).status());
  }
}

absl::StatusOr<WatchNotes*> Program::Notes() {
  if (watch_ == nullptr) {
    HB_ASSIGN_OR_RETURN(watch_, WatchNotes::Start(*client_));
  }
  return watch_.get();
}

Answer Program::Watch(const Words&) { return Done(Notes().status()); }
Answer Program::Idle(const Words& words) {
  HB_ASSIGN_OR_RETURN(WatchNotes* const notes, Notes());
  return Done(notes->Report(absl::MakeConstSpan(words).subspan(1)));
}

Answer Program::Asked(const Words&) {
  HB_ASSIGN_OR_RETURN(WatchNotes* const notes, Notes());
  return notes->NextGiveBack();
}

Answer Program::Sealed(const Words&) {
  HB_ASSIGN_OR_RETURN(WatchNotes* const notes, Notes());
  return notes->NextSealed();
}

Answer Program::Lost(const Words&) { return session_notes_.NextLost(); }
Answer Program::Reconnected(const Words&) { return session_notes_.NextReconnected(); }

Answer Program::LimitDescriptors(const Words&) {
  if (getrlimit(RLIMIT_NOFILE, &descriptors_) != 0) return absl::ErrnoToStatus(errno, "getrlimit");
  // The number that the next one would have.
  const UniqueFd lowest(open("/dev/null", O_RDONLY | O_CLOEXEC));
  rlimit reached = descriptors_;
  reached.rlim_cur = static_cast<rlim_t>(lowest.get());
  if (setrlimit(RLIMIT_NOFILE, &reached) != 0) return absl::ErrnoToStatus(errno, "setrlimit");
  return std::string();
}

Answer Program::UnlimitDescriptors(const Words&) {
  if (setrlimit(RLIMIT_NOFILE, &descriptors_) != 0) return absl::ErrnoToStatus(errno, "setrlimit");
  return std::string();
}

Answer Program::DynamicStart(const Words& words) {
  HB_ASSIGN_OR_RETURN(const uint64_t milliseconds, Number(words[1]));
  HB_ASSIGN_OR_RETURN(VulkanImporter* const importer, Importer());
  const absl::Duration max_idle =
      milliseconds == 0 ? absl::InfiniteDuration() : absl::Milliseconds(milliseconds);
  HB_ASSIGN_OR_RETURN(dynamic_, DynamicMemory::Start(*client_, *importer, max_idle));
  return std::string();
}

Answer Program::DynamicAllocate(const Words& words) {
  HB_ASSIGN_OR_RETURN(const uint64_t size, Number(words[2]));
  return Done(dynamic_->Allocate(words[1], Bytes(size)));
}

Answer Program::DynamicFree(const Words& words) { return Done(dynamic_->Free(words[1])); }

Answer Program::Dynamic(const Words&) { return dynamic_->Describe(); }

Answer Program::Fork(const Words&) {
  const pid_t child = fork();
  if (child < 0) return absl::ErrnoToStatus(errno, "fork");
  if (child > 0) return absl::StrCat("child=", child);
  // With a copy of every descriptor. Only the other end's closing ends it: a
  // packet there is the parent's.
  pollfd closed{.fd = control_.get(), .events = 0, .revents = 0};
  while (poll(&closed, 1, -1) < 0 && errno == EINTR) {
  }
  _exit(0);
}

std::string AnswerPacket(const Answer& answer) {
  if (answer.ok()) return absl::StrCat("ok ", *answer);
  return absl::StrCat("error ", static_cast<int>(answer.status().code()), " ",
                      std::string(answer.status().message()));
}

absl::Status Serve(const std::string& runtime_dir, const std::string& control_path) {
  HB_ASSIGN_OR_RETURN(const UniqueFd control,
                      ConnectUnix(control_path, SocketKind::kSeqPacket, absl::Seconds(10)));
  Program program(runtime_dir, control);
  std::array<char, 4096> buffer;
  while (true) {
    HB_ASSIGN_OR_RETURN(const ReceivedPacket packet,
                        ReceivePacket(control, absl::MakeSpan(buffer), 0));
    if (packet.kind == ReceivedPacket::Kind::kEnd) return absl::OkStatus();
    const Words words = absl::StrSplit(absl::string_view(buffer.data(), packet.size), ' ');
    HB_RETURN_IF_ERROR(SendPacket(control, AnswerPacket(program.Run(words))).status());
  }
}

}  // namespace
}  // namespace heapbroker

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: client_program RUNTIME_DIR CONTROL_SOCKET\n");
    return 2;
  }
  const absl::Status served = heapbroker::Serve(argv[1], argv[2]);
  if (!served.ok()) std::fprintf(stderr, "client_program: %s\n", served.ToString().c_str());
  return served.ok() ? 0 : 1;
}
