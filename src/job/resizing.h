// Connects what protects chares with the launcher, which may give the job another number of PEs (docs/recovery.md).
#pragma once

#include "weft/runtime/runtime.h"

#include "checkpoint/protected_state.h"
#include "machine/bootstrap/bootstrap.h"

namespace weft::job {

// For one incarnation. REQUIRES: bootstrap.can_begin_again(). The bootstrap and the runtime outlive the next call for that state.
void let_resize(machine::Bootstrap& bootstrap, runtime::Runtime& runtime,
                checkpoint_files::ProtectedState& state);

}  // namespace weft::job
