// Reductions of nothing: every contributor says that it is there, and the result is empty.
#include "weft/base/error.h"
#include "weft/runtime/reduction.h"

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::runtime {

namespace {

void combine(Runtime&, Reducer, std::vector<std::byte>& accumulated, std::span<const std::byte> more) {
  if (accumulated.empty() && more.empty()) return;
  base::refuse_claim(base::format("a contribution without a value arrived with {} bytes", more.size()));
}

Combiner combiner{"weft::runtime::nothing", &combine, 0};
const bool registered = Registry<Combiner>::add(&combiner);

}  // namespace

const Combiner* nothing_combiner() {
  static_cast<void>(registered);
  return &combiner;
}

}  // namespace weft::runtime
