// weft::pgas::World: the team of all PEs, and what a program does with the PE itself.
//
// There is one on each PE, as long as the runtime. `main` of weft::pgas::run() gets it, and so does a function that other
// PEs call if its first parameter is World&.
#pragma once

#include "weft/pgas/team.h"

namespace weft::pgas {

class World : public Team {
 public:
  explicit World(TeamState* state) : Team(state) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;
};

// The world of this PE. Throws Error(kNotFound) if the model is not installed; weft::run() and weft::pgas::run() install it.
World& world_of(runtime::Runtime& runtime);

}  // namespace weft::pgas
