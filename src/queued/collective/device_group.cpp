#include "weft/queued/device_group.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "base/format.h"
#include "memory/memory.h"
#include "queued/collective/group_state.h"
#include "queued/collective/large_collectives.h"

namespace weft::queued {

using base::Error;
using base::StatusCode;
using memory::ElementType;
using memory::StreamHandle;
using runtime::Reducer;

namespace {

[[noreturn]] void refuse_use(const char* operation, const std::string& why,
                             StatusCode code = StatusCode::kInvalidArgument) {
  throw Error(code, base::format("{} of a group of device arrays: {}", operation, why));
}

memory::Combination combination_of(const char* operation, Reducer reducer) {
  switch (reducer) {
    case Reducer::kSum:
      return memory::Combination::kSum;
    case Reducer::kProduct:
      return memory::Combination::kProduct;
    case Reducer::kMin:
      return memory::Combination::kMin;
    case Reducer::kMax:
      return memory::Combination::kMax;
    default:
      refuse_use(operation,
                 "devices combine by sum, product, min and max; use a collective of the team for others");
  }
}

struct Bytes {
  const char* role;
  const std::byte* data;
  std::size_t size_bytes;

  bool overlaps(const Bytes& other) const {
    return data < other.data + other.size_bytes && other.data < data + size_bytes;
  }
};

// The checks of one operation, and what it knows of sizes.
class Use {
 public:
  Use(GroupState* group, const char* operation, std::size_t num_elements, ElementType type)
      : group_(*group), operation_(operation), type_(type) {
    group_.expect_open();
    // Parts of all members are that many times as large.
    const std::size_t most =
        std::numeric_limits<std::ptrdiff_t>::max() / size_of(type) / memory::kMaxStepPeers;
    if (num_elements > most)
      refuse(base::format("{} elements are more than an address space has", num_elements));
    size_bytes_ = num_elements * size_of(type);
  }

  std::size_t size_bytes() const { return size_bytes_; }
  // Of one of the parts, which the members have.
  std::size_t part_bytes() const {
    const auto num_members = static_cast<std::size_t>(group_.size());
    const std::size_t num_elements = size_bytes_ / size_of(type_);
    if (num_elements % num_members != 0) {
      refuse(base::format("{} elements have no equal parts for {} members; give a multiple", num_elements,
                          num_members));
    }
    return size_bytes_ / num_members;
  }
  ElementRule rule(Reducer reducer) const {
    if (type_ == ElementType::kByte)
      refuse("bytes are moved and not combined; name the type of the elements");
    return {type_, combination_of(operation_, reducer)};
  }

  void expect_rank(int rank) const {
    if (rank >= 0 && rank < group_.size()) return;
    refuse(base::format("rank {} does not exist; the group has ranks 0 to {}", rank, group_.size() - 1),
           StatusCode::kOutOfRange);
  }
  // Memory of the group's device, inside of its allocation and aligned.
  void expect_memory(const Bytes& bytes) const {
    if (bytes.size_bytes == 0) return;
    const memory::Allocation found = group_.runtime().memory().allocation_of(bytes.data);
    if (found.place != group_.device()) {
      refuse(base::format("the {} is memory of {}, and the group is one of {}", bytes.role,
                          memory::place_name(found.place), memory::place_name(group_.device())));
    }
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data);
    const std::size_t rest = found.size_bytes - (address - found.base);
    if (found.size_bytes != 0 && bytes.size_bytes > rest) {
      refuse(base::format("the {} has {} bytes and leaves its allocation, which has {} bytes there",
                          bytes.role, bytes.size_bytes, rest),
             StatusCode::kOutOfRange);
    }
    if (address % size_of(type_) != 0)
      refuse(base::format("the address of the {} is no multiple of {}", bytes.role, size_of(type_)));
  }
  void expect_apart(const Bytes& in, const Bytes& out, bool is_in_place) const {
    expect_memory(in);
    expect_memory(out);
    if (is_in_place || in.size_bytes == 0 || !in.overlaps(out)) return;
    refuse("input and output overlap, and this is not how the operation works in place");
  }

 private:
  [[noreturn]] void refuse(const std::string& why, StatusCode code = StatusCode::kInvalidArgument) const {
    refuse_use(operation_, why, code);
  }

