// Staging transfers the buffers that a machine cannot take as they are:
//   - memory of a kind that the machine does not address passes through host memory, copied by the memory layer;
//   - so does memory that the machine must not map in another process at this time (Exports::overlaps_old_mapping);
//   - a buffer with work queued on its stream is handed to the machine when that work is done.
// The CPU never waits: each transfer is a small state machine driven by completions.
//
// Order: messages with one tag to one PE leave in the order in which they were sent. Receives that could match
// the same message are posted in the order in which they were made. How long each waits for its stream does not
// change the order.
//
// A put or get on a peer's memory that the machine does not address is a message to the owner, which copies the
// data itself. flush() waits for the owner's acknowledgements.
//
// Threads: the PE's thread. Invariant: a transfer completes exactly once, never inside the call that started it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"

#include "machine/peer_memory/mapping/exports.h"
#include "machine/staging/bounce_pool.h"
#include "machine/staging/staging_flow.h"
#include "machine/staging/staging_mode.h"
#include "machine/transfer_counts.h"
#include "machine/transport_machine.h"
#include "memory/memory.h"

namespace weft::machine {

class Staging {
 public:
  Staging(TransportMachine& machine, memory::Memory& memory, StagingMode mode, TransferCounts& counts);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  StagingMode mode() const { return mode_; }

  // Installs the handler of the messages between stagings. REQUIRES: the machine is connected.
  base::Status open();

  // Once, before open(). `exports` must outlive it.
  void set_exports(Exports& exports) { exports_ = &exports; }

  // Whether the machine takes such a buffer itself. The stream of a host buffer is ignored.
  bool takes_as_is(const memory::ConstBuffer& buffer) const {
    return buffer.place.is_host() || (buffer.stream == nullptr && passes(buffer));
  }
  // Whether the bytes reach the machine without a copy.
  bool passes(const memory::ConstBuffer& buffer) const {
    return addresses(buffer.place) && (buffer.place.is_host() || !exports_->overlaps_old_mapping(buffer));
  }
  // Whether buffers of that kind reach the machine without a copy.
  bool addresses(memory::Place place) const {
    return ((addressed_kinds_ >> static_cast<unsigned>(place.kind)) & 1u) != 0;
  }
  // While true, all sends (receives) must be started here, so that they queue behind the ones that wait.
  bool holds_sends() const { return !held_sends_.empty(); }
  bool holds_receives() const { return !held_receives_.empty(); }

  base::Status am_send(int pe, AmId id, std::span<const std::byte> header, const memory::ConstBuffer& payload,
                       base::Completion* completion);
  base::Status am_receive(AmPayload payload, const memory::Buffer& into, base::Completion* completion);
  base::Status tag_send(int pe, Tag tag, const memory::ConstBuffer& buffer, base::Completion* completion);
  base::Status tag_receive(Tag tag, Tag mask, const memory::Buffer& buffer, base::Completion* completion);

  base::Result<RemoteMemory> register_memory(const memory::Buffer& memory);
  base::Status deregister_memory(const RemoteMemory& memory);
  base::Status put(int pe, const memory::ConstBuffer& local, const RemoteMemory& remote,
                   std::size_t offset_bytes, base::Completion* completion);
  base::Status get(int pe, const memory::Buffer& local, const RemoteMemory& remote, std::size_t offset_bytes,
                   base::Completion* completion);
  // The owner's PE does atomics on its host memory, one after the other. UCX has no atomics with error handling,
  // and this way the owner's own accesses stay coherent with them.
  base::Status atomic(int pe, AtomicOperation operation, std::uint64_t address, std::uint64_t operand,
                      std::uint64_t compare, std::uint64_t* result, base::Completion* completion);
  // Allows, or no longer allows, atomics of peers on memory that the machine registered itself.
  void admit_atomics(const RemoteMemory& memory);
  void refuse_atomics(const RemoteMemory& memory);
  // Whether flush() must wait for acknowledgements besides the machine's own flush.
  bool has_unflushed() const { return !unflushed_.empty() || refused_put_.failed(); }
  base::Status flush(base::Completion* completion);

  // Whether `completion` belongs to an operation started here.
  static bool owns(const base::Completion& completion) {
    return (reinterpret_cast<std::uintptr_t>(completion.in_flight) & kOwned) != 0;
  }
  void cancel(base::Completion* completion);

  // Ends the transfers that wait for an answer of PE `pe`, see Machine::lose_peer(). The transport has ended its operations with it.
  void lose_peer(int pe);

  // Moves memory copies forward, and completes the transfers that ended inside start calls.
  bool progress();
  bool needs_progress() const { return waits_.in_memory != 0 || !finished_.empty() || turns_changed_; }

  // begin_close() is called before the machine's own close. It ends the transfers that wait for their turn or for
  // a peer, and waits for the copies in flight. end_close() is called when the machine uses no buffer any more. It
  // waits for copies again and ends all other transfers.
  void begin_close();
  void end_close();

 private:
  // This bit is set in Completion::in_flight of a transfer's completion. Handles of machines never have it.
  static constexpr std::uintptr_t kOwned = 1;

  struct Message;

  // While a guard exists, no completion is called.
  class StartGuard {
   public:
    explicit StartGuard(Staging& staging) : staging_(staging) { ++staging_.starting_; }
    ~StartGuard() { --staging_.starting_; }
    StartGuard(const StartGuard&) = delete;
    StartGuard& operator=(const StartGuard&) = delete;

   private:
    Staging& staging_;
  };

  struct Finished {
    StagedTransfer* transfer;
    base::Status status;
    std::size_t size_bytes;
  };

