// What happens when a reducer throws.
#pragma once

#include <exception>
#include <string_view>

#include "weft/runtime/reduction.h"

namespace weft::runtime {

class Scheduler;

// "sum", "logical_and", ...: the name in both languages' messages.
std::string_view reducer_name(Reducer reducer);

// Ends the job. A reducer merges the contributions of many chares, so its exception has no single caller to go to.
// `reducer` is its name for the message.
void fail_in_reducer(Scheduler& scheduler, std::string_view reducer, const std::exception_ptr& error);

}  // namespace weft::runtime
