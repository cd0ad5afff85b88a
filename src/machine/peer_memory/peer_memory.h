// Messages between memories that one device reaches, past the machine's transport: between two PEs of a host
// the sender's device copies into the receiver's buffer, which it has mapped; within a PE the device copies
// from buffer to buffer. docs/decisions/peer-memory.md has the protocol and its reasons.
//
// Large host memory between two processes of a host is copied by both (shared_copy.h).
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
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "machine/peer_memory/mapping/control_messages.h"
#include "machine/peer_memory/mapping/peer_operation.h"
#include "machine/peer_memory/mapping/peer_stream.h"
#include "machine/peer_memory/mapping/process_copy.h"
#include "machine/peer_memory/mapping/source_name.h"
#include "machine/peer_memory/own_pe_copies.h"
#include "machine/peer_memory/peer_copies.h"
#include "machine/peer_memory/posted_receives.h"
#include "machine/peer_memory/pulls.h"
#include "machine/transfer_counts.h"
#include "memory/memory.h"

namespace weft::machine {

class PeerMemory {
 public:
  // Which messages of device memory may be copied.
  enum class Reach : std::uint8_t { kNone, kOwnPe, kHost };

  // All must outlive it. `has_peers_on_host`: whether messages of host memory may be shared with other PEs.
  PeerMemory(TransportMachine& machine, memory::Memory& memory, TransferCounts& counts, Reach reach,
             bool has_peers_on_host);
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // Once the machine works.
  base::Status open();
  // No message is copied from now on, for comparison with the other paths.
  void turn_off() {
    is_off_ = true;
    reach_ = Reach::kNone;
    shares_host_memory_ = false;
  }

  // Whether no process is to copy from or to the memory of another one.
  bool is_off() const { return is_off_; }

  // Starts a send of device memory, or of host memory from SharedCopy::kLeastBytes on: the contract of
  // Machine::tag_send. A send that fails does not end its
  // receive: the model must, for example by an empty message with the tag. Failures with kPeerFailed need no
  // such message, because the receiver has failed.
  base::Status send(OutgoingStream& stream, StreamMessage message, const memory::ConstBuffer& from,
                    base::Completion* completion);
  // Starts a receive: the contract of Machine::tag_receive with a full mask. Smaller host memory needs this call only
  // while stream.held_sends is not 0.
  base::Status receive(IncomingStream& stream, StreamMessage message, const memory::Buffer& into,
                       base::Completion* completion);

  // Starts a receive of host memory that no device and no other process copies into: its message, sent already, comes with
  // its tag. A smaller message than the buffer is no error.
  base::Status receive_by_tag(IncomingStream& stream, StreamMessage message, const memory::Buffer& into,
                              base::Completion* completion);

  // Starts a receive of device memory that its sender is told of in a message of the model, which names its number: an
  // offer. Its bytes come only by send_offered() with that number, of as many bytes. Nothing is returned and nothing was
  // done if it cannot be posted now. Machine::cancel() takes the offer back inside the call, unless its sender has accepted it: then it
  // does nothing, and the receive ends by the sender's copy.
  std::optional<base::Status> receive_offered(IncomingStream& stream, std::uint32_t number,
                                              const memory::Buffer& into, base::Completion* completion);
  // Accepts an offer: starts to copy into that receive. Nothing is returned and nothing was done if that is not possible, for
  // example because the offer has been taken back. If the copy fails, the receive does not end, and the job should.
  std::optional<base::Status> send_offered(OutgoingStream& stream, std::uint32_t number,
                                           const memory::ConstBuffer& from, base::Completion* completion);

  // Both streams of a channel end that is freed. REQUIRES: nothing of them is in flight, and the peer's end sends no more.
  void forget(IncomingStream& in, OutgoingStream& out) {
    receives_.forget(in);
    forget(out);
  }
  // REQUIRES: no send of it is in flight.
  void forget(OutgoingStream& out) { copies_.forget(out); }
  // The stream continues from another PE. Receives that are posted for the former sender stay, with their tags. REQUIRES:
  // the former sender has sent all that it will, and its sends are over.
  void change_peer(IncomingStream& in, int pe) {
    receives_.withdraw(in);
    in.peer = pe;
  }

