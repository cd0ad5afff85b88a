#include "machine/bootstrap/launcher/local.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/host_number.h"
#include "machine/bootstrap/last_words.h"

namespace weft::machine::bootstrap {
namespace {

using base::Result;
using base::Status;
using base::StatusCode;

constexpr int kMaxPes = 1 << 20;
constexpr std::size_t kBeginAgainBytes = 12;  // before the reason

Result<int> integer_variable(const char* name, int low, int high) {
  const char* text = std::getenv(name);
  if (text == nullptr) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("WEFT_BOOTSTRAP is set but {} is not: start the program with `weft run`, which sets "
                     "both, or unset WEFT_BOOTSTRAP",
                     name));
  }
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stopped != end || value < low || value > high) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format(
            "the environment variable {}='{}' is not a number from {} to {}: it is set by `weft run` "
            "and not meant to be changed",
            name, text, low, high));
  }
  return value;
}

// If the launcher dies, the kernel kills its children. A process that a wrapper started watches watch_fd()
// instead, because the end of its parent's thread means nothing.
Status die_with_launcher(const LocalSettings& settings) {
  if (getppid() != settings.launcher_pid) return {};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == settings.launcher_pid) return {};
  return Status(StatusCode::kPeerFailed, base::format("`weft run` (pid {}) ended while PE {} was starting",
                                                      settings.launcher_pid, settings.pe));
}

