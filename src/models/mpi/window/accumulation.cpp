#include "models/mpi/window/accumulation.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

namespace weft::mpi {

namespace {

using MaybeLocked = std::optional<AccumulateLock>;
void lock(MaybeLocked& locked, WindowControl* control) {
  if (control != nullptr) locked.emplace(*control);
}

// Whether operators may work on the values where they are. The largest power of two in the extent is at least the alignment.
bool is_aligned(const void* address, const Datatype& unit) {
  const auto extent = static_cast<std::uintptr_t>(unit.extent());
  return reinterpret_cast<std::uintptr_t>(address) % (extent & (~extent + 1)) == 0;
}

// values = operand op values, both packed.
void combine(const Accumulation& how, const std::byte* operand, std::byte* values, std::size_t size_bytes) {
  const MPI_Op op = how.operation.handle();
  if (op == MPI_NO_OP) return;
  if (op == MPI_REPLACE) {
    std::memcpy(values, operand, size_bytes);
    return;
  }
  const Datatype& unit = how.unit;
  const auto count = static_cast<MPI_Count>(size_bytes) / unit.size_bytes();
  if (unit.is_contiguous() && is_aligned(operand, unit) && is_aligned(values, unit))
    return how.operation.reduce(operand, values, count, unit);
  // Laid out as in C, and aligned as memory of new is.
  const auto extent_bytes = static_cast<std::size_t>(count * unit.extent());
  std::vector<std::byte> in(extent_bytes);
  std::vector<std::byte> inout(extent_bytes);
  unit.unpack(in.data(), count, operand);
  unit.unpack(inout.data(), count, values);
  how.operation.reduce(in.data(), inout.data(), count, unit);
  unit.pack(inout.data(), count, values);
}

void accumulate_dense(const Accumulation& how, const std::byte* operand, const DataView& target,
                      std::byte* before, WindowControl* control) {
  const std::size_t most_bytes = part_bytes(how);
  MaybeLocked locked;
  lock(locked, control);
  for (std::size_t done = 0; done < target.size_bytes;) {
    const std::size_t size_bytes = std::min(most_bytes, target.size_bytes - done);
    if (done > 0 && locked) locked->step_aside();
    if (before != nullptr) std::memcpy(before + done, target.data + done, size_bytes);
    if (operand != nullptr) combine(how, operand + done, target.data + done, size_bytes);
    done += size_bytes;
  }
}

// The same for memory with gaps: the pieces of a part are collected, and then combined together.
class PiecewiseAccumulation {
 public:
  PiecewiseAccumulation(const Accumulation& how, const std::byte* operand, std::byte* before,
                        WindowControl* control)
      : how_(how), operand_(operand), before_(before), most_bytes_(part_bytes(how)) {
    lock(locked_, control);
  }

  // In the order of the packed bytes.
  void add(std::byte* memory, std::size_t size_bytes) {
    while (size_bytes > 0) {
      if (num_collected_ == most_bytes_) combine_collected();
      const std::size_t taken = std::min(size_bytes, most_bytes_ - num_collected_);
      pieces_.push_back({memory, taken});
      num_collected_ += taken;
      memory += taken;
      size_bytes -= taken;
    }
  }
  void finish() { combine_collected(); }

 private:
  void combine_collected() {
    if (done_ > 0 && locked_) locked_->step_aside();
    values_.resize(num_collected_);
    std::byte* value = values_.data();
    for (const auto& [memory, size_bytes] : pieces_) {
      std::memcpy(value, memory, size_bytes);
      value += size_bytes;
    }
    if (before_ != nullptr) std::memcpy(before_ + done_, values_.data(), num_collected_);
    if (operand_ != nullptr) {
      combine(how_, operand_ + done_, values_.data(), num_collected_);
      value = values_.data();
      for (const auto& [memory, size_bytes] : pieces_) {
        std::memcpy(memory, value, size_bytes);
        value += size_bytes;
      }
    }
    pieces_.clear();
    done_ += std::exchange(num_collected_, 0);
  }

  const Accumulation& how_;
  const std::byte* operand_;
  std::byte* before_;
  const std::size_t most_bytes_;
  MaybeLocked locked_;
  std::vector<std::pair<std::byte*, std::size_t>> pieces_;
  std::vector<std::byte> values_;
  std::size_t num_collected_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

bool can_be_compared(const Datatype& type) {
  if (!type.is_predefined() || type.only_basic() == nullptr || type.only_basic()->handle != type.handle())
    return false;
  const BasicKind kind = type.only_basic()->kind;
  return kind == BasicKind::kInteger || kind == BasicKind::kLogical || type.handle() == MPI_BYTE;
}

std::size_t part_bytes(const Accumulation& how) {
  if (how.whole_bytes == Accumulation::kAllBytes) return SIZE_MAX;
  const std::size_t whole =
      how.whole_bytes > 0 ? how.whole_bytes : static_cast<std::size_t>(how.unit.size_bytes());
  return std::max<std::size_t>(1, Accumulation::kBytesPerLock / whole) * whole;
}

std::uint32_t whole_bytes_of(const Datatype& type, const Datatype& unit) {
  const bool has_bytes = type.only_basic() != nullptr && type.only_basic()->handle == MPI_BYTE;
  if (unit.handle() != MPI_BYTE || has_bytes) return 0;
  return static_cast<std::uint32_t>(std::min<MPI_Count>(type.size_bytes(), Accumulation::kAllBytes));
}

const Datatype* unit_of(const Datatype& type, const PredefinedTypes& types) {
  if (type.is_predefined()) return &type;
  const Datatype* unit = nullptr;
  for (const Ref<Datatype>& part : type.recipe().datatypes) {
    if (part->size_bytes() == 0) continue;
    const Datatype* const of_part = unit_of(*part, types);
    if (of_part == nullptr || (unit != nullptr && of_part->handle() != unit->handle())) return nullptr;
    unit = of_part;
  }
  // MPI makes some datatypes without parts on request.
  if (unit == nullptr && type.only_basic() != nullptr) return types.find(type.only_basic()->handle);
  return unit;
}

void accumulate(const Accumulation& how, const std::byte* operand, const DataView& target, std::byte* before,
                WindowControl* control) {
  if (target.is_dense()) return accumulate_dense(how, operand, target, before, control);
  if (target.size_bytes > part_bytes(how)) {
    PiecewiseAccumulation accumulation(how, operand, before, control);
    target.layout->visit_runs(target.data, target.count, target.size_bytes, [&](const EvenRuns& runs) {
      auto* memory = reinterpret_cast<std::byte*>(runs.address);
      for (std::size_t i = 0; i < runs.count; ++i, memory += runs.stride)
        accumulation.add(memory, runs.size_bytes);
    });
    return accumulation.finish();
  }
  std::vector<std::byte> values(before == nullptr ? target.size_bytes : 0);
  std::byte* const packed = before == nullptr ? values.data() : before;
  MaybeLocked locked;
  lock(locked, control);
  target.pack(packed);
  if (operand == nullptr) return;
  if (before != nullptr) {
    values.assign(packed, packed + target.size_bytes);
    combine(how, operand, values.data(), values.size());
    return target.unpack(values.data(), values.size());
  }
  combine(how, operand, packed, target.size_bytes);
  target.unpack(packed, target.size_bytes);
}

void compare_and_swap(const std::byte* compare, const std::byte* desired, const DataView& target,
                      std::byte* before, WindowControl* control) {
  MaybeLocked locked;
  lock(locked, control);
  target.pack(before);
  if (std::memcmp(before, compare, target.size_bytes) == 0) target.unpack(desired, target.size_bytes);
}

}  // namespace weft::mpi
