// Keeps UCX from reading ./ucx.conf if another user may have written it.
//
// UCX reads settings from a file of this name in the current folder when its library is loaded, before any function of the
// program runs. Such settings name files that UCX overwrites and folders whose libraries it loads.
#pragma once

#include <string>

namespace weft::machine::ucx {

// What was not read and why, for people. Empty if there was no such file, or UCX has read it.
std::string unread_config_file();

}  // namespace weft::machine::ucx
