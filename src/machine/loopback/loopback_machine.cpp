#include "machine/loopback/loopback_machine.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/format.h"

namespace weft::machine::loopback {

using base::Completion;
using base::Status;
using base::StatusCode;
using memory::Buffer;
using memory::ConstBuffer;

// Who is there; a machine that closed is null. Owned by the machines together.
struct Fabric {
  std::vector<LoopbackMachine*> machines;
};

// A message inside its handler's call.
class LoopbackMachine::Arrival final : public AmArrival {
 public:
  Arrival(LoopbackMachine& machine, const Packet& packet) : machine_(machine), payload_(packet.payload) {
    header = packet.header;
    payload_size_bytes = payload_->size_bytes;
    data = payload_->is_eager ? payload_->eager.data() : nullptr;
  }

  AmPayload take() override {
    taken_ = true;
    machine_.kept_.emplace(payload_.get(), payload_);
    return {&machine_, payload_.get(), data, payload_size_bytes};
  }
  bool is_taken() const { return taken_; }

 private:
  LoopbackMachine& machine_;
  std::shared_ptr<Payload> payload_;
  bool taken_ = false;
};

base::Result<std::vector<std::unique_ptr<Machine>>> make_loopback(
    const std::vector<memory::Memory*>& memories, const LoopbackOptions& options) {
  auto fabric = std::make_shared<Fabric>();
  std::vector<std::unique_ptr<Machine>> machines;
  fabric->machines.resize(memories.size());
  for (std::size_t pe = 0; pe < memories.size(); ++pe) {
    auto machine = std::make_unique<LoopbackMachine>(static_cast<int>(pe), fabric, *memories[pe], options);
    fabric->machines[pe] = machine.get();
    if (Status status = machine->open(); status.failed()) return status;
    machines.push_back(std::move(machine));
  }
  return machines;
}

LoopbackMachine::LoopbackMachine(int pe, std::shared_ptr<Fabric> fabric, memory::Memory& memory,
                                 LoopbackOptions options)
    : StagedMachine(pe, static_cast<int>(fabric->machines.size()), static_cast<int>(fabric->machines.size()),
                    memory, options.staging),
      fabric_(std::move(fabric)),
      options_(std::move(options)),
      sent_to_(static_cast<std::size_t>(num_pes())),
      lost_(static_cast<std::size_t>(num_pes())) {}

LoopbackMachine::~LoopbackMachine() { close(); }

bool LoopbackMachine::addresses(memory::Kind kind) const {
  return kind == memory::Kind::kHost ||
         std::ranges::find(options_.addressed_kinds, kind) != options_.addressed_kinds.end();
}

std::string LoopbackMachine::description() const {
  return base::format("loopback, PE {} of {} in one process", pe(), num_pes());
}

// --- starting and ending operations ---

Status LoopbackMachine::start(Completion* completion) {
  completion->in_flight = this;
  return Status::pending();
}

void LoopbackMachine::complete(Completion* completion, Status status, std::size_t size_bytes) {
  done_.push_back({completion, std::move(status), size_bytes});
}

Status LoopbackMachine::send(int pe, Packet packet, const ConstBuffer& buffer, Completion* completion,
                             MovableSource* movable) {
  LoopbackMachine* receiver = fabric_->machines[static_cast<std::size_t>(pe)];
  if (lost_[static_cast<std::size_t>(pe)]) return lost_peer(pe);
  if (receiver == nullptr) {
    return {StatusCode::kPeerFailed,
            base::format("PE {} has closed: nothing can be sent to it any more", pe)};
  }
  sent_to_[static_cast<std::size_t>(pe)] = true;
  packet.payload = std::make_shared<Payload>();
  Payload& payload = *packet.payload;
  payload.size_bytes = buffer.size_bytes;
  payload.is_eager = buffer.size_bytes <= kEagerBytes;
  payload.source = buffer.data;
  payload.movable = movable;
  if (payload.is_eager) {
    const auto* bytes = static_cast<const std::byte*>(buffer.data);
    payload.eager.assign(bytes, bytes + buffer.size_bytes);
    payload.source = payload.eager.data();
    if (movable != nullptr) *movable->read_bytes += buffer.size_bytes;
  }
  const bool is_over = payload.is_eager && !options_.late_sends;
  if (!is_over) {
    payload.sender = this;
    payload.receiver = pe;
    payload.completion = completion;
    sending_.push_back(packet.payload);
  }
  receiver->inbox_.push_back(std::move(packet));
  return is_over ? Status() : start(completion);
}

Status LoopbackMachine::consume(Payload& payload, void* into) {
  if (!payload.is_eager && payload.completion == nullptr) {
    return {StatusCode::kPeerFailed, "the sending PE closed before its message was received"};
  }
  const bool is_movable = payload.movable != nullptr && !payload.is_eager;
  if (is_movable) *payload.movable->read_bytes += payload.size_bytes;
  const void* const source = is_movable ? payload.movable->data : payload.source;
  if (payload.size_bytes > 0) std::memcpy(into, source, payload.size_bytes);
  drop(payload, {});
  return {};
}

void LoopbackMachine::drop(Payload& payload, Status sender_status) {
  if (payload.completion == nullptr) return;
  Completion* completion = std::exchange(payload.completion, nullptr);
  std::erase_if(payload.sender->sending_, [&](const auto& sending) { return sending.get() == &payload; });
  payload.sender->complete(completion, std::move(sender_status), payload.size_bytes);
}

// --- active messages ---

Status LoopbackMachine::transport_set_am_handler(AmId id, AmHandler handler, void* context) {
  handlers_[id] = {handler, context};
  return {};
}

Status LoopbackMachine::transport_am_send(int pe, AmId id, std::span<const std::byte> header,
                                          const ConstBuffer& payload, Completion* completion) {
  Packet packet;
  packet.is_active_message = true;
  packet.id = id;
  packet.header.assign(header.begin(), header.end());
  return send(pe, std::move(packet), payload, completion);
}

Status LoopbackMachine::transport_am_receive(AmPayload payload, const Buffer& into, Completion* completion) {
  auto found = kept_.extract(payload.detach());
  Status status = consume(*found.mapped(), into.data);
  complete(completion, std::move(status), payload.size_bytes());
  return start(completion);
}

void LoopbackMachine::release_payload(void* descriptor) {
  auto found = kept_.extract(descriptor);
  if (!found.empty()) drop(*found.mapped(), {});
}

// --- tagged messages ---

Status LoopbackMachine::transport_tag_send(int pe, Tag tag, const ConstBuffer& buffer,
                                           Completion* completion) {
  return send_tagged(pe, tag, buffer, completion, nullptr);
}

Status LoopbackMachine::send_tagged(int pe, Tag tag, const ConstBuffer& buffer, Completion* completion,
                                    MovableSource* movable) {
  if (tag_sends_to_refuse_ > 0) {
    --tag_sends_to_refuse_;
    return {StatusCode::kOutOfMemory,
            base::format("PE {} refuses to send {} bytes to PE {}, as the test asked", this->pe(),
                         buffer.size_bytes, pe)};
  }
  Packet packet;
  packet.tag = tag;
  return send(pe, std::move(packet), buffer, completion, movable);
}

Status LoopbackMachine::transport_tag_send_movable(int pe, Tag tag, MovableSource& source,
                                                   Completion* completion) {
  return send_tagged(pe, tag, ConstBuffer(source.data, source.size_bytes), completion, &source);
}

Status LoopbackMachine::transport_tag_receive(Tag tag, Tag mask, const Buffer& buffer,
                                              Completion* completion) {
  const Posted posted{tag, mask, buffer, completion};
  for (auto packet = unexpected_.begin(); packet != unexpected_.end(); ++packet) {
    if (((packet->tag ^ tag) & mask) != 0) continue;
    match(posted, *packet);
    unexpected_.erase(packet);
    return start(completion);
  }
  posted_.push_back(posted);
  return start(completion);
}

void LoopbackMachine::match(const Posted& posted, const Packet& packet) {
  Payload& payload = *packet.payload;
  if (payload.size_bytes <= posted.buffer.size_bytes) {
    complete(posted.completion, consume(payload, posted.buffer.data), payload.size_bytes);
    return;
  }
  drop(payload, {});
  complete(
      posted.completion,
      {StatusCode::kTruncated,
       base::format(
           "a message of {} bytes does not fit the buffer of {} bytes posted for it on PE {}; post one of "
           "at least the message's size",
           payload.size_bytes, posted.buffer.size_bytes, pe())},
      payload.size_bytes);
}

void LoopbackMachine::transport_cancel(Completion* completion) {
  for (auto posted = posted_.begin(); posted != posted_.end(); ++posted) {
    if (posted->completion != completion) continue;
    posted_.erase(posted);
    complete(completion, Status::cancelled(), 0);
    return;
  }
}

Status LoopbackMachine::transport_lose_peer(int pe) {
  lost_[static_cast<std::size_t>(pe)] = true;
  std::vector<std::shared_ptr<Payload>> lost;
  std::ranges::copy_if(sending_, std::back_inserter(lost),
                       [pe](const auto& sending) { return sending->receiver == pe; });
  for (const auto& payload : lost) drop(*payload, lost_peer(pe));
  return {};
}

// --- one-sided operations: done in order, from this PE's progress() ---

base::Result<RemoteMemory> LoopbackMachine::transport_register_memory(const Buffer& memory) {
  const std::uint64_t region = next_region_++;
  RemoteMemory result{reinterpret_cast<std::uintptr_t>(memory.data), memory.size_bytes, memory.place, {}};
  result.key.resize(sizeof region);
  std::memcpy(result.key.data(), &region, sizeof region);
  regions_.emplace(region, memory);
  return result;
}

Status LoopbackMachine::transport_deregister_memory(const RemoteMemory& memory) {
  std::uint64_t region = 0;
  if (memory.key.size() == sizeof region) std::memcpy(&region, memory.key.data(), sizeof region);
  if (regions_.erase(region) == 1) return {};
  return not_registered(memory);
}

base::Result<std::byte*> LoopbackMachine::find(int pe, const RemoteMemory& remote,
                                               std::size_t offset_bytes) const {
  if (lost_[static_cast<std::size_t>(pe)]) return lost_peer(pe);
  const LoopbackMachine* owner = fabric_->machines[static_cast<std::size_t>(pe)];
  if (owner == nullptr) return Status(StatusCode::kPeerFailed, base::format("PE {} has closed", pe));
  std::uint64_t region = 0;
  if (remote.key.size() == sizeof region) std::memcpy(&region, remote.key.data(), sizeof region);
  auto found = owner->regions_.find(region);
  if (found == owner->regions_.end()) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("the memory at {:#x} is not registered on PE {} (any more)", remote.address, pe));
  }
  return static_cast<std::byte*>(found->second.data) + offset_bytes;
}

