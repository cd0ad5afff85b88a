// The messages between the owners of segments and the PEs that use them.
#include <algorithm>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "machine/machine.h"
#include "memory/memory.h"
#include "rma/segment/segments.h"

namespace weft::rma {

using base::Error;
using base::StatusCode;

void Segments::on_message(runtime::Message& message) {
  if (closed_) return;
  const int pe = static_cast<int>(message.envelope().source_pe);
  if (pe < 0 || pe >= runtime_.num_pes()) return;
  base::Pup p = message.unpacker();
  const auto read = [&p](auto value) {
    p | value;
    return value;
  };
  switch (read(SegmentMessage::kDescription)) {
    case SegmentMessage::kDescription:
      return on_description(pe, read(SegmentDescription()));
    case SegmentMessage::kFreed:
      return on_freed(pe, read(SegmentFreed()));
    case SegmentMessage::kReleased:
      return on_released(pe, read(SegmentReleased()));
  }
  base::refuse_claim(base::format("PE {} sent an unknown message about a segment", pe));
}

// --- At the owner

// Urgent, so that an owner that waits in a call answers. No code of the program runs here.
void Segments::on_question(runtime::Message& message) {
  if (closed_) return;
  const int pe = static_cast<int>(message.envelope().source_pe);
  if (pe < 0 || pe >= runtime_.num_pes()) return;
  SegmentQuestion question;
  message.unpacker() | question;
  send(pe, SegmentMessage::kDescription, answer_to(pe, question));
}

SegmentDescription Segments::answer_to(int pe, const SegmentQuestion& question) {
  KnownSegment* const segment = lookup(
      GlobalAddress(runtime_.pe(), question.segment & GlobalAddress::kMaxSegment, memory::Kind::kHost, 0));
  SegmentDescription answer;
  answer.segment = question.segment;
  answer.is_answer = true;
  if (segment == nullptr || segment->is_freed) {
    const bool has_been = question.segment != 0 && question.segment <= last_number_;
    answer.state = static_cast<std::uint8_t>(has_been ? SegmentState::kFreed : SegmentState::kNone);
    return answer;
  }
  try {
    answer = describe_own(*segment, question.needs_key);
    ++segment->own->told[pe];
  } catch (const Error& error) {
    answer.state = static_cast<std::uint8_t>(SegmentState::kLive);
    answer.failure = error.what();
  }
  answer.is_answer = true;
  return answer;
}

void Segments::publish(const GlobalAddress& address) {
  KnownSegment& segment = *segments_.at(key_of(address));
  // Some PEs cannot map it. If it has no key, they ask, and learn why.
  if (!maps_ || has_other_hosts_) static_cast<void>(register_own(segment));
  const SegmentDescription description = describe_own(segment, false);
  for (int pe = 0; pe < runtime_.num_pes(); ++pe) {
    if (pe == runtime_.pe()) continue;
    ++segment.own->told[pe];
    send(pe, SegmentMessage::kDescription, description);
  }
}

SegmentDescription Segments::describe_own(KnownSegment& segment, bool needs_key) {
  const bool is_shared = segment.own->memory == SegmentMemory::kShared;
  if (!segment.memory.place.is_host()) export_own(segment);
  // Host memory of the caller is not mapped, so its key is always needed.
  needs_key = needs_key || (segment.memory.place.is_host() && !is_shared);
  if (needs_key) base::check(register_own(segment));
  SegmentDescription description;
  description.segment = segment.start.segment();
  description.state = static_cast<std::uint8_t>(SegmentState::kLive);
  description.kind = static_cast<std::uint8_t>(segment.memory.place.kind);
  description.device = segment.memory.place.device;
  description.size_bytes = segment.size_bytes;
  description.states = own_states_.name();
  description.exported = segment.own->exported;
  description.exported_offset = segment.own->exported_offset;
  description.has_key = segment.remote.has_value();
  if (is_shared) {
    description.mapping = segment.shared.file->name();
    description.mapping_offset = segment.shared.offset_bytes;
  }
  if (segment.remote.has_value()) {
    description.key_address = segment.remote->address;
    description.key = segment.remote->key;
  }
  return description;
}

base::Status Segments::register_own(KnownSegment& segment) {
  if (segment.remote.has_value()) return {};
  auto registered = runtime_.machine().register_memory(segment.memory);
  if (!registered.ok()) return registered.status();
  segment.remote = std::move(*registered);
  return {};
}

void Segments::export_own(KnownSegment& segment) {
  OwnSegment& own = *segment.own;
  if (std::exchange(own.is_export_tried, true)) return;
  const memory::Allocation allocation = runtime_.memory().allocation_of(segment.memory.data);
  auto exported =
      runtime_.memory().backend(segment.memory.place.kind)->export_allocation(segment.memory.data);
  // Without it other PEs use the machine.
  if (!exported.ok() || allocation.size_bytes == 0) return;
  own.exported = std::move(*exported);
  own.exported_offset = reinterpret_cast<std::uintptr_t>(segment.memory.data) - allocation.base;
}

void Segments::on_released(int pe, const SegmentReleased& released) {
  KnownSegment* const segment = lookup(
      GlobalAddress(runtime_.pe(), released.segment & GlobalAddress::kMaxSegment, memory::Kind::kHost, 0));
  if (segment == nullptr || !segment->is_freed || segment->own->told.erase(pe) == 0) {
    base::refuse_claim(base::format("PE {} sent the release of a segment that it does not have", pe));
  }
  reclaim_if_unused(*segment);
}

// --- At the other PEs

void Segments::on_freed(int pe, const SegmentFreed& freed) {
  if (pe == runtime_.pe() || freed.segment == 0 || freed.segment > GlobalAddress::kMaxSegment) {
    base::refuse_claim(base::format("PE {} sent the end of a segment that it does not have", pe));
  }
  KnownSegment& segment = lookup_or_make(pe, freed.segment);
  segment.freed_after = freed.num_descriptions;
  segment.is_freed = true;
  segment.state_by_message = static_cast<std::uint8_t>(SegmentState::kFreed);
  cache_.erase(segment.start.segment_word());
  reclaim_if_unused(segment);
}

void Segments::on_description(int pe, const SegmentDescription& description) {
  if (pe == runtime_.pe() || description.segment == 0 || description.segment > GlobalAddress::kMaxSegment) {
    base::refuse_claim(base::format("PE {} sent the description of a segment that it does not have", pe));
  }
  KnownSegment& segment = lookup_or_make(pe, description.segment);
  const bool is_live = description.state == static_cast<std::uint8_t>(SegmentState::kLive);
  if (is_live && description.failure.empty()) {
    ++segment.num_descriptions;
    take(segment, pe, description);
  }
  if (description.is_answer && segment.is_asked) {
    segment.is_asked = false;
    const runtime::Future<std::uint8_t> answer = segment.answer;
    if (is_live && !description.failure.empty()) {
      answer.set_error(std::make_exception_ptr(
          Error(StatusCode::kUnsupported,
                base::format("{} cannot be reached, because PE {} cannot make it reachable: {}",
                             describe(segment.start), pe, description.failure))));
      return reclaim_if_unused(segment);
    }
    answer.set(segment.is_freed ? static_cast<std::uint8_t>(SegmentState::kFreed) : description.state);
  }
  if (!is_live && !segment.is_known && !segment.freed_after.has_value() && segment.uses == 0) {
    erase(key_of(segment.start));
    return;
  }
  reclaim_if_unused(segment);
}

void Segments::take(KnownSegment& segment, int pe, const SegmentDescription& description) {
  if (description.kind >= memory::kNumKinds || description.size_bytes == 0) {
    base::refuse_claim(base::format("PE {} sent the description of a segment without a kind or a size", pe));
  }
  if (description.has_key && !segment.remote.has_value()) {
    segment.remote = machine::RemoteMemory{description.key_address,
                                           description.size_bytes,
                                           {static_cast<memory::Kind>(description.kind), description.device},
                                           description.key};
  }
  if (segment.is_known || segment.is_freed) return;
  segment.start = GlobalAddress(pe, description.segment, static_cast<memory::Kind>(description.kind), 0);
  segment.owner_place = {static_cast<memory::Kind>(description.kind), description.device};
  segment.size_bytes = description.size_bytes;
  segment.memory.place = segment.owner_place;
  segment.state_by_message = static_cast<std::uint8_t>(SegmentState::kLive);
  segment.state = states_of(pe, description, segment);
  if (maps_) {
    if (segment.owner_place.is_host()) {
      map(segment, description);
    } else {
      import(segment, description);
    }
  }
  segment.is_known = true;
  enter_in_cache(segment);
}

const std::uint8_t* Segments::states_of(int pe, const SegmentDescription& description,
                                        KnownSegment& segment) {
  auto found = states_.find(pe);
  if (found == states_.end()) {
    auto opened = SegmentStates::open(description.states);
    found = states_.emplace(pe, opened.ok() ? std::move(*opened) : SegmentStates()).first;
  }
  return found->second ? found->second.state(description.segment) : &segment.state_by_message;
}

// A segment of another host cannot be opened, and is reached through the machine.
void Segments::map(KnownSegment& segment, const SegmentDescription& description) {
  SharedPart part =
      mapped_files_.open(description.mapping, description.mapping_offset, description.size_bytes);
  if (part.file == nullptr) return;
  segment.shared = std::move(part);
  segment.memory.data = segment.shared.data();
  segment.memory.size_bytes = segment.size_bytes;
}

void Segments::import(KnownSegment& segment, const SegmentDescription& description) {
  memory::KindBackend* const kind = runtime_.memory().backend(segment.owner_place.kind);
  if (kind == nullptr || kind->num_devices() == 0 || description.exported.empty()) return;
  const memory::Place here = runtime_.own_place(segment.owner_place.kind);
  const int peer = description.device;
  if (peer >= 0 && peer < kind->num_devices() && !kind->can_access_peer(here.device, peer)) return;
  const base::Result<memory::Buffer> result = kind->import_allocation(description.exported, here.device);
  if (!result.ok()) return;
  const memory::Buffer* const imported = &result.value();
  if (description.exported_offset > imported->size_bytes ||
      description.size_bytes > imported->size_bytes - description.exported_offset) {
    static_cast<void>(kind->release_import(imported->data));
    base::refuse_claim(base::format("PE {} sent the description of a segment that leaves its allocation",
                                    segment.start.pe()));
  }
  segment.import = imported->data;
  segment.memory = {static_cast<std::byte*>(imported->data) + description.exported_offset, segment.size_bytes,
                    imported->place, nullptr};
}

}  // namespace weft::rma
