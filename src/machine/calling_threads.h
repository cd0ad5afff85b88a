// CallingThreads: which threads call a machine. A machine is called by one thread at a time in each case.
#pragma once

#include <cstdint>

namespace weft::machine {

// kOne: always the same thread. kSeveral: another thread may call after the calls of the one before.
enum class CallingThreads : std::uint8_t { kOne, kSeveral };

}  // namespace weft::machine
