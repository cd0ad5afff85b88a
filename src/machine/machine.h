// What moves bytes between PEs: the one interface that everything above the machine layer uses.
//
// A Machine belongs to one PE and is used by that PE's thread only; wake() alone may be called from any
// thread. No call blocks except wait() and close(). Operations follow the contract of
// weft/base/completion.h: `pending` means that the completion is called exactly once later, from
// progress(), cancel() or close(), and any other status means that it never is.
//
// A receive that returns ok has filled its buffer exactly; one that got less completes from progress(), with
// the size.
//
// Buffers may be of any memory kind. A buffer handed to a send belongs to the machine until completion, one
// handed to a receive until completion too. Work queued on a buffer's stream comes first, without blocking
// the CPU; a completed receive is visible to every stream.
//
// A handler or completion function may start operations but must not call progress(), wait() or close().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "machine/tag.h"

namespace weft::machine {

using AmId = std::uint16_t;
inline constexpr AmId kMaxAmId = 63;
// Headers up to this size travel with any payload in host memory; see Machine::max_am_header_bytes for others.
inline constexpr std::size_t kMaxAmHeaderBytes = 4096;

class Machine;
class PeerMemory;

// An active message's payload that the handler took over. Move-only. Either receive it once with
// Machine::am_receive, or destroy it, which drops the data; both release what the machine holds for it. After
// the machine's close() it is empty; it must be destroyed before the machine is.
class AmPayload {
 public:
  AmPayload() = default;
  AmPayload(Machine* machine, void* descriptor, const void* data, std::size_t size_bytes)
      : machine_(machine), descriptor_(descriptor), data_(data), size_bytes_(size_bytes) {}
  AmPayload(AmPayload&& other) noexcept { swap(other); }
  AmPayload& operator=(AmPayload&& other) noexcept {
    AmPayload moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~AmPayload();

  // The bytes when they are already here (eager); null for a rendezvous that am_receive must fetch.
  const void* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }
  void* descriptor() const { return descriptor_; }
  // For machines: gives up the descriptor without releasing it.
  void* detach() {
    machine_ = nullptr;
    return std::exchange(descriptor_, nullptr);
  }

