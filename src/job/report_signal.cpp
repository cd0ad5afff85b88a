#include "job/report_signal.h"

#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/format.h"

namespace weft::job {

namespace {

// A signal handler has no other way to its data.
std::atomic<runtime::Runtime*> asked_runtime{nullptr};
std::atomic<int> status_file{-1};
std::atomic<off_t> file_size{0};  // of what was in it before the last stacks
std::atomic<bool> writes_own_stacks{false};

// The marks of a status file, which python/weft/_cli/status.py reads.
constexpr const char* kBegin = "weft: what the PEs of the job wait for\n";
constexpr const char* kEnd = "weft: end of the report\n";

// What a PE says is in a file beside its shared memory, in the folder that `weft run` makes for the user alone, and removes. -1: there is
// none.
int open_status_file(int pe) {
  const char* const folder = std::getenv("UCX_POSIX_DIR");
  if (folder == nullptr || std::string_view(folder).find("/weft-segments-") == std::string_view::npos)
    return -1;
  const std::string path = base::format("{}/status-{}", folder, pe);
  return open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count < 0 && errno != EINTR) return;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
}

// --- In the handler: no lock, no memory

void write_stack(int file) {
  constexpr int kMostFrames = 64;
  std::array<void*, kMostFrames> frames{};
  backtrace_symbols_fd(frames.data(), backtrace(frames.data(), kMostFrames), file);
}

// The stacks, which the language's handler has just written to the file.
void copy_stacks(int file) {
  std::array<char, 1024> part{};
  for (off_t from = file_size.load();;) {
    const ssize_t count = pread(file, part.data(), part.size(), from);
    if (count <= 0) return file_size.store(from);
    from += count;
    write_all(STDERR_FILENO, {part.data(), static_cast<std::size_t>(count)});
  }
}

void ask(int /*signal*/) {
  const int error = errno;
  const int file = status_file.load();
  if (!writes_own_stacks.load()) {
    write_stack(STDERR_FILENO);
    if (file >= 0) write_stack(file);
  } else if (file >= 0) {
    copy_stacks(file);
  }
  if (runtime::Runtime* const runtime = asked_runtime.load()) runtime->ask_for_report();
  errno = error;
}

}  // namespace

ReportSignal::ReportSignal(runtime::Runtime& runtime) : runtime_(runtime) {
  struct sigaction current{};
  if (sigaction(SIGUSR1, nullptr, &current) != 0 || (current.sa_flags & SA_SIGINFO) != 0 ||
      current.sa_handler != SIG_DFL) {
    return;
  }
  runtime_.set_report_function([this] {
    if (runtime_.pe() != 0 || runtime_.ending()) return;
    runtime_.report_waits(false, [](const std::string& text) {
      const std::string report = kBegin + text;
      write_all(STDERR_FILENO, report);
      const int file = status_file.load();
      if (file < 0) return;
      write_all(file, report + kEnd);
      file_size.store(lseek(file, 0, SEEK_END));
    });
  });
  void* frame = nullptr;
  backtrace(&frame, 1);  // the first call allocates
  status_file.store(open_status_file(runtime_.pe()));
  if (status_file.load() >= 0) file_size.store(lseek(status_file.load(), 0, SEEK_END));
  asked_runtime.store(&runtime_);
  struct sigaction ours{};
  ours.sa_handler = &ask;
  ours.sa_flags = SA_RESTART;
  sigemptyset(&ours.sa_mask);
  is_set_ = sigaction(SIGUSR1, &ours, nullptr) == 0;
}

ReportSignal::~ReportSignal() {
  if (!is_set_) return;
  struct sigaction current{};
  if (sigaction(SIGUSR1, nullptr, &current) == 0 && current.sa_handler == &ask) {
    current.sa_handler = SIG_DFL;
    sigaction(SIGUSR1, &current, nullptr);
  }
  asked_runtime.store(nullptr);
  writes_own_stacks.store(false);
  if (const int file = status_file.exchange(-1); file >= 0) close(file);
}

int ReportSignal::expect_own_stacks() {
  writes_own_stacks.store(true);
  return status_file.load();
}

}  // namespace weft::job
