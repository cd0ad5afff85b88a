// The connection to a launcher that speaks PMI, version 1.1: MPICH's Hydra, and Slurm's plugin pmi2.
//
// Each request is a line of text, "cmd=put key=a value=b", and each answer as well. No library is needed. Used by one
// thread; each call blocks until the launcher has answered.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "weft/base/status.h"

namespace weft::machine::bootstrap {

class PmiConnection {
 public:
  // An answer of the launcher: the words before and behind each "=".
  using Answer = std::map<std::string, std::string, std::less<>>;

  // Owns `fd`, a stream socket.
  explicit PmiConnection(int fd);
  ~PmiConnection();
  PmiConnection(const PmiConnection&) = delete;
  PmiConnection& operator=(const PmiConnection&) = delete;

  // Sends "cmd=COMMAND ARGUMENTS". The answer must be the command `expected`, and its "rc", if it has one, 0. kClosed if
  // the launcher has gone, kCorrupt for another answer.
  base::Result<Answer> ask(std::string_view command, std::string_view arguments, std::string_view expected);
  // Sends a request that has no answer.
  base::Status tell(std::string_view command, std::string_view arguments);

  int fd() const { return fd_; }
  // Whether the launcher has closed the connection. Does not block.
  bool has_ended() const;

  // A longer answer is refused.
  static constexpr std::size_t kMaxLineBytes = 65536;

 private:
  base::Result<std::string> read_line();

  int fd_;
  std::string unread_;
};

}  // namespace weft::machine::bootstrap