 private:
  void swap(AmPayload& other) noexcept {
    std::swap(machine_, other.machine_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
  }

  Machine* machine_ = nullptr;
  void* descriptor_ = nullptr;
  const void* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

// What a handler sees of an arriving active message. Valid during the handler's call only.
class AmArrival {
 public:
  std::span<const std::byte> header;
  // The payload's bytes if they are already here, valid during the call; null for a rendezvous.
  const std::byte* data = nullptr;
  std::size_t payload_size_bytes = 0;

  // Keeps the payload beyond the call. At most once; a payload neither taken nor read is dropped.
  virtual AmPayload take() = 0;

 protected:
  ~AmArrival() = default;
};

using AmHandler = void (*)(void* context, AmArrival& arrival);

// Memory that peers may address with put and get.
struct RemoteMemory {
  std::uint64_t address = 0;
  std::size_t size_bytes = 0;
  memory::Place place;
  // What a peer needs to address it; opaque, travels in messages.
  std::vector<std::byte> key;
};

enum class AtomicOperation : std::uint8_t { kAdd, kSwap, kCompareSwap, kAnd, kOr, kXor };

enum class TransferType : std::uint8_t { kTagSend, kAmSend, kPut, kGet, kReceive, kPeerCopy };
inline constexpr int kNumTransferTypes = 6;

// How a buffer travels:
//   through UCX   the machine's transport takes it as it is
//   staged        through host memory, because the transport does not address its kind, or by request
//   own PE        to the PE that it comes from
//   peer-mapped   the sender's device copies it into memory of the receiver that it has mapped
enum class TransferPath : std::uint8_t { kThroughUcx, kStaged, kOwnPe, kPeerMapped };
inline constexpr int kNumTransferPaths = 4;

std::string_view transfer_type_name(TransferType type);
std::string_view transfer_path_name(TransferPath path);

// What this PE moved in one way. A transfer counts where it was started, with the kind of the device side if
// it has one. Receives count only where they were staged, since every message is counted by its sender.
struct TransportUse {
  TransferType type = TransferType::kTagSend;
  TransferPath path = TransferPath::kThroughUcx;
  memory::Kind kind = memory::Kind::kHost;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

// PEs that are reached by the same transports, each "transport/device" as the machine calls them.
struct PeerTransports {
  std::vector<int> pes;
  std::string transports;
};

class Machine {
 public:
  virtual ~Machine() = default;

  int pe() const { return pe_; }
  int num_pes() const { return num_pes_; }
  virtual std::string description() const = 0;

  // REQUIRES: id <= kMaxAmId, set on every PE before a message with that id can arrive.
  virtual base::Status set_am_handler(AmId id, AmHandler handler, void* context) = 0;
  // The header (host memory, at most kMaxAmHeaderBytes) is copied at the call; the payload is not. Messages
  // between a pair of PEs arrive once each; their order is not promised.
  virtual base::Status am_send(int pe, AmId id, std::span<const std::byte> header,
                               const memory::ConstBuffer& payload, base::Completion* completion) = 0;
  // Headers up to this size travel fastest, and with payloads of any memory kind.
  virtual std::size_t max_am_header_bytes() const { return kMaxAmHeaderBytes; }
  // Moves a taken payload into `into`. A buffer that is too small is kTruncated, naming both sizes.
  virtual base::Status am_receive(AmPayload payload, const memory::Buffer& into,
                                  base::Completion* completion) = 0;

  // Matched messages. The receiver's tag bits under `mask` must equal the sender's. Messages with equal tags
  // from one PE match in the order in which they were sent. A message larger than the receive is kTruncated,
  // naming both sizes.
  virtual base::Status tag_send(int pe, Tag tag, const memory::ConstBuffer& buffer,
                                base::Completion* completion) = 0;
  virtual base::Status tag_receive(Tag tag, Tag mask, const memory::Buffer& buffer,
                                   base::Completion* completion) = 0;
  // Asks an operation in flight to end early: it still completes exactly once, with kCancelled or, when it
  // was too late, with its own outcome.
  virtual void cancel(base::Completion* completion) = 0;

  // Makes memory addressable by peers until deregister_memory. `memory` keeps its owner.
  virtual base::Result<RemoteMemory> register_memory(const memory::Buffer& memory) = 0;
  virtual base::Status deregister_memory(const RemoteMemory& memory) = 0;
  // One-sided. A put completes when the local buffer is reusable and, after flush(), the data is at the peer.
  // `remote` came from that peer's register_memory and need not outlive the call.
  virtual base::Status put(int pe, const memory::ConstBuffer& local, const RemoteMemory& remote,
                           std::size_t offset_bytes, base::Completion* completion) = 0;
  virtual base::Status get(int pe, const memory::Buffer& local, const RemoteMemory& remote,
                           std::size_t offset_bytes, base::Completion* completion) = 0;
  // 64-bit, on host memory; *result receives the old value and must stay until completion (null for none).
  virtual base::Status atomic(int pe, AtomicOperation operation, const RemoteMemory& remote,
                              std::size_t offset_bytes, std::uint64_t operand, std::uint64_t compare,
                              std::uint64_t* result, base::Completion* completion) = 0;
  // Completes when all puts and atomics started before it are visible at their peers.
  virtual base::Status flush(base::Completion* completion) = 0;

  // Moves communication forward and calls handlers and completions. Returns whether anything happened.
  virtual bool progress() = 0;
  // Sleeps until there may be something to progress, wake() was called, or the time is over (timeout_us < 0:
  // no limit). May return early; returns at once when work is at hand.
  virtual void wait(std::int64_t timeout_us) = 0;
  // Ends a wait() under way, or the next one. Any thread.
  virtual void wake() = 0;
  // Whether progress() must keep being called for work that cannot wake a sleeper (device copies).
  virtual bool needs_polling() const = 0;

  // Messages of device memory that devices copy past the transport.
  virtual PeerMemory& peer_memory() = 0;

  // Ends all operations in flight with kClosed or kCancelled, each completion exactly once, then releases
  // what the machine holds. A peer that is gone does not make it hang. Afterwards only the destructor may be
  // called.
  virtual void close() = 0;

  // What was moved so far, one row per way that was used, and the PEs that were sent to so far by transport.
  virtual std::vector<TransportUse> transport_use() const = 0;
  virtual std::vector<PeerTransports> peer_transports() const = 0;

 protected:
  Machine(int pe, int num_pes) : pe_(pe), num_pes_(num_pes) {}

 private:
  friend class AmPayload;
  // Drops a taken payload that nobody received.
  virtual void release_payload(void* descriptor) = 0;

  int pe_;
  int num_pes_;
};

inline AmPayload::~AmPayload() {
  if (machine_ != nullptr) machine_->release_payload(descriptor_);
}

}  // namespace weft::machine
