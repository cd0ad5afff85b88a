// The numbers of message handlers: who handles a message. The same on every PE.
#pragma once

#include <cstdint>

namespace weft::runtime {

using HandlerId = std::uint16_t;
// The runtime's own come first; the models' ranges follow, see Runtime::install().
inline constexpr HandlerId kFirstModelHandler = 32;
// The most that a job has; a peer's message that names another is refused.
inline constexpr HandlerId kNumHandlers = 256;

}  // namespace weft::runtime
