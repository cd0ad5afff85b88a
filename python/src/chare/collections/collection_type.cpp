#include "chare/collections/collection_type.h"

#include <optional>

#include "weft/base/error.h"

#include "await/future.h"
#include "base/format.h"
#include "chare/calls/calls.h"
#include "chare/calls/entry_method.h"
#include "chare/classes/indices.h"
#include "chare/collections/aggregated_proxy.h"
#include "chare/collections/collection_proxy.h"
#include "chare/collections/constructors.h"
#include "chare/collections/element_proxy.h"
#include "chare/collections/section.h"
#include "support/errors.h"

namespace weft::python {

namespace {

PyObject* subscript(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    const ProxyCore& core = collection_core(self);
    core.engine->expect_open_on_any_thread();
    if (PyLong_CheckExact(index) == 0 && names_section(index))
      return make_section(core, members_of_slices(core, index)).release();
    return make_element_proxy(core, linear_index(core.collection->shape(), index, core.info->name()))
        .release();
  });
}

PyObject* get_shape(PyObject* self, void*) {
  return guarded([self]() -> PyObject* {
    const ProxyCore& core = collection_core(self);
    core.engine->expect_open_on_any_thread();
    return shape_object(core.collection->shape()).release();
  });
}

Py_ssize_t length(PyObject* self) {
  try {
    const ProxyCore& core = collection_core(self);
    core.engine->expect_open_on_any_thread();
    return static_cast<Py_ssize_t>(core.collection->num_elements());
  } catch (...) {
    set_python_error();
    return -1;
  }
}

PyObject* iterate(PyObject* self) {
  return guarded([self]() -> PyObject* {
    const ProxyCore& core = collection_core(self);
    core.engine->expect_open_on_any_thread();
    if (core.collection->is_sparse()) {
      throw base::Error(
          base::StatusCode::kUnsupported,
          base::format(
              "{} is a sparse array, and no PE knows the indices of all its elements: it cannot be iterated "
              "over. Call a method of all elements, which gives its results in index order",
              core.info->name()));
    }
    std::uint64_t size = core.collection->shape().size();
    Ref elements = checked(PyList_New(static_cast<Py_ssize_t>(size)));
    for (std::uint64_t i = 0; i < size; ++i) {
      PyList_SET_ITEM(elements.get(), static_cast<Py_ssize_t>(i), make_element_proxy(core, i).release());
    }
    return PyObject_GetIter(elements.get());
  });
}

// A sparse array may be empty, and is a proxy all the same.
int is_true(PyObject*) { return 1; }

PyObject* insert(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const ProxyCore& core = collection_core(self);
    core.engine->expect_open();
    const Py_ssize_t num_names = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    const bool only_pe = num_names == 0 || (num_names == 1 && PyUnicode_CompareWithASCIIString(
                                                                  PyTuple_GET_ITEM(names, 0), "pe") == 0);
    if (count < 1 || !only_pe) {
      PyErr_SetString(PyExc_TypeError,
                      "insert takes an index, the constructor's arguments by position, and pe=None");
      throw PythonError();
    }
    chare::Collection& collection = *core.collection;
    const std::uint64_t index = linear_index(collection.shape(), values[0], core.info->name());
    int pe = -1;
    if (num_names == 1 && values[count] != Py_None) {
      pe = coordinate(values[count]);
      if (pe < 0) {
        throw base::Error(base::StatusCode::kOutOfRange,
                          base::format("there is no PE {}; PEs are numbered from 0", pe));
      }
    }
    const Ref arguments = checked(PyTuple_New(count - 1));
    core.info->constructor().expect(count - 1, nullptr);
    for (Py_ssize_t i = 1; i < count; ++i) PyTuple_SET_ITEM(arguments.get(), i - 1, Py_NewRef(values[i]));
    Ref future = wrap_future(*core.engine,
                             core.engine->chares().insert(collection, index, pe, python_constructor(),
                                                          encoded_constructor(*core.info, arguments.get())));
    future_state(future.get())
        ->end_job_if_unobserved(base::format("the insertion of {}", collection.element_name(index)));
    return future.release();
  });
}

PyObject* done_inserting(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    const ProxyCore& core = collection_core(self);
    core.engine->expect_open();
    Ref future = wrap_future(*core.engine, core.engine->chares().done_inserting(*core.collection));
    future_state(future.get())
        ->end_job_if_unobserved(base::format("done_inserting() of {}", core.info->name()));
    return future.release();
  });
}

