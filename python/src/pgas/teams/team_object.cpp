#include "pgas/teams/team_object.h"

#include <new>

#include "weft/base/error.h"

#include "base/format.h"

namespace weft::python {

namespace {

struct TeamObject {
  PyObject_HEAD TeamParts parts;
};

PyTypeObject* team_type = nullptr;

}  // namespace

void set_team_type(PyTypeObject* type) { team_type = type; }
int team_object_bytes() { return sizeof(TeamObject); }

void deallocate_team(PyObject* self) {
  team_parts(self).~TeamParts();
  free_object(self);
}

TeamParts& team_parts(PyObject* object) { return reinterpret_cast<TeamObject*>(object)->parts; }

TeamParts& open_team_parts(PyObject* object) {
  TeamParts& parts = team_parts(object);
  parts.engine->expect_open();
  return parts;
}

std::int64_t integer_from(PyObject* number) {
  const Ref index = checked(PyNumber_Index(number));
  const long long value = PyLong_AsLongLong(index.get());
  if (value == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  return value;
}

Ref make_team(Engine& engine, const pgas::Team& team) {
  if (!team) return Ref::borrow(Py_None);
  Ref object = checked(PyType_GenericAlloc(team_type, 0));
  new (&team_parts(object.get())) TeamParts{EngineRef(engine), team};
  return object;
}

bool is_team(PyObject* object) { return Py_TYPE(object) == team_type; }

const pgas::Team& team_of(PyObject* object) { return open_team_parts(object).team; }

int rank_from(const pgas::Team& team, PyObject* number) {
  const std::int64_t rank = integer_from(number);
  if (rank >= 0 && rank < team.size()) return static_cast<int>(rank);
  throw base::Error(
      base::StatusCode::kOutOfRange,
      base::format("rank {} does not exist; this team has ranks 0 to {}", rank, team.size() - 1));
}

}  // namespace weft::python
