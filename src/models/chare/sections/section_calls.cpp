// Calls to the members of a section.
//
// The caller groups the members by the PE on which each is believed to be, and sends each such PE one message with the arguments
// and its members. The PE runs the method on those that are there; for each of the others it sends a call to that element, which
// finds the element as any call does. So each member gets the call once, wherever it moves.
#include <cstring>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/sections.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "models/chare/sections/section_state.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;

Sections::Sections(Chares& chares) : chares_(chares), state_(std::make_unique<SectionState>(chares)) {}
Sections::~Sections() = default;

Sections& Chares::sections() { return *parts_->sections; }

void Sections::set_handlers(FeatureTable& table) {
  // In the order of SectionHandler.
  state_->first_handler = table.add_handlers<&Sections::on_call, &Sections::on_target, &Sections::on_part,
                                             &Sections::on_combined_target>(*this);
}

runtime::HandlerId Sections::first_handler() const { return state_->first_handler; }

ReplyTo Sections::expect_gather(std::function<void(Pup&)> done) {
  return chares_.expect_gather(std::move(done));
}

// --- Members

SectionMembers::Pointer Sections::unpack(Pup& p, const Collection& collection) {
  const std::byte* const at = p.cursor();
  if (!state_->shared.holds(at)) return unpack_anew(p, collection);
  for (const SectionState::Shared::Section& one : state_->shared.sections) {
    if (one.at != at || one.collection != collection.id()) continue;
    p.skip(one.size_bytes);
    return one.members;
  }
  SectionMembers::Pointer members = unpack_anew(p, collection);
  state_->shared.sections.push_back(
      {at, static_cast<std::size_t>(p.cursor() - at), collection.id(), members});
  return members;
}

SectionMembers::Pointer Sections::unpack_anew(Pup& p, const Collection& collection) {
  for (const SectionState::Recent& one : state_->recent) {
    if (one.collection == collection.id() && one.members != nullptr && one.members->skip_packed(p))
      return one.members;
  }
  SectionMembers::Pointer members = SectionMembers::unpack(p, collection);
  state_->next_recent() = {collection.id(), members};
  return members;
}

const SectionId& Sections::id_of(const Collection& collection, const SectionMembers& members) {
  if (members.has_id()) return members.id();
  for (const SectionState::Recent& one : state_->recent) {
    if (one.collection != collection.id() || one.members == nullptr || !one.members->is_like(members))
      continue;
    static_cast<void>(one.members->id());
    members.take_id(*one.members);
    return members.id();
  }
  static_cast<void>(members.id());
  state_->next_recent() = {collection.id(), std::make_shared<const SectionMembers>(members)};
  return members.id();
}

Sections::SharedArguments::SharedArguments(Sections& sections, std::span<const std::byte> arguments)
    : sections_(sections), outer_(std::exchange(sections.state_->shared.arguments, arguments)) {
  sections_.state_->shared.clear();
}

Sections::SharedArguments::~SharedArguments() {
  sections_.state_->shared.arguments = outer_;
  sections_.state_->shared.clear();
}

void pup_section(Pup& p, Collection*& collection, SectionMembers::Pointer& members) {
  pup_collection(p, collection);
  if (p.is_unpacking()) {
    members = collection == nullptr ? nullptr : collection->chares().sections().unpack(p, *collection);
  } else if (collection != nullptr) {
    members->pack(p);
  }
}

// --- Sending

void Sections::send(Collection& collection, const SectionMembers& members, const ReplyTo& reply,
                    MessagePtr call) {
  collection.expect_alive();
  if (reply.kind != ReplyTo::Kind::kGather)
    return send_to_members(collection, members, std::move(call), IsCall::kYes);
  runtime::Runtime& runtime = chares_.runtime();
  if (members.size() == 0) {
    send_no_results(reply);
    return send_to_members(collection, members, std::move(call), IsCall::kYes);
  }
  const runtime::ScopeId scope{reply.pe, kGatherScopes | reply.gather()};
  runtime.reductions().open(scope, members.size(), 0, true);
  // Each outcome goes to this PE directly.
  EntryHeader header = read_header(*call);
  header.reply = reply;
  header.reply.id |= ReplyTo::kDirectly;
  write_section_header(*call, header);
  try {
    send_to_members(collection, members, std::move(call), IsCall::kYes);
  } catch (...) {
    runtime.reductions().close(scope, {});
    throw;
  }
}

