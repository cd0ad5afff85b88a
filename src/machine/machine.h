// A Machine moves bytes between PEs. It is the only interface for that above the machine layer.
//
// Threads: the PE's thread; only wake() may be called from any thread. No call blocks except wait() and close().
//
// Operations follow the contract of weft/base/completion.h. A start function returns one of two things:
//   pending            the completion is called exactly once, later, from progress(), cancel(), lose_peer() or close()
//   any other status   the operation is over, and its completion is never called
// If a receive returns ok, the message filled its buffer exactly. A receive of a smaller message completes from
// progress(), with the size.
//
// Buffers may be of any memory kind. The buffer of an operation belongs to the machine until the operation is
// over. The operation starts after the work queued on the buffer's stream, without blocking the CPU. The data of
// a completed receive is visible to every stream.
//
// A handler or completion function may start operations. It must not call progress(), wait(), lose_peer() or close().
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
// The largest header of an active message. If the payload is device memory, the limit is
// Machine::max_am_header_bytes().
inline constexpr std::size_t kMaxAmHeaderBytes = 4096;

class Machine;
class PeerMemory;
class TransferObserver;

// The payload of an active message, which the handler has taken. Move-only. Receive it once with
// Machine::am_receive, or destroy it, which drops the data. Both release the memory that the machine holds for
// it. After the machine's close() it is empty. It must be destroyed before the machine.
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

  // The bytes if they are already here (eager); null for a rendezvous, which am_receive must fetch.
  const void* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }
  void* descriptor() const { return descriptor_; }
  // For implementations of Machine: gives up the descriptor without releasing it.
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

// An arriving active message, as its handler sees it. Valid during the handler's call only.
class AmArrival {
 public:
  std::span<const std::byte> header;
  // The payload's bytes if they are already here; null for a rendezvous.
  const std::byte* data = nullptr;
  std::size_t payload_size_bytes = 0;

  // A handler sets it when the PE has what it waits for: progress() may return before it calls further handlers, so that the program
  // runs while other messages stay where they are.
  bool is_enough = false;

  // Keeps the payload beyond the call. May be called once. A payload that is not taken is dropped after the call.
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
  // The machine's key to this memory. Opaque bytes that the owner sends to its peers in messages.
  std::vector<std::byte> key;
};

// Host memory that a send reads, and that its owner may move while the send is in flight.
struct MovableSource {
  const std::byte* data = nullptr;
  std::size_t size_bytes = 0;
  // The machine adds what it reads, so that the owner sees sends move on. It may read bytes more than once.
  std::uint64_t* read_bytes = nullptr;
  // Set by the machine when the peer begins to read the bytes too: from then on they must stay where they are until
  // the send completes.
  bool is_fixed = false;
};

enum class AtomicOperation : std::uint8_t { kAdd, kSwap, kCompareSwap, kAnd, kOr, kXor };

enum class TransferType : std::uint8_t { kTagSend, kAmSend, kPut, kGet, kReceive, kPeerCopy };
inline constexpr int kNumTransferTypes = 6;

// The path of a buffer:
//   through UCX   the transport addresses the buffer's memory itself
//   staged        through host memory, because the transport does not address its kind, or by request
//   own PE        to the PE that it comes from
//   peer-mapped   the sender's device copies into the receiver's memory, which it has mapped
//   bounced       the sender's device copies into memory of Weft's on the receiver's device, which copies it on,
//                 because the receiver's own memory cannot be mapped
//   pulled        the same, but the receiver's device copies out of the sender's memory, which it has mapped
//   shared        both processes copy the message from host memory to host memory
//   host queue    a small active message, through a queue in memory that the PEs of a host share
enum class TransferPath : std::uint8_t {
  kThroughUcx,
  kStaged,
  kOwnPe,
  kPeerMapped,
  kBounced,
  kPulled,
  kShared,
  kHostQueue
};
inline constexpr int kNumTransferPaths = 8;

std::string_view transfer_type_name(TransferType type);
std::string_view transfer_path_name(TransferPath path);

// The transfers of this PE with one type, path and kind. A transfer is counted where it was started, with the
// kind of its device side if it has one. A receive is counted only if it was staged, because every message is
// counted by its sender.
struct TransportUse {
  TransferType type = TransferType::kTagSend;
  TransferPath path = TransferPath::kThroughUcx;
  memory::Kind kind = memory::Kind::kHost;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

// PEs that are reached by the same transports. Each transport is written "transport/device", with the machine's
// names.
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

  // REQUIRES: id <= kMaxAmId; every PE sets the handler before a message with that id can arrive.
  virtual base::Status set_am_handler(AmId id, AmHandler handler, void* context) = 0;
  // The call copies the header, which is host memory of at most kMaxAmHeaderBytes. It does not copy the payload.
  // Each message arrives once. Messages between two PEs may arrive in any order.
  virtual base::Status am_send(int pe, AmId id, std::span<const std::byte> header,
                               const memory::ConstBuffer& payload, base::Completion* completion) = 0;
  // Sends a small message through memory that both PEs share, which completes it. Returns false if there is no such way, and
  // nothing has been sent then: am_send() finds another one, or says what is wrong. There is none while transfers are observed.
  // A message to a receiver that has closed is dropped, and true. REQUIRES: host memory.
  virtual bool am_send_at_once(int pe, AmId id, std::span<const std::byte> header,
                               std::span<const std::byte> payload) = 0;
  // Headers up to this size may go with payloads of any memory kind, and they are the fastest.
  virtual std::size_t max_am_header_bytes() const { return kMaxAmHeaderBytes; }
  // Moves a taken payload into `into`. kTruncated, with both sizes, if the buffer is too small.
  virtual base::Status am_receive(AmPayload payload, const memory::Buffer& into,
                                  base::Completion* completion) = 0;

