// The part of a machine that all machines share: it checks arguments, hands the buffers that the transport
// addresses to a transport_ operation, gives the others to Staging, and owns the PE's peer memory. Derived is
// the concrete, final class, so that a call through UCX is one virtual call deep. Besides the transport_ operations it has
// transport_queue_am(), takes_small_put() and transport_small_put(), which are not virtual: a small message pays for the call.
#pragma once

#include "machine/peer_memory/peer_memory.h"
#include "machine/staging/flushed_put.h"
#include "machine/staging/staging.h"
#include "machine/transfer_counts.h"
#include "machine/transport_machine.h"

namespace weft::machine {

// Messages about arguments that cannot be; one place, so that every machine says the same.
base::Status bad_peer(int pe, int num_pes, bool closed);
base::Status bad_am_id(AmId id);
base::Status bad_header(std::size_t size_bytes);
base::Status bad_payload_buffer(std::size_t payload_bytes, std::size_t buffer_bytes, int pe);
base::Status bad_remote_range(int pe, const RemoteMemory& remote, std::size_t offset_bytes,
                              std::size_t size_bytes);
base::Status not_registered(const RemoteMemory& memory);
// The error of a caller if the owner of memory answers with that code. The code is the owner's claim; the result is never pending.
base::Status refused_by_owner(base::StatusCode code, int pe, std::string_view what);
base::Status bad_atomic(int pe, const RemoteMemory& remote, std::size_t offset_bytes);
base::Status closed_machine(int pe);
// Of an operation with a PE that lose_peer() has named.
base::Status lost_peer(int pe);

template <class Derived>
class StagedMachine : public TransportMachine {
 public:
  base::Status set_am_handler(AmId id, AmHandler handler, void* context) final {
    if (id > kMaxAmId) return bad_am_id(id);
    if (is_closed()) return closed_machine(pe());
    return self().transport_set_am_handler(id, handler, context);
  }

  base::Status am_send(int pe, AmId id, std::span<const std::byte> header, const memory::ConstBuffer& payload,
                       base::Completion* completion) final {
    if (!can_reach(pe)) [[unlikely]]
      return bad_peer(pe, num_pes(), is_closed());
    if (id > kMaxAmId) [[unlikely]]
      return bad_am_id(id);
    if (payload.place.is_host() && !counts_.observes_active_messages()) [[likely]] {
      const QueueOutcome outcome = self().transport_queue_am(pe, id, header, payload, completion);
      if (outcome != QueueOutcome::kOtherWay) [[likely]] {
        counts_.add(TransferType::kAmSend, TransferPath::kHostQueue, memory::Kind::kHost, payload.size_bytes);
        return outcome == QueueOutcome::kSent ? base::Status() : base::Status::pending();
      }
    }
    if (header.size() > kMaxAmHeaderBytes) [[unlikely]]
      return bad_header(header.size());
    if (!staging_.takes_as_is(payload) || counts_.observes_active_messages()) [[unlikely]]
      return special_am_send(pe, id, header, payload, completion);
    counts_.add(TransferType::kAmSend, direct_path(pe), payload.place.kind, payload.size_bytes);
    return self().transport_am_send(pe, id, header, payload, completion);
  }

  bool am_send_at_once(int pe, AmId id, std::span<const std::byte> header,
                       std::span<const std::byte> payload) final {
    if (!can_reach(pe) || id > kMaxAmId || counts_.observes_active_messages()) [[unlikely]]
      return false;
    if (self().transport_queue_am(pe, id, header, {payload.data(), payload.size()}, nullptr) ==
        QueueOutcome::kOtherWay)
      return false;
    counts_.add(TransferType::kAmSend, TransferPath::kHostQueue, memory::Kind::kHost, payload.size());
    return true;
  }

