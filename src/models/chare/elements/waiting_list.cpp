#include "models/chare/elements/waiting_list.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "weft/chare/chare.h"

namespace weft::chare {

// Where the search has come to in some calls of a group. `key` is not used for those without one.
struct WaitingCalls::Cursor {
  Group* group;
  Calls* calls;
  std::uint64_t key;
  Calls::iterator next;
};

std::vector<WaitingCall*> WaitingCalls::all() const {
  std::vector<std::pair<std::uint64_t, WaitingCall*>> found;
  found.reserve(size_);
  const auto add_all = [&found](const Calls& calls) {
    for (const auto& [number, call] : calls) found.emplace_back(number, call.get());
  };
  for (const Group& group : groups_) {
    add_all(group.others);
    for (const auto& [key, calls] : group.keyed) add_all(calls);
  }
  std::ranges::sort(found);
  std::vector<WaitingCall*> ordered;
  ordered.reserve(found.size());
  for (const auto& [number, call] : found) ordered.push_back(call);
  return ordered;
}

void WaitingCalls::add(ChareBase& chare, std::unique_ptr<WaitingCall> call, bool was_asked) {
  auto found = std::ranges::find(groups_, call->group(), &Group::id);
  const bool is_new = found == groups_.end();
  if (is_new) {
    groups_.emplace_back();
    found = std::prev(groups_.end());
    found->id = call->group();
  }
  // The others of the group were asked when the chare was as `seen` tells, and this one now.
  const bool has_changed = call->has_changed(chare, found->seen);
  found->is_settled = was_asked && (is_new || (found->is_settled && !has_changed));
  const std::optional<std::uint64_t> key = call->key();
  Calls& calls = key ? found->keyed[*key] : found->others;
  calls.emplace_hint(calls.end(), next_number_++, std::move(call));
  ++size_;
}

void WaitingCalls::add_cursors(Group& group, ChareBase& chare, std::vector<Cursor>& cursors) {
  if (!group.others.empty()) cursors.push_back({&group, &group.others, 0, group.others.begin()});
  if (group.keyed.empty()) return;
  if (const std::optional<std::uint64_t> key = group.one().key_of(chare)) {
    const auto found = group.keyed.find(*key);
    if (found != group.keyed.end()) cursors.push_back({&group, &found->second, *key, found->second.begin()});
    return;
  }
  for (auto& [key, calls] : group.keyed) cursors.push_back({&group, &calls, key, calls.begin()});
}

bool WaitingCalls::begin_first(ChareBase& chare) {
  std::vector<Group*> asked;
  std::vector<Cursor> cursors;  // a heap: the one with the earliest call is in front
  for (Group& group : groups_) {
    const bool has_changed = group.one().has_changed(chare, group.seen);
    if (group.is_settled && !has_changed) continue;
    group.is_settled = false;
    asked.push_back(&group);
    add_cursors(group, chare, cursors);
  }
  const auto is_later = [](const Cursor& a, const Cursor& b) { return a.next->first > b.next->first; };
  std::ranges::make_heap(cursors, is_later);
  while (!cursors.empty()) {
    if (chare.runtime().ending()) return false;
    std::ranges::pop_heap(cursors, is_later);
    Cursor& earliest = cursors.back();
    if (earliest.next->second->try_to_begin(chare)) {
      erase(earliest);
      return true;
    }
    if (++earliest.next == earliest.calls->end()) {
      cursors.pop_back();
    } else {
      std::ranges::push_heap(cursors, is_later);
    }
  }
  for (Group* const group : asked) group->is_settled = true;
  return false;
}

void WaitingCalls::erase(const Cursor& cursor) {
  Group& group = *cursor.group;
  cursor.calls->erase(cursor.next);
  --size_;
  if (cursor.calls->empty() && cursor.calls != &group.others) group.keyed.erase(cursor.key);
  if (group.empty()) std::erase_if(groups_, [&group](const Group& one) { return &one == &group; });
}

}  // namespace weft::chare
