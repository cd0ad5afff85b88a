// Accesses to windows: put, get, and accumulates, also those that give a request.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/format.h"
#include "entry/type_handles.h"
#include "models/mpi/window/accumulation.h"
#include "windows/windows.h"

namespace weft::mpi {

namespace {

// Elements of this process.
struct LocalElements {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
};

struct TargetElements {
  int rank;
  MPI_Aint displacement;
  MPI_Count count;
  MPI_Datatype type;
};

struct AccessCall {
  AccessKind kind;
  TargetElements target;
  std::optional<LocalElements> origin = std::nullopt;
  std::optional<LocalElements> result = std::nullopt;
  std::optional<LocalElements> compared = std::nullopt;
  MPI_Op op = MPI_OP_NULL;
};

Error find_target(const Window& window, const TargetElements& target, WindowAccess* access) {
  if (Error error = check_rank(window, target.rank); !error.ok()) return error;
  Datatype* type = nullptr;
  if (Error error = find_committed_type(target.type, &type); !error.ok()) return error;
  if (Error error = check_count(target.count); !error.ok()) return error;
  access->target = target.rank;
  access->displacement = target.displacement;
  access->count = target.count;
  access->type = type;
  return {};
}

Error find_view(const std::optional<LocalElements>& elements, DataView* view) {
  return elements ? make_view(elements->buffer, elements->count, elements->type, view) : Error();
}

Error find_operands(const AccessCall& call, WindowAccess* access) {
  if (call.op != MPI_OP_NULL || call.kind == AccessKind::kAccumulate ||
      call.kind == AccessKind::kGetAccumulate) {
    ReductionOperator* operation = nullptr;
    if (Error error = find_operation(call.op, &operation); !error.ok()) return error;
    access->operation = operation;
  }
  // The origin of MPI_NO_OP is not read: it may be anything.
  if (call.op != MPI_NO_OP) {
    if (Error error = find_view(call.origin, &access->origin); !error.ok()) return error;
    if (call.origin) access->origin_type = datatype_of(call.origin->type);
  }
  if (Error error = find_view(call.compared, &access->compared); !error.ok()) return error;
  return find_view(call.result, &access->result);
}

// `request`: null for calls that give none.
[[gnu::noinline]] Error start_access(MPI_Win win, const AccessCall& call, MPI_Request* request) {
  Window* found = nullptr;
  if (Error error = find_window(win, &found); !error.ok()) return error;
  Window& window = *found;
  WindowAccess access;
  access.kind = call.kind;
  Ref<Request> started;
  if (call.target.rank == MPI_PROC_NULL) {
    if (request == nullptr) return {};
    auto finished =
        Request::make<FinishedRequest>(this_process().runtime(), Request::Type::kCollective, Outcome());
    return give_request(as_request(std::move(finished)), nullptr, request, false);
  }
  if (Error error = find_target(window, call.target, &access); !error.ok()) return error;
  if (Error error = find_operands(call, &access); !error.ok()) return error;
  if (Error error = window.start(access, request == nullptr ? nullptr : &started); !error.ok()) return error;
  if (request != nullptr) *request = make_handle<MPI_Request>(std::move(started));
  return {};
}

int run_requested(const char* function, MPI_Win win, const AccessCall& call, MPI_Request* request) {
  if (!is_address(static_cast<const void*>(request)))
    return raise(function, win, no_place_for_request(static_cast<const void*>(request)));
  return guarded(function, win, [&] { return start_access(win, call, request); });
}

// --- Most accesses: elements without gaps in host memory, here and in target memory that this process reaches. Each answers with one
// test for all others, wrong ones too.

struct DirectAccess {
  Window* window = nullptr;
  std::byte* memory = nullptr;  // of the target; null for all others
  std::size_t size_bytes = 0;
};

inline DirectAccess find_direct(MPI_Win win, const LocalElements& local, const TargetElements& target) {
  DirectAccess access;
  access.window = window_of(win);
  access.size_bytes = plain_bytes(local.buffer, local.count, local.type);
  const bool is_same = local.type == target.type && local.count == target.count;
  if (access.window == nullptr || access.size_bytes == 0 ||
      (!is_same && plain_bytes(local.buffer, target.count, target.type) != access.size_bytes))
    return access;
  std::byte* const memory = access.window->direct_memory(target.rank, target.displacement, access.size_bytes);
  if (memory != nullptr && this_rank().process != nullptr &&
      is_in_host_memory(access.window->communicator().engine(), local.buffer)) [[likely]]
    access.memory = memory;
  return access;
}

// Most copies are of one word, for which a call of memcpy costs as much as all checks.
inline void copy_bytes(void* to, const void* from, std::size_t size_bytes) {
  if (size_bytes == sizeof(std::uint64_t)) [[likely]] {
    std::memcpy(to, from, sizeof(std::uint64_t));
  } else {
    std::memcpy(to, from, size_bytes);
  }
}

// A put or a get with a request: `copy(direct)` does it if it is direct.
template <class Copy>
int run_direct(const char* function, MPI_Win win, const LocalElements& local, const TargetElements& target,
               const AccessCall& call, MPI_Request* request, const Copy& copy) {
  return guarded(function, win, [&]() -> Error {
    const void* const place = static_cast<const void*>(request);
    if (!is_address(place)) return no_place_for_request(place);
    const DirectAccess direct = find_direct(win, local, target);
    if (direct.memory == nullptr) [[unlikely]]
      return start_access(win, call, request);
    copy(direct);
    *request = sent_request(direct.window->communicator().engine());
    return {};
  });
}

// Accumulates of elements of one predefined datatype that hold the lock once. `result`: null, or where the values before go.
// Returns false if nothing has been done.
bool accumulate_directly(MPI_Win win, const LocalElements& origin, void* result, const TargetElements& target,
                         MPI_Op op) {
  const bool has_operand = op != MPI_NO_OP;
  // The origin of MPI_NO_OP is not read: it may be anything.
  const bool is_same = origin.type == target.type && (!has_operand || origin.count == target.count);
  const void* const first = result != nullptr ? result : origin.buffer;
  const DirectAccess access = find_direct(win, {first, target.count, target.type}, target);
  const ReductionOperator* const operation = operation_of(op);
  if (access.memory == nullptr || access.size_bytes > Accumulation::kBytesPerLock || operation == nullptr ||
      !operation->is_predefined() || !is_same)
    return false;
  const Datatype& type = *datatype_of(target.type);
  if (!type.is_predefined() || type.only_basic() == nullptr) return false;
  const bool is_replaced = op == MPI_REPLACE;
  ReductionOperator::Loop loop;
  if (has_operand) {
    if (result != nullptr && (!is_address(origin.buffer) ||
                              !is_in_host_memory(access.window->communicator().engine(), origin.buffer)))
      return false;
    if (!is_replaced) {
      const auto extent = static_cast<std::uintptr_t>(type.extent());
      const auto addresses =
          reinterpret_cast<std::uintptr_t>(access.memory) | reinterpret_cast<std::uintptr_t>(origin.buffer);
      loop = operation->loop(type);
      // The largest power of two in the extent is at least the alignment.
      if (loop.kernel == nullptr || (addresses & ((extent & (~extent + 1)) - 1)) != 0) return false;
    }
  }
  const AccumulateLock lock(access.window->control_of(target.rank));
  if (result != nullptr) copy_bytes(result, access.memory, access.size_bytes);
  if (is_replaced) {
    copy_bytes(access.memory, origin.buffer, access.size_bytes);
  } else if (has_operand) {
    loop.kernel(origin.buffer, access.memory, target.count * loop.values);
  }
  return true;
}

// MPI_Compare_and_swap. Returns false if nothing has been done.
bool compare_directly(MPI_Win win, const void* origin, const void* compared, void* result,
                      const TargetElements& target) {
  const DirectAccess access = find_direct(win, {result, 1, target.type}, target);
  if (access.memory == nullptr || !can_be_compared(*datatype_of(target.type)) || !is_address(origin) ||
      !is_address(compared))
    return false;
  PointToPoint& engine = access.window->communicator().engine();
  if (!is_in_host_memory(engine, origin) || !is_in_host_memory(engine, compared)) return false;
  compare_and_swap(static_cast<const std::byte*>(compared), static_cast<const std::byte*>(origin),
                   DataView::of_bytes(access.memory, access.size_bytes), static_cast<std::byte*>(result),
                   &access.window->control_of(target.rank));
  return true;
}

AccessCall put_call(const LocalElements& origin, const TargetElements& target) {
  return {.kind = AccessKind::kPut, .target = target, .origin = origin};
}
AccessCall get_call(const LocalElements& result, const TargetElements& target) {
  return {.kind = AccessKind::kGet, .target = target, .result = result};
}
AccessCall accumulate_call(const LocalElements& origin, const TargetElements& target, MPI_Op op) {
  return {.kind = AccessKind::kAccumulate, .target = target, .origin = origin, .op = op};
}
AccessCall get_accumulate_call(const LocalElements& origin, const LocalElements& result,
                               const TargetElements& target, MPI_Op op) {
  return {.kind = AccessKind::kGetAccumulate, .target = target, .origin = origin, .result = result, .op = op};
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Put_c(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
              MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win) {
  return guarded(__func__, win, [&]() -> Error {
    const LocalElements origin{origin_addr, origin_count, origin_datatype};
    const TargetElements target{target_rank, target_disp, target_count, target_datatype};
    const DirectAccess direct = find_direct(win, origin, target);
    if (direct.memory == nullptr) [[unlikely]]
      return start_access(win, put_call(origin, target), nullptr);
    copy_bytes(direct.memory, origin_addr, direct.size_bytes);
    return {};
  });
}
int MPI_Rput_c(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win,
               MPI_Request* request) {
  const LocalElements origin{origin_addr, origin_count, origin_datatype};
  const TargetElements target{target_rank, target_disp, target_count, target_datatype};
  return run_direct(
      __func__, win, origin, target, put_call(origin, target), request,
      [&](const DirectAccess& direct) { copy_bytes(direct.memory, origin_addr, direct.size_bytes); });
}
int MPI_Get_c(void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
              MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win) {
  return guarded(__func__, win, [&]() -> Error {
    const LocalElements origin{origin_addr, origin_count, origin_datatype};
    const TargetElements target{target_rank, target_disp, target_count, target_datatype};
    const DirectAccess direct = find_direct(win, origin, target);
    if (direct.memory == nullptr) [[unlikely]]
      return start_access(win, get_call(origin, target), nullptr);
    copy_bytes(origin_addr, direct.memory, direct.size_bytes);
    return {};
  });
}
int MPI_Rget_c(void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win,
               MPI_Request* request) {
  const LocalElements result{origin_addr, origin_count, origin_datatype};
  const TargetElements target{target_rank, target_disp, target_count, target_datatype};
  return run_direct(
      __func__, win, result, target, get_call(result, target), request,
      [&](const DirectAccess& direct) { copy_bytes(origin_addr, direct.memory, direct.size_bytes); });
}
int MPI_Accumulate_c(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                     int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                     MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
  return guarded(__func__, win, [&]() -> Error {
    const LocalElements origin{origin_addr, origin_count, origin_datatype};
    const TargetElements target{target_rank, target_disp, target_count, target_datatype};
    if (accumulate_directly(win, origin, nullptr, target, op)) [[likely]]
      return {};
    return start_access(win, accumulate_call(origin, target, op), nullptr);
  });
}
int MPI_Raccumulate_c(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                      int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                      MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request* request) {
  return run_requested(__func__, win,
                       accumulate_call({origin_addr, origin_count, origin_datatype},
                                       {target_rank, target_disp, target_count, target_datatype}, op),
                       request);
}
int MPI_Get_accumulate_c(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                         void* result_addr, MPI_Count result_count, MPI_Datatype result_datatype,
                         int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                         MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
  return guarded(__func__, win, [&]() -> Error {
    const LocalElements origin{origin_addr, origin_count, origin_datatype};
    const LocalElements result{result_addr, result_count, result_datatype};
    const TargetElements target{target_rank, target_disp, target_count, target_datatype};
    const bool is_same = result_datatype == target_datatype && result_count == target_count;
    if (is_same && is_address(result_addr) && accumulate_directly(win, origin, result_addr, target, op))
        [[likely]]
      return {};
    return start_access(win, get_accumulate_call(origin, result, target, op), nullptr);
  });
}
int MPI_Rget_accumulate_c(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                          void* result_addr, MPI_Count result_count, MPI_Datatype result_datatype,
                          int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                          MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request* request) {
  return run_requested(__func__, win,
                       get_accumulate_call({origin_addr, origin_count, origin_datatype},
                                           {result_addr, result_count, result_datatype},
                                           {target_rank, target_disp, target_count, target_datatype}, op),
                       request);
}
int MPI_Fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
                     MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
  return guarded(__func__, win, [&]() -> Error {
    const LocalElements origin{origin_addr, 1, datatype};
    const TargetElements target{target_rank, target_disp, 1, datatype};
    if (is_address(result_addr) && accumulate_directly(win, origin, result_addr, target, op)) [[likely]]
      return {};
    return start_access(win, get_accumulate_call(origin, {result_addr, 1, datatype}, target, op), nullptr);
  });
}
int MPI_Compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr,
                         MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win) {
  return guarded(__func__, win, [&]() -> Error {
    const TargetElements target{target_rank, target_disp, 1, datatype};
    if (compare_directly(win, origin_addr, compare_addr, result_addr, target)) [[likely]]
      return {};
    return start_access(win,
                        {.kind = AccessKind::kCompareAndSwap,
                         .target = target,
                         .origin = LocalElements{origin_addr, 1, datatype},
                         .result = LocalElements{result_addr, 1, datatype},
                         .compared = LocalElements{compare_addr, 1, datatype}},
                        nullptr);
  });
}

}  // extern "C"
