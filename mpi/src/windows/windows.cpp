// Windows: the calls that make and free them, their memory, names, groups and hints.
#include "windows/windows.h"

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "entry/objects.h"
#include "entry/widened.h"
#include "models/mpi/window/window_creation.h"
#include "objects/attributes.h"
#include "objects/hints.h"
#include "system/device_memory.h"

namespace weft::mpi {

Error find_window(MPI_Win handle, Window** found) {
  *found = window_of(handle);
  if (*found != nullptr) [[likely]]
    return check_running();
  if (handle == MPI_WIN_NULL) return {MPI_ERR_WIN, "the window is MPI_WIN_NULL; give a window"};
  return {MPI_ERR_WIN, "the handle is no window; has it been freed?"};
}

Error check_rank(const Window& window, int rank) {
  if (window.has_target(rank)) [[likely]]
    return {};
  return {MPI_ERR_RANK, base::format("rank {} does not exist in the window; the ranks are 0 to {}", rank,
                                     window.num_targets() - 1)};
}

namespace {

// The hints that the standard names, with what holds without them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kWindowHints{{
    {"no_locks", "false"},
    {"accumulate_ordering", "rar,raw,war,waw"},
    {"accumulate_ops", "same_op_no_op"},
    {"mpi_accumulate_granularity", "0"},
    {"same_size", "false"},
    {"same_disp_unit", "false"},
}};

// Weft keeps the hints and does the same with and without them, but for alloc_shared_noncontig.
void use_window_hints(Window& window, const Info* hints) {
  if (window.info.empty()) {
    for (const auto& [key, value] : kWindowHints) set_hint(window.info, key, value);
    if (window.memory().flavor == MPI_WIN_FLAVOR_SHARED)
      set_hint(window.info, "alloc_shared_noncontig", "false");
  }
  if (hints == nullptr) return;
  for (const auto& [key, value] : hints->pairs()) set_hint(window.info, key, value);
}

Error check_memory(const WindowMemory& memory, MPI_Aint size) {
  if (size < 0) return {MPI_ERR_SIZE, base::format("the size {} is negative", size)};
  if (memory.displacement_unit <= 0)
    return {MPI_ERR_DISP,
            base::format("the displacement unit is {}; give 1 or more", memory.displacement_unit)};
  if (memory.flavor == MPI_WIN_FLAVOR_CREATE && size > 0 && !is_address(memory.base))
    return {MPI_ERR_BASE, base::format("the memory is {}; give its address", describe_sentinel(memory.base))};
  return {};
}

// `baseptr`: where the address goes of memory that the window allocates; null for other flavors.
int make_window(const char* function, WindowMemory memory, MPI_Aint size, MPI_Info info, MPI_Comm comm,
                void* baseptr, MPI_Win* win) {
  return guarded(function, comm, [&]() -> Error {
    if (Error error = require({{win, "win"}}); !error.ok()) return error;
    *win = MPI_WIN_NULL;
    Communicator* communicator = nullptr;
    Info* hints = nullptr;
    if (Error error = find_intracommunicator(comm, &communicator); !error.ok()) return error;
    if (Error error = check_is_of_one_job(*communicator, "windows"); !error.ok()) return error;
    if (Error error = find_optional(info, &hints); !error.ok()) return error;
    if (Error error = check_memory(memory, size); !error.ok()) return error;
    if (Error error = find_place(hints, &memory.place); !error.ok()) return error;
    const std::string* const apart = hints == nullptr ? nullptr : hints->find("alloc_shared_noncontig");
    memory.size_bytes = static_cast<std::uint64_t>(size);
    Ref<Window> made;
    try {
      made = this_process().run(create_window(Ref<Communicator>(*communicator), memory,
                                              apart == nullptr || *apart != "true",
                                              this_rank().errors_are_fatal));
    } catch (const TransferFailed& failure) {
      return {failure.error_class(), failure.what()};
    }
    use_window_hints(*made, hints);
    if (baseptr != nullptr)
      std::memcpy(baseptr, static_cast<const void*>(&made->memory().base), sizeof made->memory().base);
    *win = make_handle<MPI_Win>(std::move(made));
    return {};
  });
}

int make_allocated_window(const char* function, int flavor, MPI_Aint size, MPI_Aint displacement_unit,
                          MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win) {
  if (!is_address(baseptr)) return raise(function, comm, require({{baseptr, "baseptr"}}));
  return make_window(function, {.flavor = flavor, .displacement_unit = displacement_unit}, size, info, comm,
                     baseptr, win);
}

// The memory of a rank as this process reaches it.
Error query_shared(const Window& window, int rank, MPI_Aint* size, MPI_Aint* displacement_unit,
                   void* baseptr) {
  if (rank == MPI_PROC_NULL) {
    // The first rank with memory.
    rank = 0;
    while (rank + 1 < window.num_targets() && window.target(rank).size_bytes == 0) ++rank;
  }
  if (Error error = check_rank(window, rank); !error.ok()) return error;
  if (window.is_dynamic())
    return {MPI_ERR_RMA_FLAVOR, "the window is dynamic; give one of MPI_Win_allocate_shared"};
  const Window::Target& target = window.target(rank);
  const void* memory = target.is_direct ? target.memory : nullptr;
  *size = target.is_direct ? static_cast<MPI_Aint>(target.size_bytes) : 0;
  *displacement_unit = target.displacement_unit;
  std::memcpy(baseptr, static_cast<const void*>(&memory), sizeof memory);
  return {};
}

