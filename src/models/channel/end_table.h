// The channel ends of one PE, by the chare and peer that they join and by their numbers.
//
// An end has a number of its own on its PE, counted from 1, which messages name. Numbers of ends that are gone are not
// used again. Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "models/channel/channel_end.h"

namespace weft::channel {

class EndTable {
 public:
  // Null if there is none.
  ChannelEnd* find(const ChannelKey& key) const {
    const auto found = ends_.find(key);
    return found == ends_.end() ? nullptr : found->second.get();
  }
  ChannelEnd* find(std::uint32_t number) const {
    return number == 0 || number > by_number_.size() ? nullptr : by_number_[number - 1];
  }
  // As find(number), for a number in a message of `peer`: null also if the end's peer is known and is another. Messages of a
  // peer that has moved, or is moving, may name any of its addresses.
  ChannelEnd* find(std::uint32_t number, EndAddress peer) const {
    ChannelEnd* const end = find(number);
    if (end == nullptr || end->peer.number == 0) return end;
    if (end->moves.peer_version != 0 || end->moves.peer_moves) return end;
    return end->peer.pe == peer.pe && end->peer.number == peer.number ? end : nullptr;
  }
  // A new end with the next number. REQUIRES: there is none with that key.
  ChannelEnd& add(const ChannelKey& key) {
    auto& slot = ends_[key];
    slot = std::make_unique<ChannelEnd>();
    slot->key = key;
    by_number_.push_back(slot.get());
    slot->number = static_cast<std::uint32_t>(by_number_.size());
    return *slot;
  }
  // Calls `visit` with each end of that chare.
  template <class Visit>
  void for_each_of(std::uint64_t collection, std::uint64_t index, Visit visit) const {
    for (auto found = ends_.lower_bound({collection, index, 0, 0, 0});
         found != ends_.end() && found->first.self_collection == collection &&
         found->first.self_index == index;
         ++found) {
      visit(*found->second);
    }
  }
  // Whether an end had that number and is gone.
  bool is_gone(std::uint32_t number) const {
    return number != 0 && number <= by_number_.size() && by_number_[number - 1] == nullptr;
  }
  void erase(ChannelEnd& end) { static_cast<void>(take(end)); }
  // The end is not in the table any more.
  std::unique_ptr<ChannelEnd> take(ChannelEnd& end) {
    by_number_[end.number - 1] = nullptr;
    return std::move(ends_.extract(end.key).mapped());
  }
  // All that were made.
  std::size_t num_made() const { return by_number_.size(); }
  std::size_t size() const { return ends_.size(); }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [key, end] : ends_) visit(*end);
  }

 private:
  std::map<ChannelKey, std::unique_ptr<ChannelEnd>> ends_;
  std::vector<ChannelEnd*> by_number_;
};

}  // namespace weft::channel