  GroupState& group_;
  const char* operation_;
  ElementType type_;
  std::size_t size_bytes_ = 0;
};

// Queues, and then watches the stream, also if not all could be queued.
template <class Queue>
void queue_and_note(GroupState& group, StreamHandle stream, const Queue& queue) {
  const std::uint64_t before = group.num_queued();
  try {
    queue();
  } catch (...) {
    if (group.num_queued() != before) group.note(stream);
    throw;
  }
  group.note(stream);
}

const std::byte* bytes_at(const void* address) { return static_cast<const std::byte*>(address); }
std::byte* bytes_at(void* address) { return static_cast<std::byte*>(address); }

// What a publish of kCombining does behind its waits: combines this part of what all members have published.
memory::DeviceReduction reduction_of_rings(const GroupState& group, std::size_t offset,
                                           std::size_t size_bytes, std::byte* out, ElementRule rule) {
  memory::DeviceReduction reduction;
  for (int rank = 0; rank < group.size(); ++rank)
    reduction.sources.add(group.ring(rank, Lane::kCombining) + offset);
  reduction.out = out;
  reduction.num_elements = size_bytes / size_of(rule.type);
  reduction.type = rule.type;
  reduction.combination = rule.combination;
  return reduction;
}

void queue_reduction(GroupState& group, const std::byte* in, std::size_t size_bytes,
                     const memory::DeviceReduction& reduction, StreamHandle stream) {
  memory::DeviceStep step = group.publish(Lane::kCombining, in, size_bytes);
  step.rings |= memory::kRingOfContributions;
  step.reduction = reduction;
  group.queue(step, stream);
}

// A reduction of one contribution is a copy, for elements that devices do not convert: all members agree on that by the type.
bool is_copied_by_reduction(ElementType type) { return size_of(type) >= sizeof(std::int32_t); }

void small_broadcast(GroupState& group, std::byte* data, std::size_t size_bytes, ElementType type, int root,
                     StreamHandle stream) {
  const bool is_root = group.rank() == root;
  const std::size_t published = is_root ? size_bytes : 0;
  if (!is_copied_by_reduction(type)) {
    std::vector<memory::DeviceStep> steps{group.publish(Lane::kGathering, data, published)};
    for (int rank = 0; rank < group.size(); ++rank)
      if (rank != group.rank()) steps.push_back(group.read(rank, 0, data, rank == root ? size_bytes : 0));
    return group.queue(steps, stream);
  }
  memory::DeviceStep step = group.publish(Lane::kCombining, data, published);
  if (!is_root) {
    step.rings |= memory::kRingOfContributions;
    step.reduction.sources.add(group.ring(root, Lane::kCombining));
    step.reduction.out = data;
    step.reduction.type = size_of(type) == sizeof(std::int64_t) ? ElementType::kInt64 : ElementType::kInt32;
    step.reduction.num_elements = size_bytes / size_of(type);
  }
  group.queue(step, stream);
}

// What an operation of one member does.
void copy_own(GroupState& group, const void* in, void* out, std::size_t size_bytes, StreamHandle stream) {
  GroupCopies copies(group, stream);
  copies.add(static_cast<std::byte*>(out), static_cast<const std::byte*>(in), size_bytes);
  copies.flush();
}

// Publishes `in`, and copies of each peer's what lies at `offset`.
void small_gather(GroupState& group, const std::byte* in, std::size_t size_bytes, std::size_t offset,
                  std::byte* out, std::size_t part_bytes, StreamHandle stream) {
  std::vector<memory::DeviceStep> steps{group.publish(Lane::kGathering, in, size_bytes)};
  for (int rank = 0; rank < group.size(); ++rank) {
    std::byte* const part = out + static_cast<std::size_t>(rank) * part_bytes;
    if (rank != group.rank()) {
      steps.push_back(group.read(rank, offset, part, part_bytes));
    } else if (part != in + offset) {
      steps.push_back(GroupState::copy_step(part, in + offset, part_bytes));
    }
  }
  group.queue(steps, stream);
}

}  // namespace

// --- The group

int DeviceGroup::rank() const { return state_->rank(); }
int DeviceGroup::size() const { return state_->size(); }
memory::Place DeviceGroup::device() const { return state_->device(); }
runtime::Future<> DeviceGroup::over() const { return state_->over(); }
runtime::Future<> DeviceGroup::close() const { return state_->close(); }

void DeviceGroup::keep(std::shared_ptr<void> keeper, StreamHandle stream) const {
  state_->expect_open();
  state_->note(stream, std::move(keeper));
}

void DeviceGroup::pup(base::Pup&) {
  throw Error(StatusCode::kUnsupported,
              "a group of device arrays cannot travel: its memory is mapped by its members alone");
}

// --- Operations

void DeviceGroup::broadcast(void* data, std::size_t num_elements, ElementType type, int root,
                            StreamHandle stream) const {
  const Use use(state_.get(), "broadcast", num_elements, type);
  use.expect_rank(root);
  use.expect_memory({"buffer", bytes_at(data), use.size_bytes()});
  if (num_elements == 0 || size() == 1) return;
  queue_and_note(*state_, stream, [&] {
    if (use.size_bytes() <= state_->layout().ring_bytes())
      return small_broadcast(*state_, bytes_at(data), use.size_bytes(), type, root, stream);
    large_broadcast(*state_, bytes_at(data), use.size_bytes(), root, stream);
  });
}

