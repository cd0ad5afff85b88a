// One link from this process: what its socket has not taken waits here.
//
// Threads: its user makes sure that one at a time uses it.
#pragma once

#include <cstddef>
#include <deque>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/status.h"

#include "machine/links/owned_fd.h"
#include "machine/links/process_name.h"

namespace weft::machine {

class OutgoingLink {
 public:
  // kUnreachable if no process with that name listens, kInvalidArgument if it is another user's.
  static base::Result<OutgoingLink> connect(const ProcessName& to);

  int fd() const { return fd_.get(); }
  bool is_broken() const { return is_broken_; }
  // The receiver has gone. The link closes, and drops what waits.
  void set_broken() {
    is_broken_ = true;
    waiting_.clear();
    unwritten_bytes_ = 0;
    fd_ = {};
  }
  bool has_waiting() const { return !waiting_.empty(); }
  // Of what waits.
  std::size_t unwritten_bytes() const { return unwritten_bytes_; }
  // Writes the parts, or keeps what the socket does not take.
  void send(std::initializer_list<std::span<const std::byte>> parts);
  // Writes more of what waits.
  void flush();

 private:
  explicit OutgoingLink(OwnedFd fd) : fd_(std::move(fd)) {}

  OwnedFd fd_;
  bool is_broken_ = false;
  std::deque<std::vector<std::byte>> waiting_;
  std::size_t written_ = 0;  // bytes of the first one
  std::size_t unwritten_bytes_ = 0;
};

}  // namespace weft::machine