  base::Status am_receive(AmPayload payload, const memory::Buffer& into, base::Completion* completion) final {
    if (is_closed()) return closed_machine(pe());
    if (payload.size_bytes() > into.size_bytes) {
      return bad_payload_buffer(payload.size_bytes(), into.size_bytes, pe());
    }
    if (payload.size_bytes() == 0) return {};
    const bool is_copy_to_device = payload.data() != nullptr && !into.place.is_host();
    if (!is_copy_to_device && staging_.takes_as_is(into)) [[likely]] {
      return self().transport_am_receive(std::move(payload), into, completion);
    }
    return staging_.am_receive(std::move(payload), into, completion);
  }

  base::Status tag_send(int pe, Tag tag, const memory::ConstBuffer& buffer,
                        base::Completion* completion) final {
    if (!can_reach(pe)) [[unlikely]]
      return bad_peer(pe, num_pes(), is_closed());
    if (!takes_tagged_as_is(buffer) || counts_.is_observed()) [[unlikely]]
      return special_tag_send(pe, tag, buffer, completion);
    counts_.add(TransferType::kTagSend, direct_path(pe), buffer.place.kind, buffer.size_bytes);
    return self().transport_tag_send(pe, tag, buffer, completion);
  }

  bool can_move_source(int pe) const final {
    return can_reach(pe) && !staging_.holds_sends() &&
           static_cast<const Derived&>(*this).transport_can_move_source(pe);
  }

  base::Status tag_send_movable(int pe, Tag tag, MovableSource& source, base::Completion* completion) final {
    return counted(TransferType::kTagSend, direct_path(pe), {}, source.size_bytes, completion,
                   [&] { return self().transport_tag_send_movable(pe, tag, source, completion); });
  }

  base::Status tag_receive(Tag tag, Tag mask, const memory::Buffer& buffer,
                           base::Completion* completion) final {
    if (is_closed()) [[unlikely]]
      return closed_machine(pe());
    if (staging_.takes_as_is(buffer) && !staging_.holds_receives()) [[likely]] {
      return self().transport_tag_receive(tag, mask, buffer, completion);
    }
    return staging_.tag_receive(tag, mask, buffer, completion);
  }

  void cancel(base::Completion* completion) final {
    if (completion->in_flight == nullptr) return;
    if (Staging::owns(*completion)) return staging_.cancel(completion);
    if (PeerOperation::owns(*completion)) return PeerOperation::of(*completion).cancel();
    self().transport_cancel(completion);
  }

  base::Result<RemoteMemory> register_memory(const memory::Buffer& memory) final {
    if (is_closed()) return closed_machine(pe());
    if (!staging_.addresses(memory.place)) return staging_.register_memory(memory);
    base::Result<RemoteMemory> remote = self().transport_register_memory(memory);
    if (remote.ok()) staging_.admit_atomics(*remote);
    return remote;
  }

  base::Status deregister_memory(const RemoteMemory& memory) final {
    if (is_closed()) return {};  // close() deregistered everything
    if (!staging_.addresses(memory.place)) return staging_.deregister_memory(memory);
    base::Status status = self().transport_deregister_memory(memory);
    if (status.ok()) staging_.refuse_atomics(memory);
    return status;
  }

  void forget_remote(int pe, const RemoteMemory& remote) final {
    if (!can_reach(pe) || !staging_.addresses(remote.place)) return;
    self().transport_forget_remote(pe, remote);
  }

  base::Status put(int pe, const memory::ConstBuffer& local, const RemoteMemory& remote,
                   std::size_t offset_bytes, base::Completion* completion) final {
    return one_sided(TransferType::kPut, pe, local, remote, offset_bytes, completion, [&](bool is_as_is) {
      return is_as_is ? self().transport_put(pe, local, remote, offset_bytes, completion)
                      : staging_.put(pe, local, remote, offset_bytes, completion);
    });
  }

