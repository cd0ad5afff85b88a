#include "machine/factory.h"

#include <fmt/format.h>

#include <cstdlib>

#include "machine/loopback/loopback_machine.h"
#include "machine/ucx/report.h"
#include "machine/ucx/ucx_machine.h"

namespace weft::machine {
namespace {

using base::Status;
using base::StatusCode;

constexpr std::string_view kUcx = "ucx";
constexpr std::string_view kLoopback = "loopback";

Status unknown_machine(std::string_view name) {
  return {StatusCode::kInvalidArgument,
          fmt::format(
              "there is no machine '{}': set WEFT_MACHINE to '{}' (the default) or '{}', which has one PE",
              name, kUcx, kLoopback)};
}

base::Result<std::unique_ptr<Machine>> make_ucx(Bootstrap& bootstrap, memory::Memory& memory) {
  auto machine = ucx::UcxMachine::create(
      {.pe = bootstrap.pe(), .num_pes = bootstrap.num_pes(), .pes_on_host = bootstrap.local_size()}, memory);
  if (!machine.ok()) return machine.status();
  auto address = (*machine)->address();
  if (!address.ok()) return address.status();
  auto addresses = bootstrap.exchange(*address);
  if (!addresses.ok()) return addresses.status();
  if (Status status = (*machine)->connect(std::move(addresses).value()); status.failed()) return status;
  // No PE sends before every PE has its handlers of the machine's own.
  if (Status status = bootstrap.barrier(); status.failed()) return status;
  return std::unique_ptr<Machine>(std::move(machine).value());
}

base::Result<std::vector<std::unique_ptr<Machine>>> make_ucx_in_process(
    const std::vector<memory::Memory*>& memories) {
  const int num_pes = static_cast<int>(memories.size());
  std::vector<std::unique_ptr<ucx::UcxMachine>> machines;
  std::vector<std::vector<std::byte>> addresses;
  for (int pe = 0; pe < num_pes; ++pe) {
    auto machine = ucx::UcxMachine::create({.pe = pe, .num_pes = num_pes, .pes_on_host = num_pes},
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

base::Result<std::unique_ptr<Machine>> make_machine(Bootstrap& bootstrap, memory::Memory& memory) {
  const char* wanted = std::getenv("WEFT_MACHINE");
  const std::string_view name = wanted == nullptr ? kUcx : wanted;
  if (name == kUcx) return make_ucx(bootstrap, memory);
  if (name != kLoopback) return unknown_machine(name);
  if (bootstrap.num_pes() > 1) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("WEFT_MACHINE=loopback serves jobs of one PE, and this one has {}; unset it",
                              bootstrap.num_pes()));
  }
  auto machines = make_in_process(kLoopback, {&memory});
  if (!machines.ok()) return machines.status();
  return std::move(machines->front());
}

base::Result<std::vector<std::unique_ptr<Machine>>> make_in_process(
    std::string_view machine_name, const std::vector<memory::Memory*>& memories) {
  if (machine_name == kUcx) return make_ucx_in_process(memories);
  if (machine_name == kLoopback) return loopback::make_loopback(memories);
  return unknown_machine(machine_name);
}

std::vector<std::string> machine_report() { return ucx::report(); }

}  // namespace weft::machine
