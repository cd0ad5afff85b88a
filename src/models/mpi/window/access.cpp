// The origin's side of accesses: checks, the way that an access goes, and accesses that are over when the call returns.
#include <algorithm>
#include <cstring>
#include <new>

#include "weft/base/error.h"
#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "models/mpi/collective/typed_view.h"
#include "models/mpi/datatype/basic_type.h"
#include "models/mpi/datatype/checked.h"
#include "models/mpi/process.h"
#include "models/mpi/window/accumulation.h"
#include "models/mpi/window/outgoing.h"
#include "models/mpi/window/target_runs.h"
#include "models/mpi/window/window.h"

namespace weft::mpi {

namespace {

// Packed values of a view in host memory: its own bytes if they are dense.
class PackedView {
 public:
  explicit PackedView(const DataView& view) : data_(view.data) {
    if (view.is_dense()) return;
    packed_.resize(view.size_bytes);
    view.pack(packed_.data());
    data_ = packed_.data();
  }
  const std::byte* data() const { return data_; }

 private:
  std::vector<std::byte> packed_;
  const std::byte* data_;
};

}  // namespace

bool WindowAccess::has_operand() const {
  return kind != AccessKind::kGet && (operation == nullptr || operation->handle() != MPI_NO_OP);
}

// It wraps for addresses that no memory has: the target refuses them.
MPI_Aint Window::displacement_bytes(const WindowAccess& access) const {
  return static_cast<MPI_Aint>(static_cast<std::uint64_t>(access.displacement) *
                               static_cast<std::uint64_t>(target(access.target).displacement_unit));
}

// --- Checks

Error Window::check_access(const WindowAccess& access) const {
  const Target& target = this->target(access.target);
  if (!has_epoch_with(target)) [[unlikely]] {
    return {MPI_ERR_RMA_SYNC,
            base::format(
                "no epoch with rank {} is open; call MPI_Win_fence, MPI_Win_start or MPI_Win_lock before",
                access.target)};
  }
  const std::optional<MPI_Count> size = access.type->packed_size(access.count);
  if (!size)
    return {MPI_ERR_COUNT, base::format("{} elements at the target have too many bytes", access.count)};
  const auto size_bytes = static_cast<std::size_t>(*size);
  if ((access.has_operand() && access.origin.size_bytes != size_bytes) ||
      (has_result(access.kind) && access.result.size_bytes != size_bytes)) [[unlikely]] {
    return {
        MPI_ERR_TRUNCATE,
        base::format("the access is of {} bytes at the target, {} at the origin and {} of the result; give "
                     "the same amount everywhere",
                     size_bytes, access.origin.size_bytes, access.result.size_bytes)};
  }
  if (is_dynamic() || *size == 0) return {};
  const Wide between = Wide{access.count - 1} * access.type->extent();
  const Wide start = Wide{access.displacement} * target.displacement_unit + access.type->true_lower_bound();
  const Wide low = start + std::min<Wide>(between, 0);
  const Wide high = start + std::max<Wide>(between, 0) + access.type->true_extent();
  if (low >= 0 && high <= Wide{target.size_bytes}) [[likely]]
    return {};
  return {MPI_ERR_RMA_RANGE,
          base::format(
              "{} elements at displacement {} are outside of the window of rank {}, which has {} bytes "
              "there, with a displacement unit of {}",
              access.count, access.displacement, access.target, target.size_bytes, target.displacement_unit)};
}

namespace {

// Names of one type of values, such as MPI_INT and MPI_INT32_T, are as good as each other.
bool have_equal_values(const Datatype& one, const Datatype& other) {
  if (one.handle() == other.handle()) return true;
  const BasicType* const basic = basic_type(one.handle());
  const BasicType* const other_basic = basic_type(other.handle());
  return basic != nullptr && other_basic != nullptr && basic->kind == other_basic->kind &&
         basic->number == other_basic->number;
}

}  // namespace

Error Window::find_unit(const WindowAccess& access, const Datatype** unit) const {
  const PredefinedTypes& types = this_rank().types;
  if (access.kind == AccessKind::kCompareAndSwap) {
    *unit = access.type;
    if (can_be_compared(*access.type)) return {};
    return {MPI_ERR_TYPE,
            "the datatype is not compared; give a predefined datatype of integers, logical values or bytes"};
  }
  *unit = unit_of(*access.type, types);
  if (!access.operation->is_predefined())
    return {MPI_ERR_OP, "the operator is not predefined; an accumulate takes one of those of mpi.h"};
  const MPI_Op op = access.operation->handle();
  if (op == MPI_REPLACE || op == MPI_NO_OP) {
    // As bytes if there is no other choice.
    if (*unit == nullptr) *unit = types.find(MPI_BYTE);
    return {};
  }
  if (*unit == nullptr)
    return {MPI_ERR_TYPE, "the datatype at the target does not consist of a single predefined datatype"};
  const Datatype* const origin = unit_of(*access.origin_type, types);
  if (origin == nullptr || !have_equal_values(*origin, **unit)) {
    return {MPI_ERR_TYPE,
            "the datatypes at the origin and at the target are not of the same predefined datatype"};
  }
  return access.operation->check(**unit);
}

// --- Now

namespace {

Accumulation how(const WindowAccess& access, const Datatype& unit) {
  return {*access.operation, unit, whole_bytes_of(*access.type, unit)};
}

// The target memory of an access that this process reaches, with the functions of ProcessMemory.
class MappedMemory {
 public:
  explicit MappedMemory(const DataView& view) : view_(view) {}
  std::size_t size_bytes() const { return view_.size_bytes; }
  void put(const DataView& from) const { from.copy_to(view_); }
  void get(const DataView& to) const { view_.copy_to(to); }
  void accumulate(const Accumulation& how, const std::byte* operand, std::byte* before,
                  WindowControl* control) const {
    mpi::accumulate(how, operand, view_, before, control);
  }
  void compare_and_swap(const std::byte* compare, const std::byte* desired, std::byte* before,
                        WindowControl* control) const {
    mpi::compare_and_swap(compare, desired, view_, before, control);
  }

