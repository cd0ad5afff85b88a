#include "models/pgas/team/gather_collectives.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/runtime/reduction.h"
#include "weft/runtime/task.h"

#include "models/pgas/team/engine_collectives.h"
#include "models/pgas/team/gathered_values.h"
#include "models/pgas/team/value_collectives.h"

namespace weft::pgas {

namespace {

using collective::Call;
using collective::Form;
using collective::Kind;

CollectiveType gather_type(Form form, std::uint64_t type) {
  return CollectiveType::of(CollectiveKind::kAllGather, 0, runtime::Reducer::kGather, type,
                            CollectiveType::way_of(form));
}

// --- Values of one size: frees itself when the call is over, or when the runtime closes

class FixedGather final : public TeamCall, private runtime::DetachedTask {
 public:
  FixedGather(TeamState& team, Form form, std::span<const std::byte> mine, std::uint64_t type,
              runtime::FutureState& result)
      : TeamCall(
            team, CollectiveKind::kAllGather,
            {.kind = Kind::kAllgather, .number = begin_call(team, gather_type(form, type)), .form = form}),
        result_(&result) {
    team.runtime.list_pending(this);
    const std::size_t size_bytes = mine.size();
    try {
      values_.emplace(*team.group, form, std::span(&size_bytes, 1));
      values_->put(mine);
      values_->give_to(call());
    } catch (...) {
      fail(std::current_exception());
    }
  }

 private:
  void ended() override {
    if (has_failed()) {
      result_->set_error(failure());
    } else {
      set_packed_result(*result_.get(), values_->packed());
    }
    delete this;
  }
  void finished() noexcept override {}
  void abandon() noexcept override { delete this; }

  runtime::FutureShare<runtime::FutureState> result_;
  std::optional<GatheredValues> values_;
};

// --- Values of any size

// What each rank tells all others first.
struct ValueHead {
  std::uint64_t size_bytes = 0;
  std::byte first[120] = {};  // of the value
};
static_assert(std::has_unique_object_representations_v<ValueHead> && sizeof(ValueHead) == 128);
constexpr std::size_t kHeadBytes = sizeof(ValueHead);

// One collective of this rank.
//
// It is several calls of the engine, one after another, and has two numbers, which the calls use in turn: a rank that begins a call has
// got the blocks of the one before from all, so all have ended the one before that.
struct Gather {
  Gather(TeamState& team_in, std::uint64_t type, const PackedValue& value, runtime::FutureState& result_in)
      : team(team_in), result(&result_in), failure(value.error) {
    const CollectiveType what = gather_type(head_form(), type);
    for (std::uint64_t& number : numbers) number = begin_call(team, what);
    if (failure) return;
    try {
      mine = value.bytes;
    } catch (...) {  // no memory: the collective has begun, and fails as one
      failure = std::current_exception();
    }
  }
  Form head_form() const { return team.group->form(Kind::kAllgather, kHeadBytes); }
  std::uint64_t next_number() { return numbers[num_calls++ % 2]; }

  TeamState& team;
  runtime::FutureShare<runtime::FutureState> result;
  base::SmallBytes mine;
  std::exception_ptr failure;  // of this rank, before its next call
  std::uint64_t numbers[2];
  std::size_t num_calls = 0;
};

// One call. It fails at all ranks or at none, and sets the error of the result then. Returns whether it has not failed.
runtime::Task<bool> run_call(Gather& gather, Call call) {
  call.kind = Kind::kAllgather;
  call.number = gather.next_number();
  TeamCall run(gather.team, CollectiveKind::kAllGather, call);
  if (gather.failure) run.fail(gather.failure);
  run.start();
  co_await collective::Ended(run);
  // What ran out of memory in the middle may not have reached all: the job ends.
  if (run.is_out_of_memory()) std::rethrow_exception(run.error());
  if (run.has_failed()) gather.result->set_error(run.failure());
  co_return !run.has_failed();
}

// Memory for all values, with the own one; none if this rank has failed, or has no memory and so fails now.
std::optional<GatheredValues> make_values(Gather& gather, Form form, std::span<const std::size_t> sizes,
                                          std::span<const std::byte> mine) {
  std::optional<GatheredValues> values;
  if (gather.failure) return values;
  try {
    values.emplace(*gather.team.group, form, sizes);
    values->put(mine);
  } catch (...) {
    gather.failure = std::current_exception();
    values.reset();
  }
  return values;
}

// The heads of all ranks; none if the collective has failed.
runtime::Task<std::vector<ValueHead>> gather_heads(Gather& gather) {
  ValueHead mine{.size_bytes = gather.mine.size()};
  std::copy_n(gather.mine.data(), std::min(gather.mine.size(), sizeof mine.first), mine.first);
  Call call{.form = gather.head_form()};
  std::optional<GatheredValues> values =
      make_values(gather, call.form, std::span(&kHeadBytes, 1), std::as_bytes(std::span(&mine, 1)));
  if (values) values->give_to(call);
  const bool is_good = co_await run_call(gather, call);
  std::vector<ValueHead> heads;
  if (is_good) {
    heads.resize(static_cast<std::size_t>(gather.team.members.size()));
    std::memcpy(heads.data(), values->packed().data() + GatheredValues::kCountBytes,
                heads.size() * kHeadBytes);
  }
  co_return heads;
}

// REQUIRES: the heads have all bytes of the values.
std::vector<std::byte> pack_heads(const std::vector<ValueHead>& heads) {
  std::vector<std::byte> packed(GatheredValues::kCountBytes);
  const std::uint64_t count = heads.size();
  std::memcpy(packed.data(), &count, sizeof count);
  for (const ValueHead& head : heads) packed.insert(packed.end(), head.first, head.first + head.size_bytes);
  packed.emplace_back();  // see GatheredValues::packed()
  return packed;
}

runtime::Task<> run_gather(std::unique_ptr<Gather> gather) {
  const std::vector<ValueHead> heads = co_await gather_heads(*gather);
  if (heads.empty()) co_return;
  std::vector<std::size_t> sizes;
  for (const ValueHead& head : heads) sizes.push_back(head.size_bytes);
  const std::size_t most_bytes = std::ranges::max(sizes);
  if (most_bytes <= sizeof(ValueHead::first)) {
    set_packed_result(*gather->result.get(), pack_heads(heads));
    co_return;
  }
  Call call{.form = gather->team.group->gather_form(most_bytes)};
  std::optional<GatheredValues> values =
      make_values(*gather, call.form, sizes, {gather->mine.data(), gather->mine.size()});
  const std::size_t piece_bytes = call.form == Form::kDirect ? collective::kMostDirectBytes : most_bytes;
  for (std::size_t begin = 0; begin < most_bytes; begin += piece_bytes) {
    if (values && piece_bytes >= most_bytes) values->give_to(call);
    if (values && piece_bytes < most_bytes) values->give_piece_to(call, begin, piece_bytes);
    const bool is_good = co_await run_call(*gather, call);
    if (!is_good) co_return;
  }
  set_packed_result(*gather->result.get(), values->packed());
}

}  // namespace

void start_fixed_gather(TeamState& team, std::span<const std::byte> mine, std::uint64_t type,
                        runtime::FutureState& result) {
  const Form form = team.group->form(Kind::kAllgather, mine.size());
  (new FixedGather(team, form, mine, type, result))->start();
}

void start_gather(TeamState& team, const PackedValue& mine, std::uint64_t type,
                  runtime::FutureState& result) {
  team.runtime.spawn(run_gather(std::make_unique<Gather>(team, type, mine, result)),
                     "an all-gather of a team");
}

}  // namespace weft::pgas
