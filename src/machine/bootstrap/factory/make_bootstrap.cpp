#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/format.h"
#include "machine/bootstrap/bootstrap.h"
#include "machine/bootstrap/launcher/launch_slot.h"
#include "machine/bootstrap/launcher/local.h"
#include "machine/bootstrap/pmi/pmi.h"
#include "machine/bootstrap/pmi/pmix.h"
#include "machine/bootstrap/singleton.h"

namespace weft::machine {
namespace {

// A value of WEFT_BOOTSTRAP; all others are paths.
constexpr std::string_view kAlone = "singleton";

// Variables by which launchers tell a process how many there are, and which one it is. Not SLURM_NTASKS: a batch script
// has it too, and the programs that the script starts itself are single processes.
struct JobVariables {
  const char* size;
  const char* rank;
};
constexpr JobVariables kJobVariables[] = {{"PMI_SIZE", "PMI_RANK"},
                                          {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
                                          {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}};

// Opens the standard descriptors that are closed. No file that the job opens may get such a number, because the program, and
// the programs that it starts, write to these numbers.
void open_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is this one, or the first that is still closed.
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) return;
  }
}

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : static_cast<int>(std::strtol(text, nullptr, 10));
}

std::string_view text_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::string_view() : text;
}

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

// Whether a PMI launcher started this very process. The variables alone do not tell: a launcher of another kind below it
// passes them on, but not the connection. A socket that the program has made itself closes on exec.
bool has_pmi_connection() {
  if (!is_set("PMI_FD") || number_in("PMI_SIZE") < 1) return false;
  const int fd = number_in("PMI_FD");
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) return false;
  const int flags = fcntl(fd, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

// Whether a PMIx launcher runs inside a PE of `weft run`, which passes on the variables of one around it, and says which.
bool is_pmix_inside_weft_run() {
  if (!is_set("PMIX_NAMESPACE")) return false;
  const std::string process = base::format("{}:{}", text_of("PMIX_NAMESPACE"), text_of("PMIX_RANK"));
  return process != text_of("WEFT_OUTER_PMIX");
}

// Launchers of PyTorch, such as torchrun, set these four for each process.
bool is_started_by_torchrun() {
  return is_set("MASTER_ADDR") && is_set("MASTER_PORT") && is_set("RANK") && number_in("WORLD_SIZE") > 1;
}

// By itself every process would be a job of one PE. The first one prints the sentence.
base::Status refuse_silent_copies() {
  base::Status other_process(base::StatusCode::kCancelled, "process 0 says why this one ends");
  for (const auto& [size, rank] : kJobVariables) {
    const int processes = number_in(size);
    if (processes < 2) continue;
    if (number_in(rank) != 0) return other_process;
    return {base::StatusCode::kUnsupported,
            base::format(
                "a launcher started {} processes of this program ({}={}) and gave them no way to find one "
                "another. Use a launcher that speaks PMIx or PMI: srun --mpi=pmix or --mpi=pmi2 (`srun "
                "--mpi=list` shows what your Slurm has), prterun, mpiexec of Open MPI or of MPICH, or `weft "
                "run` on one host. If each process is to be a job of its own, set WEFT_BOOTSTRAP={}",
                processes, size, processes, kAlone)};
  }
  if (!is_started_by_torchrun()) return {};
  if (number_in("RANK") != 0) return other_process;
  return {base::StatusCode::kUnsupported,
          base::format("torchrun, or a launcher like it, started {0} processes of this program "
                       "(WORLD_SIZE={0}), and Weft cannot "
                       "connect them. Start the program with `weft run -n {0}`; for torch.distributed, set "
                       "MASTER_ADDR and MASTER_PORT "
                       "before, and pass rank=weft.my_pe() and world_size=weft.num_pes() to "
                       "init_process_group(). If each process is to "
                       "be a job of its own, set WEFT_BOOTSTRAP={1}",
                       number_in("WORLD_SIZE"), kAlone)};
}

// A misspelled word would be without effect.
base::Status check_request() {
  const std::string_view request = text_of("WEFT_BOOTSTRAP");
  if (request.empty() || request == kAlone || request.starts_with('/')) return {};
  return {
      base::StatusCode::kInvalidArgument,
      base::format("WEFT_BOOTSTRAP is '{}': set it to {} for a job of one PE, or unset it", request, kAlone)};
}

enum class Launcher { kNone, kWeftRun, kPmix, kPmi };

// The launcher whose job this process joins. kNone: a job of one PE.
base::Result<Launcher> launcher_of_environment() {
  if (base::Status status = check_request(); status.failed()) return status;
  if (text_of("WEFT_BOOTSTRAP") == kAlone) return Launcher::kNone;
  if (has_pmi_connection()) return number_in("PMI_SIZE") == 1 ? Launcher::kNone : Launcher::kPmi;
  if (is_set("WEFT_BOOTSTRAP") && !is_pmix_inside_weft_run()) return Launcher::kWeftRun;
  if (is_set("PMIX_NAMESPACE")) return Launcher::kPmix;
  // A descriptor with the number of PMI_FD is the program's own.
  if (is_set("PMI_FD") && number_in("PMI_SIZE") > 1)
    return bootstrap::launch_slot_is_used(text_of("PMI_RANK"));
  if (base::Status status = refuse_silent_copies(); status.failed()) return status;
  return Launcher::kNone;
}

}  // namespace

base::Result<std::unique_ptr<Bootstrap>> make_bootstrap(bool can_begin_again) {
  open_standard_descriptors();
  base::Result<Launcher> launcher = launcher_of_environment();
  if (!launcher.ok()) return launcher.status();
  if (*launcher == Launcher::kWeftRun) {
    base::Result<bootstrap::LocalSettings> settings = bootstrap::LocalSettings::from_environment();
    if (!settings.ok()) return settings.status();
    settings->can_begin_again = can_begin_again && settings->is_restarted;
    return bootstrap::LocalBootstrap::join(*settings);
  }
  if (*launcher == Launcher::kPmix) return bootstrap::PmixBootstrap::join();
  if (*launcher == Launcher::kPmi) {
    base::Result<bootstrap::PmiSettings> settings = bootstrap::PmiSettings::from_environment();
    if (!settings.ok()) return settings.status();
    return bootstrap::PmiBootstrap::join(*settings);
  }
  return std::unique_ptr<Bootstrap>(std::make_unique<bootstrap::SingletonBootstrap>());
}

base::Result<LaunchPlace> place_in_launch() {
  base::Result<Launcher> launcher = launcher_of_environment();
  if (!launcher.ok()) return launcher.status();
  if (*launcher == Launcher::kWeftRun) {
    base::Result<bootstrap::LocalSettings> settings = bootstrap::LocalSettings::from_environment();
    if (!settings.ok()) return settings.status();
    return LaunchPlace{settings->pe, settings->num_pes, true};
  }
  if (*launcher == Launcher::kPmix) return LaunchPlace{number_in("PMIX_RANK"), 0, true};
  if (*launcher == Launcher::kPmi) return LaunchPlace{number_in("PMI_RANK"), number_in("PMI_SIZE"), true};
  return LaunchPlace{0, 1, false};
}

}  // namespace weft::machine
