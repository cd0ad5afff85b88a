// Quiescence with a target: an entry method that runs, or a future that is set, when no message is under way.
//
//   weft::quiescence(runtime, workers.target<&Worker::next_phase>(3));
//
// The target is one of reductions without a value: target_of(future) of a Future<>, or target<&T::method>(bound...) of an element,
// a collection or a section, whose method takes the bound arguments and no others. Calls return at once and may be made by any
// PE. For what counts as under way see Runtime::quiescence(), which gives a future instead.
//
// Threads: one PE's.
#pragma once

#include "weft/runtime/runtime.h"
#include "weft/runtime/typed_target.h"

namespace weft::chare {

// The target runs once for each call. If its collection has been destroyed by then, the job ends, as for any call that nothing
// awaits.
void quiescence(runtime::Runtime& runtime, runtime::TargetFor<void> target);

}  // namespace weft::chare
