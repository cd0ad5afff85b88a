// The names of global memory (weft/rma/) in the namespace of this model.
#pragma once

#include "weft/rma/global_memory.h"

namespace weft::pgas {

using rma::AtomicInteger;
using rma::AtomicValue;
using rma::Completions;
using rma::Done;
using rma::Extents;
using rma::GlobalAddress;
using rma::GlobalMemory;
using rma::GlobalPtr;
using rma::RemoteCompletion;
using rma::Segment;
using rma::Strides;
using rma::Value;

}  // namespace weft::pgas
