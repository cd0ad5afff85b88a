// The numbers of the chare model's message handlers, for tests that send what a peer might.
#pragma once

#include "weft/weft.h"

#include "models/chare/elements/parts.h"
#include "models/chare/sections/section_state.h"

namespace weft::chare {

inline runtime::HandlerId handler_of(Runtime& runtime, ChareHandler which) {
  return static_cast<runtime::HandlerId>(runtime.model<Chares>().entry_handler() - kEntry + which);
}

inline runtime::HandlerId handler_of(Runtime& runtime, SectionHandler which) {
  return static_cast<runtime::HandlerId>(runtime.model<Chares>().sections().first_handler() + which);
}

// Of bundles of aggregated calls.
inline runtime::HandlerId bundle_handler(Runtime& runtime) {
  return runtime.model<Chares>().bundles().handler();
}

}  // namespace weft::chare
