#include "chare/chare_type.h"

#include <optional>

#include "weft/base/error.h"

#include "base/format.h"
#include "chare/classes/chare.h"
#include "chare/classes/classes.h"
#include "chare/classes/indices.h"
#include "chare/collections/collection_proxy.h"
#include "chare/device_work.h"
#include "chare/reduction.h"
#include "support/errors.h"

namespace weft::python {

namespace {

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&] { return PyChare::make_object(type); });
}

PyObject* get_index(PyObject* self, void*) {
  return guarded([self] {
    const PyChare& chare = chare_for_reading(self);
    return chare.info().index_object(chare.index()).release();
  });
}

PyObject* get_proxy(PyObject* self, void*) {
  return guarded([self] {
    PyChare& chare = chare_of(self);
    return make_collection_proxy(chare.collection(), chare.info()).release();
  });
}

PyObject* contribute(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("Chare.contribute", {"value", "reducer", "target", "section"}, 0, values, count,
                        names);
    if (arguments[2] == nullptr) {
      PyErr_SetString(PyExc_TypeError,
                      "Chare.contribute needs the argument 'target': contribute(value, reducer, target), or "
                      "contribute(target=target) without a value");
      throw PythonError();
    }
    contribute_to_target(chare_of(self), arguments[0], arguments[1], arguments[2], arguments[3]);
    Py_RETURN_NONE;
  });
}

PyObject* allreduce(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("Chare.allreduce", {"value", "reducer"}, 0, values, count, names);
    return contribute_to_all(chare_of(self), arguments[0], arguments[1]).release();
  });
}

PyObject* migrate(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("Chare.migrate", {"to_pe"}, 1, values, count, names);
    chare_of(self).migrate(coordinate(arguments[0]));
    Py_RETURN_NONE;
  });
}

PyObject* migrated(PyObject*, PyObject*) { Py_RETURN_NONE; }
PyObject* created(PyObject*, PyObject*) { Py_RETURN_NONE; }

PyObject* remove_self(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    chare_of(self).remove_self();
    Py_RETURN_NONE;
  });
}

PyObject* at_sync(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    chare_of(self).at_sync();
    Py_RETURN_NONE;
  });
}

PyObject* resume_from_sync(PyObject*, PyObject*) { Py_RETURN_NONE; }

PyObject* set_load_s(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("Chare.set_load_s", {"load_s"}, 1, values, count, names);
    std::optional<double> load_s;
    if (arguments[0] != Py_None) {
      load_s = PyFloat_AsDouble(arguments[0]);
      if (PyErr_Occurred() != nullptr) throw PythonError();
    }
    chare_of(self).set_load_s(load_s);
    Py_RETURN_NONE;
  });
}

PyObject* device_work(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    Arguments arguments("Chare.device_work", {"stream", "kind"}, 0, values, count, names);
    return make_device_work(chare_of(self), arguments[0], arguments[1]).release();
  });
}

PyObject* get_device_load(PyObject* self, void*) {
  return guarded([self] { return PyFloat_FromDouble(chare_of(self).device_load_s()); });
}

PyObject* get_load(PyObject* self, void*) {
  return guarded([self] { return PyFloat_FromDouble(chare_of(self).load_s()); });
}

PyObject* get_pinned(PyObject* self, void*) {
  return guarded([self] { return PyBool_FromLong(chare_of(self).is_pinned() ? 1 : 0); });
}

int set_pinned(PyObject* self, PyObject* value, void*) {
  const bool done = guarded([&]() -> PyObject* {
                      if (value == nullptr || PyBool_Check(value) == 0) {
                        throw base::Error(base::StatusCode::kInvalidArgument, "pinned is True or False");
                      }
                      chare_of(self).set_pinned(value == Py_True);
                      return Py_None;
                    }) != nullptr;
  return done ? 0 : -1;
}

// Runs for each class that is derived.
PyObject* init_subclass(PyObject* type, PyObject* arguments, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    expect_free_names(type);
    auto* const base = reinterpret_cast<PyObject*>(chare_type());
    auto* const super_type = reinterpret_cast<PyObject*>(&PySuper_Type);
    const Ref super = checked(PyObject_CallFunctionObjArgs(super_type, base, type, nullptr));
    return PyObject_Call(attribute(super.get(), "__init_subclass__").get(), arguments, keywords);
  });
}

PyObject* no_pickle(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("a chare ({}) does not travel in messages; send its proxy, self.proxy[self.index]",
                     chare_of(self).where()));
  });
}

