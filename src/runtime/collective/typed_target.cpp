#include "weft/runtime/typed_target.h"

#include "weft/base/error.h"

namespace weft::runtime::target_detail {

void refuse_reducer(Takes takes) {
  throw base::Error(base::StatusCode::kInvalidArgument,
                    takes == Takes::kList
                        ? "the target of this contribution takes a std::vector of contributed values, which "
                          "only kGather gives; use kGather, or a target that takes one value"
                        : "kGather gives a std::vector of the contributed values, and the target takes one "
                          "value; use a target that takes the vector, or another reducer");
}

}  // namespace weft::runtime::target_detail