void Sections::send_to_members(Collection& collection, const SectionMembers& members, MessagePtr call,
                               IsCall is_call) {
  const MessagePtr none = share_buffers(*call);
  Outgoing part = outgoing(collection, members, std::move(call));
  send_all({&part, 1}, is_call);
}

MessagePtr Sections::share_buffers(Message& call) const {
  for (runtime::Attachment& one : call.attachments()) one.copy_now();
  return call.has_attachments() ? copy_of(call, 0, 0) : nullptr;
}

Sections::Outgoing Sections::outgoing(Collection& collection, const SectionMembers& members,
                                      MessagePtr call) const {
  const runtime::Runtime& runtime = chares_.runtime();
  Outgoing part{std::vector<std::vector<Member>>(static_cast<std::size_t>(runtime.num_pes())),
                std::move(call)};
  for (std::uint64_t i = 0; i < members.size(); ++i) {
    const std::uint64_t index = members.at(i);
    runtime::Whereabouts at{runtime.pe(), 0};
    if (collection.find(index) == nullptr) {
      at = collection.elements_->directory.whereabouts(index, collection.home(index));
    }
    part.members_by_pe[static_cast<std::size_t>(at.pe)].push_back({index, at.move, 0});
  }
  return part;
}

void Sections::send_all(std::span<Outgoing> parts, IsCall is_call) {
  const runtime::Runtime& runtime = chares_.runtime();
  // Flow control may hold one of the messages back, and may refuse it. So it is the first: then none has been sent. It is the one
  // to the PE with the least room, so that the slowest PE sets the pace.
  Outgoing* first = nullptr;
  int held_back = -1;
  for (Outgoing& part : parts) {
    for (int pe = 0; is_call == IsCall::kYes && pe < runtime.num_pes(); ++pe) {
      if (part.members_by_pe[static_cast<std::size_t>(pe)].empty() || runtime.has_room(pe)) continue;
      if (held_back >= 0 && runtime.room_bytes(pe) >= runtime.room_bytes(held_back)) continue;
      first = &part;
      held_back = pe;
    }
  }
  if (first != nullptr) {
    std::vector<Member>& members = first->members_by_pe[static_cast<std::size_t>(held_back)];
    send_to_pe(held_back, members, *first->call, IsCall::kYes);
    members.clear();
  }
  for (const Outgoing& part : parts) {
    for (int pe = 0; pe < runtime.num_pes(); ++pe)
      send_to_pe(pe, part.members_by_pe[static_cast<std::size_t>(pe)], *part.call, IsCall::kNo);
  }
}

MessagePtr Sections::copy_of(Message& call, std::size_t behind_bytes, runtime::HandlerId handler) const {
  MessagePtr copy = Message::create(chares_.runtime(), handler, call.payload_bytes() + behind_bytes);
  copy->envelope().priority = call.envelope().priority;
  std::memcpy(copy->payload(), call.payload(), call.payload_bytes());
  if (call.has_attachments()) call.share_attachments(*copy);
  return copy;
}

void Sections::send_to_pe(int pe, std::span<const Member> members, Message& call, IsCall is_call) {
  runtime::Runtime& runtime = chares_.runtime();
  if (members.empty()) return;
  EntryHeader header = read_header(call);
  const auto send = [&](MessagePtr message) {
    write_section_header(*message, header);
    if (is_call == IsCall::kYes) {
      runtime.send_call(pe, std::move(message));
    } else {
      runtime.send(pe, std::move(message));
    }
    is_call = IsCall::kNo;
  };
  // On this PE buffers are copied for each member from the caller's memory.
  if (members.size() == 1 || (call.has_attachments() && pe == runtime.pe())) {
    for (const Member& one : members) {
      header.index = one.index;
      header.move_or_source = one.move;
      send(copy_of(call, 0, chares_.entry_handler()));
    }
    return;
  }
  header.index = members.size();
  MessagePtr message = copy_of(call, members.size_bytes(), state_->first_handler + kSectionCall);
  std::memcpy(message->payload() + call.payload_bytes(), members.data(), members.size_bytes());
  send(std::move(message));
}

// --- Handling

