#include "crash_report.h"

#include <sys/ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace weft::mpi_host {

namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10;

// The state that the crash handler reads. The handler may call only functions that signal handlers may call.
const RankSlots* slots_here = nullptr;
int pe_here = 0;
alignas(16) std::array<std::byte, kStackBytes> report_stack;

class Line {
 public:
  Line& operator<<(std::string_view part) {
    const std::size_t size = std::min(part.size(), text_.size() - size_);
    std::memcpy(text_.data() + size_, part.data(), size);
    size_ += size;
    return *this;
  }
  Line& operator<<(std::size_t number) {
    const auto end = std::to_chars(text_.data() + size_, text_.data() + text_.size(), number).ptr;
    size_ = static_cast<std::size_t>(end - text_.data());
    return *this;
  }
  // A report that cannot be written is lost; some C libraries demand that the answer is looked at.
  void write() const { [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text_.data(), size_); }

 private:
  std::array<char, 256> text_;
  std::size_t size_ = 0;
};

const void* stack_pointer_of(const void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  return reinterpret_cast<const void*>(registers[REG_RSP]);  // NOLINT(performance-no-int-to-ptr): a register
}

void on_fault(int number, siginfo_t* info, void* context) {
  const int rank = slots_here->slots().rank_at(stack_pointer_of(context));
  if (rank >= 0) {
    Line line;
    line << "weft: PE " << static_cast<std::size_t>(pe_here) << ": MPI rank "
         << static_cast<std::size_t>(rank);
    if (info->si_code > 0 && slots_here->is_below_stack(rank, info->si_addr)) {
      line << " has used up its stack of " << slots_here->stack_bytes() / 1024
           << " KiB; give ranks more with --stack-size KIB before the program\n";
    } else {
      line << (number == SIGBUS ? " ends by SIGBUS" : " ends by SIGSEGV")
           << ", in the program or a library\n";
    }
    line.write();
  }
  // The instruction runs again, or the signal comes again, and ends the process as it would have without a report.
  std::signal(number, SIG_DFL);
  if (info->si_code <= 0) static_cast<void>(raise(number));
}

}  // namespace

void report_crashes(const RankSlots& slots, int pe) {
  slots_here = &slots;
  pe_here = pe;
  stack_t stack = {};
  stack.ss_sp = report_stack.data();
  stack.ss_size = report_stack.size();
  if (sigaltstack(&stack, nullptr) != 0) return;  // without the report
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGSEGV, SIGBUS}) static_cast<void>(sigaction(number, &action, nullptr));
}

}  // namespace weft::mpi_host
