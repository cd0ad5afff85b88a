// The messages by which the peer memory of one PE tells that of another what shared memory cannot: one active
// message each, without payload, that nothing waits for.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "machine/peer_memory/mapping/mailbox.h"
#include "machine/transport_machine.h"

namespace weft::machine {

// A message between the peer memories of two PEs. The same build runs on all PEs, so it travels as it lies in memory.
struct ControlMessage {
  enum class Type : std::uint8_t {
    kMailbox,    // the receiver of `stream` posts in mailbox `number` of `file`
    kNoMailbox,  // the sender cannot open the file of mailbox `number`
    kWaiting,    // the send of message `number` of `stream` waits until its receive is posted
    kPosted,     // the receive of message `number` of `stream`, whose send waits, is posted
    kByTag,      // the same is not posted: the message must go with its tag
    kBegun,      // of a message whose announcement named host memory: the receiver has begun to copy it
    kPulled,     // of a message whose announcement named device memory: the receiver has copied it
    kForget,     // the allocation with export number `number` is gone
    kForgotten,  // the same is not mapped any more
    kWake,       // its arrival is its purpose
  };
  Type type = Type::kWake;
  std::int32_t source_pe = 0;
  std::uint64_t number = 0;
  Tag stream = 0;
  MailboxFileName file;
};

class ControlMessages {
 public:
  using Handler = std::function<void(const ControlMessage& message)>;

  // `machine` must outlive it.
  ControlMessages(TransportMachine& machine, Handler handler)
      : machine_(machine), handler_(std::move(handler)) {}
  ControlMessages(const ControlMessages&) = delete;
  ControlMessages& operator=(const ControlMessages&) = delete;

  // Once the machine works. Messages that arrive have a source PE of this job.
  base::Status open();
  // Fills in the source PE. A message that cannot be sent is dropped: its PE has failed, and the job ends.
  void send(int pe, ControlMessage message);
  // Nothing is sent any more.
  void close() { is_closed_ = true; }

 private:
  static void on_message(void* self, AmArrival& arrival);

  TransportMachine& machine_;
  Handler handler_;
  bool is_closed_ = false;
};

}  // namespace weft::machine