void Sections::on_call(MessagePtr message) {
  EntryHeader header = read_header(*message);
  Collection& target = chares_.collection(header.collection);
  runtime::Runtime& runtime = chares_.runtime();
  const std::uint64_t count = std::exchange(header.index, 0);
  const std::size_t behind_header = message->payload_bytes() - sizeof header;
  if (count == 0 || count > behind_header / sizeof(Member)) return chares_.parts_->fail_unfit(header);
  if (target.is_destroyed()) {
    message->envelope().handler = chares_.broadcast_handler();  // for the text of the error
    return chares_.parts_->refuse(target, header, *message);
  }
  if (!target.is_created()) {
    target.elements_->waiting.push_back(std::move(message));
    return;
  }
  const EntryInfo* const entry = chares_.parts_->checked_entry(target, header);
  if (entry == nullptr) return;
  const std::size_t argument_bytes = behind_header - count * sizeof(Member);
  const std::byte* const arguments = message->payload() + sizeof header;
  const auto unpacker_of_arguments = [&] {
    Pup p = Pup::unpacker(arguments, argument_bytes, &runtime);
    p.set_carrier(message.get());
    return p;
  };
  const SharedArguments shared(*this, {arguments, argument_bytes});
  const bool shares = shares_arguments(*entry, count, argument_bytes);
  std::unique_ptr<SharedCall> shared_call;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (runtime.stopped()) return;
    Member member;
    std::memcpy(&member, arguments + argument_bytes + i * sizeof member, sizeof member);
    if (member.index >= target.shape().size()) return chares_.parts_->fail_unfit(header);
    ChareBase* const chare = target.find(member.index);
    if (chare != nullptr && !message->has_attachments()) {
      if (shares) {
        chares_.parts_->invoke_shared(*chare, *entry, unpacker_of_arguments(), header.reply, shared_call);
      } else {
        chares_.parts_->invoke(*chare, *entry, unpacker_of_arguments(), header.reply);
      }
      continue;
    }
    header.index = member.index;
    header.move_or_source = chare != nullptr ? 0 : member.move;
    MessagePtr call = chares_.make_entry_message(header, argument_bytes);
    call->envelope().priority = message->envelope().priority;
    std::memcpy(call->payload() + sizeof header, arguments, argument_bytes);
    if (message->has_attachments()) message->share_attachments(*call);
    if (chare != nullptr) {
      runtime.send(runtime.pe(), std::move(call));
    } else {
      call->envelope().source_pe = message->envelope().source_pe;  // it is told where the member is
      chares_.parts_->forward(target, header, std::move(call));
    }
  }
}

// --- A section's method as a target

runtime::Target Sections::target(Collection& collection, const SectionMembers& members,
                                 std::span<const std::byte> call) const {
  runtime::Runtime& runtime = chares_.runtime();
  collection.expect_alive();
  runtime::Target target;
  target.handler = state_->first_handler + kSectionTarget;
  target.pe = static_cast<std::uint32_t>(runtime.pe());
  Pup sizer = Pup::sizer(&runtime);
  members.pack(sizer);
  target.prefix.resize(call.size() + sizer.offset_bytes());
  std::memcpy(target.prefix.data(), call.data(), sizeof(EntryHeader));
  Pup p = Pup::packer(target.prefix.data() + sizeof(EntryHeader), sizer.offset_bytes(), &runtime);
  members.pack(p);
  std::memcpy(target.prefix.data() + sizeof(EntryHeader) + sizer.offset_bytes(),
              call.data() + sizeof(EntryHeader), call.size() - sizeof(EntryHeader));
  return target;
}

void Sections::on_target(MessagePtr message) {
  const EntryHeader header = read_header(*message);
  Collection& target = chares_.collection(header.collection);
  if (target.is_destroyed()) {
    message->envelope().handler = chares_.broadcast_handler();
    return chares_.parts_->refuse(target, header, *message);
  }
  if (header.reply.kind != ReplyTo::Kind::kNone) return chares_.parts_->fail_unfit(header);
  Pup p = message->unpacker();
  p.skip(sizeof header);
  const SectionMembers::Pointer members = unpack(p, target);
  MessagePtr call = chares_.make_entry_message(header, p.remaining_bytes());
  call->envelope().priority = message->envelope().priority;
  std::memcpy(call->payload() + sizeof header, p.cursor(), p.remaining_bytes());
  send_to_members(target, *members, std::move(call), IsCall::kNo);  // no caller could wait for room
}

}  // namespace weft::chare
