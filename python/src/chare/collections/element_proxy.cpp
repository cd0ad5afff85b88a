#include "chare/collections/element_proxy.h"

#include <new>
#include <string_view>

#include "weft/base/error.h"

#include "await/future.h"
#include "base/format.h"
#include "chare/calls/entry_method.h"
#include "chare/classes/indices.h"
#include "chare/collections/aggregated_proxy.h"
#include "chare/collections/collection_proxy.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/forms.h"
#include "support/errors.h"

namespace weft::python {

namespace {

struct ElementObject {
  PyObject_HEAD ProxyCore core;
  std::uint64_t index;
  std::int32_t priority;
};

PyTypeObject* element_type = nullptr;

ElementObject* as_element(PyObject* object) { return reinterpret_cast<ElementObject*>(object); }

void deallocate(PyObject* self) {
  as_element(self)->core.~ProxyCore();
  free_object(self);
}

PyObject* element_attribute(PyObject* self, PyObject* name) {
  ElementObject* element = as_element(self);
  int method = element->core.info->method(name);
  if (method < 0) return no_method(self, element->core, name);
  return guarded(
      [&] { return make_entry_method(element->core, element->index, method, element->priority).release(); });
}

PyObject* names_of(PyObject* self, PyObject*) { return list_names(self, {&as_element(self)->core, 1}); }

PyObject* get_index(PyObject* self, void*) {
  return guarded([self]() -> PyObject* {
    ElementObject* element = as_element(self);
    element->core.engine->expect_open_on_any_thread();
    return element->core.info->index_object(element->core.collection->shape().index(element->index))
        .release();
  });
}

PyObject* get_collection(PyObject* self, void*) {
  return guarded([self]() -> PyObject* {
    ElementObject* element = as_element(self);
    element->core.engine->expect_open_on_any_thread();
    return make_collection_proxy(*element->core.collection, *element->core.info).release();
  });
}

PyObject* await_created(PyObject* self) {
  return guarded([self]() -> PyObject* { return created(as_element(self)->core, self).release(); });
}

PyObject* with_priority(PyObject* self, PyObject* priority) {
  return guarded([&]() -> PyObject* {
    ElementObject* element = as_element(self);
    element->core.engine->expect_open_on_any_thread();
    return make_element_proxy(element->core, element->index, coordinate(priority)).release();
  });
}

PyObject* aggregated(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    const ElementObject& element = *as_element(self);
    element.core.engine->expect_open_on_any_thread();
    return make_aggregated_proxy(element.core, element.index).release();
  });
}

// The awaitable of an operation on the element. `what`: a noun, for the error of one that fails and is not awaited.
template <class Start>
PyObject* operate(PyObject* self, std::string_view what, Start start) {
  return guarded([&]() -> PyObject* {
    const ElementObject* element = as_element(self);
    const ProxyCore& core = element->core;
    core.engine->expect_open();
    Ref future = wrap_future(*core.engine, start(core.engine->chares(), *core.collection, element->index));
    future_state(future.get())
        ->end_job_if_unobserved(
            base::format("the {} of {}", what, core.collection->element_name(element->index)));
    return future.release();
  });
}

PyObject* remove(PyObject* self, PyObject*) {
  return operate(self, "removal", [](chare::Chares& chares, chare::Collection& collection, auto index) {
    return chares.remove(collection, index);
  });
}

PyObject* revive(PyObject* self, PyObject*) {
  return operate(self, "revival", [](chare::Chares& chares, chare::Collection& collection, auto index) {
    return chares.revive(collection, index);
  });
}

PyObject* element_text(PyObject* self) {
  return guarded([self]() -> PyObject* {
    ElementObject* element = as_element(self);
    element->core.engine->expect_open_on_any_thread();
    Ref index = element->core.info->index_object(element->core.collection->shape().index(element->index));
    return make_text(
               base::format("<weft.ElementProxy {}[{}]>", element->core.info->name(), readable(index.get())))
        .release();
  });
}

PyObject* compare(PyObject* a, PyObject* b, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || !is_element_proxy(b)) Py_RETURN_NOTIMPLEMENTED;
  bool equal = as_element(a)->core.collection == as_element(b)->core.collection &&
               as_element(a)->index == as_element(b)->index;
  return PyBool_FromLong(equal == (operation == Py_EQ));
}

Py_hash_t element_hash(PyObject* self) {
  return hash_of(as_element(self)->core, as_element(self)->index + 1);
}

