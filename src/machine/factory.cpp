#include "machine/factory.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "machine/loopback/loopback_machine.h"
#include "machine/ucx/report.h"
#include "machine/ucx/ucx_machine.h"

namespace weft::machine {
namespace {

using base::Status;
using base::StatusCode;

constexpr std::string_view kUcx = "ucx";
constexpr std::string_view kLoopback = "loopback";
// For tests: each PE as if on a host of its own, with all that several hosts need.
constexpr std::string_view kUcxApart = "ucx-apart";

Status unknown_machine(std::string_view name) {
  return {StatusCode::kInvalidArgument,
          fmt::format(
              "there is no machine '{}': set WEFT_MACHINE to '{}' (the default) or '{}', which has one PE",
              name, kUcx, kLoopback)};
}

Status different_staging(int pe, int other) {
  return {
      StatusCode::kInvalidArgument,
      fmt::format("PE {} and PE {} were started with different values of WEFT_STAGING; all PEs of a job need "
                  "the same",
                  pe, other)};
}

// Takes the staging mode that each PE sent with its address off again.
Status expect_same_staging(std::vector<std::vector<std::byte>>& addresses, StagingMode mine, int pe) {
  for (std::size_t other = 0; other < addresses.size(); ++other) {
    std::vector<std::byte>& address = addresses[other];
    if (address.empty() || address.back() != static_cast<std::byte>(mine)) {
      return different_staging(pe, static_cast<int>(other));
    }
    address.pop_back();
  }
  return {};
}

// On one host nobody else can reach the PEs: no socket listens, and shared memory is the user's own.
base::Result<std::optional<ucx::JobSecret>> agree_on_secret(Bootstrap& bootstrap) {
  if (bootstrap.local_size() == bootstrap.num_pes()) return std::optional<ucx::JobSecret>();
  std::vector<std::byte> drawn;
  if (bootstrap.pe() == 0) {
    auto secret = ucx::JobSecret::draw();
    if (!secret.ok()) return secret.status();
    drawn.assign(secret->bytes().begin(), secret->bytes().end());
  }
  auto all = bootstrap.exchange(drawn);
  if (!all.ok()) return all.status();
  auto secret = ucx::JobSecret::from_bytes(all->front());
  if (!secret.ok()) return secret.status();
  return std::optional<ucx::JobSecret>(*secret);
}

base::Result<std::unique_ptr<Machine>> make_ucx(Bootstrap& bootstrap, memory::Memory& memory,
                                                StagingMode staging) {
  auto secret = agree_on_secret(bootstrap);
  if (!secret.ok()) return secret.status();
  auto machine = ucx::UcxMachine::create({.pe = bootstrap.pe(),
                                          .num_pes = bootstrap.num_pes(),
                                          .pes_on_host = bootstrap.local_size(),
                                          .staging = staging,
                                          .secret = *secret},
                                         memory);
  if (!machine.ok()) return machine.status();
  auto address = (*machine)->address();
  if (!address.ok()) return address.status();
  address->push_back(static_cast<std::byte>(staging));
  auto addresses = bootstrap.exchange(*address);
  if (!addresses.ok()) return addresses.status();
  if (Status status = expect_same_staging(*addresses, staging, bootstrap.pe()); status.failed())
    return status;
  if (Status status = (*machine)->connect(std::move(addresses).value()); status.failed()) return status;
  // No PE sends before every PE has its handlers of the machine's own.
  if (Status status = bootstrap.barrier(); status.failed()) return status;
  return std::unique_ptr<Machine>(std::move(machine).value());
}

base::Result<std::vector<std::unique_ptr<Machine>>> make_ucx_in_process(
    const std::vector<memory::Memory*>& memories, StagingMode staging, bool apart) {
  std::optional<ucx::JobSecret> secret;
  if (apart) {
    auto drawn = ucx::JobSecret::draw();
    if (!drawn.ok()) return drawn.status();
    secret = *drawn;
  }
  const int num_pes = static_cast<int>(memories.size());
  std::vector<std::unique_ptr<ucx::UcxMachine>> machines;
  std::vector<std::vector<std::byte>> addresses;
  for (int pe = 0; pe < num_pes; ++pe) {
    auto machine = ucx::UcxMachine::create({.pe = pe,
                                            .num_pes = num_pes,
                                            .pes_on_host = apart ? 1 : num_pes,
                                            .staging = staging,
                                            .secret = secret},
                                           *memories[static_cast<std::size_t>(pe)]);
    if (!machine.ok()) return machine.status();
    auto address = (*machine)->address();
    if (!address.ok()) return address.status();
    machines.push_back(std::move(machine).value());
    addresses.push_back(std::move(address).value());
  }
  std::vector<std::unique_ptr<Machine>> result;
  for (auto& machine : machines) {
    if (Status status = machine->connect(addresses); status.failed()) return status;
    result.push_back(std::move(machine));
  }
  return result;
}

}  // namespace

base::Result<MachineOptions> MachineOptions::from_environment() {
  MachineOptions options;
  if (const char* name = std::getenv("WEFT_MACHINE"); name != nullptr) options.name = name;
  const char* wanted = std::getenv("WEFT_STAGING");
  if (wanted == nullptr) return options;
  for (const StagingMode mode : {StagingMode::kDevice, StagingMode::kHost}) {
    if (wanted != staging_mode_name(mode)) continue;
    options.staging = mode;
    return options;
  }
  return Status(StatusCode::kInvalidArgument,
                fmt::format("WEFT_STAGING='{}' is neither 'device' (the default) nor 'host', which sends all "
                            "device memory through host memory",
                            wanted));
}

base::Result<std::unique_ptr<Machine>> make_machine(Bootstrap& bootstrap, memory::Memory& memory) {
  auto options = MachineOptions::from_environment();
  if (!options.ok()) return options.status();
  return make_machine(bootstrap, memory, *options);
}

base::Result<std::unique_ptr<Machine>> make_machine(Bootstrap& bootstrap, memory::Memory& memory,
                                                    const MachineOptions& options) {
  if (options.name == kUcx) return make_ucx(bootstrap, memory, options.staging);
  if (options.name != kLoopback) return unknown_machine(options.name);
  if (bootstrap.num_pes() > 1) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("WEFT_MACHINE=loopback serves jobs of one PE, and this one has {}; unset it",
                              bootstrap.num_pes()));
  }
  auto machines = make_in_process(kLoopback, {&memory}, options.staging);
  if (!machines.ok()) return machines.status();
  return std::move(machines->front());
}

base::Result<std::vector<std::unique_ptr<Machine>>> make_in_process(
    std::string_view machine_name, const std::vector<memory::Memory*>& memories, StagingMode staging) {
  if (machine_name == kUcx) return make_ucx_in_process(memories, staging, /*apart=*/false);
  if (machine_name == kUcxApart) return make_ucx_in_process(memories, staging, /*apart=*/true);
  if (machine_name == kLoopback) return loopback::make_loopback(memories, {.staging = staging});
  return unknown_machine(machine_name);
}

std::vector<std::string> machine_report() { return ucx::report(); }

}  // namespace weft::machine
