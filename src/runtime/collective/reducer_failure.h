// The failure of a reducer: the exception that abandons a reduction, and the end of the job when a reducer throws.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "weft/runtime/reduction.h"

namespace weft::runtime {

class Messenger;

// Thrown by a combiner that has ended the job, or asked for its end: the reduction is abandoned. No PE gets a result of it, and
// nothing waits for one except the end of the job. Any other exception is the failure of the reducer.
struct AbandonedReduction : std::exception {};

// "sum", "logical_and", ...: the name in both languages' messages.
std::string_view reducer_name(Reducer reducer);

// Whose values a combiner merges now, such as "Ring"; empty if that is not known. Defined with Reductions, which knows the scope.
// REQUIRES: called by a combiner, or where one has just thrown.
std::string merged_contributors(const Messenger& messenger);

// "the reducer sum of a reduction of Ring on PE 1": where a combiner merges now. `reducer` is its name.
std::string place_of_merge(const Messenger& messenger, std::string_view reducer);

// Ends the job. A reducer merges the contributions of many chares, so its exception has no single caller to go to.
void fail_in_reducer(Messenger& messenger, std::string_view reducer, const std::exception_ptr& error);

}  // namespace weft::runtime
