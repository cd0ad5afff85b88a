#include "pgas/teams/team.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/pgas/world.h"

#include "await/future.h"
#include "base/format.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/forms.h"
#include "pgas/teams/device_group.h"
#include "pgas/teams/lone_main.h"
#include "pgas/teams/remote_calls.h"
#include "pgas/teams/team_collectives.h"
#include "pgas/teams/team_object.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// --- Members

PyObject* get_rank(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromLong(open_team_parts(self).team.rank()); });
}
PyObject* get_size(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromLong(open_team_parts(self).team.size()); });
}

PyObject* members(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const std::vector<int> pes = open_team_parts(self).team.members();
    Ref list = checked(PyList_New(static_cast<Py_ssize_t>(pes.size())));
    for (std::size_t rank = 0; rank < pes.size(); ++rank)
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(rank),
                      checked(PyLong_FromLong(pes[rank])).release());
    return list.release();
  });
}

PyObject* split(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments("Team.split", {"colour", "key"}, 1, values, count, keywords);
    TeamParts& parts = open_team_parts(self);
    const bool joins = arguments[0] != Py_None;
    const std::int64_t colour = joins ? integer_from(arguments[0]) : pgas::kNoTeam;
    if (joins && colour == pgas::kNoTeam) {
      throw base::Error(base::StatusCode::kOutOfRange,
                        "Team.split: this colour is reserved; give another number");
    }
    const std::int64_t key = arguments[1] == nullptr ? 0 : integer_from(arguments[1]);
    auto* state = new PyFutureState(*parts.engine);
    Ref future = make_future_object(state);
    parts.team.split(colour, key)
        .then([future, engine = parts.engine](const runtime::Future<pgas::Team>& ready) {
          PyFutureState& result = *future_state(future.get());
          if (ready.state()->error()) return result.set_error(ready.state()->error());
          result.set(make_team(*engine, ready.get()));
        });
    watch_lone_main(self, future, "Team.split");
    return future.release();
  });
}

// --- Calls

// The rank and the function of rpc(rank, function, *arguments, **keywords).
struct RpcArguments {
  RpcArguments(PyObject* self, const char* name, PyObject* positional) : parts(open_team_parts(self)) {
    const Py_ssize_t count = PyTuple_GET_SIZE(positional);
    if (count < 2) {
      PyErr_Format(PyExc_TypeError, "%s() takes a rank and a function", name);
      throw PythonError();
    }
    rank = rank_from(parts.team, PyTuple_GET_ITEM(positional, 0));
    function = PyTuple_GET_ITEM(positional, 1);
    rest = checked(PyTuple_GetSlice(positional, 2, count));
  }
  TeamParts& parts;
  int rank;
  PyObject* function;
  Ref rest;
};

PyObject* rpc(PyObject* self, PyObject* positional, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const RpcArguments call(self, "Team.rpc", positional);
    return call_remotely(*call.parts.engine, call.parts.team, call.rank, call.function, call.rest.get(),
                         keywords)
        .release();
  });
}

PyObject* rpc_ff(PyObject* self, PyObject* positional, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const RpcArguments call(self, "Team.rpc_ff", positional);
    call_remotely_ff(call.parts.team, call.rank, call.function, call.rest.get(), keywords);
    Py_RETURN_NONE;
  });
}

// --- Device arrays

PyObject* device_group(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* kUse = "Team.device_group";
    const Arguments arguments(kUse, {"device", "place_bytes"}, 0, values, count, keywords);
    TeamParts& parts = open_team_parts(self);
    const Ref future = start_device_group(parts, arguments[0], arguments[1], kUse);
    watch_lone_main(self, future, kUse);
    return Py_NewRef(future.get());
  });
}

// --- Values

PyObject* represent(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const TeamParts& parts = team_parts(self);
    if (parts.engine->is_closed()) return make_text("<weft.pgas.Team of a job that has ended>").release();
    return make_text(base::format("<weft.pgas.Team, rank {} of {}>", parts.team.rank(), parts.team.size()))
        .release();
  });
}

PyObject* compare(PyObject* self, PyObject* other, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || !is_team(other)) Py_RETURN_NOTIMPLEMENTED;
  const bool same = team_parts(self).team == team_parts(other).team;
  return PyBool_FromLong(same == (operation == Py_EQ) ? 1 : 0);
}