Status LoopbackMachine::start_one_sided(std::size_t size_bytes, Completion* completion,
                                        std::function<Status()> run) {
  one_sided_.push_back({completion, size_bytes, std::move(run)});
  return start(completion);
}

Status LoopbackMachine::transport_put(int pe, const ConstBuffer& local, const RemoteMemory& remote,
                                      std::size_t offset_bytes, Completion* completion) {
  return start_one_sided(local.size_bytes, completion, [=, this] {
    base::Result<std::byte*> address = find(pe, remote, offset_bytes);
    if (address.ok()) std::memcpy(*address, local.data, local.size_bytes);
    return address.status();
  });
}

Status LoopbackMachine::transport_get(int pe, const Buffer& local, const RemoteMemory& remote,
                                      std::size_t offset_bytes, Completion* completion) {
  return start_one_sided(local.size_bytes, completion, [=, this] {
    base::Result<std::byte*> address = find(pe, remote, offset_bytes);
    if (address.ok()) std::memcpy(local.data, *address, local.size_bytes);
    return address.status();
  });
}

Status LoopbackMachine::transport_flush(Completion* completion) {
  return start_one_sided(0, completion, [] { return Status(); });
}

// --- progress, wait, close ---

void LoopbackMachine::arrive(Packet packet) {
  if (packet.is_active_message) {
    const Handler handler = handlers_[packet.id];
    if (handler.function == nullptr) {
      drop(*packet.payload, {});
      return;
    }
    Arrival arrival(*this, packet);
    handler.function(handler.context, arrival);
    if (!arrival.is_taken()) drop(*packet.payload, {});
    return;
  }
  for (auto posted = posted_.begin(); posted != posted_.end(); ++posted) {
    if (((packet.tag ^ posted->tag) & posted->mask) != 0) continue;
    match(*posted, packet);
    posted_.erase(posted);
    return;
  }
  unexpected_.push_back(std::move(packet));
}

