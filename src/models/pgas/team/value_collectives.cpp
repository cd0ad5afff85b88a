#include "models/pgas/team/value_collectives.h"

#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/runtime/task.h"

#include "models/pgas/team/algorithms.h"
#include "models/pgas/team/exchange.h"
#include "runtime/collective/reducer_failure.h"
#include "runtime/collective/reductions.h"

namespace weft::pgas {

// A rank's part of one collective, see algorithms.h.
class ValueData {
 public:
  // Begins the collective; `mine` may be an error. `combiner` is null: nothing is merged.
  ValueData(TeamState& team, const CollectiveType& type, const PackedValue& mine,
            const runtime::Combiner* combiner = nullptr, runtime::Reducer reducer = runtime::Reducer::kSum);
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
  std::uint32_t collective_;
  const runtime::Combiner* combiner_;
  runtime::Reducer reducer_;
  std::vector<std::byte> bytes_;
  std::exception_ptr error_;
  bool is_abandoned_ = false;
  std::optional<Receive> receive_;
};

namespace {

using Result = runtime::FutureShare<runtime::FutureState>;
using DataPointer = std::unique_ptr<ValueData>;

constexpr std::string_view kWhereValues = "a collective operation of a team";

CollectiveType value_type(CollectiveKind kind, runtime::Reducer reducer, int root, std::uint64_t type,
                          const runtime::Combiner* combiner) {
  // A combiner has the same number on all PEs.
  const std::uint64_t operation = combiner == nullptr ? 0 : combiner->id + std::uint64_t{1};
  return CollectiveType::of(kind, root, reducer, type ^ operation * 0x9e3779b97f4a7c15);
}

// --- The coroutines

runtime::Task<> run_broadcast(DataPointer data, int root, Result result) {
  co_await spread_down(*data, root);
  data->error() ? result->set_error(data->error()) : set_packed_result(*result.get(), data->bytes());
}

runtime::Task<> run_reduce(DataPointer data, int root, bool is_optional, Result result) {
  co_await merge_up(*data, root);
  if (data->is_abandoned()) co_return;
  const bool is_root = data->members().rank() == root;
  if (data->error()) {
    result->set_error(data->error());
    co_return;
  }
  std::vector<std::byte> packed;
  if (is_optional) packed.push_back(static_cast<std::byte>(is_root));
  if (is_root) packed.insert(packed.end(), data->bytes().begin(), data->bytes().end());
  set_packed_result(*result.get(), packed);
}

runtime::Task<> run_allreduce(DataPointer data, Result result) {
  co_await merge_on_all(*data);
  if (data->is_abandoned()) co_return;
  data->error() ? result->set_error(data->error()) : set_packed_result(*result.get(), data->bytes());
}

}  // namespace

// --- ValueData

ValueData::ValueData(TeamState& team, const CollectiveType& type, const PackedValue& mine,
                     const runtime::Combiner* combiner, runtime::Reducer reducer)
    : team_(team),
      type_(type),
      collective_(team.exchange.begin_parts(type)),
      combiner_(combiner),
      reducer_(reducer),
      error_(mine.error) {
  if (error_) return;
  try {
    bytes_.assign(mine.bytes.begin(), mine.bytes.end());
  } catch (...) {  // no memory: the collective has begun, and fails as one
    error_ = std::current_exception();
  }
}

void ValueData::send(int to, std::uint32_t step) {
  if (is_abandoned_) return;
  if (error_) {
    team_.exchange.send_error(to, part(step), error_);
  } else {
    team_.exchange.send(to, part(step), bytes_);
  }
}

void ValueData::merge(Part part, bool is_in_front) {
  if (error_ || is_abandoned_) return;
  if (part.error) {
    error_ = part.error;
    return;
  }
  team_.runtime.reductions().note_merge({});  // of no collection
  try {
    if (!is_in_front) return combiner_->function(team_.runtime, reducer_, bytes_, part.bytes);
    std::vector<std::byte> front(part.bytes.begin(), part.bytes.end());
    combiner_->function(team_.runtime, reducer_, front, bytes_);
    bytes_ = std::move(front);
  } catch (const runtime::AbandonedReduction&) {
    is_abandoned_ = true;
  } catch (...) {  // of the program's function, or of vectors of different lengths
    error_ = std::current_exception();
  }
}

void ValueData::replace(Part part) {
  error_ = part.error;
  if (!error_) bytes_.assign(part.bytes.begin(), part.bytes.end());
}

// --- Starting

void start_broadcast(TeamState& team, const PackedValue& mine, int root, std::uint64_t type,
                     runtime::FutureState& result) {
  const CollectiveType what =
      value_type(CollectiveKind::kBroadcast, runtime::Reducer::kSum, root, type, nullptr);
  team.runtime.spawn(run_broadcast(std::make_unique<ValueData>(team, what, mine), root, Result(&result)),
                     std::string(kWhereValues));
}

void start_reduce(TeamState& team, const PackedValue& mine, runtime::Reducer reducer,
                  const runtime::Combiner* combiner, int root, std::uint64_t type,
                  runtime::FutureState& result, bool is_optional) {
  const auto kind = root < 0 ? CollectiveKind::kAllReduce : CollectiveKind::kReduce;
  const CollectiveType what = value_type(kind, reducer, root < 0 ? 0 : root, type, combiner);
  auto data = std::make_unique<ValueData>(team, what, mine, combiner, reducer);
  if (root < 0) {
    team.runtime.spawn(run_allreduce(std::move(data), Result(&result)), std::string(kWhereValues));
  } else {
    team.runtime.spawn(run_reduce(std::move(data), root, is_optional, Result(&result)),
                       std::string(kWhereValues));
  }
}

void set_packed_result(runtime::FutureState& result, std::span<const std::byte> bytes) {
  try {
    Pup p = Pup::unpacker(bytes.data(), bytes.size(), &result.runtime());
    result.set_packed(p);
  } catch (...) {
    result.set_error(std::current_exception());
  }
}

}  // namespace weft::pgas