  base::Status closed() const;

  // The life of a transfer.
  StagedTransfer& make(base::Completion* user);
  void finish(StagedTransfer& transfer, base::Status status, std::size_t size_bytes);
  void deliver(const Finished& finished);
  static void on_step(base::Completion* self, base::Status status, std::size_t size_bytes);
  void resume(StagedTransfer& transfer, base::Status status, std::size_t size_bytes);

  // A flow waits for one of these: the memory layer, the machine, its turn, the peer.
  StagedStep in_memory(StagedTransfer& transfer, base::Status started);
  StagedStep in_machine(StagedTransfer& transfer, base::Status started, std::size_t size_bytes);
  StagedStep for_turn(StagedTransfer& transfer);
  StagedStep from_peer(StagedTransfer& transfer);
  // The peer's answer has arrived. That may happen before the request's own send is over.
  void answered(StagedTransfer& transfer, base::Status status);

  // Prepares a buffer that the machine will read: copies it to a bounce, or waits for its stream.
  base::Status prepare_send(StagedTransfer& transfer, const memory::ConstBuffer& local);
  // Prepares a buffer that the machine will write: takes a bounce, or waits for its stream.
  base::Status prepare_receive(StagedTransfer& transfer, const memory::Buffer& local);
  void count_receive(const StagedTransfer& transfer, memory::Place place, std::size_t size_bytes);
  // Copies the received data from the bounce to `local`.
  base::Status land(StagedTransfer& transfer, const memory::Buffer& local, std::size_t size_bytes);

  StagedFlow run_tag_send(StagedTransfer& transfer, int pe, Tag tag, memory::ConstBuffer local);
  StagedFlow run_tag_receive(StagedTransfer& transfer, memory::Buffer local);
  StagedFlow run_am_send(StagedTransfer& transfer, int pe, AmId id, std::vector<std::byte> header,
                         memory::ConstBuffer local);
  StagedFlow run_am_receive(StagedTransfer& transfer, AmPayload payload, memory::Buffer local);
  StagedFlow run_put(StagedTransfer& transfer, int pe, memory::ConstBuffer local, RemoteMemory remote,
                     std::size_t offset_bytes);
  StagedFlow run_put_by_message(StagedTransfer& transfer, int pe, memory::ConstBuffer local,
                                std::uint64_t region, std::size_t offset_bytes);
  StagedFlow run_get(StagedTransfer& transfer, int pe, memory::Buffer local, RemoteMemory remote,
                     std::size_t offset_bytes);
  StagedFlow run_get_by_message(StagedTransfer& transfer, int pe, memory::Buffer local, std::uint64_t region,
                                std::size_t offset_bytes);
  StagedFlow run_atomic(StagedTransfer& transfer, int pe, std::vector<std::byte> header,
                        std::uint64_t* result);
  StagedFlow run_flush(StagedTransfer& transfer);
  StagedFlow run_serve_put(StagedTransfer& transfer, int pe, std::uint64_t request, AmPayload payload,
                           memory::Buffer target);
  StagedFlow run_answer(StagedTransfer& transfer, int pe, std::vector<std::byte> header,
                        memory::ConstBuffer payload);

  // Whether a receive held before `until` (null: any) could match the same message.
  bool is_behind(Tag tag, Tag mask, const StagedTransfer* until) const;
  void end_turn();
  // Waits until the device is done with every buffer, or until the time limit for a hung device is over.
  void settle();
  bool resume_waiting();

  // Messages between stagings.
  static void on_message(void* self, AmArrival& arrival);
  void serve_put(const Message& message, AmArrival& arrival);
  void serve_get(const Message& message);
  void serve_atomic(const Message& message);
  void atomic_answered(const Message& message);
  void get_answered(const Message& message, AmArrival& arrival);
  base::Result<memory::Buffer> find_region(const Message& message) const;
  base::Status send(int pe, std::span<const std::byte> header, const memory::ConstBuffer& payload,
                    base::Completion* completion);
  void put_answered(const Message& message);
  void end_unflushed(std::uint64_t sequence, const base::Status& status);

  TransportMachine& machine_;
  memory::Memory& memory_;
  TransferCounts& counts_;
  StagingMode mode_;
  Exports* exports_ = nullptr;
  unsigned addressed_kinds_ = 0;
  bool closing_ = false;
  bool turns_changed_ = false;
  int starting_ = 0;
  StagingWaits waits_;

  BouncePool bounces_;
  std::vector<std::unique_ptr<StagedTransfer>> live_;
  std::deque<Finished> finished_;

  // The sends and receives that are not handed to the machine yet, in the order in which they were started.
  std::map<std::pair<int, Tag>, std::deque<StagedTransfer*>> held_sends_;  // by PE and tag
  std::deque<StagedTransfer*> held_receives_;

  std::unordered_map<std::uint64_t, memory::Buffer> regions_;
  std::multimap<std::uint64_t, std::size_t> atomic_ranges_;     // sizes by address
  std::unordered_map<std::uint64_t, StagedTransfer*> waiting_;  // gets and atomics in flight, by request
  std::map<std::uint64_t, int>
      unflushed_;  // puts and atomics that the peer has not acknowledged: the PE of each
  std::unordered_map<std::uint64_t, StagedTransfer*> sending_puts_;  // puts by message whose send is not over
  // The first put that its owner refused when its send was over and no flush waited for it. The next flush reports it.
  base::Status refused_put_;
  std::vector<StagedTransfer*> flushes_;
  std::uint64_t next_sequence_ = 1;
};

}  // namespace weft::machine
