// Reductions over sections.
//
// A PE merges what its members contribute in one turn, and sends it to the PE that counts. Only the number of contributions
// decides that a reduction is complete, so it does not matter where members are, and nothing is told when they move: an element
// takes with it how many reductions it has contributed to.
#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "weft/chare/chare.h"
#include "weft/chare/combined_members.h"
#include "weft/chare/sections.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "models/chare/sections/section_state.h"
#include "models/chare/sparse/sparse_arrays.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;
using runtime::Partial;

namespace {

int counting_pe(const SectionKey& key, const runtime::Runtime& runtime) {
  // Equal sections of several collections are counted on several PEs.
  return static_cast<int>((key.section.low + key.collection) % static_cast<std::uint64_t>(runtime.num_pes()));
}

base::Status expect_not_destroyed(const Collection& collection) {
  if (!collection.is_destroyed()) return {};
  return {
      base::StatusCode::kClosed,
      base::format("the collection {} was destroyed before the reduction was complete", collection.name())};
}

// Whether the section has members of that collection.
bool concerns(const SectionKey& key, const CountedSection& section, std::uint64_t collection) {
  return key.collection == collection ||
         std::ranges::find(section.others(), collection) != section.others().end();
}

void give_up(runtime::Runtime& runtime, const Partial& partial, const std::string& why) {
  if (partial.has_target) runtime.reductions().give_up(partial.target, why);
}

}  // namespace

// To which reduction, and where in it.
struct Sections::Contribution {
  SectionKey key;
  std::uint64_t place;
  std::uint64_t num_members;
  const CombinedMembers* combined;  // null for a section
};

void Sections::contribute(ChareBase& chare, const Collection& of, const SectionMembers& members,
                          runtime::Reducer reducer, const runtime::Combiner* combiner,
                          std::span<const std::byte> value, const runtime::Target& target) {
  const Collection& collection = chare.collection();
  collection.expect_alive();
  const std::optional<std::uint64_t> place =
      &of == &collection ? members.position(chare.linear_index()) : std::nullopt;
  if (!place.has_value()) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("{} contributes to a reduction over a section of {} in which it is no member",
                     chare.where(), of.name()));
  }
  const SectionKey key{collection.id(), id_of(collection, members), chare.set_};
  contribute(chare, {key, *place, members.size(), nullptr}, reducer, combiner, value, target);
}

void Sections::contribute(ChareBase& chare, const CombinedMembers& members, runtime::Reducer reducer,
                          const runtime::Combiner* combiner, std::span<const std::byte> value,
                          const runtime::Target& target) {
  const auto parts = members.parts();
  for (const CombinedMembers::Part& part : parts) {
    part.collection->expect_alive();
    if (!part.collection->is_sparse()) continue;
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("{} contributes to a reduction over a combined section with a part of {}, "
                                   "a sparse array, whose reductions are numbered anew by each "
                                   "done_inserting(); reduce over each part and combine the results",
                                   chare.where(), part.collection->name()));
  }
  const auto place = members.position(chare.collection(), chare.linear_index());
  if (!place.has_value()) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("{} contributes to a reduction over a combined section in which it is no member",
                     chare.where()));
  }
  const SectionKey key{parts.front().collection->id(), id_of(members), 0};
  contribute(chare, {key, *place, members.size(), &members}, reducer, combiner, value, target);
}

SectionId Sections::id_of(const CombinedMembers& members) {
  if (members.known_id().has_value()) return *members.known_id();
  std::vector<SectionId> ids;
  for (const CombinedMembers::Part& part : members.parts())
    ids.push_back(id_of(*part.collection, *part.members));
  return members.id(ids);
}

void Sections::contribute(ChareBase& chare, const Contribution& contribution, runtime::Reducer reducer,
                          const runtime::Combiner* combiner, std::span<const std::byte> value,
                          const runtime::Target& target) {
  const SectionKey& key = contribution.key;
  SectionCount& count = state_->counts[chare.collection().id()][chare.linear_index()]
                            .try_emplace(key.section, SectionCount{key.section, key.set, 0})
                            .first->second;
  if (count.set != key.set) count = {key.section, key.set, 0};
  const std::uint64_t sequence = count.next++;
  runtime::Target to = target;
  if (target.handler == chares_.broadcast_handler()) {
    // Results of the collection's own reductions are numbered; this one is a call that the collection's creator makes.
    const auto header = base::unpack<EntryHeader>(target.prefix);
    to.handler = chares_.first_handler_ + kBroadcastResult;
    to.flags = 0;
    to.pe = static_cast<std::uint32_t>(header.collection >> 32);
  }
  runtime::Runtime& runtime = chares_.runtime();
  if (state_->merged.empty()) {
    runtime.count_sent();
    runtime.post(&state_->flush);
  }
  const auto [found, is_new] = state_->merged.try_emplace({key, sequence});
  SectionState::Merged& merged = found->second;
  merged.num_members = contribution.num_members;
  if (is_new && contribution.combined != nullptr) merged.others = contribution.combined->other_collections();
  runtime.reductions().note_merge(scope_of(chare.collection()));
  runtime.reductions().add_to(merged.partial, contribution.place, reducer, combiner, value, to);
}

void Sections::SectionState::send_merged() {
  runtime::Runtime& runtime = chares.runtime();
  runtime.count_processed();
  for (auto& [name, of_turn] : std::exchange(merged, {})) {
    if (of_turn.partial.is_abandoned) continue;
    const SectionPart part{name.first, of_turn.num_members, name.second, std::move(of_turn.others)};
    const int pe = counting_pe(part.key, runtime);
    if (pe == runtime.pe()) {
      count(part, of_turn.partial);
    } else {
      runtime.send(pe, Message::pack(runtime, first_handler + kSectionPart, part, of_turn.partial));
    }
  }
}

