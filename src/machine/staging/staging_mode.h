// Which device memory passes through host memory.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft::machine {

// kDevice: what the machine's transport does not address. kHost: all of it, for comparison and for systems
// whose devices cannot reach one another. The same on all PEs of a job.
enum class StagingMode : std::uint8_t { kDevice, kHost };
std::string_view staging_mode_name(StagingMode mode);

}  // namespace weft::machine
