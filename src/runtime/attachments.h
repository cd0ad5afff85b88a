// How attachments travel between PEs: each as one tagged message of the machine, in place. The active message
// that carries the message announces them in its header, in order; the receiver lands all of them, then
// handles the message.
//
// A message that is sent on (to a chare that is elsewhere by now) takes what has landed with it. Threads: one
// PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/status.h"
#include "weft/runtime/message.h"

namespace weft::runtime {

class Attachments {
 public:
  explicit Attachments(Runtime& runtime) : runtime_(runtime) {}

  // One in the header of the active message.
  struct Announcement {
    std::uint32_t source_pe = 0;
    std::uint32_t counter = 0;
    std::uint64_t size_bytes = 0;
  };

  // For a message to this PE: what the sender may change after the call is copied.
  void keep_own_copies(Message& message);

  std::vector<Announcement> announce(const Message& message);
  // Starts sending them; the message lives until all are out.
  void send(int pe, Message& message, const std::vector<Announcement>& announced);

  // Makes room for what the header announces.
  base::Status expect(Message& message, std::span<const std::byte> header);
  static bool has_awaited(const Message& message);
  // Receives what is awaited and then passes the message to Runtime::receive.
  void land(MessagePtr message);

  // For tests of wrapping.
  void set_next_counter(std::uint32_t counter) { next_counter_ = counter; }

 private:
  struct Sending;
  struct Landing;

  Attachment make_room(std::size_t size_bytes);

  Runtime& runtime_;
  std::uint32_t next_counter_ = 0;
};

}  // namespace weft::runtime
