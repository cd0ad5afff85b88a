// Messages on their way to another PE. Two wire paths carry what is attached:
//
//   tagged   an active message carries the message and, in its header, announces the buffers; each follows as
//            one tagged message with the device tag, in place.
//   active   one active message carries the message in its header and the only buffer as its payload.
//
// A large argument that is to be copied (Attachment::copy_later) is sent from the caller's memory as long as the
// receiver takes the bytes at once, while the call lasts. Otherwise the copy is made before the call returns, and sent.
// Once the receiver copies too (MovableSource::is_fixed), the call lasts until the bytes have left.
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
// A DirectEnvelope and the model's header in the header.
inline constexpr machine::AmId kDirectMessageAm = 2;
// A message without the start of its envelope, which is the usual one: a call with one number then takes one cache line of a ring.
inline constexpr machine::AmId kShortMessageAm = 3;

// One active message. Takes over one share of the message; a MessagePtr would cost each message more.
void send_active_message(Scheduler& scheduler, int pe, Message* message);

struct Attached;
class FlowControl;

class Outgoing {
 public:
  Outgoing(Scheduler& scheduler, MessagingPath path, FlowControl* flow = nullptr)
      : scheduler_(scheduler), path_(path), flow_(flow) {}

  // Sends a message that has attachments. REQUIRES: another PE.
  void send(int pe, MessagePtr message);

  // For tests.
  void set_next_counter(std::uint32_t counter) { next_counter_ = counter; }

 private:
  struct Sending;
  struct Revocation;
  // How fast a PE reads uncopied sources.
  struct Consumption {
    std::uint64_t sent_bytes = 0;
    std::uint64_t read_bytes = 0;
    int skips_left = 0;  // so many calls do not wait
  };

  bool goes_active(Message& message) const;
  void send_tagged(int pe, MessagePtr message);
  void send_active(int pe, MessagePtr message);
  struct Announced;
  Announced announce(int pe, Message& message);
  void hold(Sending& sending, const Attachment& buffer);
  base::Status start_uncopied(const Announcement& announced, Sending& sending);
  bool sends_uncopied(int pe, const Attached& attached);
  Consumption& consumption_of(int pe);
  void offer(Consumption& consumption, const Attached& attached);
  void await_consumption(Consumption& consumption, const Attached& attached, std::size_t size_bytes);
  // Ends the sends from the caller's memory that its receiver reads too, after an exception of progress().
  void finish_reads(const Attached& attached) noexcept;
  void sent(Sending& sending, base::Status status);
  void revoke(int pe, machine::Tag tag);

  Scheduler& scheduler_;
  MessagingPath path_;
  FlowControl* flow_;  // null in tests of this class alone
  std::uint32_t next_counter_ = 0;
  // How each PE reads; the index is the PE.
  std::vector<Consumption> consumptions_;
};

}  // namespace weft::runtime
