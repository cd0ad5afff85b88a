// The failure of a reducer: the exception that abandons a reduction, and the end of the job when a reducer throws.
#pragma once

#include <exception>
#include <string_view>

#include "weft/runtime/reduction.h"

namespace weft::runtime {

class Scheduler;

// Thrown by a combiner that has ended the job, or asked for its end: the reduction is abandoned. No PE gets a result of it, and
// nothing waits for one except the end of the job. Any other exception is the failure of the reducer.
struct AbandonedReduction : std::exception {};

// "sum", "logical_and", ...: the name in both languages' messages.
std::string_view reducer_name(Reducer reducer);

// Ends the job. A reducer merges the contributions of many chares, so its exception has no single caller to go to.
// `reducer` is its name for the message.
void fail_in_reducer(Scheduler& scheduler, std::string_view reducer, const std::exception_ptr& error);

}  // namespace weft::runtime
