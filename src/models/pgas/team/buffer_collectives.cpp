#include "models/pgas/team/buffer_collectives.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/task.h"

#include "models/pgas/team/algorithms.h"
#include "models/pgas/team/copy_or_fail.h"

namespace weft::pgas {

namespace {

constexpr std::string_view kWhereBuffers = "a collective operation on buffers of a team";

// A rank's part of a collective on one buffer, see algorithms.h.
class BufferData {
 public:
  BufferData(TeamState& team, const CollectiveType& type, const memory::Buffer& mine)
      : team_(team), type_(type), collective_(team.exchange.begin_parts(type)), mine_(mine) {}
  ~BufferData() { team_.exchange.end(collective_); }
  BufferData(const BufferData&) = delete;
  BufferData& operator=(const BufferData&) = delete;

  const Members& members() const { return team_.members; }
  TeamState& team() const { return team_; }
  // Where the parts land that are merged or replace; without it, in the buffer itself.
  void land_in(const memory::Buffer& theirs) { theirs_ = theirs; }
  void expect(int from, std::uint32_t step) {
    receive_.emplace(team_.exchange, from, part(step), theirs_.data != nullptr ? &theirs_ : &mine_);
  }
  Receive& expected() { return *receive_; }
  void send(int to, std::uint32_t step) {
    if (error_) {
      team_.exchange.send_error(to, part(step), error_);
    } else {
      sends_.push_back(team_.exchange.send_buffer(to, part(step), mine_));
    }
  }
  runtime::Task<> sent() {
    std::vector<runtime::Operation> sends = std::exchange(sends_, {});
    for (runtime::Operation& one : sends) {
      try {
        co_await one;
      } catch (...) {
        fail(std::current_exception());
      }
    }
  }

  const std::exception_ptr& error() const { return error_; }
  void fail(const std::exception_ptr& error) {
    if (!error_) error_ = error;
  }

 protected:
  PartId part(std::uint32_t step) const { return {collective_, type_, step}; }

  TeamState& team_;
  CollectiveType type_;
  std::uint32_t collective_;
  memory::Buffer mine_;
  memory::Buffer theirs_;
  std::exception_ptr error_;
  std::optional<Receive> receive_;
  std::vector<runtime::Operation> sends_;
};

class BroadcastBuffer final : public BufferData {
 public:
  using BufferData::BufferData;
  void replace(const Part& part) { error_ = part.error; }
};

// Elements in host memory, with room for those of another rank.
class ReducedBuffer final : public BufferData {
 public:
  ReducedBuffer(TeamState& team, const CollectiveType& type, const ElementCombine& combine,
                runtime::Reducer reducer, std::size_t size_bytes)
      : BufferData(team, type, {}), combine_(combine), reducer_(reducer), size_bytes_(size_bytes) {
    try {
      mine_memory_ = std::make_unique_for_overwrite<std::byte[]>(size_bytes);
      theirs_memory_ = std::make_unique_for_overwrite<std::byte[]>(size_bytes);
    } catch (...) {
      // No memory: the collective has begun, and fails as one. What others send has no place to land.
      size_bytes_ = 0;
      fail(std::current_exception());
    }
    point();
  }

  const memory::Buffer& mine() const { return mine_; }
  // For logical reducers: each number becomes 0 or 1, because a team of one rank merges nothing.
  void normalise() {
    if (runtime::is_logical(reducer_)) combine(runtime::Reducer::kLogicalOr, mine_memory_, mine_memory_);
  }
  void merge(const Part& part, bool is_in_front) {
    if (part.error) return fail(part.error);
    if (error_) return;
    if (!is_in_front) return combine(reducer_, mine_memory_, theirs_memory_);
    combine(reducer_, theirs_memory_, mine_memory_);
    swap_memory();
  }
  void replace(const Part& part) {
    error_ = part.error;
    swap_memory();
  }

 private:
  using Block = std::unique_ptr<std::byte[]>;

  void combine(runtime::Reducer reducer, const Block& into, const Block& from) {
    try {
      combine_.function(reducer, into.get(), from.get(), size_bytes_ / combine_.element_bytes);
    } catch (...) {  // of the program's function
      fail(std::current_exception());
    }
  }
  void swap_memory() {
    std::swap(mine_memory_, theirs_memory_);
    point();
  }
  void point() {
    mine_ = {mine_memory_.get(), size_bytes_, {}, nullptr};
    land_in({theirs_memory_.get(), size_bytes_, {}, nullptr});
  }

  ElementCombine combine_;
  runtime::Reducer reducer_;
  std::size_t size_bytes_;
  Block mine_memory_;
  Block theirs_memory_;
};

void end_with(const runtime::Future<>& done, const std::exception_ptr& error) {
  error ? done.set_error(error) : done.set();
}

runtime::Task<> run_buffer_broadcast(std::unique_ptr<BroadcastBuffer> data, int root,
                                     runtime::Future<> done) {
  co_await spread_down(*data, root);
  end_with(done, data->error());
}

runtime::Task<> run_buffer_reduce(std::unique_ptr<ReducedBuffer> data, memory::Buffer values, int root,
                                  runtime::Future<> done) {
  if (!data->error()) co_await copy_or_fail(*data, data->mine(), values);
  if (!data->error()) data->normalise();
  if (root < 0) {
    co_await merge_on_all(*data);
  } else {
    co_await merge_up(*data, root);
  }
  const bool has_result = root < 0 || data->members().rank() == root;
  if (has_result && !data->error()) co_await copy_or_fail(*data, values, data->mine());
  end_with(done, data->error());
}

}  // namespace

runtime::Future<> start_buffer_broadcast(TeamState& team, const memory::Buffer& values, std::uint64_t type,
                                         int root) {
  runtime::Future<> done(team.runtime);
  const CollectiveType what =
      CollectiveType::of(CollectiveKind::kBroadcastBuffer, root, runtime::Reducer::kSum, type);
  auto data = std::make_unique<BroadcastBuffer>(team, what, values);
  team.runtime.spawn(run_buffer_broadcast(std::move(data), root, done), std::string(kWhereBuffers));
  return done;
}

runtime::Future<> start_buffer_reduce(TeamState& team, const memory::Buffer& values,
                                      const ElementCombine& combine, runtime::Reducer reducer, int root) {
  runtime::Future<> done(team.runtime);
  const auto kind = root < 0 ? CollectiveKind::kAllReduceBuffer : CollectiveKind::kReduceBuffer;
  const CollectiveType what = CollectiveType::of(kind, root < 0 ? 0 : root, reducer, combine.number);
  auto data = std::make_unique<ReducedBuffer>(team, what, combine, reducer, values.size_bytes);
  team.runtime.spawn(run_buffer_reduce(std::move(data), values, root, done), std::string(kWhereBuffers));
  return done;
}

}  // namespace weft::pgas