PyObject* section(PyObject* self, PyObject* which) {
  return guarded([&]() -> PyObject* {
    const ProxyCore& core = collection_core(self);
    core.engine->expect_open();
    return make_section(core, members_of(core, which)).release();
  });
}

PyObject* split(PyObject* self, PyObject* parts) {
  return guarded([&]() -> PyObject* {
    const ProxyCore& core = collection_core(self);
    core.engine->expect_open();
    return split_section(core, *all_members(core), parts).release();
  });
}

PyObject* aggregated(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    const ProxyCore& core = collection_core(self);
    core.engine->expect_open_on_any_thread();
    return make_aggregated_proxy(core, std::nullopt).release();
  });
}

PyObject* destroy(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    const ProxyCore& core = collection_core(self);
    core.engine->expect_open();
    return wrap_future(*core.engine, core.engine->chares().destroy(*core.collection)).release();
  });
}

PyObject* await_created(PyObject* self) {
  return guarded([self]() -> PyObject* { return created(collection_core(self), self).release(); });
}

PyObject* created_future(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    const ProxyCore& core = collection_core(self);
    Ref future = created(core, self);
    future_state(future.get())->end_job_if_unobserved(base::format("the creation of {}", core.info->name()));
    return future.release();
  });
}

PyObject* collection_attribute(PyObject* self, PyObject* name) {
  const ProxyCore& core = collection_core(self);
  int method = core.info->method(name);
  if (method < 0) return no_method(self, core, name);
  return guarded([&] { return make_entry_method(core, std::nullopt, method, 0).release(); });
}

PyObject* names_of(PyObject* self, PyObject*) { return list_names(self, {&collection_core(self), 1}); }

PyObject* collection_text(PyObject* self) {
  const ProxyCore& core = collection_core(self);
  return PyUnicode_FromFormat("<%s of %s>", type_name_of(self).c_str(), core.info->name().c_str());
}

PyObject* compare(PyObject* a, PyObject* b, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || !is_collection_proxy(b)) Py_RETURN_NOTIMPLEMENTED;
  bool equal = collection_core(a).collection == collection_core(b).collection;
  return PyBool_FromLong(equal == (operation == Py_EQ));
}

Py_hash_t collection_hash(PyObject* self) { return hash_of(collection_core(self), 0); }

