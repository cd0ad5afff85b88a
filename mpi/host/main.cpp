// weft-mpi-host: runs several ranks of an MPI program in this process. `weft run --ranks` starts it in place of the program.
//
//     weft-mpi-host [--check] PROGRAM [ARGUMENT...]
//
// --check says whether the program can have virtual ranks, and runs none of it.
//
// Environment: WEFT_MPI_RANKS, WEFT_MPI_RANK_MAP, WEFT_MPI_STACK_KIB, WEFT_MPI_SHARE_LIBRARIES; and WEFT_PE and WEFT_NUM_PES,
// which `weft run` sets for every PE. docs/mpi.md describes them.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ios>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "copies_for_unwinders.h"
#include "host_interface.h"
#include "libraries.h"
#include "linkage.h"
#include "program.h"
#include "program_copy.h"
#include "rank_map.h"
#include "rank_memory.h"
#include "rank_state.h"
#include "refusal.h"
#include "slot_heap.h"
#include "slots.h"
#include "symbol_scope.h"

namespace weft::mpi_host {

namespace {

using base::format;

constexpr int kUsageError = 2;

std::string text_variable(const char* name, const char* without) {
  const char* const value = std::getenv(name);
  return value == nullptr ? without : value;
}

int number_variable(const char* name, int without, int least, int most) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return without;
  int value = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < least || value > most)
    throw Refusal(format("{}='{}': give a number from {} to {}, or unset it", name, text, least, most));
  return value;
}

std::vector<std::string> list_variable(const char* name) {
  std::istringstream text(text_variable(name, ""));
  std::vector<std::string> entries;
  for (std::string entry; std::getline(text, entry, ',');) {
    if (!entry.empty()) entries.push_back(entry);
  }
  return entries;
}

// What the launcher says about the job.
struct Settings {
  int num_pes = 1;
  int pe = 0;
  std::vector<int> pe_of_rank;
  std::size_t stack_size_bytes = 0;
};

Settings read_settings() {
  // A stack has room for the program's own calls at least; more than 64 GiB is a mistake.
  constexpr int kLeastStackKib = 64;
  constexpr int kMostStackKib = 64 << 20;
  constexpr int kUsualStackKib = 1024;
  Settings settings;
  settings.num_pes = number_variable("WEFT_NUM_PES", 1, 1, kMaxRanks);
  settings.pe = number_variable("WEFT_PE", 0, 0, settings.num_pes - 1);
  const int num_ranks = number_variable("WEFT_MPI_RANKS", settings.num_pes, 1, kMaxRanks);
  settings.pe_of_rank = map_ranks(num_ranks, settings.num_pes, text_variable("WEFT_MPI_RANK_MAP", "block"));
  const int stack_kib = number_variable("WEFT_MPI_STACK_KIB", kUsualStackKib, kLeastStackKib, kMostStackKib);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  settings.stack_size_bytes = (static_cast<std::size_t>(stack_kib) * 1024 + page - 1) / page * page;
  return settings;
}