  base::Status put_and_flush(int pe, const memory::ConstBuffer& local, const RemoteMemory& remote,
                             std::size_t offset_bytes, base::Completion* completion) final {
    const bool is_host = local.place.is_host() && remote.place.is_host();
    const bool is_plain = is_host && can_reach(pe) && is_inside(remote, offset_bytes, local.size_bytes) &&
                          local.size_bytes != 0;
    if (!is_plain || staging_.has_unflushed() || counts_.is_observed()) [[unlikely]] {
      return special_put_and_flush(pe, local, remote, offset_bytes, completion);
    }
    counts_.add(TransferType::kPut, direct_path(pe), memory::Kind::kHost, local.size_bytes);
    if (self().takes_small_put(pe, local.size_bytes, remote, offset_bytes)) {
      return self().transport_small_put(pe, local, remote, offset_bytes, completion);
    }
    return plain_put_and_flush(pe, local, remote, offset_bytes, completion);
  }

  base::Status get(int pe, const memory::Buffer& local, const RemoteMemory& remote, std::size_t offset_bytes,
                   base::Completion* completion) final {
    return one_sided(TransferType::kGet, pe, local, remote, offset_bytes, completion, [&](bool is_as_is) {
      return is_as_is ? self().transport_get(pe, local, remote, offset_bytes, completion)
                      : staging_.get(pe, local, remote, offset_bytes, completion);
    });
  }

  base::Status atomic(int pe, AtomicOperation operation, const RemoteMemory& remote, std::size_t offset_bytes,
                      std::uint64_t operand, std::uint64_t compare, std::uint64_t* result,
                      base::Completion* completion) final {
    if (!can_reach(pe)) [[unlikely]]
      return bad_peer(pe, num_pes(), is_closed());
    if (!is_inside(remote, offset_bytes, sizeof operand)) [[unlikely]] {
      return bad_remote_range(pe, remote, offset_bytes, sizeof operand);
    }
    if (!remote.place.is_host() || (remote.address + offset_bytes) % sizeof operand != 0) [[unlikely]] {
      return bad_atomic(pe, remote, offset_bytes);
    }
    return staging_.atomic(pe, operation, remote.address + offset_bytes, operand, compare, result,
                           completion);
  }

  base::Status flush(base::Completion* completion) final {
    if (is_closed()) return closed_machine(pe());
    return staging_.has_unflushed() ? staging_.flush(completion) : self().transport_flush(completion);
  }

  // Staged puts are not sorted by PE: while there are some, all are waited for.
  base::Status flush(int pe, base::Completion* completion) final {
    if (!can_reach(pe)) return bad_peer(pe, num_pes(), is_closed());
    return staging_.has_unflushed() ? staging_.flush(completion) : self().transport_flush_pe(pe, completion);
  }

  base::Status lose_peer(int pe) final {
    if (!can_reach(pe)) return {};
    if (base::Status status = self().transport_lose_peer(pe); status.failed()) return status;
    staging_.lose_peer(pe);
    return {};
  }

  bool needs_polling() const final { return staging_.needs_progress() || peer_memory_.needs_polling(); }

  PeerMemory& peer_memory() final { return peer_memory_; }
  std::vector<std::string> obstacles() const override { return peer_memory_.obstacles(); }

  std::vector<TransportUse> transport_use() const final { return counts_.uses(); }
  void set_transfer_observer(TransferObserver* observer) final { counts_.set_observer(observer); }

 protected:
  StagedMachine(int pe, int num_pes, int pes_on_host, memory::Memory& memory, StagingMode mode)
      : TransportMachine(pe, num_pes),
        staging_(*this, memory, mode, counts_),
        peer_memory_(*this, memory, counts_, reach(mode, pes_on_host), pes_on_host > 1),
        reachable_pes_(static_cast<unsigned>(num_pes)),
        pes_on_host_(pes_on_host) {
    staging_.set_exports(peer_memory_.exports());
  }

