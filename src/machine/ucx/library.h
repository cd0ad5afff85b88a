// The UCX library that this process runs with: its version and file, and whether it is new enough.
//
// Refers to UCX functions only, never to its data symbols, so that one binary runs with any UCX >= 1.16.
#pragma once

#include <ucs/type/status.h>

#include <string>
#include <string_view>
#include <vector>

#include "weft/base/status.h"

namespace weft::machine::ucx {

// The API that Weft is written against. Older libraries silently ignore UCP_AM_SEND_FLAG_COPY_HEADER.
inline constexpr unsigned kApiMajor = 1;
inline constexpr unsigned kApiMinor = 16;

// "1.22.0".
std::string library_version();
// The file that libucp was loaded from.
std::string library_path();

bool library_is_at_least(unsigned major, unsigned minor);

// Fails with a sentence for the user when the library is older than kApiMajor.kApiMinor.
base::Status check_library();
// The same for a given version; for tests.
base::Status check_library_version(unsigned major, unsigned minor, std::string_view version,
                                   std::string_view path);

std::string_view status_text(ucs_status_t status);

}  // namespace weft::machine::ucx
