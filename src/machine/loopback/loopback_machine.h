// The reference machine: PEs in one process and on one thread that hand one another messages through queues.
// Simple and obviously right rather than fast; it keeps the asynchronous contract to the letter: no receive
// ever completes inside its start call, and messages above kEagerBytes stay with the sender until the
// receiver copies them.
//
// It addresses host memory, and kinds that it is told are host memory in truth, such as the stand-in CUDA
// driver's.
//
// Threads: one for all the PEs of a fabric, except wake().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "machine/staging/staged_machine.h"

namespace weft::machine::loopback {

class LoopbackMachine;
struct Fabric;

struct LoopbackOptions {
  StagingMode staging = StagingMode::kDevice;
  // No send completes before its message was received, also one whose bytes were copied: the answer to it
  // arrives first.
  bool late_sends = false;
  // Addressed besides host memory.
  std::vector<memory::Kind> addressed_kinds{};
};

base::Result<std::vector<std::unique_ptr<Machine>>> make_loopback(
    const std::vector<memory::Memory*>& memories, const LoopbackOptions& options = {});

class LoopbackMachine final : public StagedMachine<LoopbackMachine> {
 public:
  static constexpr std::size_t kEagerBytes = 2048;

  LoopbackMachine(int pe, std::shared_ptr<Fabric> fabric, memory::Memory& memory, LoopbackOptions options);
  ~LoopbackMachine() override;
  base::Status open() { return open_shared_parts(); }
  // So many tagged sends from now on fail at the call, as of a library that is out of memory.
  void refuse_tag_sends(int count) { tag_sends_to_refuse_ = count; }

  std::string description() const override;
  bool progress() override;
  void wait(std::int64_t timeout_us) override;
  void wake() override;
  void close() override;
  std::vector<PeerTransports> peer_transports() const override;

  bool addresses(memory::Kind kind) const override;
  base::Status transport_set_am_handler(AmId id, AmHandler handler, void* context) override;
  base::Status transport_am_send(int pe, AmId id, std::span<const std::byte> header,
                                 const memory::ConstBuffer& payload, base::Completion* completion) override;
  static QueueOutcome transport_queue_am(int /*pe*/, AmId /*id*/, std::span<const std::byte> /*header*/,
                                         const memory::ConstBuffer& /*payload*/,
                                         base::Completion* /*completion*/) {
    return QueueOutcome::kOtherWay;
  }
  base::Status transport_am_receive(AmPayload payload, const memory::Buffer& into,
                                    base::Completion* completion) override;
  base::Status transport_tag_send(int pe, Tag tag, const memory::ConstBuffer& buffer,
                                  base::Completion* completion) override;
  bool transport_can_move_source(int /*pe*/) const override { return true; }
  base::Status transport_tag_send_movable(int pe, Tag tag, MovableSource& source,
                                          base::Completion* completion) override;
  base::Status transport_tag_receive(Tag tag, Tag mask, const memory::Buffer& buffer,
                                     base::Completion* completion) override;
  void transport_cancel(base::Completion* completion) override;
  // The machine of the lost PE stays, as a process that is stopped would; what it sends afterwards arrives.
  base::Status transport_lose_peer(int pe) override;
  base::Result<RemoteMemory> transport_register_memory(const memory::Buffer& memory) override;
  base::Status transport_deregister_memory(const RemoteMemory& memory) override;
  base::Status transport_put(int pe, const memory::ConstBuffer& local, const RemoteMemory& remote,
                             std::size_t offset_bytes, base::Completion* completion) override;
  static bool takes_small_put(int /*pe*/, std::size_t /*size_bytes*/, const RemoteMemory& /*remote*/,
                              std::size_t /*offset_bytes*/) {
    return false;
  }
  // Never called.
  base::Status transport_small_put(int /*pe*/, const memory::ConstBuffer& /*local*/,
                                   const RemoteMemory& /*remote*/, std::size_t /*offset_bytes*/,
                                   base::Completion* /*completion*/) {
    return closed_machine(pe());
  }
  base::Status transport_get(int pe, const memory::Buffer& local, const RemoteMemory& remote,
                             std::size_t offset_bytes, base::Completion* completion) override;
  base::Status transport_flush(base::Completion* completion) override;

 private:
  class Arrival;

  // The bytes of a message: copied when it was sent (eager), or still in the sender's buffer.
  struct Payload {
    std::vector<std::byte> eager;
    std::size_t size_bytes = 0;
    bool is_eager = false;
    const void* source = nullptr;
    MovableSource* movable = nullptr;  // in its place
    // `sender` and `completion` belong to a send that waits to be received. Null completion: it is over, or the sender has closed.
    LoopbackMachine* sender = nullptr;
    base::Completion* completion = nullptr;
    int receiver = -1;  // with `sender`
  };
  struct Packet {
    bool is_active_message = false;
    Tag tag = 0;
    AmId id = 0;
    std::vector<std::byte> header;
    std::shared_ptr<Payload> payload;
  };
  struct Posted {
    Tag tag;
    Tag mask;
    memory::Buffer buffer;
    base::Completion* completion;
  };
  struct Done {
    base::Completion* completion;
    base::Status status;
    std::size_t size_bytes;
  };
  struct OneSided {
    base::Completion* completion;
    std::size_t size_bytes;
    std::function<base::Status()> run;
  };
  struct Handler {
    AmHandler function = nullptr;
    void* context = nullptr;
  };

  void release_payload(void* descriptor) override;

  base::Status send(int pe, Packet packet, const memory::ConstBuffer& buffer, base::Completion* completion,
                    MovableSource* movable = nullptr);
  base::Status send_tagged(int pe, Tag tag, const memory::ConstBuffer& buffer, base::Completion* completion,
                           MovableSource* movable);
  base::Status start(base::Completion* completion);
  void complete(base::Completion* completion, base::Status status, std::size_t size_bytes);
  void arrive(Packet packet);
  void match(const Posted& posted, const Packet& packet);
  // Copies a message's bytes to `into` and ends the send. REQUIRES: they fit.
  base::Status consume(Payload& payload, void* into);
  void drop(Payload& payload, base::Status sender_status);
  base::Status start_one_sided(std::size_t size_bytes, base::Completion* completion,
                               std::function<base::Status()> run);
  base::Result<std::byte*> find(int pe, const RemoteMemory& remote, std::size_t offset_bytes) const;
  bool has_work() const {
    return !inbox_.empty() || !done_.empty() || !one_sided_.empty() || needs_polling();
  }

  std::shared_ptr<Fabric> fabric_;
  std::vector<Handler> handlers_ = std::vector<Handler>(kNumAmIds);
  std::deque<Packet> inbox_;
  std::list<Packet> unexpected_;
  std::list<Posted> posted_;
  std::deque<Done> done_;
  std::deque<OneSided> one_sided_;
  std::list<std::shared_ptr<Payload>> sending_;
  std::map<const void*, std::shared_ptr<Payload>> kept_;
  std::map<std::uint64_t, memory::Buffer> regions_;
  std::uint64_t next_region_ = 1;
  LoopbackOptions options_;
  int tag_sends_to_refuse_ = 0;
  std::vector<bool> sent_to_;  // by PE
  std::vector<bool> lost_;     // by PE

  std::mutex wake_mutex_;
  std::condition_variable wake_condition_;
  bool woken_ = false;
};

}  // namespace weft::machine::loopback
