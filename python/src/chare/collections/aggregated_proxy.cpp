#include "chare/collections/aggregated_proxy.h"

#include <structmember.h>

#include <cstddef>
#include <new>

#include "weft/base/error.h"
#include "weft/chare/bundles/aggregated.h"

#include "base/format.h"
#include "chare/calls/calls.h"
#include "chare/calls/entry_method.h"
#include "chare/calls/method_calls.h"
#include "chare/calls/sent.h"
#include "chare/classes/indices.h"
#include "codec/encoder.h"
#include "support/errors.h"

namespace weft::python {

namespace {

struct AggregatedObject {
  PyObject_HEAD ProxyCore core;
  std::uint64_t index;
  bool to_all;  // of a collection: a method takes the index first
};

PyTypeObject* proxy_type = nullptr;
PyTypeObject* method_type = nullptr;

AggregatedObject* as_aggregated(PyObject* object) { return reinterpret_cast<AggregatedObject*>(object); }

// --- Methods. Their objects are those of weft.EntryMethod.

// Any call, as through the proxy itself: on another thread, or of a method that chooses where its arguments land.
Ref call_alone(const EntryMethodObject& entry, std::uint64_t index, PyObject* const* arguments,
               Py_ssize_t count, PyObject* keyword_names) {
  const Ref method = make_entry_method(entry.core, index, entry.method, 0);
  return checked(
      PyObject_Vectorcall(method.get(), arguments, static_cast<std::size_t>(count), keyword_names));
}

PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t flagged_count,
               PyObject* keyword_names) {
  return guarded([&]() -> PyObject* {
    const EntryMethodObject& entry = *as_method_object(self);
    Engine& engine = *entry.core.engine;
    engine.expect_open_on_any_thread();
    Py_ssize_t count = PyVectorcall_NARGS(flagged_count);
    std::uint64_t index = entry.index;
    if (entry.to_all) {
      if (count == 0) {
        PyErr_Format(PyExc_TypeError,
                     "an aggregated call of %s.%U takes the index of a chare first, then the arguments",
                     entry.core.info->name().c_str(), entry.core.info->method_name(entry.method));
        throw PythonError();
      }
      index = linear_index(entry.core.collection->shape(), *arguments, entry.core.info->name());
      ++arguments;
      --count;
    }
    if (!engine.is_open_here() || has_post_entry(entry)) [[unlikely]]
      return call_alone(entry, index, arguments, count, keyword_names).release();
    Encoder encoder(OutOfBand::kLarge);
    encode_call(entry, encoder, arguments, count, keyword_names);
    if (!encoder.attached().empty() || encoder.size_bytes() > chare::Bundles::kMostArgumentBytes)
        [[unlikely]] {
      const Ref alone = make_entry_method(entry.core, index, entry.method, 0);
      return send_encoded(*as_method_object(alone.get()), encoder).release();
    }
    chare::Bundles& bundles = engine.chares().bundles();
    chare::Collection& collection = *entry.core.collection;
    const auto is_here = chare::Bundles::IsHere{collection.find(index) != nullptr};
    const chare::Bundles::Place place =
        bundles.place(collection, index, is_here, python_entry(), encoder.size_bytes());
    encoder.copy_to(place.arguments);
    bundles.commit(place);
    if (engine.runtime().exiting()) [[unlikely]]
      raise_if_interrupted(entry);
    // An await waits for the PE of the chare, or for the one in between.
    const bool has_room = engine.runtime().has_room(place.pe);
    return make_sent(engine, has_room ? bundles.first_pe_to(place.pe) : place.pe).release();
  });
}

PyObject* method_text(PyObject* self) {
  return guarded([self]() -> PyObject* {
    as_method_object(self)->core.engine->expect_open_on_any_thread();
    return make_text(base::format("<aggregated weft.EntryMethod {}>", name_of(*as_method_object(self))))
        .release();
  });
}

PyObject* method_attribute(PyObject* self, PyObject* name) {
  const std::string text = readable(name);
  if (text != "call" && text != "send" && text != "bind") return PyObject_GenericGetAttr(self, name);
  PyErr_Format(PyExc_AttributeError,
               "an aggregated call has no '%U': nothing comes back from it. Use proxy.%U.%U, of the proxy "
               "itself",
               name, as_method_object(self)->core.info->method_name(as_method_object(self)->method), name);
  return nullptr;
}

void deallocate_method(PyObject* self) {
  as_method_object(self)->core.~ProxyCore();
  free_object(self);
}

Ref make_method(const AggregatedObject& proxy, int method) {
  Ref object = checked(PyType_GenericAlloc(method_type, 0));
  EntryMethodObject& entry = *as_method_object(object.get());
  entry.vectorcall = &call;
  new (&entry.core) ProxyCore(proxy.core);
  new (&entry.bound) Ref();
  new (&entry.section) chare::SectionMembers::Pointer();
  new (&entry.combined) std::shared_ptr<const CombinedMethod>();
  entry.index = proxy.index;
  entry.method = static_cast<std::uint16_t>(method);
  entry.to_all = proxy.to_all;
  return object;
}

// --- Proxies

PyObject* attribute(PyObject* self, PyObject* name) {
  const AggregatedObject& proxy = *as_aggregated(self);
  const int method = proxy.core.info->method(name);
  // Its own function wins: an entry method of that name is called through the proxy itself.
  if (method < 0 || PyUnicode_CompareWithASCIIString(name, "flush") == 0)
    return no_method(self, proxy.core, name);
  return guarded([&] { return make_method(proxy, method).release(); });
}

PyObject* subscript(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    const AggregatedObject& proxy = *as_aggregated(self);
    proxy.core.engine->expect_open_on_any_thread();
    if (!proxy.to_all) {
      PyErr_SetString(PyExc_TypeError, "this aggregated proxy is of one chare, which has no index");
      throw PythonError();
    }
    return make_aggregated_proxy(proxy.core,
                                 linear_index(proxy.core.collection->shape(), index, proxy.core.info->name()))
        .release();
  });
}

