#include "machine/bootstrap/pmi/pmix_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string_view>
#include <vector>

#include "base/format.h"

namespace weft::machine::bootstrap {
namespace {

using base::Status;
using base::StatusCode;

constexpr char kSoname[] = "libpmix.so.2";
constexpr int kMaxAncestors = 16;

pid_t parent_of(pid_t pid) {
  std::ifstream status(base::format("/proc/{}/status", pid));
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("PPid:")) return static_cast<pid_t>(std::strtol(line.c_str() + 5, nullptr, 10));
  }
  return 0;
}

// The libpmix that this process has loaded; empty where there is none or it may not be looked into.
std::string mapped_library(pid_t pid) {
  std::ifstream maps(base::format("/proc/{}/maps", pid));
  std::string line;
  while (std::getline(maps, line)) {
    const auto path = line.find('/');
    if (path != std::string::npos && line.find("/libpmix.so.2", path) != std::string::npos)
      return line.substr(path);
  }
  return {};
}

// In the order of how likely it is the launcher's own: the folders that a relocated launcher announces, what
// the processes above us use, what is installed.
std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  for (const char* variable : {"PMIX_PREFIX", "OPAL_PREFIX", "PRTE_PREFIX"}) {
    const char* prefix = std::getenv(variable);
    if (prefix == nullptr || *prefix == '\0') continue;
    for (const char* folder : {"lib", "lib64", "lib/openmpi", "lib/pmix"}) {
      paths.push_back(base::format("{}/{}/{}", prefix, folder, kSoname));
    }
  }
  pid_t pid = getppid();
  for (int i = 0; i < kMaxAncestors && pid > 1; ++i, pid = parent_of(pid)) {
    if (std::string path = mapped_library(pid); !path.empty()) paths.push_back(std::move(path));
  }
  paths.emplace_back(kSoname);
  return paths;
}

template <class Function>
bool find(void* handle, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(handle, name));
  return function != nullptr;
}

}  // namespace

// The nearest process above this one that has loaded PMIx, or that may not be looked into: a daemon of the system's, as
// Slurm's is. A shell or a container's process between belongs to the user.
pid_t pmix_launcher() {
  pid_t pid = getppid();
  for (int i = 0; i < kMaxAncestors && pid > 1; ++i, pid = parent_of(pid)) {
    const bool is_hidden =
        std::ifstream(base::format("/proc/{}/maps", pid)).peek() == std::ifstream::traits_type::eof();
    if (is_hidden || !mapped_library(pid).empty()) return pid;
  }
  return getppid();
}

base::Result<PmixLibrary> PmixLibrary::load() {
  std::string problems;
  for (const std::string& path : candidates()) {
    if (path != kSoname && access(path.c_str(), R_OK) != 0) continue;
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      problems += base::format("; {}", dlerror());
      continue;
    }
    PmixLibrary library;
    library.path = path;
    if (find(handle, "PMIx_Init", library.init) && find(handle, "PMIx_Finalize", library.finalize) &&
        find(handle, "PMIx_Put", library.put) && find(handle, "PMIx_Commit", library.commit) &&
        find(handle, "PMIx_Fence", library.fence) && find(handle, "PMIx_Get", library.get) &&
        find(handle, "PMIx_Abort", library.abort) &&
        find(handle, "PMIx_Error_string", library.error_string)) {
      return library;
    }
    problems += base::format("; {} lacks functions of PMIx 4", path);
  }
  return Status(
      StatusCode::kNotFound,
      base::format(
          "PMIX_NAMESPACE is set, so a PMIx launcher (srun, prterun, mpiexec) started this program, but "
          "its library {} cannot be loaded{}. Add its folder to LD_LIBRARY_PATH or install PMIx >= 4; "
          "on one host `weft run` needs no PMIx",
          kSoname, problems));
}

}  // namespace weft::machine::bootstrap
