// weft.AggregatedProxy: a collection, or one chare, whose calls travel in bundles.
#pragma once

#include <cstdint>
#include <optional>

#include "chare/calls/proxy_core.h"
#include "support/support.h"

namespace weft::python {

void init_aggregated_proxy(PyObject* module);

// Of one element; without an index of the collection.
Ref make_aggregated_proxy(const ProxyCore& core, std::optional<std::uint64_t> index);

}  // namespace weft::python