PyGetSetDef properties[] = {
    {"index", &get_index, nullptr,
     "This chare's index in its collection: an int, or a tuple for 2 to 6 dimensions; a group's is the PE.",
     nullptr},
    {"proxy", &get_proxy, nullptr, "The proxy of the collection that this chare is in.", nullptr},
    {"pinned", &get_pinned, &set_pinned,
     "Whether this chare stays on its PE: migrate() then raises weft.Error, and load balancing does not move "
     "it.",
     nullptr},
    {"load_s", &get_load, nullptr,
     "The seconds that the PE has worked for this chare since the last step of load balancing, or what "
     "set_load_s() has\n"
     "set, a float. The running method counts when it returns or awaits. 0 unless the class overrides\n"
     "resume_from_sync().",
     nullptr},
    {"device_load_s", &get_device_load, nullptr,
     "The seconds that devices have worked for this chare since the last step of load balancing, a float:\n"
     "the bodies of device_work(), as far as devices are done with them. Never what set_load_s() has set.",
     nullptr},
    {},
};

PyMethodDef methods[] = {
    {"contribute", as_method(&contribute), METH_FASTCALL | METH_KEYWORDS,
     R"(contribute($self, value=None, reducer=None, target=..., section=None)
--

Contributes to the collection's next reduction; every element must, in the same order. Does not block.

The result goes to `target`. NumPy arrays, all of the same shape, are reduced element by element. The value is
copied before contribute returns.

``self.contribute(target=target)`` has no value and says only that this chare is there: when every element has
contributed, a target method runs without an argument, or a target future gets None.

Args:
    value: this chare's part; None without a reducer.
    reducer: a weft.Reducer, the same for every element. None: nothing is reduced, for every element.
    target: a weft.Future, or an entry method of an element, of a whole collection or of a section (``proxy[i].method``,
        ``proxy.method`` or ``section.method``, not called), whose only argument the result is. The target of any element is
        used.
    section: a weft.Section or weft.CombinedSection of which this chare is a member: every member contributes, and only they.
        Members number their reductions over each section on its own. Gathered values are in the order of the section. None:
        the whole collection.

Raises:
    weft.Error: this chare is no member of the section; not a reducer or target, a value without a reducer, the value cannot travel, or the job has ended.)"},
    {"allreduce", as_method(&allreduce), METH_FASTCALL | METH_KEYWORDS,
     R"(allreduce($self, value=None, reducer=None)
--

As contribute, with the result for every element: ``total = await self.allreduce(x, weft.Reducer.sum)``.

``await self.allreduce()`` is a barrier: it returns when every element has called it.

Args:
    value: this chare's part; None without a reducer.
    reducer: a weft.Reducer, the same for every element. None: nothing is reduced, for every element.

Returns:
    a weft.Future of the result.

Raises:
    weft.Error: not a reducer, a value without a reducer, the value cannot travel, or the job has ended.)"},
    {"migrate", as_method(&migrate), METH_FASTCALL | METH_KEYWORDS, R"(migrate($self, to_pe)
--

Moves this chare to another PE when the running entry method has returned. Does not block.

The state travels as pickle takes it: ``__getstate__()`` and ``__setstate__()`` if the class has them, else all
attributes. NumPy arrays are not copied into the pickle; device arrays go from device to device. ``__init__`` does not
run on the new PE, ``migrated()`` does. Proxies, calls under way, broadcasts and reductions follow the chare. The last
call before the move counts; nothing happens if the chare is on that PE already. An entry method that is called
meanwhile and waits delays the move to its end. So do calls whose large arguments have not landed, and sends and
receives of its channels.

Args:
    to_pe: the number of the PE.

Raises:
    weft.Error: there is no such PE, or the chare cannot move now: one of its entry methods waits (also the caller, if
        it is ``async def``), or it is pinned. A state that cannot be pickled ends the job.
    weft.LostPE: that PE is lost. The chare stays if the PE is lost before the move.)"},
    {"migrated", &migrated, METH_NOARGS, R"(migrated($self)
--

Runs on the new PE after a move, before any call that has waited. Override it; it cannot be ``async def``.)"},
    {"created", &created, METH_NOARGS, R"(created($self)
--

Runs once, right after the constructors of this PE, before any other method of the chare. Override it; it may be ``async def``.
It runs after an ``async def __init__`` has ended.

Calls to the chare wait until it has ended, and so does ``await weft.Array(...)``, or ``insert`` of a sparse array. An exception
fails the creation as one of ``__init__`` does. It does not run after a move or when a checkpoint is restored.)"},
    {"remove_self", &remove_self, METH_NOARGS, R"(remove_self($self)
--

Removes this chare from its sparse array when the running entry method has returned. Does not block.

If other entry methods of the chare wait, it is removed when they have ended. Calls that come later find no element. To wait
until the chare is gone, call ``await self.proxy[index].remove()`` from another chare. If the chare has channels then, the job
ends.

Raises:
    weft.Error: the collection is no sparse array, or has been destroyed.)"},
    {"at_sync", &at_sync, METH_NOARGS, R"(at_sync($self)
--

Says that this chare has reached a sync point. Does not block.

When all chares of the collection have, load balancing decides from the times of their entry methods since the last step,
chares move, and then ``resume_from_sync()`` runs once on each chare, on its new PE, after ``migrated()``. Calls that
arrive meanwhile run as usual. ``weft run --lb NAME`` chooses the strategy.

A chare stays if it is pinned or one of a group, or if it has channels or a method of it waits when the caller has
returned. If a move of its own is pending, the chare reaches the sync point when it has moved.

Raises:
    weft.Error: the class does not override ``resume_from_sync``, the chare waits at the sync point already, it is called
        in ``__init__``, or the collection has been destroyed.)"},
    {"resume_from_sync", &resume_from_sync, METH_NOARGS, R"(resume_from_sync($self)
--

Runs after a step of load balancing. Override it; it cannot be ``async def``. A class that does takes part in load
balancing: the times of its entry methods are measured. An exception ends the job.)"},
    {"set_load_s", as_method(&set_load_s), METH_FASTCALL | METH_KEYWORDS, R"(set_load_s($self, load_s)
--

Sets the load that the following steps of load balancing use in place of the measured one. Does not block.

Args:
    load_s: seconds, 0 to 1e12; None for the measured load again. It travels with the chare.

Raises:
    weft.Error: another number, or the class does not override ``resume_from_sync``.
    TypeError: not a number.)"},
    {"device_work", as_method(&device_work), METH_FASTCALL | METH_KEYWORDS,
     R"(device_work($self, stream=None, kind=None)
--

A context manager: what its body queues on `stream` is device work of this chare. Does not block.

The device measures the time from the begin of the body to its end, for load balancing by device time. What other code
queues on the stream meanwhile counts too. Bodies of one chare on one stream may overlap, also over an await, and then count
once. It does nothing if the class takes no part in load balancing.

Args:
    stream: a weft.Stream, the stream of another library (CuPy, PyTorch, Numba, anything with ``__cuda_stream__``), or the
        handle of a CUDA stream. None: CUDA's legacy default stream, where CuPy and PyTorch work if no stream is current;
        without a GPU, the stream of weft.emulated.launch without a stream.
    kind: the device of the stream, such as ``"cuda:1"``, if the stream does not name it; by default this PE's GPU, or its
        emulated device if there is no GPU.

Raises:
    weft.Error: not a stream, or no such device in this process.)"},
    {"__init_subclass__", as_method(&init_subclass), METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "Refuses a class that uses a name of the runtime's, such as index or migrate, for something of its "
     "own."},
    {"__reduce__", &no_pickle, METH_NOARGS, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&free_object)},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>(R"(Base class of a program's objects.

Every public method of a subclass is an entry method: ``proxy.method(args)`` calls it asynchronously from any PE.
Entry methods of a chare run one after the other, ``async def`` ones up to each await, each in a context
(contextvars) of its own. A class that defines a method with a name of this class or of proxies, such as migrate or insert, raises
weft.Error; created, migrated and resume_from_sync are there to be overridden. Chares are made in collections (weft.Array, weft.Group, weft.Singleton). ``self.index`` and ``self.proxy`` work in ``__init__``
already. If ``__init__`` is ``async def``, calls to the chare wait until it has ended, as for ``created()``.)")},
    {0, nullptr},
};

}  // namespace

void init_chare(PyObject* module) {
  PyType_Spec spec = {"weft.Chare", static_cast<int>(PyChare::object_size_bytes()), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyTypeObject* const type = add_type(module, spec);
  for (const auto& [name, value] :
       {std::pair("balance_periodically", Py_False), std::pair("index_type", Py_None)}) {
    checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), name, value));
  }
  set_chare_type(type);
  init_device_work(module);
}

}  // namespace weft::python
