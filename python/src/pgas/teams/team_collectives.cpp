#include "pgas/teams/team_collectives.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "weft/pgas/team.h"

#include "await/future.h"
#include "base/format.h"
#include "buffers/object_buffer.h"
#include "chare/reduction.h"
#include "codec/encoder.h"
#include "codec/forms.h"
#include "pgas/teams/array_combine.h"
#include "pgas/teams/lone_main.h"
#include "pgas/teams/packed_or_raised.h"
#include "pgas/teams/team_object.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// The type of all Python values in collectives, whose form tells the rest.
constexpr std::uint64_t kPythonValue = 0x7079;

int root_from(const pgas::Team& team, PyObject* number) {
  return number == nullptr ? 0 : rank_from(team, number);
}

// `root` < 0: to all.
PyObject* reduce_to(PyObject* self, PyObject* value, PyObject* reducer, int root, const char* use) {
  TeamParts& parts = open_team_parts(self);
  const Contribution how =
      contribution_of(value, reducer, [&] { return base::format("rank {} of a team", parts.team.rank()); });
  if (how.form == ResultForm::kNothing) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        "a reduction over a team takes a value and a reducer; without a value it is Team.barrier()");
  }
  const PackedOrRaised mine(how.pack);
  auto* state = new PyFutureState(*parts.engine);
  Ref future = make_future_object(state);
  state->set_subject(make_text(use));
  const bool has_result = root < 0 || root == parts.team.rank();
  state->expect_bare(has_result ? how.form : ResultForm::kNothing);
  const std::uint64_t type = kPythonValue + static_cast<std::uint64_t>(how.form);
  parts.team.start_reduce(mine.packed(), how.reducer, how.combiner, root, type, *state);
  mine.rethrow();
  watch_lone_main(self, future, use);
  return future.release();
}

// A future of the array, which keeps its memory.
Ref keep_until(Engine& engine, const runtime::Future<>& done, PyObject* array, ObjectBuffer buffer) {
  auto* state = new PyFutureState(engine);
  Ref future = make_future_object(state);
  done.then([future, array = Ref::borrow(array),
             keeper = std::move(buffer.keeper)](const runtime::Future<>& ready) {
    PyFutureState& result = *future_state(future.get());
    if (ready.state()->error()) return result.set_error(ready.state()->error());
    result.set(array);
  });
  return future;
}

PyObject* reduce_array(TeamParts& parts, PyObject* array, PyObject* reducer, int root, const char* use) {
  ArrayForm form;
  ObjectBuffer buffer = buffer_of({array, Access::kWrite, use, &form});
  const runtime::Reducer operation = in_place_reducer(reducer, use);
  const runtime::Future<> done =
      parts.team.reduce_buffer(buffer.memory, array_combine(form, operation, use), operation, root);
  return keep_until(*parts.engine, done, array, std::move(buffer)).release();
}

}  // namespace

PyObject* team_barrier(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    TeamParts& parts = open_team_parts(self);
    Ref future = wrap_future(*parts.engine, parts.team.barrier());
    watch_lone_main(self, future, "Team.barrier");
    return future.release();
  });
}

PyObject* team_blocking_barrier(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    open_team_parts(self).team.blocking_barrier();
    if (PyErr_CheckSignals() != 0) throw PythonError();
    Py_RETURN_NONE;
  });
}

PyObject* team_broadcast(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments("Team.broadcast", {"value", "root"}, 0, values, count, keywords);
    TeamParts& parts = open_team_parts(self);
    const int root = root_from(parts.team, arguments[1]);
    const PackedOrRaised mine([&]() -> std::vector<std::byte> {
      if (parts.team.rank() != root) return {};
      Encoder encoder;
      try {
        encoder.value(arguments[0] == nullptr ? Py_None : arguments[0]);
      } catch (const PythonError&) {
        rethrow_unsendable("the value of Team.broadcast");
      }
      return encoder.copy();
    });
    auto* state = new PyFutureState(*parts.engine);
    Ref future = make_future_object(state);
    state->set_subject(make_text("Team.broadcast"));
    state->expect_bare(ResultForm::kValue);
    parts.team.start_broadcast(mine.packed(), root, kPythonValue, *state);
    mine.rethrow();
    watch_lone_main(self, future, "Team.broadcast");
    return future.release();
  });
}

PyObject* team_reduce(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments("Team.reduce", {"value", "reducer", "root"}, 2, values, count, keywords);
    const int root = root_from(open_team_parts(self).team, arguments[2]);
    return reduce_to(self, arguments[0], arguments[1], root, "Team.reduce");
  });
}

PyObject* team_allreduce(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments("Team.allreduce", {"value", "reducer"}, 2, values, count, keywords);
    return reduce_to(self, arguments[0], arguments[1], -1, "Team.allreduce");
  });
}

PyObject* team_allgather(PyObject* self, PyObject* value) {
  return guarded([&]() -> PyObject* {
    const Ref gather = attribute(import_from("weft._chare.reducers", "Reducer").get(), "gather");
    return reduce_to(self, value, gather.get(), -1, "Team.allgather");
  });
}

PyObject* team_broadcast_in_place(PyObject* self, PyObject* const* values, Py_ssize_t count,
                                  PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* kUse = "Team.broadcast_in_place";
    const Arguments arguments(kUse, {"array", "root"}, 1, values, count, keywords);
    TeamParts& parts = open_team_parts(self);
    const int root = root_from(parts.team, arguments[1]);
    ObjectBuffer buffer = buffer_of({arguments[0], Access::kWrite, kUse});
    const runtime::Future<> done = parts.team.broadcast_buffer(buffer.memory, kPythonValue, root);
    return keep_until(*parts.engine, done, arguments[0], std::move(buffer)).release();
  });
}

PyObject* team_reduce_in_place(PyObject* self, PyObject* const* values, Py_ssize_t count,
                               PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* kUse = "Team.reduce_in_place";
    const Arguments arguments(kUse, {"array", "reducer", "root"}, 2, values, count, keywords);
    TeamParts& parts = open_team_parts(self);
    return reduce_array(parts, arguments[0], arguments[1], root_from(parts.team, arguments[2]), kUse);
  });
}

PyObject* team_allreduce_in_place(PyObject* self, PyObject* const* values, Py_ssize_t count,
                                  PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* kUse = "Team.allreduce_in_place";
    const Arguments arguments(kUse, {"array", "reducer"}, 2, values, count, keywords);
    return reduce_array(open_team_parts(self), arguments[0], arguments[1], -1, kUse);
  });
}

}  // namespace weft::python
