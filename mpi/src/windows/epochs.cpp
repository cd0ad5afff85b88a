// Epochs of windows: fences, locks, flushes, and post, start, complete, wait.
#include <vector>

#include "base/format.h"
#include "entry/objects.h"
#include "windows/windows.h"

namespace weft::mpi {

namespace {

Error check_assertion(int assertion) {
  constexpr int kKnown =
      MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
  if ((assertion & ~kKnown) == 0) return {};
  return {MPI_ERR_ASSERT, base::format("the assertion {} is no combination of MPI_MODE_ values", assertion)};
}

// Calls `body(window)` after the checks, and does nothing for MPI_PROC_NULL.
template <class Body>
int with_rank(const char* function, MPI_Win win, int rank, const Body& body) {
  return with_window(function, win, {}, [&](Window& window) -> Error {
    if (rank == MPI_PROC_NULL) return {};
    if (Error error = check_rank(window, rank); !error.ok()) return error;
    return body(window);
  });
}

[[gnu::noinline]] Error flush_with_checks(MPI_Win win, int rank) {
  Window* window = nullptr;
  if (Error error = find_window(win, &window); !error.ok()) return error;
  if (rank == MPI_PROC_NULL) return {};
  if (Error error = check_rank(*window, rank); !error.ok()) return error;
  return window->flush(rank);
}

int flush(const char* function, MPI_Win win, int rank) {
  return guarded(function, win, [&]() -> Error {
    Window* const window = window_of(win);
    if (window != nullptr && this_rank().process != nullptr && window->flush_at_once(rank)) [[likely]]
      return {};
    return flush_with_checks(win, rank);
  });
}

// The ranks in the window of the members of a group.
Error find_ranks(const Window& window, MPI_Group handle, std::vector<int>* ranks) {
  Group* group = nullptr;
  if (Error error = find_object(handle, &group); !error.ok()) return error;
  std::vector<int> places(static_cast<std::size_t>(group->size()));
  for (int i = 0; i < group->size(); ++i) places[static_cast<std::size_t>(i)] = i;
  ranks->resize(places.size());
  const Members& members = *window.communicator().group();
  if (Error error = translate_ranks(*group->members(), places, members, ranks->data()); !error.ok())
    return error;
  for (const int rank : *ranks)
    if (rank == MPI_UNDEFINED)
      return {MPI_ERR_GROUP, "the group has a process that the window does not have"};
  return {};
}

template <class Body>
int with_group(const char* function, MPI_Win win, MPI_Group group, int assertion, const Body& body) {
  return with_window(function, win, {}, [&](Window& window) -> Error {
    std::vector<int> ranks;
    if (Error error = check_assertion(assertion); !error.ok()) return error;
    if (Error error = find_ranks(window, group, &ranks); !error.ok()) return error;
    return body(window, ranks);
  });
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Win_fence(int assert, MPI_Win win) {
  return with_window(__func__, win, {}, [&](Window& window) -> Error {
    if (Error error = check_assertion(assert); !error.ok()) return error;
    return window.fence((assert& MPI_MODE_NOSUCCEED) == 0);
  });
}

int MPI_Win_lock(int lock_type, int rank, int assert, MPI_Win win) {
  return with_rank(__func__, win, rank, [&](Window& window) -> Error {
    if (lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED) {
      return {MPI_ERR_LOCKTYPE,
              weft::base::format("there is no lock type {}; give MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE",
                                 lock_type)};
    }
    if (Error error = check_assertion(assert); !error.ok()) return error;
    return window.lock(rank, lock_type == MPI_LOCK_EXCLUSIVE, (assert& MPI_MODE_NOCHECK) == 0);
  });
}
int MPI_Win_unlock(int rank, MPI_Win win) {
  return with_rank(__func__, win, rank, [&](Window& window) { return window.unlock(rank); });
}
int MPI_Win_lock_all(int assert, MPI_Win win) {
  return with_window(__func__, win, {}, [&](Window& window) -> Error {
    if (Error error = check_assertion(assert); !error.ok()) return error;
    return window.lock_all((assert& MPI_MODE_NOCHECK) == 0);
  });
}
int MPI_Win_unlock_all(MPI_Win win) {
  return with_window(__func__, win, {}, [](Window& window) { return window.unlock_all(); });
}

// An access is over at the origin when it is over at the target.
int MPI_Win_flush(int rank, MPI_Win win) { return flush(__func__, win, rank); }
int MPI_Win_flush_local(int rank, MPI_Win win) { return flush(__func__, win, rank); }
int MPI_Win_flush_all(MPI_Win win) {
  return with_window(__func__, win, {}, [](Window& window) { return window.flush_all(); });
}
int MPI_Win_flush_local_all(MPI_Win win) {
  return with_window(__func__, win, {}, [](Window& window) { return window.flush_all(); });
}
int MPI_Win_sync(MPI_Win win) {
  return with_window(__func__, win, {}, [](Window& window) -> Error {
    window.sync();
    return {};
  });
}

// Both sides of MPI_MODE_NOCHECK send the messages nevertheless, so a program may give it on one side alone.
int MPI_Win_post(MPI_Group group, int assert, MPI_Win win) {
  return with_group(__func__, win, group, assert,
                    [](Window& window, const std::vector<int>& ranks) { return window.post_epoch(ranks); });
}
int MPI_Win_start(MPI_Group group, int assert, MPI_Win win) {
  return with_group(__func__, win, group, assert,
                    [](Window& window, const std::vector<int>& ranks) { return window.start_epoch(ranks); });
}
int MPI_Win_complete(MPI_Win win) {
  return with_window(__func__, win, {}, [](Window& window) { return window.complete_epoch(); });
}
int MPI_Win_wait(MPI_Win win) {
  return with_window(__func__, win, {}, [](Window& window) { return window.wait_epoch(); });
}
int MPI_Win_test(MPI_Win win, int* flag) {
  return with_window(__func__, win, {{flag, "flag"}}, [&](Window& window) -> Error {
    bool is_over = false;
    *flag = 0;
    if (Error error = window.test_epoch(&is_over); !error.ok()) return error;
    *flag = is_over ? 1 : 0;
    return {};
  });
}

}  // extern "C"