PyGetSetDef collection_properties[] = {
    {"shape", &get_shape, nullptr, "The extents, a tuple; of a sparse array the bounds of its indices.",
     nullptr},
    {},
};
PyMethodDef collection_methods[] = {
    {"aggregated", &aggregated, METH_NOARGS, R"(aggregated($self, /)
--

The collection for many small calls without results, which travel in bundles: ``many = array.aggregated()``, then
``many[i].add(1)``.

Returns:
    weft.AggregatedProxy.

Raises:
    weft.Error: no job is running.)"},
    {"created", &created_future, METH_NOARGS, R"(created($self, /)
--

A future of the creation, which can be awaited later: ``made = weft.Array(Cell, 8).created()``, then ``await made``.

``await proxy`` is the same for a creation that is awaited at once. Call it in the turn in which the collection is made:
before any await.

Returns:
    weft.Future of the proxy, which is ready when all constructors have returned. If one has raised, its exception is the
    result, and the collection is destroyed. If the future is dropped then and was never awaited, the job ends.

Raises:
    weft.Error: another PE has made the collection, it has been destroyed, or no job is running.)"},
    {"destroy", &destroy, METH_NOARGS, R"(destroy($self, /)
--

Frees the chares of the collection on all PEs. Any PE may call it; it returns at once.

The chares, and what they hold, are freed in a turn of their own. A chare with an entry method that waits is freed when
that method has ended, so a chare may destroy its own collection. A method that waits on a channel or a reduction gets
weft.Error with the code 'closed', which ends the method without a message if nothing awaits it. Await the calls to the collection before: a call that
has not begun raises weft.Error where it is awaited, and one that nothing awaits ends the job. Futures of reductions
that are not complete fail with weft.Error. Later uses of a proxy raise weft.Error.

Returns:
    weft.Future: set to None when every PE has freed the chares that run nothing.

Raises:
    weft.Error: the collection has been destroyed on this PE, or no job is running.)"},
    {"insert", as_method(&insert), METH_FASTCALL | METH_KEYWORDS, R"(insert($self, index, /, *args, pe=None)
--

Makes an element of a sparse array. Any PE may call it at any time; it returns at once.

Args:
    index: an int, or a tuple in several dimensions, within the array's bounds.
    args: the constructor's arguments, by position.
    pe: where the element is made; None: on its home PE, which the map of the array gives.

Returns:
    weft.Future: set to None when the constructor has returned. It raises the exception of the constructor as weft.RemoteError,
    or weft.Error if the element exists. If the future is dropped then and was never awaited, the job ends.

Raises:
    weft.Error: the index is out of bounds, there is no such PE, an argument cannot travel, the collection is no sparse array,
        it has been destroyed, or no job is running.
    TypeError: another keyword than pe, or the constructor does not take these arguments.)"},
    {"done_inserting", &done_inserting, METH_NOARGS, R"(done_inserting($self, /)
--

Counts the elements of a sparse array. Any PE may call it; it returns at once.

It waits until the insertions and removals that were called before, on any PE, are over. From then on ``proxy.method.call()``
and reductions concern the elements that were counted, until elements are inserted or removed again. Before the first
done_inserting, calls to elements that do not exist wait for them; after it they raise weft.Error where they are awaited, and
end the job if nothing awaits them.

Returns:
    weft.Future: set to None when all PEs know the number of elements. It raises weft.Error if an element is to be removed and
    a method of it waits, or if the collection is destroyed meanwhile. If the future is dropped then and was never awaited, the
    job ends.

Raises:
    weft.Error: the collection is no sparse array, it has been destroyed, or no job is running.)"},
    {"section", &section, METH_O, R"(section($self, which, /)
--

Some chares of the collection, with calls and reductions of their own: ``array.section([1, 5, 9])``,
``array.section(lambda index: index % 5 == 0)``. Slices make sections too: ``grid[0, :]``, ``array[::2]``.

Args:
    which: a function that takes an index (int or tuple) and says whether the chare is in, called here for every element; the
        order is that of the indices. Or the indices, such as a list of them, in the order of the section.

Returns:
    weft.Section.

Raises:
    weft.Error: an index is outside of the shape, or is there twice; a function for a sparse array; or no job is running.)"},
    {"split", &split, METH_O, R"(split($self, parts, /)
--

Splits the collection into sections of successive chares, whose sizes differ by one at most.

Args:
    parts: the number of sections, at least 1.

Returns:
    list of weft.Section.

Raises:
    weft.Error: parts is less than 1, the collection is a sparse array, or no job is running.)"},
    {"__dir__", &names_of, METH_NOARGS, nullptr},
    {"__class_getitem__", &Py_GenericAlias, METH_O | METH_CLASS, nullptr},
    {"__reduce__", &reduce_proxy, METH_NOARGS, nullptr},
    {},
};
PyType_Slot collection_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate_collection_proxy)},
    {Py_tp_getattro, reinterpret_cast<void*>(&collection_attribute)},
    {Py_tp_setattro, reinterpret_cast<void*>(&refuse_assignment)},
    {Py_tp_repr, reinterpret_cast<void*>(&collection_text)},
    {Py_tp_richcompare, reinterpret_cast<void*>(&compare)},
    {Py_am_await, reinterpret_cast<void*>(&await_created)},
    {Py_tp_hash, reinterpret_cast<void*>(&collection_hash)},
    {Py_tp_iter, reinterpret_cast<void*>(&iterate)},
    {Py_mp_subscript, reinterpret_cast<void*>(&subscript)},
    {Py_mp_length, reinterpret_cast<void*>(&length)},
    {Py_nb_bool, reinterpret_cast<void*>(&is_true)},
    {Py_tp_getset, collection_properties},
    {Py_tp_methods, collection_methods},
    {Py_tp_doc,
     const_cast<char*>(R"(Names a collection of chares from anywhere; a cheap value that travels in messages.

``proxy.method(args)`` calls an entry method of every element. ``await proxy.method.call(args)`` gives the results in
index order. ``proxy[i]`` or ``proxy[i, j]`` names an element, ``proxy[a:b]`` or ``proxy[i, :]`` a section; ``for element in proxy`` names all of them in index
order. ``await proxy`` waits until all constructors have returned, and gives the proxy.)")},
    {0, nullptr},
};
}  // namespace

void init_collection_proxy(PyObject* module) {
  CollectionProxyTypes types;
  types.any = add_proxy_type(module, "weft.CollectionProxy", collection_slots,
                             Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, nullptr);
  add_constructors(module, types);
  set_collection_proxy_types(types);
  reserve_names_of(types.any);
}

}  // namespace weft::python
