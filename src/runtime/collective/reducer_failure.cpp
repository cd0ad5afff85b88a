#include "runtime/collective/reducer_failure.h"

#include "weft/base/error.h"
#include "weft/runtime/remote_error.h"
#include "weft/runtime/scheduler.h"

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

void fail_in_reducer(Scheduler& scheduler, std::string_view reducer, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(as_remote_error(error, base::format("in a reduction on PE {}", scheduler.pe())));
  } catch (const base::RemoteError& remote) {
    scheduler.fail(
        base::format("PE {}: the reducer {} raised an exception, which ends the job: a reducer merges values "
                     "of many chares, and "
                     "none of them gets its exception\n{}: {}\n{}",
                     scheduler.pe(), reducer, remote.type(), remote.remote_message(), remote.traceback()));
  }
}

}  // namespace weft::runtime
