// Which processors the PEs of a host may use. PEs tell one another at the start of a job: launchers may bind each PE to processors of
// its own, and containers limit the processor time of the PEs in them (cpu_limit.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "weft/runtime/metering/processor_share.h"

namespace weft::job {

// On which this thread may run, in the form of the kernel, and the limit of this process, if it has one, with its group: "0-3,8@2/4711". Empty
// if the kernel does not say.
std::string own_processors();

// `claims`: of the PEs of one host, as they sent them; they may hold anything. `own`: which of them is this PE's. A claim that is empty
// or wrong counts as this PE's own; if that one is, the PE may share with all.
runtime::ProcessorShare share_of(std::size_t own, std::span<const std::string_view> claims);

}  // namespace weft::job
