// A library to preload: kills its process when it is about to read the last part of a large array out of another
// process, which nobody else copies then.
//
// WEFT_TEST_DIE_READING says how many bytes that part has; WEFT_PE must be 1.
#include <dlfcn.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

extern "C" ssize_t process_vm_readv(pid_t pid, const iovec* here, unsigned long num_here, const iovec* there,
                                    unsigned long num_there, unsigned long flags) noexcept {
  static const char* const size_bytes = std::getenv("WEFT_TEST_DIE_READING");
  static const char* const pe = std::getenv("WEFT_PE");
  const bool is_victim = size_bytes != nullptr && pe != nullptr && std::strcmp(pe, "1") == 0;
  if (is_victim && here->iov_len == std::strtoul(size_bytes, nullptr, 10)) kill(getpid(), SIGKILL);
  static auto* const next =
      reinterpret_cast<decltype(&process_vm_readv)>(dlsym(RTLD_NEXT, "process_vm_readv"));
  return next(pid, here, num_here, there, num_there, flags);
}
