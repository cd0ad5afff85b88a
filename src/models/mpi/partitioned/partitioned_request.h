// Partitioned messages: one send and one receive whose partitions are made ready, and arrive, one by one.
//
// The two ends find each other once, when both requests exist: by communicator, source and tag, in the order in which the requests
// were made. The sender sends an Introduction, the receiver replies, and both compute the same PartitionCut. From then on each
// message of the cut is a persistent message of the engine, in a context that the sender has chosen for this pair of requests. Its
// tag says which message of the cut it is, so messages may become ready in any order.
//
// A partition that is made ready before the ends have found each other waits at the sender.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "weft/runtime/task.h"

#include "models/mpi/p2p/data_view.h"
#include "models/mpi/p2p/point_to_point.h"
#include "models/mpi/partitioned/partition_cut.h"

namespace weft::mpi {

// One end of a partitioned message.
struct PartitionedCall {
  PointToPoint* engine = nullptr;
  // Of the messages in which the two ends find each other.
  std::uint64_t context = 0;
  int rank = 0;        // of this process, in the communicator
  int peer = 0;        // of the other end, in the communicator
  int world_peer = 0;  // the same in MPI_COMM_WORLD
  int tag = 0;
  bool no_process = false;  // the peer is MPI_PROC_NULL
  // The elements of all partitions together.
  DataView view;
  std::int64_t num_partitions = 0;
  std::int64_t extent_bytes = 0;  // from one element to the next; read if the view is not dense
};

class PartitionedRequest : public Request {
 public:
  std::int64_t num_partitions() const { return partitions_.number; }
  virtual bool is_send() const = 0;
  // The peer is MPI_PROC_NULL.
  bool is_for_no_process() const { return call_.no_process; }
  // Finds the other end, in the background. Called once, before the first start.
  void find_peer();

  void start() final;

  // --- Of a send. REQUIRES: 0 <= partition < num_partitions(), and the request is active
  virtual bool is_ready(std::int64_t /*partition*/) const { return false; }
  // REQUIRES: !is_ready(partition).
  virtual void make_ready(std::int64_t /*partition*/) {}

  // --- Of a receive. REQUIRES: 0 <= partition < num_partitions()
  // Also true if the request is not active, or complete.
  virtual bool has_arrived(std::int64_t /*partition*/) const { return true; }

 protected:
  explicit PartitionedRequest(PartitionedCall call);

  // What an end tells the other one.
  struct Introduction {
    std::uint64_t context = 0;  // of the messages of the cut
    Partitions partitions;
  };
  static_assert(sizeof(Introduction) == 4 * sizeof(std::int64_t));
  // The tag of the reply in that context; message n has the tag n + 1.
  static constexpr int kReplyTag = 0;

  PointToPoint& engine() const { return *call_.engine; }
  const PartitionedCall& call() const { return call_; }
  const Partitions& partitions() const { return partitions_; }
  // Nothing until the ends have found each other.
  const std::optional<PartitionCut>& cut() const { return cut_; }
  Request& message(std::size_t number) const { return *messages_[number]; }
  bool is_under_way() const { return is_active() && !is_complete(); }

  // Exchanges introductions and calls use_cut(). `self`: keeps the request meanwhile.
  virtual runtime::Task<> agree(Ref<PartitionedRequest> self) = 0;
  // Ends the job: the peer claims what cannot be.
  [[noreturn, gnu::cold]] void refuse() const;
  void use_cut(const PartitionCut& cut, std::uint64_t context);
  // The ends do not find each other, because the peer is lost or the communicator revoked. The request fails each time it is started.
  void fail(int error_class);

  // Makes the request of a message, not yet started.
  virtual Ref<Request> make_message(std::uint64_t context, int tag, const DataView& view) = 0;
  // The request was started; its peer may be unknown yet.
  virtual void prepare() {}
  // The request was started, and its peer is known: starts the messages that may be.
  virtual void begin() = 0;
  // All messages have been started.
  void finish();

 private:
  runtime::Task<> await_messages(Ref<PartitionedRequest> self);
  void complete_with_messages();
  DataView view_of(std::size_t message) const;

  const PartitionedCall call_;
  const Partitions partitions_;
  std::optional<PartitionCut> cut_;
  std::vector<Ref<Request>> messages_;
  int failure_ = 0;  // MPI_SUCCESS
};

class PartitionedSend final : public PartitionedRequest {
 public:
  explicit PartitionedSend(PartitionedCall call) : PartitionedRequest(std::move(call)) {}
  bool is_send() const override { return true; }
  bool is_ready(std::int64_t partition) const override { return ready_[static_cast<std::size_t>(partition)]; }
  void make_ready(std::int64_t partition) override;

 private:
  runtime::Task<> agree(Ref<PartitionedRequest> self) override;
  Ref<Request> make_message(std::uint64_t context, int tag, const DataView& view) override;
  void prepare() override;
  void begin() override;
  void start_message(std::size_t number);

  std::vector<bool> ready_;             // by partition
  std::vector<std::int64_t> num_left_;  // by message: its partitions that are not ready
  std::size_t num_started_ = 0;         // of the messages
};

class PartitionedReceive final : public PartitionedRequest {
 public:
  explicit PartitionedReceive(PartitionedCall call) : PartitionedRequest(std::move(call)) {}
  bool is_send() const override { return false; }
  bool has_arrived(std::int64_t partition) const override;

 private:
  runtime::Task<> agree(Ref<PartitionedRequest> self) override;
  Ref<Request> make_message(std::uint64_t context, int tag, const DataView& view) override;
  void begin() override;
};

}  // namespace weft::mpi
