#include "machine/factory/factory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/format.h"
#include "machine/loopback/loopback_machine.h"
#include "machine/peer_memory/mapping/process_copy.h"
#include "machine/peer_memory/peer_memory.h"
#include "machine/ucx/report.h"
#include "machine/ucx/setup/config_file.h"
#include "machine/ucx/ucx_machine.h"

namespace weft::machine {
namespace {

using base::Status;
using base::StatusCode;

constexpr std::string_view kUcx = "ucx";
constexpr std::string_view kLoopback = "loopback";
// For tests: each PE behaves as if it were on a host of its own.
constexpr std::string_view kUcxApart = "ucx-apart";

Status unknown_machine(std::string_view name) {
  return {StatusCode::kInvalidArgument,
          base::format(
              "there is no machine '{}': set WEFT_MACHINE to '{}' (the default) or '{}', which has one PE",
              name, kUcx, kLoopback)};
}

bool is_network_trusted() {
  const char* value = std::getenv("WEFT_TRUSTED_NETWORK");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

// UCX's TCP transport carries out puts without calling Weft, so the job's secret does not cover them.
void warn_of_tcp(const ucx::UcxMachine& machine) {
  const auto transports = machine.transports();
  const auto tcp =
      std::ranges::find_if(transports, [](const auto& name) { return name.starts_with("tcp/"); });
  if (tcp == transports.end() || is_network_trusted()) return;
  std::fputs(
      base::format("weft: this job uses TCP ({}): any process that reaches its ports can write into its "
                   "memory. "
                   "Run it on a network that you trust, and set WEFT_TRUSTED_NETWORK=1 to say so "
                   "(docs/security.md)\n",
                   *tcp)
          .c_str(),
      stderr);
}

void warn_of_unread_config_file() {
  const base::Status status = ucx::expect_read_config_file();
  if (!status.ok()) std::fputs(base::format("weft: {}\n", status.message()).c_str(), stderr);
}

base::Result<std::unique_ptr<Machine>> make_ucx(Bootstrap& bootstrap, memory::Memory& memory,
                                                const MachineOptions& options) {
  auto machine = ucx::UcxMachine::create({.pe = bootstrap.pe(),
                                          .num_pes = bootstrap.num_pes(),
                                          .pes_on_host = bootstrap.local_size(),
                                          .staging = options.staging,
                                          .threads = options.threads},
                                         memory);
  if (!machine.ok()) return machine.status();
  ucx::JobSecret proposed;
  if (bootstrap.pe() == 0) {
    auto drawn = ucx::JobSecret::draw();
    if (!drawn.ok()) return drawn.status();
    proposed = *drawn;
    warn_of_tcp(**machine);
    warn_of_unread_config_file();
  }
  auto introduction = (*machine)->introduce(proposed);
  if (!introduction.ok()) return introduction.status();
  auto introductions = bootstrap.exchange(introduction->pack());
  if (!introductions.ok()) return introductions.status();
  auto agreement = ucx::agree(*introductions, bootstrap.pe());
  if (!agreement.ok()) return agreement.status();
  if (Status status = (*machine)->connect(std::move(agreement).value()); status.failed()) return status;
  // No PE may send before every PE has set the machine layer's own handlers.
  if (Status status = bootstrap.barrier(); status.failed()) return status;
  return std::unique_ptr<Machine>(std::move(machine).value());
}

base::Result<std::vector<std::unique_ptr<Machine>>> make_ucx_in_process(
    const std::vector<memory::Memory*>& memories, StagingMode staging, bool apart,
    const std::function<void(int pe)>& before) {
  const int num_pes = static_cast<int>(memories.size());
  std::vector<std::unique_ptr<ucx::UcxMachine>> machines;
  std::vector<std::vector<std::byte>> introductions;
  auto proposed = ucx::JobSecret::draw();
  if (!proposed.ok()) return proposed.status();
  for (int pe = 0; pe < num_pes; ++pe) {
    if (before) before(pe);
    auto machine = ucx::UcxMachine::create(
        {.pe = pe, .num_pes = num_pes, .pes_on_host = apart ? 1 : num_pes, .staging = staging},
        *memories[static_cast<std::size_t>(pe)]);
    if (!machine.ok()) return machine.status();
    auto introduction = (*machine)->introduce(*proposed);
    if (!introduction.ok()) return introduction.status();
    machines.push_back(std::move(machine).value());
    introductions.push_back(introduction->pack());
  }
  std::vector<std::unique_ptr<Machine>> result;
  for (int pe = 0; pe < num_pes; ++pe) {
    auto agreement = ucx::agree(introductions, pe);
    if (!agreement.ok()) return agreement.status();
    auto& machine = machines[static_cast<std::size_t>(pe)];
    if (Status status = machine->connect(std::move(agreement).value()); status.failed()) return status;
    result.push_back(std::move(machine));
  }
  return result;
}

base::Result<std::unique_ptr<Machine>> make_named(Bootstrap& bootstrap, memory::Memory& memory,
                                                  const MachineOptions& options) {
  if (options.name == kUcx) return make_ucx(bootstrap, memory, options);
  if (options.name != kLoopback) return unknown_machine(options.name);
  if (bootstrap.num_pes() > 1) {
    return Status(StatusCode::kInvalidArgument,
                  base::format("WEFT_MACHINE=loopback serves jobs of one PE, and this one has {}; unset it",
                               bootstrap.num_pes()));
  }
  auto machines = make_in_process(kLoopback, {&memory}, options.staging);
  if (!machines.ok()) return machines.status();
  return std::move(machines->front());
}

base::Result<StagingMode> staging_from_environment() {
  const char* wanted = std::getenv("WEFT_STAGING");
  if (wanted == nullptr) return StagingMode::kDevice;
  for (const StagingMode mode : {StagingMode::kDevice, StagingMode::kHost}) {
    if (wanted == staging_mode_name(mode)) return mode;
  }
  return Status(
      StatusCode::kInvalidArgument,
      base::format("WEFT_STAGING='{}' is neither 'device' (the default) nor 'host', which sends all "
                   "device memory through host memory",
                   wanted));
}

base::Result<bool> peer_memory_from_environment() {
  const char* wanted = std::getenv("WEFT_PEER_MEMORY");
  const std::string_view name = wanted == nullptr ? "on" : wanted;
  if (name == "on") return true;
  if (name == "off") return false;
  return Status(StatusCode::kInvalidArgument,
                base::format("WEFT_PEER_MEMORY='{}' is neither 'on' (the default) nor 'off', with which no "
                             "device copies into the memory of another PE",
                             name));
}

}  // namespace

base::Result<MachineOptions> MachineOptions::from_environment() {
  MachineOptions options;
  if (const char* name = std::getenv("WEFT_MACHINE"); name != nullptr) options.name = name;
  auto staging = staging_from_environment();
  if (!staging.ok()) return staging.status();
  options.staging = *staging;
  auto uses_peer_memory = peer_memory_from_environment();
  if (!uses_peer_memory.ok()) return uses_peer_memory.status();
  options.uses_peer_memory = *uses_peer_memory;
  return options;
}

base::Result<std::unique_ptr<Machine>> make_machine(Bootstrap& bootstrap, memory::Memory& memory,
                                                    CallingThreads threads) {
  auto options = MachineOptions::from_environment();
  if (!options.ok()) return options.status();
  options->threads = threads;
  return make_machine(bootstrap, memory, *options);
}

base::Result<std::unique_ptr<Machine>> make_machine(Bootstrap& bootstrap, memory::Memory& memory,
                                                    const MachineOptions& options) {
  auto machine = make_named(bootstrap, memory, options);
  if (machine.ok() && !options.uses_peer_memory) (*machine)->peer_memory().turn_off();
  return machine;
}

base::Result<std::vector<std::unique_ptr<Machine>>> make_in_process(
    std::string_view machine_name, const std::vector<memory::Memory*>& memories, StagingMode staging,
    const std::function<void(int pe)>& before) {
  if (machine_name == kUcx) return make_ucx_in_process(memories, staging, /*apart=*/false, before);
  if (machine_name == kUcxApart) return make_ucx_in_process(memories, staging, /*apart=*/true, before);
  if (machine_name == kLoopback) return loopback::make_loopback(memories, {.staging = staging});
  return unknown_machine(machine_name);
}

std::vector<std::string> machine_report() {
  std::vector<std::string> lines = ucx::report();
  const base::Status copies = allow_process_copies();
  lines.push_back(
      "large messages in host memory, between PEs of one host: " +
      (copies.ok() ? "copied by both PEs" : base::format("through UCX, because {}", copies.message())));
  return lines;
}

}  // namespace weft::machine