PyObject* flush(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    Engine& engine = *as_aggregated(self)->core.engine;
    engine.expect_open();
    engine.chares().bundles().flush();
    Py_RETURN_NONE;
  });
}

PyObject* names_of(PyObject* self, PyObject*) { return list_names(self, {&as_aggregated(self)->core, 1}); }

PyObject* text(PyObject* self) {
  return guarded([self]() -> PyObject* {
    const AggregatedObject& proxy = *as_aggregated(self);
    proxy.core.engine->expect_open_on_any_thread();
    const std::string name =
        proxy.to_all ? "of " + proxy.core.info->name() : proxy.core.collection->element_name(proxy.index);
    return make_text(base::format("<weft.AggregatedProxy {}>", name)).release();
  });
}

void deallocate(PyObject* self) {
  as_aggregated(self)->core.~ProxyCore();
  free_object(self);
}

PyMethodDef methods[] = {
    {"flush", &flush, METH_NOARGS, R"(flush($self, /)
--

Sends the open bundles of this PE, also those with calls to other collections.

It returns at once, unless too much is on its way to a PE: then it waits, as a call does.

Raises:
    weft.Error: the receiver has too much to handle and waiting cannot help, or no job is running on this thread.)"},
    {"__dir__", &names_of, METH_NOARGS, nullptr},
    {"__class_getitem__", &Py_GenericAlias, METH_O | METH_CLASS, nullptr},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_getattro, reinterpret_cast<void*>(&attribute)},
    {Py_tp_setattro, reinterpret_cast<void*>(&refuse_assignment)},
    {Py_tp_repr, reinterpret_cast<void*>(&text)},
    {Py_mp_subscript, reinterpret_cast<void*>(&subscript)},
    {Py_tp_methods, methods},
    {Py_tp_doc,
     const_cast<char*>(
         R"(A collection, or one chare, for many small calls without results; ``proxy.aggregated()`` makes it.

``many[i].method(args)`` calls an entry method of a chare, and so does ``many.method(i, args)``, which is faster:
``add = many.add`` can be kept. The calls travel in bundles. A bundle is sent when it is full, when its PE has nothing else to do, and on
``many.flush()``. The calls of one PE to one chare run in the order in which they were made, as long as the chare stays where it is.

A call with more than 1 KiB of arguments, with arguments that are sent in place, or on another thread, travels alone, and others may
overtake it. Nothing comes back from a call: an exception that the method raises ends the job. ``await many.method(i, args)`` waits
while too much is on its way to the PE.

It does not travel in messages: send the proxy that made it.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.AggregatedProxy", sizeof(AggregatedObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

PyMemberDef method_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(EntryMethodObject, vectorcall), READONLY, nullptr},
    {},
};
PyType_Slot method_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate_method)},
    {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
    {Py_tp_getattro, reinterpret_cast<void*>(&method_attribute)},
    {Py_tp_members, method_members},
    {Py_tp_repr, reinterpret_cast<void*>(&method_text)},
    {0, nullptr},
};
PyType_Spec method_spec = {
    "weft._AggregatedMethod", sizeof(EntryMethodObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, method_slots};

// For tests, on all PEs before the first aggregated call.
PyObject* aggregate_through_grid(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    Engine::current().chares().bundles().set_ways(chare::Bundles::Ways::kGrid);
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"_aggregate_through_grid", &aggregate_through_grid, METH_NOARGS, nullptr},
    {},
};

}  // namespace

Ref make_aggregated_proxy(const ProxyCore& core, std::optional<std::uint64_t> index) {
  Ref object = checked(PyType_GenericAlloc(proxy_type, 0));
  new (&as_aggregated(object.get())->core) ProxyCore(core);
  as_aggregated(object.get())->index = index.value_or(0);
  as_aggregated(object.get())->to_all = !index.has_value();
  return object;
}

void init_aggregated_proxy(PyObject* module) {
  proxy_type = add_type(module, spec);
  method_type = add_type(module, method_spec);
  add_functions(module, functions);
}

}  // namespace weft::python