bool LoopbackMachine::progress() {
  bool any = false;
  // Only what is there now: handlers may send to their own PE without end.
  for (std::size_t count = inbox_.size(); count > 0; --count) {
    Packet packet = std::move(inbox_.front());
    inbox_.pop_front();
    arrive(std::move(packet));
    any = true;
  }
  for (std::size_t count = one_sided_.size(); count > 0; --count) {
    OneSided operation = std::move(one_sided_.front());
    one_sided_.pop_front();
    complete(operation.completion, operation.run(), operation.size_bytes);
  }
  for (std::size_t count = done_.size(); count > 0; --count) {
    Done done = std::move(done_.front());
    done_.pop_front();
    done.completion->in_flight = nullptr;
    done.completion->function(done.completion, std::move(done.status), done.size_bytes);
    any = true;
  }
  if (shared_parts_need_progress()) any |= progress_shared_parts();
  return any;
}

void LoopbackMachine::wait(std::int64_t timeout_us) {
  if (has_work() || !peer_memory().before_sleep()) return;
  std::unique_lock lock(wake_mutex_);
  const auto woken = [this] { return woken_; };
  // condition_variable::wait() of g++ 12 needs the libstdc++ of g++ 12 at run time, and a wheel runs with an older one.
  // wait_for() needs only the C library.
  constexpr std::chrono::hours long_time(1);
  if (timeout_us < 0) {
    while (!wake_condition_.wait_for(lock, long_time, woken)) continue;
  } else {
    wake_condition_.wait_for(lock, std::chrono::microseconds(timeout_us), woken);
  }
  woken_ = false;
}

