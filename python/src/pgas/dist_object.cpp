#include "pgas/dist_object.h"

#include <memory>
#include <new>
#include <utility>

#include "weft/pgas/dist_object.h"

#include "base/format.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/forms.h"
#include "engine/engine.h"
#include "pgas/encoded_calls.h"
#include "pgas/team_object.h"
#include "support/errors.h"

namespace weft::python {

namespace {

using pgas::rpc_detail::ObjectNumber;

struct DistObjectParts {
  EngineRef engine;
  std::unique_ptr<pgas::ObjectName> name;
  Ref value;
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

std::uint64_t python_object_type() {
  static const std::uint64_t number = runtime::fingerprint("weft::python distributed object");
  return number;
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
    Ref object = checked(type->tp_alloc(type, 0));
    new (&parts_of(object.get())) DistObjectParts{EngineRef(engine), nullptr, Ref::borrow(value)};
    parts_of(object.get()).name =
        std::make_unique<pgas::ObjectName>(team_of(team), object.get(), python_object_type());
    return object.release();
  });
}

void deallocate(PyObject* self) {
  DistObjectParts& parts = parts_of(self);
  Engine::drop_on_pe_thread(std::shared_ptr<pgas::ObjectName>(std::move(parts.name)));
  parts.~DistObjectParts();
  free_object(self);
}

// --- Fetching

bool invoke_read(pgas::RpcCall& call, Pup& p) {
  try {
    ObjectNumber where;
    p | where;
    auto* const object = static_cast<PyObject*>(pgas::rpc_detail::find_object(call.runtime(), where));
    if (object == nullptr) {
      call.missing = where;
      return false;
    }
    const Ref value = parts_of(object).value;
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
    const pgas::Team& team = parts.name->team();
    const int rank = rank_from(team, number);
    Encoder encoder;
    encoder.number(parts.name->where());
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
  auto* const object =
      static_cast<PyObject*>(pgas::rpc_detail::find_object(Engine::current().runtime(), where));
  if (object != nullptr) return Ref::borrow(object);
  throw base::Error(base::StatusCode::kNotFound,
                    "a distributed object arrived inside another value, and this PE has not made its own "
                    "yet; pass it as an argument "
                    "of its own in a call, which then waits");
}

PyObject* get_value(PyObject* self, void*) { return Py_NewRef(parts_of(self).value.get()); }
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
    return make_team(*parts.engine, parts.name->team()).release();
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
PyType_Spec spec = {"weft.pgas.DistObject", sizeof(DistObjectObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

void init_dist_object(PyObject* module) {
  dist_object_type = add_type(module, spec);
  add_encoding(dist_object_type, &encode);
  add_decoding(ValueTag::kDistObject, &decode);
}

bool is_dist_object(PyObject* object) { return Py_TYPE(object) == dist_object_type; }

const pgas::ObjectName& dist_object_name(PyObject* object) { return *open_parts_of(object).name; }

}  // namespace weft::python
