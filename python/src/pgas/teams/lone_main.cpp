#include "pgas/teams/lone_main.h"

#include <cstdint>
#include <string>

#include "weft/pgas/team_id.h"
#include "weft/pgas/world.h"

#include "await/coroutine.h"
#include "await/future.h"
#include "models/pgas/team/team_state.h"
#include "models/pgas/team/team_table.h"
#include "pgas/teams/team_object.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// The position of a Team in its collectives: (the PE of its rank 0, its number there, how many collectives this rank has begun).
PyObject* position(PyObject*, PyObject* team) {
  return guarded([&] {
    const pgas::TeamState& state = *team_of(team).state();
    const pgas::TeamId id = state.members.id();
    return Py_BuildValue("(IIK)", id.leader_pe, id.number,
                         static_cast<unsigned long long>(state.num_begun()));
  });
}

// How many collectives this PE has begun on the team with that number; 0 if it has not made the team.
PyObject* collectives_begun(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&] {
    const Arguments arguments("_collectives_begun", {"leader", "number"}, 2, values, count, nullptr);
    const pgas::TeamId id{static_cast<std::uint32_t>(integer_from(arguments[0])),
                          static_cast<std::uint32_t>(integer_from(arguments[1]))};
    const pgas::World& world = pgas::world_of(Engine::current().runtime());
    const pgas::TeamState* const team = world.state()->table.find(id);
    return PyLong_FromUnsignedLongLong(team == nullptr ? 0 : team->num_begun());
  });
}

PyMethodDef functions[] = {
    {"_team_position", &position, METH_O, nullptr},
    {"_collectives_begun", as_method(&collectives_begun), METH_FASTCALL, nullptr},
    {},
};

}  // namespace

void watch_lone_main(PyObject* team, const Ref& future, const char* use) {
  const TeamParts& parts = open_team_parts(team);
  Engine& engine = *parts.engine;
  if (engine.lone_main() == nullptr || parts.team.size() == 1 || future_state(future.get())->is_ready())
    return;
  Ref& watch = engine.collective_watch();
  if (!watch) {
    const Ref type = import_from("weft._pgas.lone_main", "Watch");
    watch = checked(PyObject_CallOneArg(type.get(), engine.lone_main()));
  }
  Ref started = checked(PyObject_CallMethod(watch.get(), "begun", "OOs", team, future.get(), use));
  if (is_coroutine(started.get())) spawn(engine, std::move(started), "the watch of a collective operation");
}

void init_lone_main(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
