// TransportMachine: the operations of machine.h that a concrete machine provides, on buffers that its transport
// addresses, without regard to streams. StagedMachine adds the rest.
//
// Each transport_ operation has the contract of its namesake in Machine. Its caller has checked that the PE
// is in range, the machine is open, the sizes are possible, and addresses() accepts the buffer's kind.
#pragma once

#include <cstdint>

#include "machine/machine.h"

namespace weft::machine {

// Ids above kMaxAmId are the machine layer's own.
inline constexpr AmId kStagingAmId = kMaxAmId + 1;
inline constexpr AmId kPeerMemoryAmId = kMaxAmId + 2;
inline constexpr AmId kSmallPutAnswerAmId = kMaxAmId + 3;
inline constexpr AmId kSmallPutAmId = kMaxAmId + 4;
inline constexpr AmId kNumAmIds = kMaxAmId + 5;

// Set when progress() has something to do beyond the transport's own progress, so that a call with nothing to
// do tests one flag.
struct Attention {
  bool wanted = false;
};

// The outcome of sending an active message through memory that the PEs of a host share. kWaits: the message is sent later.
enum class QueueOutcome : std::uint8_t { kOtherWay, kSent, kWaits };

class TransportMachine : public Machine {
 public:
  // Whether transport_ operations take buffers of that kind.
  virtual bool addresses(memory::Kind kind) const = 0;

  virtual base::Status transport_set_am_handler(AmId id, AmHandler handler, void* context) = 0;
  virtual base::Status transport_am_send(int pe, AmId id, std::span<const std::byte> header,
                                         const memory::ConstBuffer& payload,
                                         base::Completion* completion) = 0;
  // The payload fits. Data that is here already (data() != null) goes to host memory only.
  virtual base::Status transport_am_receive(AmPayload payload, const memory::Buffer& into,
                                            base::Completion* completion) = 0;
  virtual base::Status transport_tag_send(int pe, Tag tag, const memory::ConstBuffer& buffer,
                                          base::Completion* completion) = 0;
  // Whether the transport to that PE copies what it sends, so that its source may move.
  virtual bool transport_can_move_source(int pe) const = 0;
  virtual base::Status transport_tag_send_movable(int pe, Tag tag, MovableSource& source,
                                                  base::Completion* completion) = 0;
  virtual base::Status transport_tag_receive(Tag tag, Tag mask, const memory::Buffer& buffer,
                                             base::Completion* completion) = 0;
  virtual void transport_cancel(base::Completion* completion) = 0;
  virtual base::Result<RemoteMemory> transport_register_memory(const memory::Buffer& memory) = 0;
  virtual base::Status transport_deregister_memory(const RemoteMemory& memory) = 0;
  // As lose_peer(), for the operations of the transport.
  virtual base::Status transport_lose_peer(int pe) = 0;
  virtual void transport_forget_remote(int /*pe*/, const RemoteMemory& /*remote*/) {}
  virtual base::Status transport_put(int pe, const memory::ConstBuffer& local, const RemoteMemory& remote,
                                     std::size_t offset_bytes, base::Completion* completion) = 0;
  // A put and, if it is over at once, the flush to its PE, for what both look up. `put` is the completion of the put and `flush`
  // that of the flush. Sets `is_put_pending` if the put is pending: then its caller flushes when it has ended.
  virtual base::Status transport_put_and_flush(int pe, const memory::ConstBuffer& local,
                                               const RemoteMemory& remote, std::size_t offset_bytes,
                                               base::Completion* put, base::Completion* flush,
                                               bool& is_put_pending) {
    base::Status status = transport_put(pe, local, remote, offset_bytes, put);
    is_put_pending = status.is_pending();
    return status.ok() ? transport_flush_pe(pe, flush) : status;
  }
  virtual base::Status transport_get(int pe, const memory::Buffer& local, const RemoteMemory& remote,
                                     std::size_t offset_bytes, base::Completion* completion) = 0;
  virtual base::Status transport_flush(base::Completion* completion) = 0;
  virtual base::Status transport_flush_pe(int /*pe*/, base::Completion* completion) {
    return transport_flush(completion);
  }

  Attention& attention() { return attention_; }

 protected:
  using Machine::Machine;

 private:
  Attention attention_;
};

}  // namespace weft::machine
