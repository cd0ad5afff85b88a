#include "program/libraries.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <string_view>

#include "base/format.h"
#include "program/refusal.h"

namespace weft::mpi_host {

namespace {

using base::format;

constexpr std::string_view kMpi = "libmpi_abi.so";

// The C and C++ runtimes: their variables are for the process, or mpi/host/libc gives each rank its own. The numerical
// libraries keep settings, plans and work space, which ranks may share because they take turns.
constexpr std::array kShareable = {
    std::string_view("ld-linux-x86-64"),
    std::string_view("linux-vdso"),
    std::string_view("libc"),
    std::string_view("libm"),
    std::string_view("libmvec"),
    std::string_view("libpthread"),
    std::string_view("libdl"),
    std::string_view("librt"),
    std::string_view("libutil"),
    std::string_view("libresolv"),
    std::string_view("libstdc++"),
    std::string_view("libgcc_s"),
    std::string_view("libatomic"),
    std::string_view("libquadmath"),
    std::string_view("libgfortran"),
    std::string_view("libgomp"),
    std::string_view("libomp"),
    std::string_view("libiomp5"),
    std::string_view("libc++"),
    std::string_view("libc++abi"),
    std::string_view("libunwind"),
    std::string_view("libmpi_abi"),
    std::string_view("libblas"),
    std::string_view("libcblas"),
    std::string_view("liblapack"),
    std::string_view("liblapacke"),
    std::string_view("libopenblas"),
    std::string_view("libblis"),
    std::string_view("libfftw3"),
    std::string_view("libfftw3f"),
    std::string_view("libfftw3l"),
    std::string_view("libfftw3_omp"),
    std::string_view("libfftw3f_omp"),
    std::string_view("libfftw3_threads"),
    std::string_view("libz"),
    std::string_view("libzstd"),
    std::string_view("liblz4"),
    // A process has one driver of its devices: a second copy would not know the memory of the first.
    std::string_view("libcuda"),
    std::string_view("libnvidia-ml"),
};

// Variables of libc that a program may hold a copy of: pointers that do not change, and those that mpi/host/libc keeps.
constexpr std::array kCopiesOfLibc = {
    std::string_view("stdin"),
    std::string_view("stdout"),
    std::string_view("stderr"),
    std::string_view("environ"),
    std::string_view("_environ"),
    std::string_view("__environ"),
    std::string_view("optarg"),
    std::string_view("optind"),
    std::string_view("opterr"),
    std::string_view("optopt"),
    std::string_view("program_invocation_name"),
    std::string_view("program_invocation_short_name"),
    std::string_view("__progname"),
    std::string_view("__progname_full"),
};

// "libfoo" of "libfoo.so.1", and of "libfoo-1.2.so".
std::string_view stem(std::string_view name) { return name.substr(0, name.find(".so")); }

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t got = read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

// Runs a command and returns the text that it prints on stdout and stderr.
std::string output_of(const std::vector<std::string>& words, char* const* environment) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Refusal(format("no pipe: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environment);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text = error == 0 ? read_all(ends[0]) : std::string();
  close(ends[0]);
  if (error != 0) throw Refusal(format("{}: cannot be run: {}", words[0], std::strerror(error)));
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

// "\tlibfoo.so.1 => /usr/lib/libfoo.so.1 (0x00007f...)", "\t/lib/ld.so (0x...)", or "\tlibfoo.so.1 => not found".
Library parse_line(const std::string& line, const std::string& program) {
  std::istringstream words(line);
  Library library;
  std::string arrow;
  words >> library.name >> arrow;
  if (arrow != "=>") {
    library.path = library.name;
    return library;
  }
  words >> library.path;
  if (library.path == "not") {
    throw Refusal(format("{}: needs {}, which the loader does not find; name its folder in LD_LIBRARY_PATH",
                         program, library.name));
  }
  return library;
}

std::string list(const std::vector<std::string>& names) {
  constexpr std::size_t kMostShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostShown); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostShown) text += format(" and {} more", names.size() - kMostShown);
  return text;
}

// The libraries that this process has loaded for itself: those of the MPI library.
std::vector<std::string> names_in_this_process() {
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        const std::string_view path = info->dlpi_name;
        static_cast<std::vector<std::string>*>(context)->emplace_back(path.substr(path.rfind('/') + 1));
        return 0;
      },
      &names);
  return names;
}

void check_uses_mpi(const Program& program, const std::vector<Library>& libraries) {
  for (const Library& library : libraries) {
    if (library.name.starts_with(kMpi)) return;
  }
  for (const Library& library : libraries) {
    if (library.name.starts_with("libmpi")) {
      throw Refusal(format("{}: uses another MPI library, {}; compile it with `weft mpicc` or `weft mpicxx`",
                           program.path(), library.name));
    }
  }
  throw Refusal(
      format("{}: does not use MPI, and --ranks is for programs of MPI; compile it with `weft mpicc` or "
             "`weft mpicxx`, and "
             "give the program itself, not a command that starts it",
             program.path()));
}

