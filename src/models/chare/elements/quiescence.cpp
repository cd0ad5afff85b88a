#include "weft/chare/quiescence.h"

#include <cstdint>

#include "weft/base/pup.h"
#include "weft/chare/chares.h"

#include "models/chare/elements/parts.h"

namespace weft::chare {

void quiescence(runtime::Runtime& runtime, runtime::TargetFor<void> typed) {
  const Chares& chares = runtime.model<Chares>();
  const runtime::Target& target = typed.target();
  runtime::Target to = target;
  if (to.handler == chares.broadcast_handler()) {
    // Elements may move again while the call travels: the PE that has made the collection numbers it, as the result of a
    // reduction of another collection.
    to.handler = static_cast<runtime::HandlerId>(chares.entry_handler() - kEntry + kBroadcastResult);
    to.flags = 0;
    to.pe = static_cast<std::uint32_t>(base::unpack<EntryHeader>(target.prefix).collection >> 32);
  }
  runtime.quiescence().then([&runtime, to](const runtime::Future<>&) { runtime.deliver(to, {}); });
}

}  // namespace weft::chare
