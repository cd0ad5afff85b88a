// The machine that runs on UCX: one context and one worker per PE, endpoints made on first use.
//
// Threads: the PE's thread only, or one at a time (CallingThreads), except wake(). A small message allocates nothing:
// UCX's own request holds Weft's record of the operation.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "machine/calling_threads.h"
#include "machine/host_queue/host_queues.h"
#include "machine/staging/staged_machine.h"
#include "machine/ucx/handles/context.h"
#include "machine/ucx/handles/endpoint.h"
#include "machine/ucx/handles/memory_region.h"
#include "machine/ucx/handles/movable_datatype.h"
#include "machine/ucx/handles/quiet.h"
#include "machine/ucx/handles/request.h"
#include "machine/ucx/handles/worker.h"
#include "machine/ucx/messages/active_message.h"
#include "machine/ucx/messages/small_puts.h"
#include "machine/ucx/setup/introduction.h"
#include "machine/ucx/setup/job_secret.h"

namespace weft::machine::ucx {

struct UcxMachineOptions {
  int pe = 0;
  int num_pes = 1;
  int pes_on_host = 1;
  StagingMode staging = StagingMode::kDevice;
  CallingThreads threads = CallingThreads::kOne;
};

class UcxMachine final : public StagedMachine<UcxMachine>, private RequestTracker::Translator {
 public:
  // `memory` must outlive the machine. The machine is usable after connect().
  static base::Result<std::unique_ptr<UcxMachine>> create(const UcxMachineOptions& options,
                                                          memory::Memory& memory);
  ~UcxMachine() override;

  // The data that the other PEs need from this one. `proposed` is a secret for the job; see agree().
  base::Result<Introduction> introduce(const JobSecret& proposed) const;
  // If the agreement has a secret, active messages without it are refused. REQUIRES: progress() was not called.
  base::Status connect(Agreement agreement);
  // The transports that UCX has opened, each "transport/device".
  std::set<std::string> transports() const { return context_.transports(); }

  std::string description() const override;

  bool progress() override;
  void wait(std::int64_t timeout_us) override;
  void wake() override { worker_.wake(); }
  void close() override;
  std::vector<PeerTransports> peer_transports() const override;
  std::vector<std::string> obstacles() const override;
  bool has_secret() const { return secret_.has_value(); }
  // The number of active messages that were refused because they came from outside the job.
  std::uint64_t num_refused() const { return active_messages_.num_refused(); }
  // Smaller than kMaxAmHeaderBytes if UCX's own limit is smaller.
  std::size_t max_am_header_bytes() const override { return max_header_bytes_; }

  bool addresses(memory::Kind kind) const override;
  base::Status transport_set_am_handler(AmId id, AmHandler handler, void* context) override;
  base::Status transport_am_send(int pe, AmId id, std::span<const std::byte> header,
                                 const memory::ConstBuffer& payload, base::Completion* completion) override;
  // Sends it through the queue of the PE, if it is not too large for a ring; if the ring is full, it waits. Without a completion a
  // message that waits is copied. REQUIRES: host memory.
  QueueOutcome transport_queue_am(int pe, AmId id, std::span<const std::byte> header,
                                  const memory::ConstBuffer& payload, base::Completion* completion) {
    using Sent = HostQueues::Sent;
    const std::span bytes(static_cast<const std::byte*>(payload.data), payload.size_bytes);
    const Sent sent = queues_.send(pe, id, header, bytes);
    if (sent == Sent::kYes) [[likely]]
      return QueueOutcome::kSent;
    if (sent == Sent::kNo) return QueueOutcome::kOtherWay;
    if (sent == Sent::kToSleeper) return wake_otherwise(pe);
    return queue_when_full(pe, id, header, bytes, completion);
  }
  base::Status transport_am_receive(AmPayload payload, const memory::Buffer& into,
                                    base::Completion* completion) override;
  base::Status transport_tag_send(int pe, Tag tag, const memory::ConstBuffer& buffer,
                                  base::Completion* completion) override;
  bool transport_can_move_source(int pe) const override;
  base::Status transport_tag_send_movable(int pe, Tag tag, MovableSource& source,
                                          base::Completion* completion) override;
  base::Status transport_tag_receive(Tag tag, Tag mask, const memory::Buffer& buffer,
                                     base::Completion* completion) override;
  void transport_cancel(base::Completion* completion) override;
  base::Status transport_lose_peer(int pe) override;
  base::Result<RemoteMemory> transport_register_memory(const memory::Buffer& memory) override;
  base::Status transport_deregister_memory(const RemoteMemory& memory) override;
  void transport_forget_remote(int pe, const RemoteMemory& remote) override;
  base::Status transport_put(int pe, const memory::ConstBuffer& local, const RemoteMemory& remote,
                             std::size_t offset_bytes, base::Completion* completion) override;
  base::Status transport_put_and_flush(int pe, const memory::ConstBuffer& local, const RemoteMemory& remote,
                                       std::size_t offset_bytes, base::Completion* put,
                                       base::Completion* flush, bool& is_put_pending) override;
  // Whether the put is one of SmallPuts. Then transport_small_put() starts it; its completion is that of put_and_flush().
  // REQUIRES: host memory on both sides.
  bool takes_small_put(int pe, std::size_t size_bytes, const RemoteMemory& remote,
                       std::size_t offset_bytes) const {
    return size_bytes <= SmallPuts::kMostBytes && endpoints_.emulates_puts(pe) &&
           MemoryRegions::has_id(remote) && small_puts_.can_take(MemoryRegions::id_of(remote), offset_bytes);
  }
  [[gnu::always_inline]] base::Status transport_small_put(int pe, const memory::ConstBuffer& local,
                                                          const RemoteMemory& remote,
                                                          std::size_t offset_bytes,
                                                          base::Completion* completion) {
    return small_puts_.start(pe, local, MemoryRegions::id_of(remote), offset_bytes, completion);
  }
  base::Status transport_get(int pe, const memory::Buffer& local, const RemoteMemory& remote,
                             std::size_t offset_bytes, base::Completion* completion) override;
  base::Status transport_flush(base::Completion* completion) override;
  base::Status transport_flush_pe(int pe, base::Completion* completion) override;

