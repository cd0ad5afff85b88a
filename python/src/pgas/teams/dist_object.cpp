#include "pgas/teams/dist_object.h"

#include <memory>
#include <new>
#include <utility>

#include "weft/pgas/dist_object.h"

#include "base/format.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/forms.h"
#include "engine/engine.h"
#include "pgas/teams/encoded_calls.h"
#include "pgas/teams/team_object.h"
#include "support/errors.h"

namespace weft::python {

namespace {

using pgas::rpc_detail::ObjectNumber;

std::uint64_t python_object_type() {
  static const std::uint64_t number = runtime::fingerprint("weft::python distributed object");
  return number;
}

// The entry of a distributed object in the team's table. The PE's thread drops it, together with the name and so with the table's entry. An object
// may be deallocated earlier, on any thread that holds the GIL, and then says so here.
struct NamedObject {
  NamedObject(const pgas::Team& team, PyObject* object_in)
      : object(object_in), name(team, this, python_object_type()) {}

  PyObject* object;  // not owned; null when it is being deallocated
  pgas::ObjectName name;
};

struct DistObjectParts {
  EngineRef engine;
  std::shared_ptr<NamedObject> named;
  Ref value;  // null after a garbage collection has cleared the object
};
struct DistObjectObject {
  PyObject_HEAD DistObjectParts parts;
};

PyTypeObject* dist_object_type = nullptr;

DistObjectParts& parts_of(PyObject* self) { return reinterpret_cast<DistObjectObject*>(self)->parts; }
DistObjectParts& open_parts_of(PyObject* self) {
  DistObjectParts& parts = parts_of(self);
  parts.engine->expect_open();
  return parts;
}

[[noreturn]] void refuse_destroyed(const ObjectNumber& where) {
  throw base::Error(
      base::StatusCode::kClosed,
      base::format("the distributed object {} of this rank has been destroyed; have a barrier before",
                   where.number));
}

// The object of this rank; null if it is not made yet. Throws base::Error if it was destroyed.
Ref object_at(runtime::Runtime& runtime, const ObjectNumber& where) {
  const auto* const named = static_cast<NamedObject*>(pgas::rpc_detail::find_object(runtime, where));
  if (named == nullptr) return {};
  if (named->object == nullptr) refuse_destroyed(where);
  return Ref::borrow(named->object);
}

const Ref& value_of(PyObject* self) {
  const DistObjectParts& parts = parts_of(self);
  if (!parts.value) refuse_destroyed(parts.named->name.where());
  return parts.value;
}

PyObject* make(PyTypeObject* type, PyObject* positional, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static const char* const names[] = {"team", "value", nullptr};
    PyObject* team = nullptr;
    PyObject* value = nullptr;
    if (PyArg_ParseTupleAndKeywords(positional, keywords, "OO:DistObject", const_cast<char**>(names), &team,
                                    &value) == 0) {
      throw PythonError();
    }
    if (!is_team(team)) {
      throw base::Error(base::StatusCode::kInvalidArgument,
                        base::format("weft.pgas.DistObject(team, value) takes a weft.pgas.Team, not a {}",
                                     type_name_of(team)));
    }
    Engine& engine = Engine::current();
    Ref object = checked(PyType_GenericAlloc(type, 0));
    new (&parts_of(object.get())) DistObjectParts{EngineRef(engine), nullptr, Ref::borrow(value)};
    parts_of(object.get()).named = std::make_shared<NamedObject>(team_of(team), object.get());
    return object.release();
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(parts_of(self).value.get());
  return 0;
}

int clear(PyObject* self) {
  parts_of(self).value = Ref();
  return 0;
}

void deallocate(PyObject* self) {
  PyObject_GC_UnTrack(self);
  DistObjectParts& parts = parts_of(self);
  // Before any other code runs, which may let other threads run.
  if (parts.named != nullptr) parts.named->object = nullptr;
  Engine::drop_on_pe_thread(std::move(parts.named));
  parts.~DistObjectParts();
  free_object(self);
}

// --- Fetching

bool invoke_read(pgas::RpcCall& call, Pup& p) {
  try {
    ObjectNumber where;
    p | where;
    const Ref object = object_at(call.runtime(), where);
    if (!object) {
      call.missing = where;
      return false;
    }
    const Ref value = value_of(object.get());
    reply_value(call, value.get());
  } catch (...) {
    reply_error(call, "DistObject.fetch");
  }
  return true;
}

pgas::RpcInfo read_info{"weft::python read", &invoke_read, 0};
const bool read_registered = runtime::Registry<pgas::RpcInfo>::add(&read_info);

PyObject* fetch(PyObject* self, PyObject* number) {
  return guarded([&]() -> PyObject* {
    static_cast<void>(read_registered);
    DistObjectParts& parts = open_parts_of(self);
    const pgas::Team& team = parts.named->name.team();
    const int rank = rank_from(team, number);
    Encoder encoder;
    encoder.number(parts.named->name.where());
    return send_with_result(*parts.engine, team, rank, read_info, encoder,
                            base::format("DistObject.fetch({})", rank))
        .release();
  });
}

// --- As an argument

bool encode(Encoder& encoder, PyObject* object) {
  encoder.tag(ValueTag::kDistObject);
  encoder.number(dist_object_name(object).where());
  return true;
}

Ref decode(Decoder& decoder) {
  const auto where = decoder.number<ObjectNumber>();
  if (where.type != python_object_type()) Decoder::corrupt("a distributed object of another type");
  Ref object = object_at(Engine::current().runtime(), where);
  if (object) return object;
  throw base::Error(base::StatusCode::kNotFound,
                    "a distributed object arrived inside another value, and this PE has not made its own "
                    "yet; pass it as an argument "
                    "of its own in a call, which then waits");
}

PyObject* get_value(PyObject* self, void*) {
  return guarded([self] { return Py_NewRef(value_of(self).get()); });
}
int set_value(PyObject* self, PyObject* value, void*) {
  return guarded_status([&] {
    if (value == nullptr) {
      throw base::Error(base::StatusCode::kInvalidArgument, "the value of a DistObject cannot be deleted");
    }
    parts_of(self).value = Ref::borrow(value);
  });
}
PyObject* get_team(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    DistObjectParts& parts = open_parts_of(self);
    return make_team(*parts.engine, parts.named->name.team()).release();
  });
}