Result<int> connect_to(const LocalSettings& settings) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (settings.socket_path.size() >= sizeof(address.sun_path)) {
    return Status(StatusCode::kInvalidArgument,
                  base::format("WEFT_BOOTSTRAP='{}' is longer than the {} bytes of a socket's path",
                               settings.socket_path, sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, settings.socket_path.data(), settings.socket_path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Status(StatusCode::kUnreachable, base::format("no socket: {}", std::strerror(errno)));
  while (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    close(fd);
    const bool launcher_runs = kill(settings.launcher_pid, 0) == 0;
    return Status(
        StatusCode::kUnreachable,
        base::format("PE {} cannot reach `weft run` (pid {}) at {}: {}. {}", settings.pe,
                     settings.launcher_pid, settings.socket_path, std::strerror(error),
                     launcher_runs ? "It runs, and all PEs of that job have joined; one launch is one Weft "
                                     "job. For a second program start `weft run` again; set "
                                     "WEFT_BOOTSTRAP=singleton for a program that a PE starts"
                                   : "It has ended: start the program again with `weft run`"));
  }
  return fd;
}

// The connection of the job that this process has finished. It belongs to the process, as its place in the launch does.
struct KeptConnection {
  int fd = -1;
  std::string socket_path;
  pid_t process = 0;
};
KeptConnection kept_connection;

// What the launcher has told this process of the incarnations of its job.
struct NextIncarnation {
  std::optional<std::uint32_t> number;
  std::string socket_path;  // of the launcher
  int pe = 0;               // of this process
  int num_pes = 0;
  bool is_awaited = false;    // the process has not joined it yet
  bool goes_without = false;  // the process is not in it
};
NextIncarnation next_incarnation;
// A job of this launch has ended. One that follows cannot begin again.
bool has_finished_a_job = false;

// Returns false if the frame is none.
bool note_next_incarnation(const Frame& frame, const std::string& socket_path) {
  if (frame.payload.size() < kBeginAgainBytes) return false;
  const auto pe = get_integer<std::uint32_t>(frame.payload, 4);
  const auto num_pes = get_integer<std::uint32_t>(frame.payload, 8);
  if (num_pes == 0 || num_pes > static_cast<std::uint32_t>(kMaxPes) || (pe >= num_pes && pe != kNoPe))
    return false;
  next_incarnation.number = get_integer<std::uint32_t>(frame.payload, 0);
  next_incarnation.socket_path = socket_path;
  next_incarnation.is_awaited = true;
  next_incarnation.goes_without = pe == kNoPe;
  next_incarnation.num_pes = static_cast<int>(num_pes);
  if (!next_incarnation.goes_without) next_incarnation.pe = static_cast<int>(pe);
  return true;
}

const char kConnectionVariable[] = "WEFT_LAUNCHER_CONNECTION";

// The one that the program has kept of which this process was before it began again; -1 if there is none.
int take_inherited_connection() {
  const char* const text = std::getenv(kConnectionVariable);
  if (text == nullptr) return -1;
  Result<int> fd = integer_variable(kConnectionVariable, 0, 1 << 30);
  unsetenv(kConnectionVariable);  // programs that this one starts have no connection
  struct stat about{};
  if (!fd.ok() || fstat(*fd, &about) != 0 || !S_ISSOCK(about.st_mode)) return -1;
  fcntl(*fd, F_SETFD, FD_CLOEXEC);
  return *fd;
}

// Of the same launch; -1 if there is none. A forked process has none: it is no PE.
int take_kept_connection(const LocalSettings& settings) {
  if (const int inherited = take_inherited_connection(); inherited >= 0) return inherited;
  const KeptConnection kept = std::exchange(kept_connection, {});
  if (kept.fd >= 0 && kept.process == getpid() && kept.socket_path == settings.socket_path) return kept.fd;
  if (kept.fd >= 0) close(kept.fd);
  return -1;
}

}  // namespace

Result<LocalSettings> LocalSettings::from_environment() {
  LocalSettings settings;
  if (const char* path = std::getenv("WEFT_BOOTSTRAP"); path != nullptr) settings.socket_path = path;
  // It was valid when the process began, and the launcher may have given the process another place since.
  Result<int> num_pes = integer_variable("WEFT_NUM_PES", 1, kMaxPes);
  if (!num_pes.ok()) return num_pes.status();
  Result<int> pe = integer_variable("WEFT_PE", 0, *num_pes - 1);
  if (!pe.ok()) return pe.status();
  Result<int> launcher = integer_variable("WEFT_LAUNCHER_PID", 1, 1 << 30);
  if (!launcher.ok()) return launcher.status();
  settings.num_pes = *num_pes;
  settings.pe = *pe;
  settings.launcher_pid = *launcher;
  settings.is_attached = std::getenv("WEFT_ATTACHED") != nullptr;
  if (const char* const name = std::getenv("WEFT_JOB_NAME"); name != nullptr) settings.job_name = name;
  const char* const on_loss = std::getenv("WEFT_ON_LOSS");
  const std::string_view when_lost = on_loss != nullptr && !settings.is_attached ? on_loss : "";
  settings.keeps_job = when_lost == "raise";
  settings.is_restarted = (when_lost == "restart" || when_lost == "shrink") && !has_finished_a_job;
  if (next_incarnation.number && next_incarnation.socket_path == settings.socket_path) {
    settings.incarnation = *next_incarnation.number;
    settings.pe = next_incarnation.pe;
    settings.num_pes = next_incarnation.num_pes;
  } else if (settings.is_restarted && std::getenv("WEFT_INCARNATION") != nullptr) {
    Result<int> incarnation = integer_variable("WEFT_INCARNATION", 0, 1 << 30);
    if (!incarnation.ok()) return incarnation.status();
    settings.incarnation = static_cast<std::uint32_t>(*incarnation);
  }
  return settings;
}

Result<std::unique_ptr<Bootstrap>> LocalBootstrap::join(const LocalSettings& settings) {
  next_incarnation.is_awaited = false;
  if (Status status = die_with_launcher(settings); status.failed()) return status;
  Result<int> fd = take_kept_connection(settings);
  if (*fd < 0) fd = connect_to(settings);
  if (!fd.ok()) return fd.status();
  Result<std::unique_ptr<Bootstrap>> joined = join(*fd, settings);
  // That of an attached process would lead to a launcher of one job.
  if (joined.ok()) static_cast<LocalBootstrap&>(**joined).keeps_connection_ = !settings.is_attached;
  return joined;
}

Result<std::unique_ptr<Bootstrap>> LocalBootstrap::join(int fd, const LocalSettings& settings) {
  std::unique_ptr<LocalBootstrap> self(new LocalBootstrap(fd, settings));
  self->incarnation_.number = settings.incarnation;
  self->keeps_connection_ = settings.can_begin_again;
  std::vector<std::byte> hello(settings.can_begin_again ? 8 : 4);
  set_integer(std::span(hello), 0, static_cast<std::uint32_t>(settings.pe));
  if (settings.can_begin_again) set_integer(std::span(hello), 4, settings.incarnation);
  if (Status status = self->send(FrameType::kHello, hello); status.failed()) return status;
  Result<Frame> welcome = self->receive(FrameType::kWelcome);
  if (!welcome.ok()) return welcome.status();
  if (Status status = self->take_welcome(*welcome); status.failed()) return status;
  if (!settings.job_name.empty()) {
    Result<LocalPes> local = exchange_local_pes(*self, base::host_number());
    if (!local.ok()) return local.status();
    self->local_ = *local;
  }
  return std::unique_ptr<Bootstrap>(std::move(self));
}

Status LocalBootstrap::take_welcome(const Frame& welcome) {
  const std::size_t expected_bytes = settings_.can_begin_again ? 12 : 4;
  if (welcome.payload.size() != expected_bytes) {
    return Status(StatusCode::kCorrupt, base::format("malformed frame: a welcome of {} bytes instead of {}",
                                                     welcome.payload.size(), expected_bytes));
  }
  const auto num_pes = get_integer<std::uint32_t>(welcome.payload, 0);
  if (num_pes != static_cast<std::uint32_t>(settings_.num_pes)) {
    return Status(StatusCode::kInvalidArgument,
                  base::format("WEFT_NUM_PES says {} PEs, `weft run` started {}: do not set that variable",
                               settings_.num_pes, num_pes));
  }
  if (settings_.can_begin_again)
    incarnation_.newest_protected = get_integer<std::uint64_t>(welcome.payload, 4);
  return {};
}

LocalBootstrap::~LocalBootstrap() {
  if (fd_ < 0) return;
  if (keeps_connection_ && (has_finished_ || (begins_again_ && !leaves_job()))) {
    give_up_connection();
  } else {
    close(fd_);
  }
}

void LocalBootstrap::give_up_connection() {
  const KeptConnection before =
      std::exchange(kept_connection, {std::exchange(fd_, -1), settings_.socket_path, getpid()});
  if (before.fd >= 0) close(before.fd);
}

Result<std::vector<std::vector<std::byte>>> LocalBootstrap::exchange(const std::vector<std::byte>& mine) {
  if (Status status = send(FrameType::kExchange, mine); status.failed()) return status;
  Result<Frame> answer = receive(FrameType::kExchanged);
  if (!answer.ok()) return answer.status();

  const std::vector<std::byte>& payload = answer->payload;
  const auto count = static_cast<std::size_t>(settings_.num_pes);
  std::vector<std::vector<std::byte>> all(count);
  std::size_t begin = count * 8;
  for (std::size_t i = 0; i < count && begin <= payload.size(); ++i) {
    const auto size_bytes = get_integer<std::uint64_t>(payload, i * 8);
    if (size_bytes > payload.size() - begin) {
      begin = payload.size() + 1;
      break;
    }
    const auto first = payload.begin() + static_cast<std::ptrdiff_t>(begin);
    all[i].assign(first, first + static_cast<std::ptrdiff_t>(size_bytes));
    begin += size_bytes;
  }
  if (begin != payload.size()) {
    return Status(StatusCode::kCorrupt,
                  base::format("malformed frame: the {} bytes of an exchange do not add up for {} "
                               "PEs",
                               payload.size(), count));
  }
  return all;
}

Status LocalBootstrap::barrier() {
  if (Status status = send(FrameType::kBarrier, {}); status.failed()) return status;
  return receive(FrameType::kBarrierDone).status();
}

void LocalBootstrap::finished(int exit_code) {
  std::array<std::byte, 4> payload;
  set_integer(payload, 0, static_cast<std::uint32_t>(exit_code));
  // Without a launcher there is no process to tell.
  has_finished_ = send(FrameType::kFinished, payload).ok();
  has_finished_a_job = true;
}

void LocalBootstrap::abort(int exit_code, std::string_view message) {
  if (job_ended_ || begins_again_) return;
  std::vector<std::byte> payload(4 + message.size());
  set_integer(payload, 0, static_cast<std::uint32_t>(exit_code));
  std::transform(message.begin(), message.end(), payload.begin() + 4, [](char c) { return std::byte(c); });
  if (send(FrameType::kAbort, payload).failed()) {
    print_last_words(message);
    return;
  }
  // Wait until the launcher has read it: an exit before that would look like a death.
  while (true) {
    Result<Frame> frame = read_frame(fd_);
    if (!frame.ok() || frame->type == FrameType::kEnd) return;
    // The loss of another PE was the reason.
    if (frame->type == FrameType::kBeginAgain) {
      static_cast<void>(job_begins_again(*frame));
      return;
    }
  }
}

std::string LocalBootstrap::unique_name() const {
  if (!settings_.job_name.empty()) return settings_.job_name;
  return base::format("{} {}", settings_.socket_path, settings_.launcher_pid);
}

Status LocalBootstrap::start_job(std::string_view request) {
  // On several hosts nobody says on which of them the processes are to be.
  if (settings_.is_attached || !settings_.job_name.empty()) return Bootstrap::start_job(request);
  return send(FrameType::kStartJob, std::as_bytes(std::span(request)));
}

void LocalBootstrap::tell_protected(std::uint64_t number, std::uint32_t plan) {
  if (!settings_.can_begin_again || fd_ < 0) return;
  std::array<std::byte, 12> payload;
  set_integer(payload, 0, number);
  set_integer(payload, 8, plan);
  // The watch notices a launcher that has gone.
  static_cast<void>(write_frame(fd_, FrameType::kProtected, payload));
}

Status LocalBootstrap::ask_for_resize(std::uint32_t num_pes) {
  if (!settings_.can_begin_again || fd_ < 0) return Bootstrap::ask_for_resize(num_pes);
  std::array<std::byte, 4> payload;
  set_integer(payload, 0, num_pes);
  return write_frame(fd_, FrameType::kResize, payload);
}

void LocalBootstrap::refuse_resize(std::uint32_t plan, std::string_view why) {
  if (!settings_.can_begin_again || fd_ < 0) return;
  std::vector<std::byte> payload(4 + why.size());
  set_integer(std::span(payload), 0, plan);
  std::transform(why.begin(), why.end(), payload.begin() + 4, [](char c) { return std::byte(c); });
  static_cast<void>(write_frame(fd_, FrameType::kCannotResize, payload));
}

bool LocalBootstrap::take_resize_word(const Frame& frame) {
  if (!settings_.can_begin_again) return false;
  if (frame.type == FrameType::kResizeAnswer) {
    resizing_.answers.push_back(frame.text());
    return true;
  }
  if (frame.type != FrameType::kResizePlan || frame.payload.size() < 8 || frame.payload.size() % 4 != 0)
    return false;
  resizing_.plan = get_integer<std::uint32_t>(frame.payload, 0);
  resizing_.num_pes = get_integer<std::uint32_t>(frame.payload, 4);
  resizing_.leaving.clear();
  for (std::size_t at = 8; at < frame.payload.size(); at += 4)
    resizing_.leaving.push_back(get_integer<std::uint32_t>(frame.payload, at));
  return true;
}

// The header is here as a whole or not at all: the launcher begins a write with each frame, and a Unix socket takes no part of a header.
std::optional<FrameType> LocalBootstrap::next_type() const {
  std::array<std::byte, kFrameHeaderBytes> header;
  const ssize_t got = recv(fd_, header.data(), header.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got < static_cast<ssize_t>(header.size())) return {};
  return static_cast<FrameType>(get_integer<std::uint32_t>(header, 4));
}

LauncherWord LocalBootstrap::next_word() const {
  if (!settings_.can_begin_again) return Bootstrap::next_word();
  const std::optional<FrameType> type = next_type();
  if (type == FrameType::kBeginAgain) return LauncherWord::kEndsRun;
  const bool is_resizing = type == FrameType::kResizePlan || type == FrameType::kResizeAnswer;
  return is_resizing ? LauncherWord::kResizing : LauncherWord::kEndsProcess;
}

void LocalBootstrap::outlive_losses(bool may_lose_pe_0) {
  if (!settings_.keeps_job) return;
  std::array<std::byte, 4> payload;
  set_integer(payload, 0, std::uint32_t{may_lose_pe_0 ? 1u : 0u});
  // The watch notices a launcher that has gone.
  static_cast<void>(write_frame(fd_, FrameType::kOutlives, payload));
}

std::optional<LostPe> LocalBootstrap::take_loss() {
  if (!settings_.keeps_job || next_type() != FrameType::kLost) return {};
  Result<Frame> frame = read_frame(fd_);
  if (!frame.ok() || frame->payload.size() < 4) return {};
  const auto pe = get_integer<std::uint32_t>(frame->payload, 0);
  if (pe >= static_cast<std::uint32_t>(settings_.num_pes)) return {};
  return LostPe{static_cast<int>(pe), frame->text(4)};
}

Result<Frame> LocalBootstrap::read_answer() {
  Result<Frame> frame = read_frame(fd_);
  while (frame.ok() && (frame->type == FrameType::kLost || take_resize_word(*frame))) frame = read_frame(fd_);
  return frame;
}

Status LocalBootstrap::watch_status() {
  char probe = 0;
  const ssize_t got = recv(fd_, &probe, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return {};
  if (got <= 0) return launcher_gone(got == 0 ? "the connection ended" : std::strerror(errno));
  Result<Frame> frame = read_frame(fd_);
  if (!frame.ok()) return launcher_gone(frame.status().message());
  if (frame->type == FrameType::kEnd) return job_ends(*frame);
  if (frame->type == FrameType::kBeginAgain) return job_begins_again(*frame);
  if (take_resize_word(*frame)) {
    if (resizing_.on_change) resizing_.on_change();
    return {};
  }
  return Status(StatusCode::kCorrupt,
                base::format("`weft run` sent PE {} a frame of type '{}', which the PE did not request",
                             settings_.pe, frame_type_name(frame->type)));
}

Status LocalBootstrap::send(FrameType type, std::span<const std::byte> payload) {
  Status status = write_frame(fd_, type, payload);
  if (status.code() != StatusCode::kClosed) return located(std::move(status));
  // The launcher's reason may still be unread.
  Result<Frame> last = read_answer();
  if (last.ok() && last->type == FrameType::kEnd) return job_ends(*last);
  if (last.ok() && last->type == FrameType::kBeginAgain) return job_begins_again(*last);
  return launcher_gone(status.message());
}

Result<Frame> LocalBootstrap::receive(FrameType expected) {
  Result<Frame> frame = read_answer();
  if (!frame.ok()) {
    if (frame.status().code() == StatusCode::kClosed) return launcher_gone(frame.status().message());
    return located(frame.status());
  }
  if (frame->type == FrameType::kEnd) return job_ends(*frame);
  if (frame->type == FrameType::kBeginAgain) return job_begins_again(*frame);
  if (frame->type != expected) {
    return Status(StatusCode::kCorrupt,
                  base::format("`weft run` answered PE {} with a frame of type '{}' instead of '{}'",
                               settings_.pe, frame_type_name(frame->type), frame_type_name(expected)));
  }
  return frame;
}

Status LocalBootstrap::launcher_gone(std::string_view detail) const {
  return Status(
      StatusCode::kPeerFailed,
      base::format("PE {} lost `weft run` (pid {}): {}. The job cannot continue without its launcher; start "
                   "it again",
                   settings_.pe, settings_.launcher_pid, detail));
}

Status LocalBootstrap::located(Status status) const {
  if (status.code() != StatusCode::kInternal) return status;
  return Status(StatusCode::kInternal,
                base::format("PE {} cannot use its connection to `weft run` (pid {}), descriptor {}: {}. The "
                             "program must not close or change descriptors that it has not opened",
                             settings_.pe, settings_.launcher_pid, fd_, status.message()));
}

Status LocalBootstrap::job_ends(const Frame& end) {
  job_ended_ = true;
  return Status(StatusCode::kCancelled, end.text());
}

Status LocalBootstrap::job_begins_again(const Frame& frame) {
  if (!settings_.can_begin_again || !note_next_incarnation(frame, settings_.socket_path)) {
    return Status(StatusCode::kCorrupt,
                  base::format("`weft run` told PE {} to begin its job again, which the PE cannot do or not "
                               "understand",
                               settings_.pe));
  }
  begins_again_ = true;
  return Status(StatusCode::kCancelled, frame.text(kBeginAgainBytes));
}

Status tell_stopped() {
  std::array<std::byte, 4> number;
  set_integer(number, 0, next_incarnation.number.value_or(0));
  return kept_connection.fd < 0 ? Status() : write_frame(kept_connection.fd, FrameType::kStopped, number);
}

// What the launcher has said to the incarnation that has ended is read and dropped.
Status await_all_stopped() {
  while (kept_connection.fd >= 0 && !next_incarnation.goes_without) {
    Result<Frame> frame = read_frame(kept_connection.fd);
    if (!frame.ok()) return frame.status();
    if (frame->type == FrameType::kEnd) return Status(StatusCode::kCancelled, frame->text());
    if (frame->type == FrameType::kAllStopped) {
      if (frame->payload.size() == 4 &&
          get_integer<std::uint32_t>(frame->payload, 0) == next_incarnation.number)
        return {};
      return Status(StatusCode::kCorrupt, "malformed frame: the PEs have stopped for another incarnation");
    }
    if (frame->type != FrameType::kBeginAgain) continue;
    if (!note_next_incarnation(*frame, next_incarnation.socket_path))
      return Status(StatusCode::kCorrupt, "malformed frame: the job begins again without the numbers of it");
    if (next_incarnation.goes_without) break;
    if (Status status = tell_stopped(); status.failed()) return status;
  }
  return {};
}

}  // namespace weft::machine::bootstrap

namespace weft::machine {

bool begins_again() { return bootstrap::next_incarnation.is_awaited; }
bool leaves_job() { return bootstrap::next_incarnation.goes_without; }
base::Status tell_stopped() { return bootstrap::tell_stopped(); }
base::Status await_all_stopped() { return bootstrap::await_all_stopped(); }

NextProgram next_program() {
  const bootstrap::NextIncarnation& next = bootstrap::next_incarnation;
  NextProgram program{{base::format("WEFT_PE={}", next.pe), base::format("WEFT_NUM_PES={}", next.num_pes),
                       base::format("WEFT_INCARNATION={}", next.number.value_or(0))},
                      bootstrap::kept_connection.fd};
  if (program.connection < 0) return program;
  program.variables.push_back(base::format("{}={}", bootstrap::kConnectionVariable, program.connection));
  fcntl(program.connection, F_SETFD, 0);
  return program;
}

}  // namespace weft::machine
