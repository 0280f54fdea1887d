// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The connection to the daemon.
#ifndef HEAPBROKER_CLIENT_H_
#define HEAPBROKER_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "heapbroker/cancellation.h"
#include "heapbroker/export.h"
#include "heapbroker/lease.h"
#include "heapbroker/reconnect.h"
#include "heapbroker/requests.h"
#include "heapbroker/segment.h"
#include "heapbroker/types.h"

namespace heapbroker {

class MemoryWatch;
class SessionKeeper;
struct WatchHandlers;

struct ClientOptions {
  // Who this is, for people: UTF-8, 1 to 128 bytes, no control characters.
  // Empty: the program's name.
  std::string name{};
  // The daemon's directory. Empty: $HEAPBROKER_RUNTIME_DIR if that is set, else
  // the first of /run/heapbroker and $XDG_RUNTIME_DIR/heapbroker that has a
  // daemon's socket in it. A directory that was named is the only one tried: a
  // program must not reach another daemon than it was told to.
  std::string runtime_dir{};
  // How long connecting, and each call other than OpenSegment, may take unless it
  // says otherwise: see CallOptions. A request for memory waits for what others
  // hold for as long: see AllocateOptions.
  absl::Duration call_timeout = absl::Seconds(5);
  // A tool that only looks: gets no memory, counts towards no limit.
  bool observer = false;
  // When the daemon is lost.
  ReconnectOptions reconnect{};
  SessionHandlers handlers{};
};

// A session with the daemon, and when that is lost the next one. A session ends when
// the last of the Client, its MemoryWatches, Leases, Segments and MemoryBlocks is
// gone, or when the process ends: the daemon then takes back all that it held.
//
// A daemon that is lost shows as UNAVAILABLE from every call, until the library has
// connected to it again by itself, as ClientOptions::reconnect says: always in the
// directory where it was at first. Memory that was imported stays valid. Leases and
// attachments of the lost session are gone (SessionHandlers::on_lost names them), and
// their calls stay UNAVAILABLE; nothing is retaken by itself.
//
// Does not work across fork(), which gRPC does not survive: in the child every call is
// FAILED_PRECONDITION, and so is Connect, unless the child execs. Fork first, then
// Connect in each process.
//
// Copies share the session. Thread-safe; every call blocks the calling thread only.
class HEAPBROKER_EXPORT Client {
 public:
  // Only "no such file" tries the next of the two usual directories; every other
  // error is the answer.
  //   NOT_FOUND            no daemon's socket in any of the directories
  //   UNAVAILABLE          nobody listens on the socket
  //   PERMISSION_DENIED    this user may not use the socket
  //   FAILED_PRECONDITION  the daemon speaks another protocol version, or this process
  //                        was forked off one that had connected
  //   RESOURCE_EXHAUSTED   this process has no free descriptor, or there are handlers and
  //                        it can have no further thread
  //   INVALID_ARGUMENT     an option is out of range; the message names it
  //   DEADLINE_EXCEEDED    the daemon did not answer in time
  //   CANCELLED            by `call.cancellation`
  //   or what the daemon refused the session with
  static absl::StatusOr<std::shared_ptr<Client>> Connect(const ClientOptions& options,
                                                         const CallOptions& call = {});

  // For Connect.
  explicit Client(std::shared_ptr<SessionKeeper> keeper);

  // Leases one block. Errors of all calls: UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED,
  // FAILED_PRECONDITION (an observer, or a forked child), RESOURCE_EXHAUSTED (this
  // process has no free descriptor to reach the daemon), and
  //   INVALID_ARGUMENT     a field is out of range; the message names it
  //   RESOURCE_EXHAUSTED   it does not fit; the message says by which limit, and
  //                        RefusalOf (memory_refusal.h) for programs
  //   FAILED_PRECONDITION  the device has no such memory, or none that leaves the
  //                        daemon that way
  absl::StatusOr<Lease> Allocate(const AllocationRequest& request,
                                 const AllocateOptions& options = {});

  // Leases all blocks or none, in the order of the requests; 1 to 256 of them.
  absl::StatusOr<std::vector<Lease>> AllocateAll(absl::Span<const AllocationRequest> requests,
                                                 const AllocateOptions& options = {});

  // Undoes the Allocate call that had this AllocateOptions::request_id and
  // `device_index`: what is still held of its grant is given back; if it still
  // waits, it ends. For calls that ended without an answer; blocks whose Leases
  // exist must be given back by them.
  //   NOT_FOUND            such a request holds and waits for nothing, as after the
  //                        end of the session that it was made in
  absl::Status UndoAllocate(uint64_t request_id, uint32_t device_index = 0,
                            const CallOptions& call = {});

  // Attaches to a segment, or becomes its writer. Waits while another process
  // fills it: without SegmentOptions::timeout there is NO deadline, and the wait
  // ends by the writer's Seal, Close or death, or by cancellation.
  //   INVALID_ARGUMENT     a field is out of range; the message names it
  //   ALREADY_EXISTS       it exists with another size or memory; the message has both
  //   NOT_FOUND            kAttach without `wait`, and there is none
  //   RESOURCE_EXHAUSTED   it does not fit; as Allocate
  absl::StatusOr<Segment> OpenSegment(const SegmentOptions& options);

  // Asks the daemon to tell what happens: see memory_watch.h. One watch for each
  // session; a second one ends the first with ABORTED. Makes no call itself: what
  // goes wrong, the watch says.
  //   FAILED_PRECONDITION  in a forked child
  //   RESOURCE_EXHAUSTED   this process has no free descriptor, or can have no further
  //                        thread
  absl::StatusOr<std::unique_ptr<MemoryWatch>> Watch(WatchHandlers handlers);

  // Returns at once while there is a session, else waits for the next one.
  //   UNAVAILABLE          there will be none: ReconnectOptions::enabled is false
  absl::Status AwaitSession(const CallOptions& call = {});

  // As the daemon said when the session began: the current one, or the last while
  // there is none. A request names one by its position. Empty in a forked child.
  std::vector<BrokerDevice> devices() const;

  // Of the same session; for logs and for finding oneself in the daemon's listings,
  // not a secret. 0 in a forked child.
  uint64_t session_id() const;

  // ClientOptions::call_timeout: of calls that are not told another one.
  absl::Duration call_timeout() const;

 private:
  std::shared_ptr<SessionKeeper> keeper_;
};

}  // namespace heapbroker
#endif  // HEAPBROKER_CLIENT_H_
