// The UCX library that this process runs with: its version and file, and whether it is new enough.
//
// This unit refers to functions of UCX only, never to its data symbols, so that one binary runs with any UCX
// from 1.16 on.
#pragma once

#include <ucs/type/status.h>

#include <string>
#include <string_view>
#include <vector>

#include "weft/base/status.h"

namespace weft::machine::ucx {

// The oldest version that works. Older ones silently ignore UCP_AM_SEND_FLAG_COPY_HEADER.
inline constexpr unsigned kApiMajor = 1;
inline constexpr unsigned kApiMinor = 16;

// The version, such as "1.22.0".
std::string library_version();
// The file that libucp was loaded from.
std::string library_path();

bool library_is_at_least(unsigned major, unsigned minor);

// kUnsupported, with a message for the user, if the library is older than kApiMajor.kApiMinor.
base::Status check_library();
// As check_library(), for a given version. For tests.
base::Status check_library_version(unsigned major, unsigned minor, std::string_view version,
                                   std::string_view path);

std::string_view status_text(ucs_status_t status);

}  // namespace weft::machine::ucx
