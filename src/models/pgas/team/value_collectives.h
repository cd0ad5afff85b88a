// Collectives of packed values.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "weft/pgas/team.h"
#include "weft/runtime/future.h"
#include "weft/runtime/reduction.h"

#include "models/pgas/team/exchange.h"
#include "models/pgas/team/team_state.h"

namespace weft::pgas {

// A rank's part of one collective, see algorithms.h.
class ValueData {
 public:
  // Begins the collective; `mine` may be an error. `combiner` is null: nothing is merged, or parts are gathered.
  ValueData(TeamState& team, const CollectiveType& type, const PackedValue& mine,
            const runtime::Combiner* combiner);
  ~ValueData() { team_.exchange.end(collective_); }
  ValueData(const ValueData&) = delete;
  ValueData& operator=(const ValueData&) = delete;

  const Members& members() const { return team_.members; }
  void expect(int from, std::uint32_t step) { receive_.emplace(team_.exchange, from, part(step)); }
  Receive& expected() { return *receive_; }
  void send(int to, std::uint32_t step);
  std::suspend_never sent() const { return {}; }
  void merge(Part part, bool is_in_front);
  void replace(Part part);

  // A reducer has ended the job: nothing is sent any more, and there is no result.
  bool is_abandoned() const { return is_abandoned_; }
  const std::exception_ptr& error() const { return error_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  PartId part(std::uint32_t step) const { return {collective_, type_, step}; }

  TeamState& team_;
  CollectiveType type_;
  std::uint64_t collective_;
  const runtime::Combiner* combiner_;
  std::vector<std::byte> bytes_;
  std::exception_ptr error_;
  bool is_abandoned_ = false;
  std::optional<Receive> receive_;
};

// Each starts the collective of this rank, and sets `result`, see Team::start_broadcast() and Team::start_reduce().
void start_broadcast(TeamState& team, const PackedValue& mine, int root, std::uint64_t type,
                     runtime::FutureState& result);
void start_reduce(TeamState& team, const PackedValue& mine, runtime::Reducer reducer,
                  const runtime::Combiner* combiner, int root, std::uint64_t type,
                  runtime::FutureState& result, bool is_optional);
void start_gather_on_all(TeamState& team, const PackedValue& mine, std::uint64_t type,
                         runtime::FutureState& result);

}  // namespace weft::pgas
