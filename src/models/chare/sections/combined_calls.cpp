// Calls to the members of combined sections: for each part the messages of a call to its section.
#include <cstring>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/combined_members.h"
#include "weft/chare/sections.h"

#include "models/chare/elements/parts.h"
#include "models/chare/sections/section_state.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;

CombinedMembers::Pointer Sections::unpack_combined(Pup& p) {
  const std::byte* const at = p.cursor();
  const bool is_shared = state_->shared.holds(at);
  for (const SectionState::Shared::Combined& one : state_->shared.combined) {
    if (one.at != at || !is_shared) continue;
    p.skip(one.size_bytes);
    return one.members;
  }
  CombinedMembers::Pointer members = CombinedMembers::unpack(p);
  if (is_shared) state_->shared.combined.push_back({at, static_cast<std::size_t>(p.cursor() - at), members});
  return members;
}

void pup_combined(Pup& p, CombinedMembers::Pointer& members) {
  bool is_null = members == nullptr;
  p | is_null;
  if (is_null) {
    members = nullptr;
  } else if (p.is_unpacking()) {
    members = static_cast<runtime::Runtime*>(p.context())->model<Chares>().sections().unpack_combined(p);
  } else {
    members->pack(p);
  }
}

void Sections::send(const CombinedMembers& members, std::span<const ReplyTo> replies, MessagePtr call,
                    const Adapt& adapt) {
  runtime::Runtime& runtime = chares_.runtime();
  const auto parts = members.parts();
  for (const CombinedMembers::Part& part : parts) part.collection->expect_alive();
  const MessagePtr none = share_buffers(*call);
  std::vector<Outgoing> all;
  all.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    MessagePtr own = copy_of(*call, 0, 0);
    EntryHeader header = read_header(*own);
    header.collection = parts[i].collection->id();
    if (!replies.empty()) {
      header.reply = replies[i];
      header.reply.id |= ReplyTo::kDirectly;
    }
    write_section_header(*own, header);
    if (adapt) adapt(i, own->payload() + sizeof header);
    all.push_back(outgoing(*parts[i].collection, *parts[i].members, std::move(own)));
  }
  const auto scope_of_part = [&](std::size_t i) {
    return runtime::ScopeId{replies[i].pe, kGatherScopes | replies[i].gather()};
  };
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (parts[i].members->size() != 0)
      runtime.reductions().open(scope_of_part(i), parts[i].members->size(), 0, true);
  }
  try {
    send_all(all, IsCall::kYes);
  } catch (...) {
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (parts[i].members->size() != 0) runtime.reductions().close(scope_of_part(i), {});
    }
    throw;
  }
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (parts[i].members->size() == 0) send_no_results(replies[i]);
  }
}

void Sections::send_no_results(const ReplyTo& reply) const {
  runtime::Runtime& runtime = chares_.runtime();
  runtime.send(runtime.pe(),
               Message::pack(runtime, chares_.first_handler_ + kGathered, reply.gather(), std::uint64_t{0}));
}

void Sections::forget_replies(std::span<const ReplyTo> replies) {
  for (const ReplyTo& reply : replies) chares_.forget_reply(reply);
}

// --- A combined section's method as a target: the number of parts, then for each its members and its call

runtime::Target Sections::target(const CombinedMembers& members,
                                 std::span<const base::SmallBytes> calls) const {
  runtime::Runtime& runtime = chares_.runtime();
  for (const CombinedMembers::Part& part : members.parts()) part.collection->expect_alive();
  const auto pack = [&](Pup& p) {
    members.pack(p);
    for (const base::SmallBytes& call : calls) p | call;
  };
  Pup sizer = Pup::sizer(&runtime);
  pack(sizer);
  runtime::Target target;
  target.handler = state_->first_handler + kCombinedTarget;
  target.pe = static_cast<std::uint32_t>(runtime.pe());
  target.prefix.resize(sizer.offset_bytes());
  Pup p = Pup::packer(target.prefix.data(), target.prefix.size(), &runtime);
  pack(p);
  return target;
}

void Sections::on_combined_target(MessagePtr message) {
  Pup p = message->unpacker();
  const CombinedMembers::Pointer members = CombinedMembers::unpack(p);
  std::vector<base::SmallBytes> calls(members->parts().size());
  for (base::SmallBytes& call : calls) p | call;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const CombinedMembers::Part& part = members->parts()[i];
    EntryHeader header;
    if (calls[i].size() < sizeof header) p.refuse("a target whose call has no header");
    std::memcpy(&header, calls[i].data(), sizeof header);
    if (header.collection != part.collection->id() || header.reply.kind != ReplyTo::Kind::kNone)
      return chares_.parts_->fail_unfit(header);
    const std::size_t bound_bytes = calls[i].size() - sizeof header;
    MessagePtr call = chares_.make_entry_message(header, bound_bytes + p.remaining_bytes());
    call->envelope().priority = message->envelope().priority;
    std::memcpy(call->payload() + sizeof header, calls[i].data() + sizeof header, bound_bytes);
    std::memcpy(call->payload() + sizeof header + bound_bytes, p.cursor(), p.remaining_bytes());
    if (part.collection->is_destroyed()) {
      call->envelope().handler = chares_.broadcast_handler();  // for the text of the error
      return chares_.parts_->refuse(*part.collection, header, *call);
    }
    send_to_members(*part.collection, *part.members, std::move(call), IsCall::kNo);  // no caller could wait
  }
}

}  // namespace weft::chare