  // Messages that a model announces in messages of its own before their receives are started, such as the payloads of
  // entry methods. All that one PE announces to another are one stream, which the model names; their receives may be
  // started in any order.
  //
  // How the send of such a message goes, which its announcement must say.
  struct AnnouncedSend {
    bool waits = false;                // for its receive
    std::optional<SourceName> source;  // then the receiver may copy the bytes itself
    std::shared_ptr<void> named;       // not null with `source`: what its name needs; for send_announced()
  };
  // `is_movable`: for send_announced_movable().
  AnnouncedSend plan_announced(int pe, Tag stream, const memory::ConstBuffer& source, bool is_movable);
  // Host memory below this size never waits.
  static constexpr std::size_t kLeastWaitingBytes = SharedCopy::kLeastBytes;
  // Starts a send that waits: the contract of Machine::tag_send.
  base::Status send_announced(int pe, Tag stream, StreamMessage message, const memory::ConstBuffer& from,
                              const std::shared_ptr<void>& named, base::Completion* completion);
  // As send_announced(), for bytes that their owner may move until `source.is_fixed`: the contract of Machine::tag_send_movable.
  // They are fixed when the receiver has answered, and then the copy ends without further waits for the receiver,
  // except for the chunk that it copies at that time. REQUIRES: Machine::can_move_source(pe).
  base::Status send_announced_movable(int pe, Tag stream, StreamMessage message, MovableSource& source,
                                      base::Completion* completion);
  // Starts the receive of a message that a peer has announced. The announcement said whether the send waits, and it may
  // have named the sender's memory; else `source` is null.
  base::Status receive_announced(int pe, Tag stream, StreamMessage message, bool send_waits,
                                 const SourceName* source, const memory::Buffer& into,
                                 base::Completion* completion);

  // For tests, before the first receive: the size of the bounce buffers of this PE.
  void set_bounce_bytes(std::size_t size_bytes) { receives_.arrivals().set_buffer_bytes(size_bytes); }

  // The reasons why devices did not copy messages, as text for people: the first reason of each sort.
  std::vector<std::string> obstacles() const;

  // --- For the machine

  // Ends the sleep of that PE, by a message of the transport.
  void wake(int pe) { control_.send(pe, {.type = ControlMessage::Type::kWake, .file = {}}); }

  // Whether progress() has something to do.
  bool needs_progress() const { return needs_polling() || !receives_.is_empty() || copies_.has_waiting(); }
  // Without receives and waiting sends: a message wakes this PE for them.
  bool needs_polling() const {
    return context_.memory_waits != 0 || !context_.finished.empty() || copies_.bounces().is_waiting() ||
           !copies_.shared().is_empty();
  }
  bool progress();
  // The machine is about to sleep until a message comes. False if there is something to do already.
  bool before_sleep() { return !needs_polling() && receives_.before_sleep(); }
  // The table that decides which device memory the transport must not map.
  Exports& exports() { return exports_; }
  // Around the machine's own close.
  void begin_close();
  void end_close();

 private:
  void on_message(const ControlMessage& message);
  // Whether a message to or from another PE, of `size_bytes` at `place`, may be copied.
  bool reaches_peers(memory::Place place, std::size_t size_bytes) const {
    return place.is_host() ? shares_host_memory_ && size_bytes >= SharedCopy::kLeastBytes
                           : reach_ == Reach::kHost;
  }
  // Whether an announced message of at least `least_bytes` of host memory, to or from PE `pe`, may be copied.
  bool copies_announced(int pe, memory::Place place, std::size_t size_bytes, std::size_t least_bytes) const {
    return pe != machine_.pe() && size_bytes >= (place.is_host() ? least_bytes : 1) &&
           reaches_peers(place, size_bytes);
  }
  std::optional<base::Status> receive_named(IncomingStream& stream, StreamMessage message,
                                            const SourceName& source, const memory::Buffer& buffer,
                                            base::Completion* completion);

  TransportMachine& machine_;
  memory::Memory& memory_;
  Reach reach_;
  bool has_peers_on_host_;
  bool shares_host_memory_ = false;
  bool is_off_ = false;
  base::Status process_copies_;  // why host memory is not shared; ok if it is
  ControlMessages control_;
  PeerContext context_;
  Exports exports_;
  Imports imports_;
  Pulls pulls_;
  PostedReceives receives_;
  PeerCopies copies_;
  OwnPeCopies own_pe_;
  // The streams of announced messages, by PE.
  std::map<int, IncomingStream> announced_in_;
  std::map<int, OutgoingStream> announced_out_;
};

}  // namespace weft::machine
