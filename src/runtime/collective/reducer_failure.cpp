#include "runtime/collective/reducer_failure.h"

#include "weft/base/error.h"
#include "weft/runtime/messenger.h"
#include "weft/runtime/remote_error.h"

#include "base/format.h"

namespace weft::runtime {

std::string_view reducer_name(Reducer reducer) {
  switch (reducer) {
    case Reducer::kSum:
      return "sum";
    case Reducer::kProduct:
      return "product";
    case Reducer::kMin:
      return "min";
    case Reducer::kMax:
      return "max";
    case Reducer::kLogicalAnd:
      return "logical_and";
    case Reducer::kLogicalOr:
      return "logical_or";
    case Reducer::kLogicalXor:
      return "logical_xor";
    case Reducer::kGather:
      return "gather";
    case Reducer::kConcat:
      return "concat";
    case Reducer::kCustom:
      return "custom";
  }
  return "unknown";
}

std::string place_of_merge(const Messenger& messenger, std::string_view reducer) {
  const std::string name = merged_contributors(messenger);
  const std::string of = name.empty() ? std::string() : base::format(" of a reduction of {}", name);
  return base::format("the reducer {}{} on PE {}", reducer, of, messenger.pe());
}

void fail_in_reducer(Messenger& messenger, std::string_view reducer, const std::exception_ptr& error) {
  const std::string place = place_of_merge(messenger, reducer);
  try {
    std::rethrow_exception(as_remote_error(error, "in " + place));
  } catch (const base::RemoteError& remote) {
    messenger.fail(
        base::format("PE {}: {} raised an exception, which ends the job: a reducer merges values of many "
                     "chares, and none of them gets its exception\n{}: {}\n{}",
                     messenger.pe(), place, remote.type(), remote.remote_message(), remote.traceback()));
  }
}

}  // namespace weft::runtime