  StagingMode staging_mode() const { return staging_.mode(); }
  // Once the machine works.
  base::Status open_shared_parts() {
    base::Status status = staging_.open();
    return status.failed() ? status : peer_memory_.open();
  }
  // Progresses the parts that all transports share: staging and peer memory. Returns whether anything happened.
  bool progress_shared_parts() {
    bool any = staging_.progress();
    if (peer_memory_.needs_progress()) any |= peer_memory_.progress();
    return any;
  }
  bool shared_parts_need_progress() const {
    return staging_.needs_progress() || peer_memory_.needs_progress();
  }
  // Nothing can be started after this.
  void begin_close() {
    reachable_pes_ = 0;
    staging_.begin_close();
    peer_memory_.begin_close();
  }
  // After the transport has ended its operations.
  void end_close() {
    staging_.end_close();
    peer_memory_.end_close();
  }
  bool is_closed() const { return reachable_pes_ == 0; }
  int pes_on_host() const { return pes_on_host_; }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
  bool can_reach(int pe) const { return static_cast<unsigned>(pe) < reachable_pes_; }
  static bool is_inside(const RemoteMemory& remote, std::size_t offset_bytes, std::size_t size_bytes) {
    return offset_bytes <= remote.size_bytes && size_bytes <= remote.size_bytes - offset_bytes;
  }

  // The side of a put or get that decides how it travels.
  static memory::Place device_side(memory::Place local, memory::Place remote) {
    return local.is_host() ? remote : local;
  }
  bool takes_tagged_as_is(const memory::ConstBuffer& buffer) const {
    return staging_.takes_as_is(buffer) && !staging_.holds_sends();
  }

  // Sends that are observed or whose buffer is not passed as it is. They are out of line, so that other sends keep no
  // values across the transport's start function.
  [[gnu::noinline]] base::Status special_am_send(int pe, AmId id, std::span<const std::byte> header,
                                                 const memory::ConstBuffer& payload,
                                                 base::Completion* completion) {
    const bool is_as_is = staging_.takes_as_is(payload);
    const QueueOutcome outcome = is_as_is && payload.place.is_host()
                                     ? self().transport_queue_am(pe, id, header, payload, completion)
                                     : QueueOutcome::kOtherWay;
    if (outcome != QueueOutcome::kOtherWay) {
      constexpr auto kType = TransferType::kAmSend;
      base::Status status = outcome == QueueOutcome::kSent ? base::Status() : base::Status::pending();
      counts_.add(kType, TransferPath::kHostQueue, memory::Kind::kHost, payload.size_bytes);
      if (counts_.observes_active_messages()) {
        counts_.observe(kType, TransferPath::kHostQueue, memory::Kind::kHost, payload.size_bytes, status,
                        completion);
      }
      return status;
    }
    const TransferPath path = path_of(pe, payload.size_bytes == 0 || staging_.passes(payload));
    return counted(TransferType::kAmSend, path, payload.place, payload.size_bytes, completion, [&] {
      return is_as_is ? self().transport_am_send(pe, id, header, payload, completion)
                      : staging_.am_send(pe, id, header, payload, completion);
    });
  }
  [[gnu::noinline]] base::Status special_tag_send(int pe, Tag tag, const memory::ConstBuffer& buffer,
                                                  base::Completion* completion) {
    const bool is_as_is = takes_tagged_as_is(buffer);
    const TransferPath path = path_of(pe, buffer.size_bytes == 0 || staging_.passes(buffer));
    return counted(TransferType::kTagSend, path, buffer.place, buffer.size_bytes, completion, [&] {
      return is_as_is ? self().transport_tag_send(pe, tag, buffer, completion)
                      : staging_.tag_send(pe, tag, buffer, completion);
    });
  }