  // Matched messages. A message matches a receive if its tag equals the receive's in the bits of `mask`.
  // Messages with equal tags from one PE match in the order in which they were sent. kTruncated, with both
  // sizes, if the message is larger than the receive's buffer.
  virtual base::Status tag_send(int pe, Tag tag, const memory::ConstBuffer& buffer,
                                base::Completion* completion) = 0;
  virtual base::Status tag_receive(Tag tag, Tag mask, const memory::Buffer& buffer,
                                   base::Completion* completion) = 0;
  // Whether tag_send_movable() can send to that PE now.
  virtual bool can_move_source(int pe) const = 0;
  // tag_send() of bytes that the machine reads only inside this call and progress(), from where `source.data` is
  // then. Between these calls the owner may copy the bytes and set `data` to the copy. `source` must stay valid until
  // completion. REQUIRES: can_move_source(pe).
  virtual base::Status tag_send_movable(int pe, Tag tag, MovableSource& source,
                                        base::Completion* completion) = 0;
  // Asks an operation in flight to end early. It still completes exactly once: with kCancelled, or with its own
  // outcome if cancel() came too late.
  virtual void cancel(base::Completion* completion) = 0;

  // Makes memory addressable by peers until deregister_memory. The caller still owns the memory.
  virtual base::Result<RemoteMemory> register_memory(const memory::Buffer& memory) = 0;
  virtual base::Status deregister_memory(const RemoteMemory& memory) = 0;
  // This PE uses that memory of the peer no more: what it keeps for it is freed. REQUIRES: no transfer with it is under way.
  virtual void forget_remote(int pe, const RemoteMemory& remote) = 0;
  // One-sided transfers. A put completes when its local buffer is reusable. Its data is visible at the peer after
  // a flush(). `remote` is a result of that peer's register_memory and need not outlive the call.
  virtual base::Status put(int pe, const memory::ConstBuffer& local, const RemoteMemory& remote,
                           std::size_t offset_bytes, base::Completion* completion) = 0;
  // A put that completes when its data is visible at the peer. The machine may read `local` until then, and cancel() does not
  // reach it.
  virtual base::Status put_and_flush(int pe, const memory::ConstBuffer& local, const RemoteMemory& remote,
                                     std::size_t offset_bytes, base::Completion* completion) = 0;
  virtual base::Status get(int pe, const memory::Buffer& local, const RemoteMemory& remote,
                           std::size_t offset_bytes, base::Completion* completion) = 0;
  // An atomic operation on 64 bits of host memory. `*result` receives the old value and must stay valid until
  // completion. A null `result` is allowed.
  virtual base::Status atomic(int pe, AtomicOperation operation, const RemoteMemory& remote,
                              std::size_t offset_bytes, std::uint64_t operand, std::uint64_t compare,
                              std::uint64_t* result, base::Completion* completion) = 0;
  // Completes when all puts and atomics that were started before it are visible at their peers.
  virtual base::Status flush(base::Completion* completion) = 0;
  // As flush(completion), for the puts and atomics to one PE. It may wait for those to other PEs too.
  virtual base::Status flush(int pe, base::Completion* completion) = 0;

  // Moves communication forward and calls handlers and completions. Returns whether anything happened.
  virtual bool progress() = 0;
  // Sleeps until progress() may have work, wake() is called, or the time is over (timeout_us < 0: no limit). May
  // return early. Returns at once if progress() has work already.
  virtual void wait(std::int64_t timeout_us) = 0;
  // Ends a wait() under way, or the next one. Any thread.
  virtual void wake() = 0;
  // Whether work is pending that cannot end a wait(), such as device copies. The caller must then keep calling
  // progress().
  virtual bool needs_polling() const = 0;

  // PE `pe` is gone, and the job continues. Its operations in flight end with kPeerFailed, or as they have ended already, inside this call
  // or the next progress(); later ones fail at once with kPeerFailed. A tagged receive names no PE: its owner cancels it. Messages that
  // the PE has sent before may still arrive. Returns without effect for a PE that is lost already. An error: an operation does not end, so
  // its memory may still be used, and the job must end. REQUIRES: peer_memory() was turned off before the first message; pe != pe().
  [[nodiscard]] virtual base::Status lose_peer(int pe) = 0;

  // Messages of device memory that take the peer-mapped path.
  virtual PeerMemory& peer_memory() = 0;

  // Ends all operations in flight with kClosed or kCancelled, each completion exactly once. Then releases all
  // resources of the machine. A peer that is gone does not make it hang. Afterwards only the destructor may be
  // called.
  virtual void close() = 0;

  // The transfers so far, one row for each combination of type, path and kind.
  virtual std::vector<TransportUse> transport_use() const = 0;
  // Is told of each transfer that transport_use() counts from now on. Null for none. It must outlive its use: set
  // another, or null, before it goes.
  virtual void set_transfer_observer(TransferObserver* observer) = 0;
  // The PEs to which this one has sent so far, by transport.
  virtual std::vector<PeerTransports> peer_transports() const = 0;
  // The reasons why messages did not take a faster path, as text for people: the first reason of each sort.
  virtual std::vector<std::string> obstacles() const = 0;

 protected:
  Machine(int pe, int num_pes) : pe_(pe), num_pes_(num_pes) {}

 private:
  friend class AmPayload;
  // Drops a taken payload that was not received.
  virtual void release_payload(void* descriptor) = 0;

  int pe_;
  int num_pes_;
};

inline AmPayload::~AmPayload() {
  if (machine_ != nullptr) machine_->release_payload(descriptor_);
}

}  // namespace weft::machine
