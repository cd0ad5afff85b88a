#include "models/mpi/operation/reduction_operator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <vector>

#include "base/format.h"
#include "models/mpi/virtual_ranks/running_code.h"

namespace weft::mpi {
namespace {

constexpr std::uintptr_t kFirstOperation = 0x20;

struct NamedOperation {
  MPI_Op handle;
  const char* name;
  bool commutative;
};

const NamedOperation kNamedOperations[] = {
    {MPI_SUM, "MPI_SUM", true},          {MPI_MIN, "MPI_MIN", true},       {MPI_MAX, "MPI_MAX", true},
    {MPI_PROD, "MPI_PROD", true},        {MPI_BAND, "MPI_BAND", true},     {MPI_BOR, "MPI_BOR", true},
    {MPI_BXOR, "MPI_BXOR", true},        {MPI_LAND, "MPI_LAND", true},     {MPI_LOR, "MPI_LOR", true},
    {MPI_LXOR, "MPI_LXOR", true},        {MPI_MINLOC, "MPI_MINLOC", true}, {MPI_MAXLOC, "MPI_MAXLOC", true},
    {MPI_REPLACE, "MPI_REPLACE", false}, {MPI_NO_OP, "MPI_NO_OP", false},
};

// The datatype that was duplicated, if this one is a duplicate.
const Datatype& original(const Datatype& type) {
  const Datatype* found = &type;
  while (found->recipe().combiner == MPI_COMBINER_DUP) found = found->recipe().datatypes[0].get();
  return *found;
}

// The value and the index of a type of pairs; null if it is none.
struct PairOf {
  const BasicType* value = nullptr;
  const BasicType* index = nullptr;
};

PairOf pair_of(const Datatype& type) {
  const Datatype& named = original(type);
  if (const PairType* pair = pair_type(named.handle()))
    return {basic_type(pair->value), basic_type(pair->index)};
  return {};
}

// Copies typed data from one buffer to the other.
void replace(const void* in, void* inout, MPI_Count count, const Datatype& type) {
  if (type.is_contiguous()) {
    std::memcpy(inout, in, static_cast<std::size_t>(count * type.size_bytes()));
    return;
  }
  constexpr MPI_Count kPortion = 65536;
  const MPI_Count size = count * type.size_bytes();
  std::vector<std::byte> packed(static_cast<std::size_t>(std::min(size, kPortion)));
  for (MPI_Count first = 0; first < size; first += kPortion) {
    const MPI_Count last = std::min(size, first + kPortion);
    type.pack(in, count, first, last, packed.data());
    type.unpack(inout, count, first, last, packed.data());
  }
}

}  // namespace

ReductionOperator::ReductionOperator(MPI_Op constant, const char* name, bool commutative)
    : Object(ObjectKind::kOperation), handle_(constant), name_(name), commutative_(commutative) {}

ReductionOperator::ReductionOperator(MPI_User_function* function, bool commutative)
    : Object(ObjectKind::kOperation),
      handle_(reinterpret_cast<MPI_Op>(static_cast<Object*>(this))),
      commutative_(commutative),
      function_(function) {}

ReductionOperator::ReductionOperator(MPI_User_function_c* function, bool commutative)
    : Object(ObjectKind::kOperation),
      handle_(reinterpret_cast<MPI_Op>(static_cast<Object*>(this))),
      commutative_(commutative),
      large_function_(function) {}

ReductionOperator::Plan ReductionOperator::make_plan(const Datatype& type) const {
  using Way = Plan::Way;
  if (!is_predefined()) return {Way::kUser};
  if (handle_ == MPI_NO_OP) return {Way::kNothing};
  if (handle_ == MPI_REPLACE) return {Way::kReplace};
  if (handle_ == MPI_MINLOC || handle_ == MPI_MAXLOC) {
    const PairOf pair = pair_of(type);
    const Kernel kernel =
        pair.value == nullptr ? nullptr : find_pair_kernel(handle_, *pair.value, *pair.index);
    return {kernel == nullptr ? Way::kUndefined : Way::kLoop, kernel, 1};
  }
  // The standard asks for a predefined datatype. Any number of values of one basic type, without gaps, is as good.
  const BasicType* basic = type.only_basic();
  if (basic == nullptr || !type.is_contiguous() || pair_of(type).value != nullptr) return {Way::kUndefined};
  const Kernel kernel = find_kernel(handle_, *basic);
  return {kernel == nullptr ? Way::kUndefined : Way::kLoop, kernel, type.signature().elements};
}

Error ReductionOperator::check(const Datatype& type) const {
  if (plan(type).way != Plan::Way::kUndefined) return {};
  const std::string name = type.name().empty() ? "this derived datatype" : type.name();
  return {MPI_ERR_OP,
          base::format("{} is not defined for {}; use another datatype, or an operator made by MPI_Op_create",
                       name_, name)};
}

void ReductionOperator::reduce(const void* in, void* inout, MPI_Count count, const Datatype& type) const {
  if (count == 0) return;
  const Plan todo = plan(type);
  switch (todo.way) {
    case Plan::Way::kLoop:
      todo.kernel(in, inout, count * todo.values);
      return;
    case Plan::Way::kUser:
      call_user_function(in, inout, count, type);
      return;
    case Plan::Way::kReplace:
      replace(in, inout, count, type);
      return;
    case Plan::Way::kNothing:
    case Plan::Way::kUndefined:
      return;
  }
}

void ReductionOperator::call_user_function(const void* in, void* inout, MPI_Count count,
                                           const Datatype& type) const {
  const ProgramRuns program;
  MPI_Datatype handle = type.handle();
  void* from = const_cast<void*>(in);
  if (large_function_ != nullptr) {
    large_function_(from, inout, &count, &handle);
    return;
  }
  // The length of the small form is an int: more elements are several calls.
  while (count > 0) {
    int length = static_cast<int>(std::min<MPI_Count>(count, std::numeric_limits<int>::max()));
    const MPI_Count done = length;
    function_(from, inout, &length, &handle);
    count -= done;
    from = static_cast<std::byte*>(from) + done * type.extent();
    inout = static_cast<std::byte*>(inout) + done * type.extent();
  }
}

const char* predefined_operation_name(std::uintptr_t handle) {
  const auto* const found = std::find_if(
      std::begin(kNamedOperations), std::end(kNamedOperations),
      [&](const NamedOperation& named) { return reinterpret_cast<std::uintptr_t>(named.handle) == handle; });
  return found == std::end(kNamedOperations) ? nullptr : found->name;
}

PredefinedOperators::PredefinedOperators() {
  for (const NamedOperation& named : kNamedOperations)
    operations_.at(reinterpret_cast<std::uintptr_t>(named.handle) - kFirstOperation) =
        Ref<ReductionOperator>::adopt(new ReductionOperator(named.handle, named.name, named.commutative));
}

ReductionOperator* PredefinedOperators::find(MPI_Op constant) const {
  const std::uintptr_t number = reinterpret_cast<std::uintptr_t>(constant) - kFirstOperation;
  return number < operations_.size() ? operations_[number].get() : nullptr;
}

}  // namespace weft::mpi
