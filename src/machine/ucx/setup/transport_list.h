// The list of transports that UCX gets (UCX_TLS), without System V shared memory.
//
// UCX gives each System V segment the mode 0660, and Linux lets a process attach any segment by its number if it may open
// it. So another user of the same group could change the messages of a job.
#pragma once

#include <string>
#include <string_view>

namespace weft::machine::ucx {

// `list` as the user has written it: names, "^" and names, or "all". Where `sysv` is named, `posix` takes its place, and
// a name for several transports is replaced by them. `has_xpmem`, `has_knem`: whether this host has their drivers; UCX
// warns of transports that are named and missing.
std::string without_sysv(std::string_view list, bool has_xpmem, bool has_knem);

}  // namespace weft::machine::ucx
