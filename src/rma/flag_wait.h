// GlobalMemory::wait_for(): a wait of this PE for a word in one of its own segments.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <string>

#include "weft/rma/global_ptr.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/runtime.h"

#include "rma/segment/segments.h"

namespace weft::rma {

// The caller gets the handle's share of the state. The segment stays until the wait is over. Throws Error for misuse.
runtime::OperationState* start_flag_wait(runtime::Runtime& runtime, Segments& segments,
                                         const GlobalAddress& address, std::uint32_t value);

// "a wait until ... is at least 5", for reports; empty if the operation is no such wait.
std::string describe_flag_wait(const runtime::OperationState& operation);

}  // namespace weft::rma
