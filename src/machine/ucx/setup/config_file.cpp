// The loader relocates all libraries before it runs the initialisers of the first one, and UCX reads the file in an initialiser. It
// calls the resolver of an indirect function (ifunc) while it relocates. The resolver therefore leaves the current folder, and an
// initialiser of this file, which runs after those of UCX, comes back.
//
// A resolver may call no function of another library and use no address that is not relocated yet. It makes system calls alone, and
// CMakeLists.txt has the file compiled without what compilers add.
#include "machine/ucx/setup/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
#define WEFT_HAS_EARLY_CODE 1
#else
#define WEFT_HAS_EARLY_CODE 0
#endif

namespace weft::machine::ucx {
namespace {

// leave_unsafe_folder() sets these variables before the initialisers run.
int left_folder = -1;
bool is_unread = false;
bool was_kept_from_leaving = false;

#if WEFT_HAS_EARLY_CODE

inline long system_call(long number, long first = 0, long second = 0, long third = 0, long fourth = 0,
                        long fifth = 0) {
#if defined(__x86_64__)
  long result = 0;
  register long r10 asm("r10") = fourth;
  register long r8 asm("r8") = fifth;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8)
               : "rcx", "r11", "memory");
  return result;
#else
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = first;
  register long x1 asm("x1") = second;
  register long x2 asm("x2") = third;
  register long x3 asm("x3") = fourth;
  register long x4 asm("x4") = fifth;
  asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
#endif
}

inline long address(const void* pointer) { return reinterpret_cast<long>(pointer); }

inline bool find(const char* path, int flags, struct statx* found) {
  return system_call(SYS_statx, AT_FDCWD, address(path), flags, STATX_BASIC_STATS, address(found)) == 0;
}

inline bool is_trusted(const struct statx& file, unsigned user) {
  return file.stx_uid == user || file.stx_uid == 0;
}
inline bool is_closed_to_others(const struct statx& file, unsigned user) {
  return is_trusted(file, user) && (file.stx_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Not initialised: the compiler would call memset().
inline void leave_unsafe_folder() {
  const auto user = static_cast<unsigned>(system_call(SYS_geteuid));
  struct statx folder;
  struct statx name;
  struct statx file;
  const bool is_folder_known = find(".", 0, &folder);
  const bool is_there = find("ucx.conf", AT_SYMLINK_NOFOLLOW, &name);
  // No other user can put a file there at this moment.
  const bool is_folder_closed = is_folder_known && is_closed_to_others(folder, user);
  // No other user can replace a file there, as in /tmp.
  const bool is_folder_sticky =
      is_folder_known && is_trusted(folder, user) && (folder.stx_mode & S_ISVTX) != 0;
  const bool is_file_closed =
      is_there && is_trusted(name, user) && find("ucx.conf", 0, &file) && is_closed_to_others(file, user);
  if (is_folder_closed && (is_file_closed || !is_there)) return;
  if (is_folder_sticky && is_file_closed) return;
  const long folder_now = system_call(SYS_openat, AT_FDCWD, address("."), O_PATH | O_DIRECTORY | O_CLOEXEC);
  was_kept_from_leaving = is_there;
  if (folder_now < 0) return;
  // No user can put a file there.
  if (system_call(SYS_chdir, address("/proc/self")) != 0 && system_call(SYS_chdir, address("/")) != 0) {
    system_call(SYS_close, folder_now);
    return;
  }
  was_kept_from_leaving = false;
  left_folder = static_cast<int>(folder_now);
  is_unread = is_there;
}

#endif

}  // namespace
}  // namespace weft::machine::ucx

#if WEFT_HAS_EARLY_CODE

extern "C" {

// Does nothing; it is there for its resolver.
[[gnu::visibility("hidden")]] void weft_early_code_does_nothing() {}

[[gnu::visibility("hidden")]] void (*weft_resolve_early_code())() {
  weft::machine::ucx::leave_unsafe_folder();
  return &weft_early_code_does_nothing;
}

[[gnu::visibility("hidden")]] void weft_early_code() __attribute__((ifunc("weft_resolve_early_code")));

}  // extern "C"

namespace weft::machine::ucx {
namespace {

// An address in data is resolved when the program is loaded; a call may be resolved when it is made. The call of it keeps the
// linker from leaving the pointer out (--gc-sections).
void (*volatile resolved_at_once)() = &weft_early_code;

}  // namespace
}  // namespace weft::machine::ucx

#endif

namespace weft::machine::ucx {
namespace {

bool return_to_folder() {
#if WEFT_HAS_EARLY_CODE
  resolved_at_once();
#endif
  if (left_folder < 0) return false;
  const bool is_back = fchdir(left_folder) == 0;
  close(left_folder);
  return is_back;
}

const bool has_returned = return_to_folder();

}  // namespace

base::Status expect_read_config_file() {
  constexpr auto kCode = base::StatusCode::kUnsupported;
  if (left_folder >= 0 && !has_returned)
    return {kCode,
            "the program runs in another folder than the one that it was started in, which is not there any "
            "more. "
            "Start it in a folder that others cannot write"};
  if (was_kept_from_leaving)
    return {kCode,
            "UCX has read ./ucx.conf, which another user may have written, because the program could not "
            "leave the "
            "folder meanwhile. Start it in a folder of your own that others cannot write"};
  if (!is_unread) return {};
  return {kCode,
          "UCX has not read ./ucx.conf, because another user may have written it: the file and its folder "
          "must belong to you, and "
          "neither your group nor others may write them (chmod go-w). Correct that, or move the file away"};
}

}  // namespace weft::machine::ucx
