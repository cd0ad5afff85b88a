// Where the objects of one collection are, as one PE knows it: the object location service of all models.
//
// Every object has a home PE, computed from its index, which always knows where the object is. Any other PE sends
// to the last PE that it knows for the object, or to the home. A PE that gets a message for an object that has
// left forwards it and reports the new PE to the sender. Moves are numbered for each object, so that late news do
// not overwrite newer ones.
//
// Threads: one PE's thread. The directory holds no messages and owns no objects.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "runtime/location/index_table.h"

namespace weft::runtime {

struct Whereabouts {
  int pe = 0;
  std::uint32_t move = 0;  // how often the object had moved then
};

template <class Object>
class Directory {
 public:
  explicit Directory(int pe) : pe_(pe) {}

  Object* find(std::uint64_t index) const { return objects_.find(index); }
  void insert(std::uint64_t index, Object* object) {
    objects_.insert(index, object);
    elsewhere_.erase(index);
  }

  // The object has left for `to_pe`; `move` counts its moves.
  Object* leave(std::uint64_t index, int to_pe, std::uint32_t move) {
    Object* object = objects_.erase(index);
    elsewhere_[index] = {to_pe, move};
    return object;
  }

  // News about an object that is not here. Returns whether they were newer than what was known.
  bool learn(std::uint64_t index, int at_pe, std::uint32_t move) {
    if (at_pe == pe_ || objects_.find(index) != nullptr) return false;
    auto [known, is_new] = elsewhere_.try_emplace(index, Whereabouts{at_pe, move});
    if (is_new) return true;
    if (known->second.move >= move) return false;
    known->second = {at_pe, move};
    return true;
  }

  // PE `pe` is lost. Objects that were there are sought at the PE that `sought_at(index, move)` gives. The numbers of their moves stay:
  // other PEs name them.
  template <class Function>
  void lose(int pe, Function sought_at) {
    for (auto& [index, known] : elsewhere_) {
      if (known.pe == pe) known.pe = sought_at(index, known.move);
    }
  }

  // News that the object does not exist any more; `move` counts its end too. REQUIRES: this PE is its home. Until it exists
  // again, whereabouts() gives this PE.
  void ended(std::uint64_t index, std::uint32_t move) {
    Whereabouts& known = elsewhere_[index];
    if (known.move < move) known = {pe_, move};
  }

  // Where to send a message for an object that is not here, and how often the object is known to have moved.
  // REQUIRES: find(index) == nullptr. The answer is this PE when it is the home and has not heard of the object: it is on
  // its way, or does not exist.
  Whereabouts whereabouts(std::uint64_t index, int home_pe) const {
    if (elsewhere_.empty()) return {home_pe, 0};
    auto known = elsewhere_.find(index);
    return known == elsewhere_.end() ? Whereabouts{home_pe, 0} : known->second;
  }

  std::size_t num_local() const { return objects_.size(); }
  void reserve(std::size_t count) { objects_.reserve(count); }
  template <class Function>
  void for_each(Function function) const {
    objects_.for_each(function);
  }

 private:
  int pe_;
  IndexTable<Object> objects_;
  std::unordered_map<std::uint64_t, Whereabouts> elsewhere_;
};

}  // namespace weft::runtime
