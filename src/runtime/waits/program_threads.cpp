#include "runtime/waits/program_threads.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <string>
#include <system_error>

#include "base/format.h"

namespace weft::runtime {

namespace {

std::vector<pid_t> threads_of_process() {
  std::vector<pid_t> threads;
  std::error_code error;
  for (auto one = std::filesystem::directory_iterator("/proc/self/task", error);
       !error && one != std::filesystem::directory_iterator(); one.increment(error)) {
    const std::string name = one->path().filename();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    threads.push_back(thread);
  }
  std::ranges::sort(threads);
  return threads;
}

struct OwnThreads {
  std::mutex mutex;
  std::vector<pid_t> threads;
};

OwnThreads& own_threads() {
  static OwnThreads threads;
  return threads;
}

// The first line of a file of the thread; empty if there is none.
std::string line_of(pid_t thread, const char* file) {
  std::array<char, 256> line{};
  std::FILE* const opened = std::fopen(base::format("/proc/self/task/{}/{}", thread, file).c_str(), "re");
  if (opened == nullptr) return {};
  const bool is_read = std::fgets(line.data(), static_cast<int>(line.size()), opened) != nullptr;
  std::fclose(opened);
  return is_read ? std::string(line.data()) : std::string();
}

// `call`: the number of a system call and its arguments, see proc(5).
bool waits_for_thread(const std::string& call) {
  char* at = nullptr;
  if (std::strtol(call.c_str(), &at, 10) != SYS_futex || at == call.c_str()) return false;
  constexpr int kTimeout = 4;  // the fourth argument
  unsigned long long argument = 0;
  for (int i = 0; i < kTimeout; ++i) argument = std::strtoull(at, &at, 16);
  return argument == 0;
}

bool is_of_driver(pid_t thread) { return line_of(thread, "comm").starts_with("cuda"); }

}  // namespace

OwnThreadsBegin::OwnThreadsBegin() : before_(threads_of_process()) {}

OwnThreadsBegin::~OwnThreadsBegin() {
  OwnThreads& own = own_threads();
  const std::lock_guard lock(own.mutex);
  std::vector<pid_t> now = threads_of_process();
  std::erase_if(own.threads, [&](pid_t one) { return !std::ranges::binary_search(now, one); });  // ended
  std::ranges::set_difference(now, before_, std::back_inserter(own.threads));
}

bool program_threads_may_act() {
  const pid_t self = gettid();
  OwnThreads& own = own_threads();
  const std::lock_guard lock(own.mutex);
  return std::ranges::any_of(threads_of_process(), [&](pid_t one) {
    if (one == self || std::ranges::find(own.threads, one) != own.threads.end()) return false;
    const std::string call = line_of(one, "syscall");
    // A system that does not tell is taken to have no such threads: reports are for all programs.
    return !call.empty() && !waits_for_thread(call) && !is_of_driver(one);
  });
}

}  // namespace weft::runtime
