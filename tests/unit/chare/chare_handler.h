// The numbers of the chare model's message handlers, for tests that send what a peer might.
#pragma once

#include "weft/weft.h"

#include "models/chare/elements/parts.h"

namespace weft::chare {

inline runtime::HandlerId handler_of(Runtime& runtime, ChareHandler which) {
  return static_cast<runtime::HandlerId>(runtime.model<Chares>().entry_handler() - kEntry + which);
}

}  // namespace weft::chare
