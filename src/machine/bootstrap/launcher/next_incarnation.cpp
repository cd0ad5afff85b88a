#include "machine/bootstrap/launcher/next_incarnation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "base/format.h"
#include "machine/bootstrap/bootstrap.h"
#include "machine/bootstrap/launcher/launcher_variable.h"

namespace weft::machine::bootstrap {

using base::Result;
using base::Status;
using base::StatusCode;

NextIncarnation next_incarnation;
bool has_finished_a_job = false;

namespace {

// It belongs to the process, as its place in the launch does.
struct KeptConnection {
  int fd = -1;
  std::string socket_path;
  pid_t process = 0;
};
KeptConnection kept_connection;

const char kConnectionVariable[] = "WEFT_LAUNCHER_CONNECTION";

// The one that the program has kept of which this process was before it began again; -1 if there is none.
int take_inherited_connection() {
  const char* const text = std::getenv(kConnectionVariable);
  if (text == nullptr) return -1;
  Result<int> fd = launcher_variable(kConnectionVariable, 0, 1 << 30);
  unsetenv(kConnectionVariable);  // programs that this one starts have no connection
  struct stat about{};
  if (!fd.ok() || fstat(*fd, &about) != 0 || !S_ISSOCK(about.st_mode)) return -1;
  fcntl(*fd, F_SETFD, FD_CLOEXEC);
  return *fd;
}

}  // namespace

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

void keep_connection(int fd, const std::string& socket_path) {
  const KeptConnection before = std::exchange(kept_connection, {fd, socket_path, getpid()});
  if (before.fd >= 0) close(before.fd);
}

int take_kept_connection(const std::string& socket_path) {
  if (const int inherited = take_inherited_connection(); inherited >= 0) return inherited;
  const KeptConnection kept = std::exchange(kept_connection, {});
  if (kept.fd >= 0 && kept.process == getpid() && kept.socket_path == socket_path) return kept.fd;
  if (kept.fd >= 0) close(kept.fd);
  return -1;
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