Py_hash_t hash(PyObject* self) {
  const auto value =
      static_cast<Py_hash_t>(reinterpret_cast<std::uintptr_t>(team_parts(self).team.state()) >> 4);
  return value == -1 ? -2 : value;
}

bool encode(Encoder& encoder, PyObject* object) {
  pgas::Team team = team_of(object);
  encoder.tag(ValueTag::kTeam);
  encoder.packed(Pup::sizer(), [&team](Pup& p) { p | team; });
  return true;
}

Ref decode(Decoder& decoder) {
  Engine& engine = Engine::current();
  pgas::Team team;
  decoder.packed(&engine.runtime(), [&team](Pup& p) { p | team; });
  return make_team(engine, team);
}

PyObject* world(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    Engine& engine = Engine::current();
    return make_team(engine, pgas::world_of(engine.runtime())).release();
  });
}

PyGetSetDef attributes[] = {
    {"rank", &get_rank, nullptr, "The number of this PE in the team, from 0.", nullptr},
    {"size", &get_size, nullptr, "The number of members.", nullptr},
    {},
};

PyMethodDef methods[] = {
    {"members", &members, METH_NOARGS, R"(members($self, /)
--

The PEs of the team, in the order of their ranks: a list of ints.)"},
    {"split", as_method(&split), METH_FASTCALL | METH_KEYWORDS, R"(split($self, colour, key=0)
--

Collective: the members that give the same colour become a team. Ranks follow the keys; equal keys keep the order of this team.

Args:
    colour: an int, or None to become a member of no team.
    key: an int.

Returns:
    a weft.Future of the new Team, or of None.

Raises:
    weft.Error: the job has ended.)"},
    {"rpc", as_method(&rpc), METH_VARARGS | METH_KEYWORDS, R"(rpc($self, rank, function, /, *args, **kwargs)
--

Runs ``function(*args, **kwargs)`` on another rank, from its scheduler. If it is an ``async def``, it may wait there.

Arguments and the result are values: what the caller changes after the call does not reach the function. Device memory and
``weft.nocopy`` arrays are sent in place and may change again when the result is there. A ``DistObject`` among the arguments
arrives as the object of that rank; the call waits there until the rank has made it.

Args:
    rank: of the team, from 0.
    function: at the top level of a module, where every PE finds it.

Returns:
    a weft.Future of the result. An exception of the function arrives as weft.RemoteError; if nothing awaits the future, it
    ends the job.

Raises:
    weft.Error: there is no such rank, the function cannot be found by name, an argument cannot travel, or the job has
        ended.)"},
    {"rpc_ff", as_method(&rpc_ff), METH_VARARGS | METH_KEYWORDS,
     R"(rpc_ff($self, rank, function, /, *args, **kwargs)
--

Like rpc(), without a result. An exception of the function ends the job.)"},
    {"barrier", &team_barrier, METH_NOARGS, R"(barrier($self, /)
--

Awaitable: ready when all ranks have called it.)"},
    {"blocking_barrier", &team_blocking_barrier, METH_NOARGS, R"(blocking_barrier($self, /)
--

Returns when all ranks have called barrier() or blocking_barrier().

This PE runs nothing else meanwhile: a rank that needs an answer of this PE to reach the barrier waits for ever.

Raises:
    weft.Error: the job ends first.)"},
    {"broadcast", as_method(&team_broadcast), METH_FASTCALL | METH_KEYWORDS,
     R"(broadcast($self, value=None, root=0)
--

Collective: the value of `root`, on all ranks. The values of the others are not used.

Args:
    value: any object that travels; no device memory.
    root: a rank.

Returns:
    a weft.Future of the value.

Raises:
    weft.Error: there is no such rank, the value cannot travel, or the job has ended. If it cannot travel, the futures of
        the other ranks raise weft.RemoteError.)"},
    {"reduce", as_method(&team_reduce), METH_FASTCALL | METH_KEYWORDS,
     R"(reduce($self, value, reducer, root=0)
--

Collective: the values of all ranks, merged, on `root`.

Args:
    value: numbers, NumPy arrays and lists as weft.Reducer describes, or anything for gather and custom; no device memory.
    reducer: a weft.Reducer. One that raises ends the job.
    root: a rank.

Returns:
    a weft.Future of the merged value; of None on the other ranks.

Raises:
    weft.Error: there is no such rank, no reducer, the value cannot travel, or the job has ended. If a value cannot travel,
        the futures of the ranks that depend on it raise weft.RemoteError.)"},
    {"allreduce", as_method(&team_allreduce), METH_FASTCALL | METH_KEYWORDS,
     R"(allreduce($self, value, reducer)
--

Collective: the values of all ranks, merged, on all ranks with the same bits. See reduce().)"},
    {"allgather", &team_allgather, METH_O, R"(allgather($self, value, /)
--

Collective: a weft.Future of the list of the values of all ranks, in the order of the ranks, on all of them.)"},
    {"broadcast_in_place", as_method(&team_broadcast_in_place), METH_FASTCALL | METH_KEYWORDS,
     R"(broadcast_in_place($self, array, root=0)
--

Collective: the elements of the array of `root` replace those of the others.

The memory belongs to the operation until the future is ready. It may be host or device memory, also of different kinds on
different ranks; device memory is sent and received where it is.

Args:
    array: contiguous and writable, of the same size in bytes on all ranks.
    root: a rank.

Returns:
    a weft.Future of the array.

Raises:
    weft.Error: there is no such rank, the memory cannot be used, or the job has ended. If the sizes differ, awaiting raises it.)"},
    {"reduce_in_place", as_method(&team_reduce_in_place), METH_FASTCALL | METH_KEYWORDS,
     R"(reduce_in_place($self, array, reducer, root=0)
--

Collective: the merged elements replace those of `root`; the arrays of the others stay.

Device memory is copied to the host, merged there, and copied back.

Args:
    array: contiguous and writable, of bools, integers, float32 or float64, with as many elements on all ranks.
    reducer: one of weft.Reducer's, but gather, concat and custom.
    root: a rank.

Returns:
    a weft.Future of the array.

Raises:
    weft.Error: as broadcast_in_place(); or the elements or the reducer are others.)"},
    {"allreduce_in_place", as_method(&team_allreduce_in_place), METH_FASTCALL | METH_KEYWORDS,
     R"(allreduce_in_place($self, array, reducer)
--

Collective: the merged elements replace those of all ranks. See reduce_in_place().)"},
    {"device_group", as_method(&device_group), METH_FASTCALL | METH_KEYWORDS,
     R"(device_group($self, device=None, place_bytes=None)
--

Collective: a weft.pgas.DeviceGroup of the members, for collectives of device arrays that are queued on streams.

The members are PEs of one host whose devices reach one another; at most 16.

Args:
    device: this PE's own device, such as ``"cuda"``. None: its GPU, or an emulated device if the process can use no GPU.
    place_bytes: data above 64 KiB moves in pieces of this size, the same on all members.
        A member allocates two such places in device memory, and 1 MiB. None: 32 MiB on GPUs, 4 MiB on emulated devices.

Returns:
    a weft.Future of the group. If one member fails, the futures of all raise its weft.Error: with code "unsupported" if a device
    does not reach that of a peer.

Raises:
    weft.Error: there is no such device, or the job has ended.)"},
    {},
};

PyMethodDef functions[] = {
    {"_world", &world, METH_NOARGS, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate_team)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {Py_tp_repr, reinterpret_cast<void*>(&represent)},
    {Py_tp_richcompare, reinterpret_cast<void*>(&compare)},
    {Py_tp_hash, reinterpret_cast<void*>(&hash)},
    {Py_tp_doc,
     const_cast<char*>(R"(An ordered set of PEs that call one another and take part in collective operations.

weft.pgas.world() is the team of all PEs; split() makes others. All members call the same collective operations in the same
order. An operation starts in the call, and its future may be awaited later.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.pgas.Team", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

void init_team(PyObject* module) {
  spec.basicsize = team_object_bytes();
  PyTypeObject* const type = add_type(module, spec);
  set_team_type(type);
  add_encoding(type, &encode);
  add_decoding(ValueTag::kTeam, &decode);
  add_functions(module, functions);
}

}  // namespace weft::python