 private:
  UcxMachine(const UcxMachineOptions& options, memory::Memory& memory, Context context,
             MovableDatatype movable, Worker worker);

  void release_payload(void* descriptor) override;
  base::Status translate(const Request& request) const override;
  base::Status translate(const Started& started, ucs_status_t status) const override;

  // The parameters of every operation: callback, tracker, memory type, and the handle of registered memory if
  // the buffer lies in such memory.
  template <class Callback>
  ucp_request_param_t parameters(memory::Place place, const void* data, std::size_t size_bytes,
                                 Callback set) const;
  ucp_request_param_t flush_parameters() const;
  // Returns call(endpoint), with the endpoint to that PE, which is made on first use.
  template <class Call>
  base::Status with_endpoint(int pe, Call call);
  // Finds what a put or a get needs, if it is not what the last one used. kPeerFailed if the peer has failed.
  [[gnu::noinline]] base::Status first_one_sided(int pe, const RemoteMemory& remote, ucp_ep_h& endpoint,
                                                 ucp_rkey_h& key);
  // Starts a put or a get, by call(endpoint, key, parameters).
  template <class Call>
  [[gnu::always_inline]] inline base::Status one_sided(const Started& what, const memory::ConstBuffer& local,
                                                       const RemoteMemory& remote,
                                                       base::Completion* completion, Call call);
  // The rest of transport_queue_am(): for a sleeper that the queue could not wake, and for a full ring.
  [[gnu::cold, gnu::noinline]] QueueOutcome wake_otherwise(int pe);
  [[gnu::cold, gnu::noinline]] QueueOutcome queue_when_full(int pe, AmId id,
                                                            std::span<const std::byte> header,
                                                            std::span<const std::byte> payload,
                                                            base::Completion* completion);
  // progress() when messages have come through this PE's queue.
  [[gnu::noinline]] bool progress_with_queue();
  // The part of progress() that runs only if attention().wanted is set. Returns whether anything happened, here or before.
  bool progress_rare(bool happened);
  // Closes the endpoints of peers that have failed, and ends the small puts to them.
  void close_failed_peers();
  struct LargeHeader;
  // Sends a message that carries the job's secret or has a header larger than max_header_bytes_.
  base::Status send_special(ucp_ep_h endpoint, int pe, AmId id, std::span<const std::byte> header,
                            const memory::ConstBuffer& payload, base::Completion* completion);
  base::Status send_am(ucp_ep_h endpoint, int pe, AmId id, std::span<const std::byte> header,
                       const memory::ConstBuffer& payload, base::Completion* completion);
  bool has_deferred() const;

  QuietRemapping quiet_;
  QuietLostPeers quiet_about_lost_;
  Context context_;
  MovableDatatype movable_;
  Worker worker_;
  std::optional<JobSecret> secret_;
  RequestTracker tracker_;
  ActiveMessages active_messages_;
  EndpointTable endpoints_;
  MemoryRegions regions_;
  ShortMessages short_messages_;
  SmallPuts small_puts_;
  HostQueues queues_;
  int queue_rounds_left_ = 1;  // that find messages, until UCX is polled too
  // Both arrays are indexed by kind.
  std::array<ucs_memory_type_t, memory::kNumKinds> memory_types_{};
  std::array<bool, memory::kNumKinds> addressed_{};
  std::size_t max_header_bytes_;
  // Messages with larger headers take send_special(). -1 if there is a secret: all messages take it then.
  std::ptrdiff_t max_plain_header_bytes_;
};

}  // namespace weft::machine::ucx
