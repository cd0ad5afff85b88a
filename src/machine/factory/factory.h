// Makes the machine that a job uses. The only place that names concrete machines is factory.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/status.h"

#include "machine/bootstrap/bootstrap.h"
#include "machine/calling_threads.h"
#include "machine/machine.h"
#include "machine/staging/staging_mode.h"
#include "memory/memory.h"

namespace weft::machine {

// The options of a machine, which must be equal on all PEs of a job.
struct MachineOptions {
  // "ucx", or "loopback" for a job of one PE.
  std::string name = "ucx";
  StagingMode staging = StagingMode::kDevice;
  // Whether devices copy messages past the transport (peer_memory/).
  bool uses_peer_memory = true;
  CallingThreads threads = CallingThreads::kOne;

  // From WEFT_MACHINE, WEFT_STAGING and WEFT_PEER_MEMORY if they are set. kInvalidArgument for another value
  // than those that the error names.
  static base::Result<MachineOptions> from_environment();
};

// Collective over the bootstrap. `memory` must outlive the machine.
base::Result<std::unique_ptr<Machine>> make_machine(Bootstrap& bootstrap, memory::Memory& memory,
                                                    const MachineOptions& options);
// With the options that the environment gives.
base::Result<std::unique_ptr<Machine>> make_machine(Bootstrap& bootstrap, memory::Memory& memory,
                                                    CallingThreads threads = CallingThreads::kOne);

// For tests: machines of one job, all in this process and on one thread. The name is "loopback", "ucx", or
// "ucx-apart", in which each PE behaves as if it were on a host of its own. memories[i] serves PE i. The caller
// calls progress() of each machine. `before` is called before UCX is opened for each PE: a test may put the PE into a network of
// its own.
base::Result<std::vector<std::unique_ptr<Machine>>> make_in_process(
    std::string_view machine_name, const std::vector<memory::Memory*>& memories,
    StagingMode staging = StagingMode::kDevice, const std::function<void(int pe)>& before = {});

// Version and transports of the UCX in use, one per line, for `weft info`.
std::vector<std::string> machine_report();

}  // namespace weft::machine
