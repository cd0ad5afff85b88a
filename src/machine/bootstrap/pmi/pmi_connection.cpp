#include "machine/bootstrap/pmi/pmi_connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"

namespace weft::machine::bootstrap {
namespace {

using base::Result;
using base::Status;
using base::StatusCode;

// "a=1 b=2". A word without "=" is left out, for example those of a message for people.
PmiConnection::Answer parse_answer(std::string_view line) {
  PmiConnection::Answer answer;
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos) answer.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  return answer;
}

Status connection_ended(std::string_view why) {
  return {StatusCode::kClosed, base::format("the connection to the launcher ended: {}", why)};
}

}  // namespace

PmiConnection::PmiConnection(int fd) : fd_(fd) {
  // Programs that this one starts are not processes of the job.
  fcntl(fd_, F_SETFD, FD_CLOEXEC);
}

PmiConnection::~PmiConnection() { close(fd_); }

Status PmiConnection::tell(std::string_view command, std::string_view arguments) {
  const std::string line = base::format("cmd={}{}{}\n", command, arguments.empty() ? "" : " ", arguments);
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t now = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) return connection_ended(std::strerror(errno));
    sent += static_cast<std::size_t>(now);
  }
  return {};
}

Result<PmiConnection::Answer> PmiConnection::ask(std::string_view command, std::string_view arguments,
                                                 std::string_view expected) {
  if (Status status = tell(command, arguments); status.failed()) return status;
  Result<std::string> line = read_line();
  if (!line.ok()) return line.status();
  Answer answer = parse_answer(*line);
  const auto code = answer.find("rc");
  if (answer["cmd"] != expected || (code != answer.end() && code->second != "0")) {
    return Status(StatusCode::kCorrupt,
                  base::format("the launcher answered '{}' to '{}'", line->substr(0, 200), command));
  }
  return answer;
}

Result<std::string> PmiConnection::read_line() {
  std::array<char, 4096> piece;
  while (true) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (unread_.size() > kMaxLineBytes) {
      return Status(StatusCode::kCorrupt,
                    base::format("the launcher sent a line of more than {} bytes", kMaxLineBytes));
    }
    const ssize_t got = ::read(fd_, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return connection_ended(got == 0 ? "it was closed" : std::strerror(errno));
    unread_.append(piece.data(), static_cast<std::size_t>(got));
  }
}

bool PmiConnection::has_ended() const {
  pollfd watched{fd_, POLLIN, 0};
  if (poll(&watched, 1, 0) <= 0) return false;
  char byte = 0;
  return recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

}  // namespace weft::machine::bootstrap