// Throws if the ranks would share variables of the library without a request.
void check_library(const Program& program, const Library& library) {
  const std::string found = variables_of(library);
  if (found.empty()) return;
  throw Refusal(
      format("{}: its library {} {}, which the ranks of a process would share. If that is correct for the "
             "program, run "
             "with --share-library {}; or link the library statically; or start one PE per rank (-n)",
             program.path(), library.name, found, stem(library.name)));
}

void check_copies(const Program& program) {
  void* const standard_library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
  for (const std::string& name : program.file().copied_variables()) {
    if (std::ranges::find(kCopiesOfLibc, name) != kCopiesOfLibc.end()) continue;
    if (standard_library != nullptr && name.starts_with("_Z") &&
        dlsym(standard_library, name.c_str()) != nullptr)
      continue;
    throw Refusal(
        format("{}: has a copy of the variable {} of a shared library, which cannot be made once per rank; "
               "compile the "
               "program with -fPIC",
               program.path(), name));
  }
}

}  // namespace

bool is_known_to_be_shareable(const std::string& name) {
  const std::string_view found = stem(name);
  return std::ranges::find(kShareable, found) != kShareable.end() || found.starts_with("libmkl_");
}

bool names_library(const std::string& request, const std::string& name) {
  return request == name || request == stem(name);
}

bool is_shared_by_rule(const std::string& name, const std::vector<std::string>& shared_by_request) {
  const auto is_named = [&](const std::string& request) { return names_library(request, name); };
  return is_known_to_be_shareable(name) || std::ranges::any_of(shared_by_request, is_named);
}

std::string file_name_of(const Library& library) { return library.name.substr(library.name.rfind('/') + 1); }

std::string variables_of(const Library& library) {
  const std::optional<std::vector<std::string>> variables = ElfFile::read(library.path).writable_variables();
  if (!variables) return "may have variables (its symbol table was removed)";
  return variables->empty() ? std::string() : format("has variables ({})", list(*variables));
}

// The loader lists what it would load with the program if the library were preloaded, which it looks for as for one of the program.
std::vector<Library> libraries_with(const std::string& loader, const std::string& program,
                                    const std::string& name, char* const* environment) {
  constexpr std::string_view kPreload = "LD_PRELOAD=";
  if (name.find_first_of(": ") != std::string::npos)
    throw Refusal(format("{}: with several ranks per process, the name may have no ':' and no space", name));
  std::string preload = std::string(kPreload) + name;
  std::vector<char*> entries;
  for (char* const* entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::string_view(*entry).starts_with(kPreload)) {
      preload += ":" + std::string(*entry).substr(kPreload.size());
    } else {
      entries.push_back(*entry);
    }
  }
  entries.push_back(preload.data());
  entries.push_back(nullptr);
  std::istringstream lines(output_of({loader, "--list", program}, entries.data()));
  std::vector<Library> libraries;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('\t')) {
      libraries.push_back(parse_line(line, name));
    } else if (const std::size_t reason = line.find('('); line.find("'" + name + "'") != std::string::npos) {
      throw Refusal(
          format("{}: {}", name,
                 reason == std::string::npos ? line : line.substr(reason + 1, line.find(')') - reason - 1)));
    }
  }
  const auto found = std::ranges::find(libraries, name, &Library::name);
  if (found == libraries.end()) throw Refusal(format("{}: cannot open shared object file", name));
  std::rotate(libraries.begin(), found, found + 1);
  std::erase_if(libraries,
                [&](const Library& library) { return library.path.find('/') == std::string::npos; });
  return libraries;
}

std::vector<Library> libraries_of(const Program& program) {
  const std::string own_loader = "ld-linux-x86-64.so.2";
  const std::string loader = program.file().interpreter();
  if (!loader.ends_with("/" + own_loader)) {
    throw Refusal(format("{}: is loaded by {}; virtual ranks need the GNU C library's {}", program.path(),
                         loader, own_loader));
  }
  const std::string path =
      program.path().find('/') == std::string::npos ? "./" + program.path() : program.path();
  std::istringstream lines(output_of({loader, "--list", path}, environ));
  std::vector<Library> libraries;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('\t')) throw Refusal(format("{}: cannot be loaded: {}", program.path(), line));
    Library library = parse_line(line, program.path());
    if (!library.path.starts_with('/')) continue;  // the kernel's own
    libraries.push_back(std::move(library));
  }
  return libraries;
}

void check_libraries(const Program& program, const std::vector<Library>& libraries,
                     const std::vector<std::string>& shared_by_request) {
  check_uses_mpi(program, libraries);
  const std::vector<std::string> own = names_in_this_process();
  for (const Library& library : libraries) {
    const std::string name = file_name_of(library);
    if (is_shared_by_rule(name, shared_by_request) || std::ranges::find(own, name) != own.end()) continue;
    check_library(program, library);
  }
  check_copies(program);
}

}  // namespace weft::mpi_host