// The program finds its libraries in folders relative to its own file, so they are loaded by their paths. Returns handles.
std::vector<void*> load_libraries(const std::vector<Library>& libraries) {
  std::vector<void*> handles;
  for (const Library& library : libraries) {
    handles.push_back(dlopen(library.path.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (handles.back() == nullptr) throw Refusal(format("{}: {}", library.path, dlerror()));
  }
  return handles;
}

// The program's file, from which copies are mapped. Stays open.
int open_program(const Program& program) {
  const int fd = open(program.path().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Refusal(format("{}: cannot be read: {}", program.path(), std::strerror(errno)));
  return fd;
}

class Host {
 public:
  Host(const Program& program, const std::vector<void*>& libraries, const Settings& settings,
       std::vector<std::string> arguments)
      : program_(program),
        linkage_(program_, SymbolScope(libraries)),
        slots_(static_cast<int>(settings.pe_of_rank.size())),
        stack_bytes_(settings.stack_size_bytes),
        arguments_(std::move(arguments)),
        states_(settings.pe_of_rank.size()),
        copies_(states_.size()) {
    const int fd = open_program(program_);
    for (std::size_t rank = 0; rank < states_.size(); ++rank) {
      if (settings.pe_of_rank[rank] != settings.pe) continue;
      states_[rank] = std::make_unique<RankState>();
      char* const base = slots_.begin(static_cast<int>(rank));
      copies_[rank] = std::make_unique<ProgramCopy>(program_, linkage_, fd, base, *states_[rank]);
      states_[rank]->heap = &make_stack_and_heap(base);
    }
    begin_rank_memory(slots_);
    set_rank_states(&states_);
    show_copies_to_unwinders({.program = &program_, .slots = &slots_, .states = &states_});
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  static int run_rank(void* context, int rank) {
    const auto& host = *static_cast<const Host*>(context);
    return host.copies_[static_cast<std::size_t>(rank)]->run(host.arguments_) & 0xff;
  }

  static void* stack_of_rank(void* context, int rank) {
    const auto& host = *static_cast<const Host*>(context);
    return host.stack_in(host.slots_.begin(rank));
  }

 private:
  // A slot: the copy of the program, a page without access below the stack, the stack, the heap.
  char* stack_in(char* slot) const {
    return slot + program_.image_bytes() + static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }
  SlotHeap& make_stack_and_heap(char* slot) const {
    char* const stack = stack_in(slot);
    char* const heap = stack + stack_bytes_;
    char* const end = slot + slots_.slot_bytes();
    if (heap + kLeastHeapBytes > end) {
      throw Refusal(
          format("{}: its code, its variables and a stack of {} KiB do not fit into the {} MiB that each "
                 "of {} ranks has; start fewer ranks",
                 program_.path(), stack_bytes_ >> 10, slots_.slot_bytes() >> 20, states_.size()));
    }
    if (mprotect(stack, stack_bytes_, PROT_READ | PROT_WRITE) != 0) {
      throw Refusal(
          format("no stack of {} KiB for a rank: {}; give a smaller stack or fewer ranks per process",
                 stack_bytes_ >> 10, std::strerror(errno)));
    }
    return SlotHeap::make(heap, end);
  }

  static constexpr std::size_t kLeastHeapBytes = std::size_t{1} << 20;

  const Program& program_;
  const Linkage linkage_;
  const Slots slots_;
  const std::size_t stack_bytes_;
  std::vector<std::string> arguments_;
  // By rank; null for ranks of other PEs.
  std::vector<std::unique_ptr<RankState>> states_;
  std::vector<std::unique_ptr<ProgramCopy>> copies_;
};

int run(const Program& program, const std::vector<Library>& libraries, std::vector<std::string> arguments) {
  const Settings settings = read_settings();
  const std::vector<void*> handles = load_libraries(libraries);
  // Never destroyed: functions that the program gave to libraries run when the process ends.
  auto* const host = new Host(program, handles, settings, std::move(arguments));
  const weft_mpi_host_program job = {
      .revision = WEFT_MPI_HOST_REVISION,
      .pe = settings.pe,
      .num_pes = settings.num_pes,
      .num_ranks = static_cast<int>(settings.pe_of_rank.size()),
      .pe_of_rank = settings.pe_of_rank.data(),
      .stack_size_bytes = settings.stack_size_bytes,
      .run_rank = &Host::run_rank,
      .stack_of_rank = &Host::stack_of_rank,
      .context = host,
  };
  return weft_mpi_host_run(&job);
}

// The ranks get copies of std::cout and its kin, which the first such object makes.
const std::ios_base::Init streams;

int start(const std::vector<std::string>& words) {
  const bool only_checks = !words.empty() && words.front() == "--check";
  const std::vector<std::string> arguments(words.begin() + (only_checks ? 1 : 0), words.end());
  if (arguments.empty()) {
    std::fputs("usage: weft-mpi-host [--check] PROGRAM [ARGUMENT...]\n", stderr);
    return kUsageError;
  }
  try {
    // Never destroyed, as the host.
    const Program& program = *new Program(ElfFile::read(arguments.front()));
    const std::vector<Library> libraries = libraries_of(program);
    check_libraries(program, libraries, list_variable("WEFT_MPI_SHARE_LIBRARIES"));
    if (only_checks) {
      read_settings();
      return EXIT_SUCCESS;
    }
    static std::string name = arguments.front();
    program_invocation_name = name.data();
    program_invocation_short_name = name.data() + name.rfind('/') + 1;
    return run(program, libraries, arguments);
  } catch (const Refusal& refusal) {
    std::fprintf(stderr, "weft: %s\n", refusal.what());
    return kUsageError;
  }
}

}  // namespace

}  // namespace weft::mpi_host

int main(int argc, char** argv) { return weft::mpi_host::start({argv + 1, argv + argc}); }