  // A put and a flush that have more to do than the transport's: memory of devices, an observer, bad arguments.
  [[gnu::noinline]] base::Status special_put_and_flush(int pe, const memory::ConstBuffer& local,
                                                       const RemoteMemory& remote, std::size_t offset_bytes,
                                                       base::Completion* completion) {
    prepare_spare_put();
    base::Status status = StagedMachine::put(pe, local, remote, offset_bytes, spare_put_.get());
    if (status.ok()) return StagedMachine::flush(pe, completion);
    if (status.is_pending()) FlushedPut::wait_for_put(spare_put_, pe, completion);
    return status;
  }

  // A put and a flush of host memory, by the transport alone. Out of line, so that small puts keep few values.
  [[gnu::noinline]] base::Status plain_put_and_flush(int pe, const memory::ConstBuffer& local,
                                                     const RemoteMemory& remote, std::size_t offset_bytes,
                                                     base::Completion* completion) {
    prepare_spare_put();
    bool is_put_pending = false;
    base::Status status = self().transport_put_and_flush(pe, local, remote, offset_bytes, spare_put_.get(),
                                                         completion, is_put_pending);
    if (is_put_pending) [[unlikely]]
      FlushedPut::wait_for_put(spare_put_, pe, completion);
    return status;
  }
  // Most puts are over when put() returns: then the one of the last put is still there.
  void prepare_spare_put() {
    if (spare_put_ == nullptr) [[unlikely]]
      spare_put_ = std::make_unique<FlushedPut>(*this, spare_put_);
  }

  TransferPath direct_path(int to) const {
    return to == pe() ? TransferPath::kOwnPe : TransferPath::kThroughUcx;
  }
  // `passes`: the memory goes to the transport, now or when its stream is done, and not through host memory.
  TransferPath path_of(int to, bool passes) const { return passes ? direct_path(to) : TransferPath::kStaged; }
  // Starts a transfer, counts it, and tells the observer of it if there is one.
  template <class Start>
  base::Status counted(TransferType type, TransferPath path, memory::Place place, std::size_t size_bytes,
                       base::Completion* completion, Start start) {
    base::Status status = start();
    counts_.add(type, path, place.kind, size_bytes);
    if (counts_.is_observed()) [[unlikely]]
      counts_.observe(type, path, place.kind, size_bytes, status, completion);
    return status;
  }

  // put() and get(): checks, counts, and calls `start(is_as_is)`. `is_as_is`: the transport takes the transfer now.
  template <class Start>
  [[gnu::always_inline]] base::Status one_sided(TransferType type, int pe, const memory::ConstBuffer& local,
                                                const RemoteMemory& remote, std::size_t offset_bytes,
                                                base::Completion* completion, Start start) {
    if (!can_reach(pe)) [[unlikely]]
      return bad_peer(pe, num_pes(), is_closed());
    if (!is_inside(remote, offset_bytes, local.size_bytes)) [[unlikely]] {
      return bad_remote_range(pe, remote, offset_bytes, local.size_bytes);
    }
    if (local.size_bytes == 0) return {};
    const bool is_host = local.place.is_host() && remote.place.is_host();
    const bool is_as_is = is_host || (staging_.takes_as_is(local) && staging_.addresses(remote.place));
    const memory::Place place = is_as_is ? local.place : device_side(local.place, remote.place);
    const TransferPath path =
        path_of(pe, is_host || (staging_.passes(local) && staging_.addresses(remote.place)));
    return counted(type, path, place, local.size_bytes, completion,
                   [&start, is_as_is] { return start(is_as_is); });
  }

  static PeerMemory::Reach reach(StagingMode mode, int pes_on_host) {
    if (mode == StagingMode::kHost) return PeerMemory::Reach::kNone;
    return pes_on_host > 1 ? PeerMemory::Reach::kHost : PeerMemory::Reach::kOwnPe;
  }

  TransferCounts counts_;
  Staging staging_;
  PeerMemory peer_memory_;
  FlushedPut::Spare spare_put_;
  unsigned reachable_pes_;
  int pes_on_host_;
};

}  // namespace weft::machine
