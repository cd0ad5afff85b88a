// The engines of the ranks on one PE, and the handlers that give each message to the engine of its rank.
//
// Threads: the PE's. All that a peer sends is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/runtime/messenger.h"
#include "weft/runtime/model.h"

#include "models/mpi/p2p/point_to_point.h"
#include "models/mpi/p2p/shared_state.h"

namespace weft::mpi {

class RankEngines {
 public:
  // One rank for each PE, until place() is called.
  RankEngines(runtime::Messenger& messenger, const runtime::ModelRange& range);
  RankEngines(const RankEngines&) = delete;
  RankEngines& operator=(const RankEngines&) = delete;

  // REQUIRES: no message has been sent, and the map has the PEs of the job.
  void place(RankMap map);
  // Ranks have moved: all ranks get new engines, which begin anew. REQUIRES: as place(), and no request is pending on any PE.
  void replace(RankMap map);
  // A MoveFunction receives the numbers that the parts of a move of ranks send each other: at most one number for each PE. It is
  // called on the PE that tell_mover() names. It throws Error if it did not expect the numbers.
  using MoveFunction = void (*)(void* context, int from_pe, std::span<const std::uint64_t> numbers);
  void set_move_function(MoveFunction function, void* context) {
    move_function_ = function;
    move_context_ = context;
  }
  void tell_mover(int pe, std::span<const std::uint64_t> numbers);
  // How many messages the ranks of this PE have sent to the ranks of each PE since place() or replace(), and how many have
  // come to them. Modulo 2^32.
  std::vector<std::uint64_t> num_sent_to_pes() const;
  std::uint32_t num_arrived() const;

  const RankMap& map() const { return shared_->map(); }
  // In the order of their numbers.
  std::span<const std::unique_ptr<PointToPoint>> engines() const { return engines_; }
  // Null if the rank is not on this PE. REQUIRES: map().has(rank).
  PointToPoint* find(int rank) const { return shared_->destination(rank).here; }
  void close();

 private:
  // The engine that a message is for. Throws Error for a message that is too short, or for a rank that is elsewhere.
  PointToPoint& receiver_of(const runtime::Message& message) const;
  PointToPoint& receiver_of(int source_pe, std::span<const std::byte> header) const;
  void on_answer(const runtime::Message& message);
  void on_move_numbers(const runtime::Message& message);
  void on_offer(const runtime::Message& message);
  void set_handlers();
  void make_engines();

  runtime::Messenger& messenger_;
  const runtime::ModelRange range_;
  std::unique_ptr<SharedState> shared_;
  std::vector<std::unique_ptr<PointToPoint>> engines_;
  MoveFunction move_function_ = nullptr;
  void* move_context_ = nullptr;
};

}  // namespace weft::mpi
