// Keeps UCX from reading ./ucx.conf if another user may have written it.
//
// UCX reads settings from a file of this name in the current folder when its library is loaded, before any function of the
// program runs. Such settings name files that UCX overwrites and folders whose libraries it loads.
#pragma once

#include "weft/base/status.h"

namespace weft::machine::ucx {

// Fails, and says for people what was not read and why, unless there was no such file or UCX has read it.
base::Status expect_read_config_file();

}  // namespace weft::machine::ucx