bool encode(Encoder& encoder, PyObject* proxy) {
  encode_core(encoder, ValueTag::kElement, as_element(proxy)->core);
  encoder.number(as_element(proxy)->index);
  encoder.number(as_element(proxy)->priority);
  return true;
}

Ref decode(Decoder& decoder) {
  ProxyCore core = decode_core(decoder);
  auto index = decoder.number<std::uint64_t>();
  auto priority = decoder.number<std::int32_t>();
  if (index >= core.collection->shape().size()) {
    throw base::Error(base::StatusCode::kCorrupt,
                      "a proxy arrived damaged: its index is outside its collection");
  }
  return make_element_proxy(core, index, priority);
}

PyGetSetDef element_properties[] = {
    {"index", &get_index, nullptr,
     "The element's index: an int, a tuple for several dimensions, or an ``index_type`` of the class.",
     nullptr},
    {"collection", &get_collection, nullptr, "The proxy of the collection that the element is in.", nullptr},
    {},
};
PyMethodDef element_methods[] = {
    {"aggregated", &aggregated, METH_NOARGS, R"(aggregated($self, /)
--

The chare for many small calls without results, which travel in bundles with those to other chares of its PE.

Returns:
    weft.AggregatedProxy. Its calls have no priority.

Raises:
    weft.Error: no job is running.)"},
    {"with_priority", &with_priority, METH_O, R"(with_priority($self, priority, /)
--

A proxy of the same element whose messages have a priority: lower numbers run first, and 0 is that of other
proxies.

Args:
    priority: an int of 32 bits.)"},
    {"_revive", &revive, METH_NOARGS, "See weft.revive."},
    {"remove", &remove, METH_NOARGS, R"(remove($self, /)
--

Removes this chare from its sparse array. Any PE may call it; it returns at once.

The chare is freed when its running and waiting entry methods have ended. Await calls to it before: a call that comes later
finds no element.

Returns:
    weft.Future: set to None when the chare is gone, and can be inserted again. It raises weft.Error if there is no such chare,
    or if it has channels. If the future is dropped then and was never awaited, the job ends.

Raises:
    weft.Error: the collection is no sparse array, it has been destroyed, or no job is running.)"},
    {"__dir__", &names_of, METH_NOARGS, nullptr},
    {"__class_getitem__", &Py_GenericAlias, METH_O | METH_CLASS, nullptr},
    {"__reduce__", &reduce_proxy, METH_NOARGS, nullptr},
    {},
};
PyType_Slot element_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_getattro, reinterpret_cast<void*>(&element_attribute)},
    {Py_tp_setattro, reinterpret_cast<void*>(&refuse_assignment)},
    {Py_tp_repr, reinterpret_cast<void*>(&element_text)},
    {Py_tp_richcompare, reinterpret_cast<void*>(&compare)},
    {Py_am_await, reinterpret_cast<void*>(&await_created)},
    {Py_tp_hash, reinterpret_cast<void*>(&element_hash)},
    {Py_tp_getset, element_properties},
    {Py_tp_methods, element_methods},
    {Py_tp_doc, const_cast<char*>(R"(Names one chare from anywhere; a cheap value that travels in messages.

``proxy.method(args)`` calls an entry method and returns at once. ``await proxy.method.call(args)`` gives what it
returns, or raises what it raises.)")},
    {0, nullptr},
};
PyType_Spec element_spec = {"weft.ElementProxy", sizeof(ElementObject), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, element_slots};

}  // namespace

Ref make_element_proxy(const ProxyCore& core, std::uint64_t index, std::int32_t priority) {
  Ref object = checked(PyType_GenericAlloc(element_type, 0));
  new (&as_element(object.get())->core) ProxyCore(core);
  as_element(object.get())->index = index;
  as_element(object.get())->priority = priority;
  return object;
}

bool is_element_proxy(PyObject* object) { return Py_TYPE(object) == element_type; }

const ProxyCore& element_core(PyObject* proxy) { return as_element(proxy)->core; }

ElementName element_of(PyObject* proxy, const char* use) {
  if (!is_element_proxy(proxy)) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("{} takes the proxy of one chare, such as self.proxy[i], not a {}", use,
                                   type_name_of(proxy)));
  }
  as_element(proxy)->core.engine->expect_open();
  return {as_element(proxy)->core.collection, as_element(proxy)->index};
}

void init_element_proxy(PyObject* module) {
  element_type = add_type(module, element_spec);
  reserve_names_of(element_type);
  add_encoding(element_type, &encode);
  add_decoding(ValueTag::kElement, &decode);
}

}  // namespace weft::python