 private:
  DataView view_;
};

}  // namespace

template <class Memory>
void Window::access_now(const WindowAccess& access, const Datatype* unit, Memory& memory) {
  WindowControl* const control = target(access.target).control;
  const HostCopy origin(access.origin);
  const HostCopy compared(access.compared);
  const HostCopy result(access.result);
  Process& process = this_process();
  if (access.has_operand() && origin.is_copy()) process.run(copy_locally(access.origin, origin.view()));
  if (compared.is_copy()) process.run(copy_locally(access.compared, compared.view()));
  if (access.kind == AccessKind::kPut) {
    memory.put(origin.view());
  } else if (access.kind == AccessKind::kGet) {
    memory.get(result.view());
  } else {
    std::vector<std::byte> packed(has_result(access.kind) && !result.view().is_dense() ? memory.size_bytes()
                                                                                       : 0);
    std::byte* before = packed.empty() ? result.view().data : packed.data();
    if (!has_result(access.kind)) before = nullptr;
    if (access.kind == AccessKind::kCompareAndSwap) {
      memory.compare_and_swap(compared.view().data, origin.view().data, before, control);
    } else if (access.has_operand()) {
      const PackedView operand(origin.view());
      memory.accumulate(how(access, *unit), operand.data(), before, control);
    } else {
      memory.accumulate(how(access, *unit), nullptr, before, control);
    }
    if (!packed.empty()) result.view().unpack(packed.data(), packed.size());
  }
  if (result.is_copy()) process.run(copy_locally(result.view(), access.result));
}

void Window::access_directly(const WindowAccess& access, const Datatype* unit) {
  const Target& target = this->target(access.target);
  std::byte* const start = target.memory + access.displacement * target.displacement_unit;
  // The view keeps a layout of the datatype for the call alone.
  const MappedMemory memory(typed_view(const_cast<Datatype&>(*access.type), start, access.count));
  access_now(access, unit, memory);
}

bool Window::access_by_system(const WindowAccess& access, const Datatype* unit, base::Status* status) {
  const Target& target = this->target(access.target);
  // Accumulates are in order: those that are under way come first.
  if (!target.process || (is_accumulate(access.kind) && target.num_outstanding > 0)) return false;
  ProcessMemory memory(target.process, runs_of(*access.type, access.count, displacement_bytes(access),
                                               ProcessMemory::kMostPieces));
  if (memory.num_pieces() > ProcessMemory::kMostPieces) return false;
  access_now(access, unit, memory);
  *status = memory.status();
  return true;
}

Error Window::start(const WindowAccess& access, Ref<Request>* request) {
  if (Error error = check_access(access); !error.ok()) [[unlikely]]
    return error;
  const Datatype* unit = nullptr;
  const bool is_comparison = access.kind == AccessKind::kCompareAndSwap;
  const bool is_empty = access.count == 0 || access.type->size_bytes() == 0;
  base::Status status;
  if (is_comparison || (is_accumulate(access.kind) && !is_empty)) {
    if (Error error = find_unit(access, &unit); !error.ok()) return error;
  }
  const bool is_direct = !is_empty && target(access.target).is_direct;
  if (is_direct) access_directly(access, unit);
  if (is_direct || is_empty || access_by_system(access, unit, &status)) {
    if (status.failed()) [[unlikely]]
      return {MPI_ERR_OTHER, std::string(status.message())};
    if (request != nullptr) {
      auto finished = Request::make<FinishedRequest>(messenger(), Request::Type::kCollective, Outcome());
      finished->start();
      *request = as_request(std::move(finished));
    }
    return {};
  }
  start_outgoing(outgoing(access, unit), request);
  return {};
}

}  // namespace weft::mpi
