// Out-of-band buffers of a call to a whole collection. The broadcast has landed once on this PE, or its buffers are
// those of the sender, which is this PE. Each element gets a message of its own, so that its post entry
// method chooses where its copy lands.
#include <algorithm>
#include <cstring>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"

#include "models/chare/elements/parts.h"

namespace weft::chare {

using runtime::MessagePtr;

void Chares::Parts::share_broadcast(MessagePtr message, EntryHeader header,
                                    std::span<ChareBase* const> chares) {
  if (chares.size() == 1 && message->owns_attachments()) {  // the landed memory has no other user
    header.index = chares[0]->linear_index();
    std::memcpy(message->payload(), &header, sizeof header);
    message->envelope().handler = chares_.entry_handler();
    return runtime_.send(runtime_.pe(), std::move(message));
  }
  const std::span<const std::byte> arguments = message->payload_span().subspan(sizeof header);
  for (const ChareBase* chare : chares) {
    header.index = chare->linear_index();
    MessagePtr own = chares_.make_entry_message(header, arguments.size());
    own->envelope().priority = message->envelope().priority;
    std::ranges::copy(arguments, own->payload() + sizeof header);
    message->share_attachments(*own);
    runtime_.send(runtime_.pe(), std::move(own));
  }
}

}  // namespace weft::chare
