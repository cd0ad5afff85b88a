// weft::pgas::DistObject<T>: one value of type T on each rank of a team, under one name.
//
//   pgas::DistObject<std::vector<int>> mine(world, {1, 2, 3});
//   std::vector<int> theirs = co_await mine.fetch(1);
//   co_await world.rpc<&insert>(1, mine, 7);           // void insert(DistObject<std::vector<int>>& object, int value)
//
// All ranks make their distributed objects on a team in the same order; no message is sent for that. A fetch, or a call that
// names the object, waits at a rank that has not made its own yet. An object of a rank may be used by others until it is
// destroyed, so a program has a barrier before. A use after that fails with Error(kClosed). An object may outlive the job;
// its team is gone then. Threads: the PE's.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "weft/pgas/rpc.h"
#include "weft/pgas/team.h"

namespace weft::pgas {

class ObjectTable;

// The untyped part of an object that a team keeps on this PE; DistObject adds the type.
class ObjectName {
 public:
  // `object` is what find_object() returns.
  ObjectName(const Team& team, void* object, std::uint64_t type);
  ~ObjectName();
  ObjectName(const ObjectName&) = delete;
  ObjectName& operator=(const ObjectName&) = delete;

  const Team& team() const { return team_; }
  const rpc_detail::ObjectNumber& where() const { return where_; }

 private:
  Team team_;
  std::shared_ptr<ObjectTable*> table_;  // to null after the job has ended
  rpc_detail::ObjectNumber where_;
};

namespace rpc_detail {

// The function that fetch() calls.
template <class T>
T read_object(DistObject<T>& object) {
  return *object;
}

}  // namespace rpc_detail

template <class T>
class DistObject {
 public:
  using Value = T;

  // This rank's value.
  DistObject(const Team& team, T value)
      : value_(std::move(value)), name_(team, this, rpc_detail::type_number<T>()) {}
  DistObject(const DistObject&) = delete;
  DistObject& operator=(const DistObject&) = delete;

  T& operator*() { return value_; }
  const T& operator*() const { return value_; }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }
  const Team& team() const { return name_.team(); }

  // A copy of that rank's value, as it is when the request is handled there.
  runtime::Future<T> fetch(int rank) const {
    return team().template rpc<&rpc_detail::read_object<T>>(rank, *this);
  }

  const ObjectName& name() const { return name_; }

 private:
  T value_;
  ObjectName name_;
};

namespace rpc_detail {

template <class T>
ObjectArgument<T>::ObjectArgument(const DistObject<T>& given) : where(given.name().where()) {}

}  // namespace rpc_detail

}  // namespace weft::pgas
