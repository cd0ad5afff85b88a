#include "models/mpi/window/accumulation.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "weft/mpi/mpi.h"

namespace weft::mpi {

namespace {

// The lock is given back after so many bytes: elements are atomic, not calls.
constexpr std::size_t kBytesPerLock = std::size_t{64} << 10;

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
  const auto unit_bytes = static_cast<std::size_t>(how.unit.size_bytes());
  const std::size_t part_bytes = std::max<std::size_t>(1, kBytesPerLock / unit_bytes) * unit_bytes;
  for (std::size_t done = 0; done < target.size_bytes; done += part_bytes) {
    const std::size_t size_bytes = std::min(part_bytes, target.size_bytes - done);
    MaybeLocked locked;
    lock(locked, control);
    if (before != nullptr) std::memcpy(before + done, target.data + done, size_bytes);
    if (operand != nullptr) combine(how, operand + done, target.data + done, size_bytes);
  }
}

}  // namespace

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
