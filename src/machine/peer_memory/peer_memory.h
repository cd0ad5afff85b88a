// Messages between memories that one device reaches, past the machine's transport: between two PEs of a host
// the sender's device copies into the receiver's buffer, which it has mapped; within a PE the device copies
// from buffer to buffer. docs/decisions/peer-memory.md has the protocol and its reasons.
//
// Every model can use it for ordered streams of messages (peer_stream.h). A copy is an offer beside the
// tagged message, never a condition: a receive is posted with its tag, and in shared memory as well. The
// sender looks once per message; it copies what it finds posted, and sends the rest with its tag. A missing
// mailbox, mapping or room therefore costs speed only. obstacles() says what was missing.
//
// Threads: the PE's. Invariants: an operation completes exactly once. A buffer is given back only when no
// copy can use it. Nothing outside of the buffer that a peer has posted is written.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "machine/peer_memory/control_messages.h"
#include "machine/peer_memory/own_pe_copies.h"
#include "machine/peer_memory/peer_copies.h"
#include "machine/peer_memory/peer_operation.h"
#include "machine/peer_memory/peer_stream.h"
#include "machine/peer_memory/posted_receives.h"
#include "machine/transfer_counts.h"
#include "memory/memory.h"

namespace weft::machine {

class PeerMemory {
 public:
  // Which messages may be copied.
  enum class Reach : std::uint8_t { kNone, kOwnPe, kHost };

  // All must outlive it.
  PeerMemory(TransportMachine& machine, memory::Memory& memory, TransferCounts& counts, Reach reach);
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // Once the machine works.
  base::Status open() { return control_.open(); }
  // No message is copied from now on, for comparison with the other paths.
  void turn_off() { reach_ = Reach::kNone; }

  // Starts a send of device memory: the contract of Machine::tag_send. A send that fails does not end its
  // receive: the model must, for example by an empty message with the tag. Failures with kPeerFailed need no
  // such message, because the receiver has failed.
  base::Status send(OutgoingStream& stream, StreamMessage message, const memory::ConstBuffer& source,
                    base::Completion* completion);
  // Starts a receive: the contract of Machine::tag_receive with a full mask. Host memory needs this call only
  // while stream.held_sends is not 0.
  base::Status receive(IncomingStream& stream, StreamMessage message, const memory::Buffer& buffer,
                       base::Completion* completion);

  // What kept messages from being copied, for people: the first reason of each sort.
  std::vector<std::string> obstacles() const;

  // --- For the machine

  // Whether progress() has something to do.
  bool needs_progress() const { return needs_polling() || !receives_.is_empty(); }
  // The same without receives, which before_sleep() has senders announce.
  bool needs_polling() const { return context_.memory_waits != 0 || !context_.finished.empty(); }
  bool progress();
  // The machine is about to sleep until a message comes. False if there is something to do already.
  bool before_sleep() { return !needs_polling() && receives_.before_sleep(); }
  // Around the machine's own close.
  void begin_close();
  void end_close();

 private:
  void on_message(const ControlMessage& message);

  TransportMachine& machine_;
  memory::Memory& memory_;
  Reach reach_;
  ControlMessages control_;
  PeerContext context_;
  PostedReceives receives_;
  PeerCopies copies_;
  OwnPeCopies own_pe_;
};

}  // namespace weft::machine