PyGetSetDef attributes[] = {
    {"value", &get_value, &set_value, "The value of this rank.", nullptr},
    {"team", &get_team, nullptr, "The team.", nullptr},
    {},
};

PyMethodDef methods[] = {
    {"fetch", &fetch, METH_O, R"(fetch($self, rank, /)
--

The value of another rank, as it is when the request is handled there.

Args:
    rank: of the team, from 0.

Returns:
    a weft.Future of the value, which arrives as an argument of a call does. It waits until that rank has made its object.

Raises:
    weft.Error: there is no such rank, or the job has ended.)"},
    {"__class_getitem__", &Py_GenericAlias, METH_O | METH_CLASS, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(&clear)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>(R"(DistObject(team, value)
--

One value on each rank of a team, under one name.

All ranks make their distributed objects on a team in the same order; no message is sent for that. As an argument of
``team.rpc`` it arrives as the object of the rank that runs the function; the call waits there until the rank has made it.
Others may use the object until it is dropped, so have a barrier before.

Args:
    team: a weft.pgas.Team.
    value: the value of this rank, any object.

Raises:
    weft.Error: not a team, or the job has ended.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.pgas.DistObject", sizeof(DistObjectObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace

void init_dist_object(PyObject* module) {
  dist_object_type = add_type(module, spec);
  add_encoding(dist_object_type, &encode);
  add_decoding(ValueTag::kDistObject, &decode);
}

bool is_dist_object(PyObject* object) { return Py_TYPE(object) == dist_object_type; }

const pgas::ObjectName& dist_object_name(PyObject* object) { return open_parts_of(object).named->name; }

}  // namespace weft::python
