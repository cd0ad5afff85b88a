// GlobalMemory::wait_for(): a wait of this PE for a word in one of its own segments.
//
// Threads: the PE's.
#pragma once

#include <cstdint>

#include "weft/rma/global_ptr.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/runtime.h"

#include "rma/segment/segments.h"

namespace weft::rma {

// The caller gets the handle's share of the state. The segment stays until the wait is over. Throws Error for misuse.
runtime::OperationState* start_flag_wait(runtime::Runtime& runtime, Segments& segments,
                                         const GlobalAddress& address, std::uint32_t value);

}  // namespace weft::rma
