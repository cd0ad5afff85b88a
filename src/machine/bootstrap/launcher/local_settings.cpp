#include "machine/bootstrap/launcher/local_settings.h"

#include <cstdlib>
#include <string_view>

#include "machine/bootstrap/launcher/launcher_variable.h"
#include "machine/bootstrap/launcher/next_incarnation.h"

namespace weft::machine::bootstrap {

using base::Result;

Result<LocalSettings> LocalSettings::from_environment() {
  LocalSettings settings;
  if (const char* path = std::getenv("WEFT_BOOTSTRAP"); path != nullptr) settings.socket_path = path;
  // It was valid when the process began, and the launcher may have given the process another place since.
  Result<int> num_pes = launcher_variable("WEFT_NUM_PES", 1, kMaxPes);
  if (!num_pes.ok()) return num_pes.status();
  Result<int> pe = launcher_variable("WEFT_PE", 0, *num_pes - 1);
  if (!pe.ok()) return pe.status();
  Result<int> launcher = launcher_variable("WEFT_LAUNCHER_PID", 1, 1 << 30);
  if (!launcher.ok()) return launcher.status();
  settings.num_pes = *num_pes;
  settings.pe = *pe;
  settings.launcher_pid = *launcher;
  settings.is_attached = std::getenv("WEFT_ATTACHED") != nullptr;
  if (const char* const name = std::getenv("WEFT_JOB_NAME"); name != nullptr) settings.job_name = name;
  const char* const on_loss = std::getenv("WEFT_ON_LOSS");
  const std::string_view when_lost = on_loss != nullptr && !settings.is_attached ? on_loss : "";
  settings.keeps_job = when_lost == "raise";
  settings.is_restarted = (when_lost == "restart" || when_lost == "shrink") && !has_finished_a_job;
  if (next_incarnation.number && next_incarnation.socket_path == settings.socket_path) {
    settings.incarnation = *next_incarnation.number;
    settings.pe = next_incarnation.pe;
    settings.num_pes = next_incarnation.num_pes;
  } else if (settings.is_restarted && std::getenv("WEFT_INCARNATION") != nullptr) {
    Result<int> incarnation = launcher_variable("WEFT_INCARNATION", 0, 1 << 30);
    if (!incarnation.ok()) return incarnation.status();
    settings.incarnation = static_cast<std::uint32_t>(*incarnation);
  }
  return settings;
}

}  // namespace weft::machine::bootstrap
