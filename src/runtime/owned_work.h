// A member of a class that is posted now and then, and whose turn is a method of the class:
//
//   OwnedWork<&WantedMoves::turn> work_{*this};
//
// The method is not called if the runtime ends first. The owner must not go while the work is posted.
#pragma once

#include "weft/runtime/work.h"

namespace weft::runtime {

template <auto Turn>
struct OwnedWork;

template <class Owner, void (Owner::*Turn)()>
struct OwnedWork<Turn> final : Work {
  explicit OwnedWork(Owner& owner_in) : Work(&OwnedWork::call), owner(owner_in) {}

  Owner& owner;

 private:
  static void call(Work* self, Runtime&, WorkAction action) {
    if (action == WorkAction::kRun) (static_cast<OwnedWork*>(self)->owner.*Turn)();
  }
};

}  // namespace weft::runtime
