// weft-mpi-host: runs several ranks of an MPI program in this process. `weft run --ranks` and `weft ranks` start it in place of the
// program.
//
//     weft-mpi-host [--check] PROGRAM [ARGUMENT...]
//
// --check says whether the program can have virtual ranks, and runs none of it. WEFT_NUM_PES is the number of PEs that it shall have.
//
// Environment: WEFT_MPI_RANKS, WEFT_MPI_RANK_MAP, WEFT_MPI_STACK_KIB, WEFT_MPI_SHARE_LIBRARIES. docs/virtual-ranks.md describes
// them. The launcher says which PE this is, and how many there are.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ios>
#include <new>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/format.h"
#include "crash_report.h"
#include "loading/copies_for_unwinders.h"
#include "loading/linkage.h"
#include "loading/loaded_libraries.h"
#include "loading/rank_slot.h"
#include "openmp.h"
#include "program/fixed_addresses.h"
#include "program/libraries.h"
#include "program/program.h"
#include "program/refusal.h"
#include "program/symbol_scope.h"
#include "ranks/host_interface.h"
#include "slots/process_references.h"
#include "slots/rank_map.h"
#include "slots/rank_memory.h"
#include "slots/rank_state.h"

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

// How the ranks of the job are spread.
struct Settings {
  int num_pes = 1;
  int pe = 0;
  std::vector<int> pe_of_rank;
  std::size_t stack_size_bytes = 0;
};

Settings read_settings(const weft_mpi_host_place& place) {
  // A stack has room for the program's own calls at least; more than 64 GiB is a mistake.
  constexpr int kLeastStackKib = 64;
  constexpr int kMostStackKib = 64 << 20;
  constexpr int kUsualStackKib = 1024;
  Settings settings;
  settings.num_pes = place.num_pes;
  settings.pe = place.pe;
  const int num_ranks = number_variable("WEFT_MPI_RANKS", settings.num_pes, 1, kMaxRanks);
  settings.pe_of_rank = map_ranks(num_ranks, settings.num_pes, text_variable("WEFT_MPI_RANK_MAP", "block"));
  const int stack_kib = number_variable("WEFT_MPI_STACK_KIB", kUsualStackKib, kLeastStackKib, kMostStackKib);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  settings.stack_size_bytes = (static_cast<std::size_t>(stack_kib) * 1024 + page - 1) / page * page;
  return settings;
}

