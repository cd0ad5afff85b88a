// The objects of weft.pgas.Team; team.cpp has the type.
#pragma once

#include <cstdint>

#include "weft/pgas/team.h"

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

struct TeamParts {
  EngineRef engine;
  pgas::Team team;
};

// None for an empty team.
Ref make_team(Engine& engine, const pgas::Team& team);
bool is_team(PyObject* object);
// REQUIRES: is_team(object).
TeamParts& team_parts(PyObject* object);
// The parts of a team whose job is running. Throws base::Error if the job has ended. REQUIRES: is_team(object).
TeamParts& open_team_parts(PyObject* object);
const pgas::Team& team_of(PyObject* object);
// An int of Python. Throws PythonError if it is none, or too large.
std::int64_t integer_from(PyObject* number);
// From 0 to size - 1. Throws PythonError or base::Error.
int rank_from(const pgas::Team& team, PyObject* number);

// Once, when the extension is initialised: the type of these objects, and its size and deallocation.
void set_team_type(PyTypeObject* type);
int team_object_bytes();
void deallocate_team(PyObject* self);

}  // namespace weft::python
