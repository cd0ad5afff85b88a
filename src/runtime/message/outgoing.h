// Messages on their way to another PE. Two wire paths carry what is attached:
//
//   tagged   an active message carries the message and, in its header, announces the buffers; each follows as
//            one tagged message with the device tag, in place.
//   active   one active message carries the message in its header and the only buffer as its payload.
//
// A buffer that cannot be sent is revoked: an empty tagged message comes in its place, the receiver drops the
// message, and the sender's completion says why (without one, the job ends). Private to the message layer.
// Threads: one PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/status.h"
#include "weft/runtime/message.h"
#include "weft/runtime/scheduler.h"

#include "machine/machine.h"
#include "runtime/message/announcement.h"

namespace weft::runtime {

inline constexpr machine::AmId kMessageAm = 0;
// A message in the header and its only attachment as the payload.
inline constexpr machine::AmId kBufferMessageAm = 1;

// One active message. Takes over one share of the message; a MessagePtr would cost each message more.
void send_active_message(Scheduler& scheduler, int pe, std::span<const std::byte> header, Message* message);

class Outgoing {
 public:
  Outgoing(Scheduler& scheduler, MessagingPath path) : scheduler_(scheduler), path_(path) {}

  // Sends a message that has attachments. REQUIRES: another PE.
  void send(int pe, MessagePtr message);

  // For tests.
  void set_next_counter(std::uint32_t counter) { next_counter_ = counter; }

 private:
  struct Sending;
  struct Revocation;

  bool goes_active(Message& message) const;
  void send_tagged(int pe, MessagePtr message);
  void send_active(int pe, MessagePtr message);
  std::vector<Announcement> announce(Message& message);
  void sent(Sending& sending, base::Status status);
  void revoke(int pe, machine::Tag tag);

  Scheduler& scheduler_;
  MessagingPath path_;
  std::uint32_t next_counter_ = 0;
};

}  // namespace weft::runtime
