// A library to preload: kills its process when it is about to read the last part of a large array out of another
// process, which nobody else copies then. The process that sends arrays waits for that before it copies a further part,
// or it might copy all of them before the receiver begins. Its first copy shows the job that it may copy, so it is made.
//
// WEFT_TEST_DIE_READING says how many bytes the last part has, WEFT_TEST_DIE_MARK names a file that is made by the
// process that dies. WEFT_PE of the process that dies must be 1, and the one that sends must be PE 0.
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace {

using Copy = decltype(&process_vm_readv);

// Of the parts but the last. Smaller ones are copied as always.
constexpr unsigned long kPartBytes = 262'144;

bool is_pe(const char* number) {
  const char* const pe = std::getenv("WEFT_PE");
  return pe != nullptr && std::strcmp(pe, number) == 0;
}

}  // namespace

extern "C" ssize_t process_vm_readv(pid_t pid, const iovec* here, unsigned long num_here, const iovec* there,
                                    unsigned long num_there, unsigned long flags) noexcept {
  static const char* const size_bytes = std::getenv("WEFT_TEST_DIE_READING");
  static const char* const mark = std::getenv("WEFT_TEST_DIE_MARK");
  static const bool is_victim = size_bytes != nullptr && mark != nullptr && is_pe("1");
  if (is_victim && here->iov_len == std::strtoul(size_bytes, nullptr, 10)) {
    close(open(mark, O_CREAT | O_WRONLY, 0600));
    kill(getpid(), SIGKILL);
  }
  static auto* const next = reinterpret_cast<Copy>(dlsym(RTLD_NEXT, "process_vm_readv"));
  return next(pid, here, num_here, there, num_there, flags);
}

extern "C" ssize_t process_vm_writev(pid_t pid, const iovec* here, unsigned long num_here, const iovec* there,
                                     unsigned long num_there, unsigned long flags) noexcept {
  static const char* const mark = std::getenv("WEFT_TEST_DIE_MARK");
  static const bool is_sender = mark != nullptr && is_pe("0");
  static bool has_copied = false;
  if (is_sender && here->iov_len == kPartBytes && std::exchange(has_copied, true)) {
    while (access(mark, F_OK) != 0) sched_yield();
  }
  static auto* const next = reinterpret_cast<Copy>(dlsym(RTLD_NEXT, "process_vm_writev"));
  return next(pid, here, num_here, there, num_there, flags);
}
