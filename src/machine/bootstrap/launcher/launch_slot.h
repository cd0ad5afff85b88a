// One Weft program per process that a launcher starts: a second one with the same number would take part in the job of
// the first, whose launcher cannot tell them apart.
#pragma once

#include <string_view>

#include "weft/base/status.h"

namespace weft::machine::bootstrap {

// Held until this process ends. Fails if it is held already, here or in another process of this host. `job` and `process`
// are the launcher's names.
base::Status take_launch_slot(std::string_view job, std::string_view process);

// The error of a process whose launch slot has had a job already.
base::Status launch_slot_is_used(std::string_view process);

}  // namespace weft::machine::bootstrap
