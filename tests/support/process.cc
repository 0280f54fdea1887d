// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

absl::Status Failed(absl::string_view what) { return absl::ErrnoToStatus(errno, what); }

// Everything that the child needs between fork and exec, prepared before:
// another thread may have held the allocator's lock at the fork.
struct ChildPlan {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  std::array<int, 3> standard_fds;
  std::optional<uid_t> uid;
  int error_fd;  // Takes errno if the child cannot become the program.
  pid_t parent;
};

std::vector<std::string> MergedEnvironment(
    const std::map<std::string, std::optional<std::string>>& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) merged.push_back(text);
  }
  for (const auto& [name, value] : changes) {
    if (value) merged.push_back(absl::StrCat(name, "=", *value));
  }
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

bool BecomeUser(uid_t uid) {
  return setgroups(0, nullptr) == 0 && setresgid(uid, uid, uid) == 0 &&
         setresuid(uid, uid, uid) == 0;
}

// Only async-signal-safe calls.
[[noreturn]] void RunChild(const ChildPlan& plan) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  bool good = true;
  for (int target = 0; target < 3; ++target) {
    good = good && dup2(plan.standard_fds[target], target) >= 0;
  }
  good = good && (!plan.uid || BecomeUser(*plan.uid));
  // Whatever the test program itself was started with.
  good = good && close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0;
  // After the change of user, which clears it. The parent may have died before.
  good = good && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
  if (getppid() != plan.parent) _exit(127);
  if (good) execvpe(plan.arguments[0], plan.arguments.data(), plan.environment.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(plan.error_fd, &error, sizeof(error));
  _exit(127);
}

// The C library of Debian 12 declares its own without extern "C".
UniqueFd OpenPidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

absl::StatusOr<UniqueFd> MemoryFile(const char* name) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC));
  if (fd.get() < 0) return Failed("memfd_create");
  // A child that opens /dev/stderr anew must append too.
  if (fcntl(fd.get(), F_SETFL, O_APPEND) != 0) return Failed("fcntl(O_APPEND)");
  return fd;
}

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

absl::StatusOr<Pipe> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return Failed("pipe2");
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::string ReadAll(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t n;
  while ((n = pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(text.size()))) > 0) {
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  return text;
}

// Returns after the exec, or with the reason why there was none.
absl::Status AwaitExec(int error_fd, const std::string& program) {
  int error = 0;
  ssize_t n;
  do {
    n = read(error_fd, &error, sizeof(error));
  } while (n < 0 && errno == EINTR);
  if (n == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat("cannot run ", program));
}

}  // namespace

ExitStatus Exited(int code) { return ExitStatus{.code = code, .signal = std::nullopt}; }
ExitStatus KilledBy(int signal) { return ExitStatus{.code = std::nullopt, .signal = signal}; }

std::ostream& operator<<(std::ostream& out, const ExitStatus& status) {
  if (status.code) return out << "exit code " << *status.code;
  return out << "killed by signal " << status.signal.value_or(0);
}

absl::StatusOr<Process> Process::Start(const ProcessOptions& options) {
  if (options.command.empty()) return absl::InvalidArgumentError("command is empty");
  std::vector<std::string> arguments = options.command;
  std::vector<std::string> environment = MergedEnvironment(options.environment);

  Process process;
  UniqueFd child_input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (options.input_pipe) {
    HB_ASSIGN_OR_RETURN(Pipe input, MakePipe());
    child_input = std::move(input.read_end);
    process.input_ = std::move(input.write_end);
  }
  HB_ASSIGN_OR_RETURN(process.output_, MemoryFile("stdout"));
  HB_ASSIGN_OR_RETURN(process.error_output_, MemoryFile("stderr"));
  HB_ASSIGN_OR_RETURN(Pipe exec_error, MakePipe());

  const ChildPlan plan{
      .arguments = Pointers(arguments),
      .environment = Pointers(environment),
      .standard_fds = {child_input.get(), process.output_.get(), process.error_output_.get()},
      .uid = options.uid,
      .error_fd = exec_error.write_end.get(),
      .parent = getpid()};
  process.pid_ = fork();
  if (process.pid_ < 0) return Failed("fork");
  if (process.pid_ == 0) RunChild(plan);

  process.pidfd_ = OpenPidfd(process.pid_);
  if (process.pidfd_.get() < 0) return Failed("pidfd_open");
  exec_error.write_end = UniqueFd();
  HB_RETURN_IF_ERROR(AwaitExec(exec_error.read_end.get(), options.command[0]));
  return process;
}

Process::Process(Process&& other) noexcept { *this = std::move(other); }

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  KillAndReap();
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::move(other.pidfd_);
  input_ = std::move(other.input_);
  output_ = std::move(other.output_);
  error_output_ = std::move(other.error_output_);
  exit_status_ = std::exchange(other.exit_status_, std::nullopt);
  return *this;
}

Process::~Process() { KillAndReap(); }

void Process::KillAndReap() {
  if (pid_ < 0 || exit_status_) return;
  kill(pid_, SIGKILL);  // Not reaped yet, so the pid is still this child's.
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

absl::Status Process::Signal(int signal) {
  if (!Running()) return absl::FailedPreconditionError("the process has ended");
  if (kill(pid_, signal) != 0) return Failed("kill");
  return absl::OkStatus();
}

void Process::CloseInput() { input_ = UniqueFd(); }

absl::StatusOr<ExitStatus> Process::Wait(absl::Duration limit) {
  if (exit_status_) return *exit_status_;
  const absl::Time deadline = absl::Now() + limit;
  pollfd ended{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  int ready;
  do {
    const absl::Duration left = std::max(deadline - absl::Now(), absl::ZeroDuration());
    ready =
        poll(&ended, 1,
             static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)))));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) {
    return absl::DeadlineExceededError(absl::StrCat("process ", pid_, " still runs after ",
                                                    absl::FormatDuration(limit), "; stdout:\n",
                                                    Output(), "\nstderr:\n", ErrorOutput()));
  }
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_) return Failed("waitpid");
  exit_status_ = WIFEXITED(status) ? Exited(WEXITSTATUS(status)) : KilledBy(WTERMSIG(status));
  return *exit_status_;
}

std::string Process::Output() const { return ReadAll(output_.get()); }
std::string Process::ErrorOutput() const { return ReadAll(error_output_.get()); }

absl::StatusOr<CommandResult> RunCommand(const ProcessOptions& options, absl::Duration limit) {
  HB_ASSIGN_OR_RETURN(Process process, Process::Start(options));
  HB_ASSIGN_OR_RETURN(const ExitStatus status, process.Wait(limit));
  return CommandResult{status, process.Output(), process.ErrorOutput()};
}

}  // namespace heapbroker