Error check_dynamic(const Window& window) {
  if (window.is_dynamic()) return {};
  return {MPI_ERR_RMA_FLAVOR,
          "the window is not dynamic; memory is attached to those of MPI_Win_create_dynamic"};
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Win_create_c(void* base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
                     MPI_Win* win) {
  return make_window(__func__,
                     {.flavor = MPI_WIN_FLAVOR_CREATE, .base = base, .displacement_unit = disp_unit}, size,
                     info, comm, nullptr, win);
}
int MPI_Win_allocate_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                       MPI_Win* win) {
  return make_allocated_window(__func__, MPI_WIN_FLAVOR_ALLOCATE, size, disp_unit, info, comm, baseptr, win);
}
int MPI_Win_allocate_shared_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                              MPI_Win* win) {
  return make_allocated_window(__func__, MPI_WIN_FLAVOR_SHARED, size, disp_unit, info, comm, baseptr, win);
}
int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return make_window(__func__, {.flavor = MPI_WIN_FLAVOR_DYNAMIC}, 0, info, comm, nullptr, win);
}

int MPI_Win_free(MPI_Win* win) {
  if (!is_address(static_cast<const void*>(win))) return raise(__func__, kNoObject, require({{win, "win"}}));
  return with_window(__func__, *win, {}, [&](Window& window) -> Error {
    if (Error error = window.check_closed(); !error.ok()) return error;
    if (Error error = remove_attributes(*win, window); !error.ok()) return error;
    window.close();
    window.release();
    *win = MPI_WIN_NULL;
    return {};
  });
}

int MPI_Win_attach(MPI_Win win, void* base, MPI_Aint size) {
  return with_window(__func__, win, {}, [&](Window& window) -> Error {
    if (Error error = check_dynamic(window); !error.ok()) return error;
    if (size < 0) return {MPI_ERR_SIZE, weft::base::format("the size {} is negative", size)};
    if (size > 0)
      if (Error error = require({{base, "base"}}); !error.ok()) return error;
    return window.attach(base, static_cast<std::uint64_t>(size));
  });
}
int MPI_Win_detach(MPI_Win win, const void* base) {
  return with_window(__func__, win, {}, [&](Window& window) -> Error {
    if (Error error = check_dynamic(window); !error.ok()) return error;
    return window.detach(base);
  });
}
int MPI_Win_shared_query_c(MPI_Win win, int rank, MPI_Aint* size, MPI_Aint* disp_unit, void* baseptr) {
  return with_window(__func__, win, {{size, "size"}, {disp_unit, "disp_unit"}, {baseptr, "baseptr"}},
                     [&](Window& window) { return query_shared(window, rank, size, disp_unit, baseptr); });
}

int MPI_Win_get_group(MPI_Win win, MPI_Group* group) {
  return with_window(__func__, win, {{group, "group"}}, [&](Window& window) -> Error {
    *group = give_group(window.communicator().group(), window.communicator().session_space);
    return {};
  });
}
int MPI_Win_set_name(MPI_Win win, const char* win_name) {
  return with_window(__func__, win, {{win_name, "win_name"}}, [&](Window& window) -> Error {
    window.set_name(std::string(win_name, strnlen(win_name, MPI_MAX_OBJECT_NAME - 1)));
    return {};
  });
}
int MPI_Win_get_name(MPI_Win win, char* win_name, int* resultlen) {
  return guarded(__func__, win, [&]() -> Error {
    if (Error error = require({{win_name, "win_name"}, {resultlen, "resultlen"}}); !error.ok()) return error;
    std::string name = "MPI_WIN_NULL";
    if (win != MPI_WIN_NULL) {
      Window* window = nullptr;
      if (Error error = find_window(win, &window); !error.ok()) return error;
      name = window->name();
    }
    copy_string(name, MPI_MAX_OBJECT_NAME, win_name);
    *resultlen = static_cast<int>(std::strlen(win_name));
    return {};
  });
}
int MPI_Win_set_info(MPI_Win win, MPI_Info info) {
  return with_window(__func__, win, {}, [&](Window& window) -> Error {
    Info* hints = nullptr;
    if (Error error = find_optional(info, &hints); !error.ok()) return error;
    use_window_hints(window, hints);
    return {};
  });
}
int MPI_Win_get_info(MPI_Win win, MPI_Info* info_used) {
  return with_window(__func__, win, {{info_used, "info_used"}}, [&](Window& window) -> Error {
    *info_used = make_handle<MPI_Info>(Ref<Info>::adopt(new Info(with_memory_kinds(window.info))));
    return {};
  });
}

}  // extern "C"