void Sections::on_part(MessagePtr message) {
  SectionPart part;
  Partial partial;
  Pup p = message->unpacker();
  p | part | partial;
  const runtime::Runtime& runtime = chares_.runtime();
  const auto has_no_creator = [&runtime](std::uint64_t collection) {
    return collection >> 32 >= static_cast<std::uint64_t>(runtime.num_pes());
  };
  if (has_no_creator(part.key.collection) || std::ranges::any_of(part.others, has_no_creator) ||
      part.key.set > kMostSets || counting_pe(part.key, runtime) != runtime.pe() || !partial.has_target ||
      partial.count == 0 || partial.count > part.num_members) {
    chares_.runtime().fail(
        base::format("PE {} has sent a part of a reduction over a section that does not fit; do all PEs run "
                     "the same program?",
                     message->envelope().source_pe));
    return;
  }
  state_->count(part, partial);
}

void Sections::SectionState::count(const SectionPart& part, const Partial& partial) {
  runtime::Runtime& runtime = chares.runtime();
  Collection& target = chares.collection(part.key.collection);
  base::Status open = expect_not_destroyed(target);
  for (const std::uint64_t other : part.others) {
    if (open.ok()) open = expect_not_destroyed(chares.collection(other));
  }
  if (open.ok() && target.is_sparse()) open = chares.sparse().expect_open(target, part.key.set);
  if (!open.ok()) return give_up(runtime, partial, std::string(open.message()));
  CountedSection& section = counted.try_emplace(part.key, part.num_members, part.others).first->second;
  if (section.num_members() != part.num_members || section.others() != part.others) {
    return runtime.fail(
        base::format("parts of one reduction over a section of {} name {} members in {} collections and {} "
                     "in {}; do all PEs run the same program?",
                     target.name(), section.num_members(), section.others().size() + 1, part.num_members,
                     part.others.size() + 1));
  }
  Partial* const into = section.is_complete(part.sequence) ? nullptr : &section.open(part.sequence);
  if (into == nullptr || into->count + partial.count > section.num_members()) {
    return runtime.fail(
        base::format("reduction {} over a section of {} has got more contributions than the section's {} "
                     "members; a member "
                     "that was "
                     "removed and inserted again contributes after the next done_inserting()",
                     part.sequence, target.name(), section.num_members()));
  }
  runtime.reductions().note_merge(scope_of(target));
  into->add(runtime, partial.view());
  if (into->is_abandoned || into->count < section.num_members()) return;
  Partial complete = section.complete(part.sequence);
  try {
    const std::span<const std::byte> result = complete.result(runtime);
    if (!complete.is_abandoned) runtime.deliver(complete.target, result);
  } catch (...) {  // a damaged target or item
    runtime.fail_unawaited(std::current_exception(), "the result of a reduction over a section");
  }
}

// --- Elements that move, and ends

std::vector<SectionCount> Sections::counts_of(const ChareBase& chare) const {
  std::vector<SectionCount> all;
  const auto collection = state_->counts.find(chare.collection().id());
  if (collection == state_->counts.end()) return all;
  const auto found = collection->second.find(chare.linear_index());
  if (found == collection->second.end()) return all;
  for (const auto& [section, count] : found->second) all.push_back(count);
  return all;
}

void Sections::for_each_recent(const ChareBase& chare,
                               const std::function<void(const SectionCount& count)>& function) const {
  std::optional<std::vector<SectionCount>> counts;
  for (const SectionState::Recent& one : state_->recent) {
    if (one.members == nullptr || one.collection != chare.collection().id() ||
        !one.members->position(chare.linear_index()))
      continue;
    if (!counts) counts = counts_of(chare);
    const SectionId id = one.members->id();
    const auto count = std::ranges::find(*counts, id, &SectionCount::section);
    function(count == counts->end() ? SectionCount{.section = id} : *count);
  }
}

bool Sections::has_contributed(const ChareBase& chare, std::uint32_t set) const {
  return std::ranges::any_of(counts_of(chare), [set](const SectionCount& one) { return one.set == set; });
}

void Sections::left(const ChareBase& chare) { forget(chare.collection(), chare.linear_index()); }

void Sections::forget(const Collection& collection, std::uint64_t index) {
  const auto counts = state_->counts.find(collection.id());
  if (counts != state_->counts.end()) counts->second.erase(index);
}

void Sections::arrived(const ChareBase& chare, const std::vector<SectionCount>& counts) {
  if (counts.empty()) return;
  SectionState::Counts& here = state_->counts[chare.collection().id()][chare.linear_index()];
  for (const SectionCount& one : counts) here[one.section] = one;
}

void Sections::end(const Collection& collection, const std::string& why) {
  state_->counts.erase(collection.id());
  for (SectionState::Recent& one : state_->recent) {
    if (one.collection == collection.id()) one = {};
  }
  close_sets(collection, ~std::uint32_t{0}, why);
}

void Sections::close_sets(const Collection& collection, std::uint32_t set, const std::string& why) {
  runtime::Runtime& runtime = chares_.runtime();
  std::erase_if(state_->counted, [&](auto& one) {
    if (!concerns(one.first, one.second, collection.id()) || one.first.set >= set) return false;
    for (const auto& [sequence, partial] : one.second.all_open()) give_up(runtime, partial, why);
    return true;
  });
  // Those of this turn go to the PE that counts, which refuses them, because the flush is counted already.
}

bool Sections::has_incomplete(const Collection& collection) const {
  return std::ranges::any_of(state_->counted, [&collection](const auto& one) {
    return concerns(one.first, one.second, collection.id()) && one.second.has_open();
  });
}

}  // namespace weft::chare
