#include "machine/bootstrap/launcher/local.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/host_number.h"
#include "machine/bootstrap/last_words.h"
#include "machine/bootstrap/launcher/next_incarnation.h"

namespace weft::machine::bootstrap {
namespace {

using base::Result;
using base::Status;
using base::StatusCode;

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

}  // namespace

Result<std::unique_ptr<Bootstrap>> LocalBootstrap::join(const LocalSettings& settings) {
  next_incarnation.is_awaited = false;
  if (Status status = die_with_launcher(settings); status.failed()) return status;
  Result<int> fd = take_kept_connection(settings.socket_path);
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

void LocalBootstrap::give_up_connection() { keep_connection(std::exchange(fd_, -1), settings_.socket_path); }

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

}  // namespace weft::machine::bootstrap
