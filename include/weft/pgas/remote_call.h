// A call of a function behind a copy, on the PE of the copy's target: Completions::remote.
//
//   void arrived(pgas::World& world, int step);
//   pgas::Completions completions;
//   completions.remote = pgas::remote_call<&arrived>(runtime, 3);
//   co_await pgas.copy(from, to, 1000, completions);        // arrived(world, 3) runs there when the data is visible
//
// The function is one as in rpc.h; its result is dropped, and an exception of it ends the job.
#pragma once

#include <utility>

#include "weft/pgas/rpc.h"
#include "weft/rma/completions.h"

namespace weft::pgas {

template <auto Function, class... Args>
rma::RemoteCompletion remote_call(runtime::Runtime& runtime, Args&&... arguments) {
  PackedCall call = pack_call<Function>(runtime, std::forward<Args>(arguments)...);
  return {call.function, std::move(call.arguments)};
}

}  // namespace weft::pgas
