// What elements wait for, for reports.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/element_load.h"
#include "weft/chare/sections.h"
#include "weft/chare/waiting_call.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"

namespace weft::chare {

namespace {

runtime::NamedParty party_of(const Collection& collection, std::uint64_t index) {
  return {{collection.id(), index}, collection.element_name(index)};
}

void list_waiting_calls(const Collection& collection, const ChareBase& chare, runtime::WaitList& waits) {
  std::map<std::string, std::size_t> by_method;
  for (const WaitingCall* const call : chare.waiting_calls()) ++by_method[call->method_name()];
  for (const auto& [method, count] : by_method) {
    const runtime::NamedParty who = party_of(collection, chare.linear_index());
    waits.add({.who = who,
               .where = who.name + "." + method,
               .what = base::format("its when-condition holds for none of {} call{}", count,
                                    count == 1 ? "" : "s")});
  }
}

// By the number of reductions, or of sync points.
using Counts = std::map<std::uint64_t, runtime::ContributionCount>;
constexpr std::uint64_t kSyncScope = 1;  // those of sections are hashes

void add_to(Counts& counts, std::uint64_t number, runtime::NamedParty element) {
  runtime::ContributionCount& count = counts[number];
  ++count.num_elements;
  if (count.elements.size() < runtime::ContributionCount::kMostNamed)
    count.elements.push_back(std::move(element));
}

runtime::ContributionCount named(runtime::ContributionCount count, const runtime::NamedParty& collection,
                                 std::uint64_t number) {
  count.collection = collection;
  count.reductions = number;
  return count;
}

}  // namespace

void Chares::list_waits(runtime::WaitList& waits) const {
  for (const auto& [id, collection] : parts_->collections) {
    if (collection->is_destroyed() || !collection->is_created()) continue;
    Counts reductions;
    Counts sync_points;
    std::map<std::uint64_t, Counts> of_sections;  // by the low half of its number
    collection->elements_->directory.for_each([&](std::uint64_t index, const ChareBase& chare) {
      if (chare.num_waiting_calls() > 0) list_waiting_calls(*collection, chare, waits);
      add_to(reductions, chare.next_reduction_, party_of(*collection, index));
      if (const ElementLoad* const load = chare.load())
        add_to(sync_points, load->sync.step + (load->sync.phase == SyncPhase::kRuns ? 0 : 1),
               party_of(*collection, index));
      if (collection->is_sparse()) return;
      parts_->sections->for_each_recent(chare, [&](const SectionCount& count) {
        add_to(of_sections[count.section.low], count.next, party_of(*collection, index));
      });
    });
    for (const auto& [index, messages] : collection->elements_->held) {
      waits.add({.who = {{}, collection->element_name(index)},
                 .what = base::format("{} message{} for it, and it is not on its home PE", messages.size(),
                                      messages.size() == 1 ? "" : "s")});
    }
    if (collection->is_sparse()) continue;  // its elements count by sets
    const runtime::NamedParty all = {{collection->id(), runtime::Party::kAll}, collection->name()};
    for (auto& [number, count] : reductions) waits.add(named(std::move(count), all, number));
    for (auto& [number, count] : sync_points) {
      count.what = "at_sync()";
      count.scope = kSyncScope;
      waits.add(named(std::move(count), all, number));
    }
    const runtime::NamedParty section = {all.party, base::format("a section of {}", collection->name())};
    for (auto& [scope, counts] : of_sections) {
      for (auto& [number, count] : counts) {
        count.scope = scope;
        waits.add(named(std::move(count), section, number));
      }
    }
  }
}

bool Chares::describe_future(const runtime::FutureState& future, runtime::Wait& wait) const {
  const std::optional<AllReduces::Key> key = parts_->all_reduces.find(future);
  if (!key) return false;
  const Collection& collection = *parts_->collections.at(key->first);
  wait.what = base::format("the result of reduction {} of {}", key->second & 0xffffffff, collection.name());
  wait.on.push_back({{collection.id(), runtime::Party::kAll}, collection.name()});
  return true;
}

}  // namespace weft::chare