void DeviceGroup::reduce(const void* in, void* out, std::size_t num_elements, ElementType type,
                         Reducer reducer, int root, StreamHandle stream) const {
  const Use use(state_.get(), "reduce", num_elements, type);
  const ElementRule rule = use.rule(reducer);
  use.expect_rank(root);
  const bool has_result = root == rank();
  use.expect_apart({"input", bytes_at(in), use.size_bytes()},
                   {"output", bytes_at(out), has_result ? use.size_bytes() : 0}, in == out);
  if (num_elements == 0) return;
  queue_and_note(*state_, stream, [&] {
    if (size() == 1) return copy_own(*state_, in, out, use.size_bytes(), stream);
    if (use.size_bytes() > state_->layout().ring_bytes())
      return large_reduce(*state_, bytes_at(in), bytes_at(out), use.size_bytes(), rule, root, stream);
    queue_reduction(*state_, bytes_at(in), use.size_bytes(),
                    reduction_of_rings(*state_, 0, has_result ? use.size_bytes() : 0, bytes_at(out), rule),
                    stream);
  });
}

void DeviceGroup::all_reduce(const void* in, void* out, std::size_t num_elements, ElementType type,
                             Reducer reducer, StreamHandle stream) const {
  const Use use(state_.get(), "all_reduce", num_elements, type);
  const ElementRule rule = use.rule(reducer);
  use.expect_apart({"input", bytes_at(in), use.size_bytes()}, {"output", bytes_at(out), use.size_bytes()},
                   in == out);
  if (num_elements == 0) return;
  queue_and_note(*state_, stream, [&] {
    if (size() == 1) return copy_own(*state_, in, out, use.size_bytes(), stream);
    if (use.size_bytes() > state_->layout().ring_bytes())
      return large_reduce(*state_, bytes_at(in), bytes_at(out), use.size_bytes(), rule, kToAll, stream);
    queue_reduction(*state_, bytes_at(in), use.size_bytes(),
                    reduction_of_rings(*state_, 0, use.size_bytes(), bytes_at(out), rule), stream);
  });
}

void DeviceGroup::all_gather(const void* in, void* out, std::size_t num_elements, ElementType type,
                             StreamHandle stream) const {
  const Use use(state_.get(), "all_gather", num_elements, type);
  const std::size_t part = use.size_bytes();
  const bool is_in_place = in == bytes_at(out) + static_cast<std::size_t>(rank()) * part;
  use.expect_apart({"input", bytes_at(in), part},
                   {"output", bytes_at(out), part * static_cast<std::size_t>(size())}, is_in_place);
  if (num_elements == 0) return;
  queue_and_note(*state_, stream, [&] {
    if (size() == 1) return copy_own(*state_, in, out, part, stream);
    if (part > state_->layout().ring_bytes())
      return large_all_gather(*state_, bytes_at(in), bytes_at(out), part, stream);
    small_gather(*state_, bytes_at(in), part, 0, bytes_at(out), part, stream);
  });
}

void DeviceGroup::reduce_scatter(const void* in, void* out, std::size_t num_elements, ElementType type,
                                 Reducer reducer, StreamHandle stream) const {
  const Use use(state_.get(), "reduce_scatter", num_elements, type);
  const ElementRule rule = use.rule(reducer);
  const std::size_t part = use.part_bytes();
  const std::size_t own_part = static_cast<std::size_t>(rank()) * part;
  use.expect_apart({"input", bytes_at(in), use.size_bytes()}, {"output", bytes_at(out), part},
                   out == in || out == bytes_at(in) + own_part);
  if (num_elements == 0) return;
  queue_and_note(*state_, stream, [&] {
    if (size() == 1) return copy_own(*state_, in, out, part, stream);
    if (use.size_bytes() > state_->layout().ring_bytes())
      return large_reduce_scatter(*state_, bytes_at(in), bytes_at(out), part, rule, stream);
    queue_reduction(*state_, bytes_at(in), use.size_bytes(),
                    reduction_of_rings(*state_, own_part, part, bytes_at(out), rule), stream);
  });
}

void DeviceGroup::all_to_all(const void* in, void* out, std::size_t num_elements, ElementType type,
                             StreamHandle stream) const {
  const Use use(state_.get(), "all_to_all", num_elements, type);
  const std::size_t part = use.part_bytes();
  use.expect_apart({"input", bytes_at(in), use.size_bytes()}, {"output", bytes_at(out), use.size_bytes()},
                   in == out);
  if (num_elements == 0) return;
  queue_and_note(*state_, stream, [&] {
    if (size() == 1) return copy_own(*state_, in, out, part, stream);
    if (use.size_bytes() > state_->layout().ring_bytes())
      return large_all_to_all(*state_, bytes_at(in), bytes_at(out), part, stream);
    const std::size_t offset = static_cast<std::size_t>(rank()) * part;
    small_gather(*state_, bytes_at(in), use.size_bytes(), offset, bytes_at(out), part, stream);
  });
}

void DeviceGroup::barrier(StreamHandle stream) const {
  state_->expect_open();
  if (size() == 1) return;
  queue_and_note(*state_, stream, [&] { state_->barrier(stream); });
}

}  // namespace weft::queued