void LoopbackMachine::wake() {
  {
    std::lock_guard lock(wake_mutex_);
    woken_ = true;
  }
  wake_condition_.notify_one();
}

void LoopbackMachine::close() {
  if (is_closed()) return;
  begin_close();
  fabric_->machines[static_cast<std::size_t>(pe())] = nullptr;
  for (Posted& posted : posted_) complete(posted.completion, closed_machine(pe()), 0);
  posted_.clear();
  for (OneSided& operation : one_sided_) complete(operation.completion, closed_machine(pe()), 0);
  one_sided_.clear();
  while (!sending_.empty()) {
    drop(*std::shared_ptr<Payload>(sending_.front()), closed_machine(pe()));
  }
  // Those whose messages will not be received now.
  const Status gone{StatusCode::kPeerFailed,
                    base::format("PE {} closed before it received the message", pe())};
  for (Packet& packet : inbox_) drop(*packet.payload, gone);
  for (Packet& packet : unexpected_) drop(*packet.payload, gone);
  for (auto& [descriptor, payload] : kept_) drop(*payload, gone);
  inbox_.clear();
  unexpected_.clear();
  kept_.clear();
  while (!done_.empty()) {
    Done done = std::move(done_.front());
    done_.pop_front();
    done.completion->in_flight = nullptr;
    done.completion->function(done.completion, std::move(done.status), done.size_bytes);
  }
  end_close();
}

std::vector<PeerTransports> LoopbackMachine::peer_transports() const {
  PeerTransports reached{{}, "loopback/memory"};
  for (std::size_t pe = 0; pe < sent_to_.size(); ++pe) {
    if (sent_to_[pe]) reached.pes.push_back(static_cast<int>(pe));
  }
  if (reached.pes.empty()) return {};
  return {std::move(reached)};
}

}  // namespace weft::machine::loopback
