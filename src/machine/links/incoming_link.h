// One link to this process: it cuts the stream of bytes into messages.
//
// Threads: that of the links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "machine/links/owned_fd.h"
#include "machine/links/process_name.h"

namespace weft::machine {

// The first bytes of each link.
struct LinkHello {
  static constexpr std::uint64_t kMagic = 0x4b4e494c54464557;  // "WEFTLINK"
  std::uint64_t magic = kMagic;
  std::uint32_t revision = 0;
  std::uint32_t unused = 0;
  ProcessName from;
  ProcessName to;
};
static_assert(sizeof(LinkHello) == 64);

// In front of each message.
struct LinkHeader {
  // The sender leaves, and closes its links.
  static constexpr std::uint32_t kGoodbye = 0;
  // A larger message can only be read out of step.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
  std::uint32_t type = 0;
  std::uint32_t unused = 0;
  std::uint64_t size_bytes = 0;
};
static_assert(sizeof(LinkHeader) == 16);

class IncomingLink {
 public:
  explicit IncomingLink(int fd) : fd_(fd) {}

  int fd() const { return fd_.get(); }
  enum class Read : std::uint8_t { kHello, kMessage, kNothing, kEnd };
  // Reads on. kHello and kMessage: hello(), or type() and take_bytes(), have what has come. kEnd: the stream has ended, or it is
  // no stream of messages.
  Read read();
  const LinkHello& hello() const { return hello_; }
  bool has_greeted() const { return has_greeted_; }
  std::uint32_t type() const { return header_.type; }
  std::vector<std::byte> take_bytes() { return std::move(bytes_); }

 private:
  // Reads into the range from have_ on. kMessage if it is full.
  Read fill(std::byte* into, std::size_t size_bytes);

  OwnedFd fd_;
  bool has_greeted_ = false;
  bool has_header_ = false;
  std::size_t have_ = 0;  // bytes of what is read now
  LinkHello hello_;
  LinkHeader header_;
  std::vector<std::byte> bytes_;
};

}  // namespace weft::machine