// The program finds its libraries in folders relative to its own file, so they are loaded by their paths. But what this process has
// under that name serves, as for the loader: the program may be linked with the MPI library of another installation. Returns handles.
std::vector<void*> load_libraries(const std::vector<Library>& libraries) {
  std::vector<void*> handles;
  for (const Library& library : libraries) {
    const std::string name = library.name.substr(library.name.rfind('/') + 1);
    void* const loaded = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    handles.push_back(loaded != nullptr ? loaded : dlopen(library.path.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (handles.back() == nullptr) throw Refusal(format("{}: {}", library.path, dlerror()));
  }
  return handles;
}

// The program and the libraries that this process has loaded to run ranks.
struct Loaded {
  const Program* program = nullptr;
  std::vector<void*> libraries;   // handles
  std::uint64_t fingerprint = 0;  // of their addresses
};

// Lies at a fixed place in this program: frames of ranks refer to it.
class Host {
 public:
  Host(const Loaded& loaded, const Settings& settings, std::vector<std::string> arguments)
      : linkage_(*loaded.program, SymbolScope(loaded.libraries)),
        slots_(*loaded.program, linkage_, static_cast<int>(settings.pe_of_rank.size()),
               settings.stack_size_bytes),
        arguments_(std::move(arguments)),
        libraries_(*loaded.program, list_variable("WEFT_MPI_SHARE_LIBRARIES")),
        openmp_(loaded.libraries),
        openmp_functions_{
            .level = openmp_.level(),
            .active_level = openmp_.active_level(),
            .put_aside = [](void* context) { return self_of(context).openmp_.put_aside(); },
            .take_back = [](void* context, void* state) { self_of(context).openmp_.take_back(state); }},
        moves_{.fingerprint = loaded.fingerprint,
               .obstacle = loaded.program->obstacle_to_moves() != nullptr
                               ? loaded.program->obstacle_to_moves()
                               : obstacle_to_fixed_addresses(),
               .obstacle_of_rank = [](void* context, int rank) { return self_of(context).obstacle_of(rank); },
               .ranges_of_rank =
                   [](void* context, int rank, const void* lowest, weft_mpi_host_range* ranges) {
                     return self_of(context).slots_.ranges(rank, lowest, ranges);
                   },
               .receive_rank =
                   [](void* context, int rank, const weft_mpi_host_range* ranges, int num_ranges) {
                     return self_of(context).slots_.receive(rank, ranges, num_ranges);
                   },
               .rank_arrived = [](void* context, int rank) { self_of(context).slots_.arrived(rank); },
               .rank_left = [](void* context, int rank) { self_of(context).leave(rank); }} {
    for (std::size_t rank = 0; rank < settings.pe_of_rank.size(); ++rank) {
      if (settings.pe_of_rank[rank] == settings.pe) slots_.make(static_cast<int>(rank));
    }
    begin_rank_memory(slots_.slots());
    begin_loading(libraries_);
    set_rank_states(&slots_.states());
    report_crashes(slots_, settings.pe);
    show_copies_to_unwinders(*loaded.program, slots_.slots(), slots_.states());
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  int run(const Settings& settings) {
    const weft_mpi_host_program job = {
        .revision = WEFT_MPI_HOST_REVISION,
        .pe = settings.pe,
        .num_pes = settings.num_pes,
        .num_ranks = static_cast<int>(settings.pe_of_rank.size()),
        .pe_of_rank = settings.pe_of_rank.data(),
        .stack_size_bytes = settings.stack_size_bytes,
        .run_rank = [](void* context, int rank) { return self_of(context).run_rank(rank); },
        .stack_of_rank = [](void* context, int rank) -> void* { return self_of(context).slots_.stack(rank); },
        .openmp = openmp_.is_used() ? &openmp_functions_ : nullptr,
        .moves = &moves_,
        .context = this,
    };
    return weft_mpi_host_run(&job);
  }

 private:
  static Host& self_of(void* context) { return *static_cast<Host*>(context); }
  int run_rank(int rank) const { return slots_.copy(rank).run(arguments_) & 0xff; }

  const char* obstacle_of(int rank) {
    obstacle_ = what_refers_to(slots_.slots(), rank);
    if (const int count = libraries_.num_own(rank); obstacle_.empty() && count > 0)
      obstacle_ = format("it has libraries with variables from dlopen() ({}); call dlclose() before", count);
    return obstacle_.empty() ? nullptr : obstacle_.c_str();
  }

  void leave(int rank) {
    slots_.left(rank);
    libraries_.rank_left(rank);
  }

  const Linkage linkage_;
  RankSlots slots_;
  const std::vector<std::string> arguments_;
  LoadedLibraries libraries_;
  OpenMp openmp_;
  const weft_mpi_host_openmp openmp_functions_;
  const weft_mpi_host_moves moves_;
  std::string obstacle_;  // the last of a rank
};

// An object at a fixed place in this program that is never destroyed: functions that the program gave to libraries run when
// the process ends, and ranks refer to it in the process to which they move.
template <class T>
struct FixedPlace {
  alignas(T) std::byte bytes[sizeof(T)];
};
FixedPlace<Program> place_of_program;
FixedPlace<Host> place_of_host;

// Throws: Refusal.
std::pair<const Program*, std::vector<Library>> check_program(const std::string& path) {
  const Program& program = *new (&place_of_program) Program(ElfFile::read(path));
  std::vector<Library> libraries = libraries_of(program);
  check_libraries(program, libraries, list_variable("WEFT_MPI_SHARE_LIBRARIES"));
  return {&program, std::move(libraries)};
}

// Calls the function and returns why it has refused; empty if it has not.
template <class Function>
std::string refusal_of(const Function& function) {
  try {
    function();
    return {};
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
}

int check_only(const std::string& path) {
  const std::string refusal = refusal_of([&] {
    check_program(path);
    read_settings({.pe = 0, .num_pes = number_variable("WEFT_NUM_PES", 1, 1, kMaxRanks)});
  });
  if (refusal.empty()) return EXIT_SUCCESS;
  std::fprintf(stderr, "weft: %s\n", refusal.c_str());
  return kUsageError;
}

// The launcher's libraries, if it has any, are loaded after those of the program, which so have the same addresses in all
// processes. A refusal is said when the processes have found one another, once for all.
int run(const std::vector<std::string>& arguments) {
  Loaded loaded;
  Settings settings;
  Host* host = nullptr;
  std::string refusal = refusal_of([&] {
    std::vector<Library> libraries;
    std::tie(loaded.program, libraries) = check_program(arguments.front());
    loaded.libraries = load_libraries(libraries);
    loaded.fingerprint = fingerprint_of_addresses(*loaded.program);
  });
  weft_mpi_host_place place;
  if (const int code = weft_mpi_host_join(&place); code != 0) return code;
  if (refusal.empty()) {
    refusal = refusal_of([&] {
      settings = read_settings(place);
      host = new (&place_of_host) Host(loaded, settings, arguments);
    });
  }
  if (const int code = weft_mpi_host_agree(refusal.empty() ? nullptr : refusal.c_str()); code != 0)
    return code;
  return host->run(settings);
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
  if (only_checks) return check_only(arguments.front());
  static std::string name = arguments.front();
  program_invocation_name = name.data();
  program_invocation_short_name = name.data() + name.rfind('/') + 1;
  return run(arguments);
}

}  // namespace

}  // namespace weft::mpi_host

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty() || words.front() != "--check") weft::mpi_host::restart_without_random_addresses(argv);
  return weft::mpi_host::start(words);
}
