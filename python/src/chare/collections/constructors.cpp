#include "chare/collections/constructors.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "chare/calls/calls.h"
#include "chare/classes/indices.h"
#include "chare/collections/element_proxy.h"
#include "support/errors.h"

namespace weft::python {

std::vector<std::byte> encoded_constructor(const ClassInfo& info, PyObject* arguments) {
  try {
    return encode_constructor(info, arguments);
  } catch (const PythonError&) {
    rethrow_unsendable(base::format("an argument of {}.__init__", info.name()));
  }
}

namespace {

Ref constructor_arguments(PyObject* arguments) {
  if (arguments == nullptr) return checked(PyTuple_New(0));
  if (PyTuple_Check(arguments) || PyList_Check(arguments)) return checked(PySequence_Tuple(arguments));
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format("args is a tuple of the constructor's arguments, not a {}; for one argument write "
                   "args=(value,)",
                   type_name_of(arguments)));
}

ProxyCore create(chare::CollectionKind kind, const chare::Shape& shape, PyObject* type, PyObject* arguments) {
  Engine& engine = Engine::current();
  engine.expect_open();
  const ClassInfo& info = ClassInfo::of(type);
  const Ref tuple = constructor_arguments(arguments);
  if (kind != chare::CollectionKind::kSparse)
    info.constructor().expect(PyTuple_GET_SIZE(tuple.get()), nullptr);
  const std::vector<std::byte> encoded = encoded_constructor(info, tuple.get());
  chare::Collection& collection = kind == chare::CollectionKind::kSparse
                                      ? engine.chares().create_sparse(shape, python_constructor(), encoded)
                                      : engine.chares().create(kind, shape, python_constructor(), encoded);
  collection.set_class_name(info.name(), info.key());
  return {EngineRef(engine), &collection, &info};
}

chare::Shape with_python_map(const chare::Shape& shape, const ClassInfo& info, PyObject* map) {
  std::vector<std::uint32_t> pes;
  pes.reserve(shape.size());
  for (std::uint64_t i = 0; i < shape.size(); ++i) {
    Ref pe = checked(PyObject_CallOneArg(map, info.index_object(shape.index(i)).get()));
    long value = PyLong_AsLong(pe.get());
    if (value == -1 && PyErr_Occurred() != nullptr) throw PythonError();
    if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) {
      throw base::Error(base::StatusCode::kInvalidArgument,
                        base::format("the map puts element {} on PE {}; PEs are numbered from 0",
                                     shape.index(i).to_string(), value));
    }
    pes.push_back(static_cast<std::uint32_t>(value));
  }
  return shape.with_table(std::move(pes));
}

// A sparse array has no table of PEs, and its indices may be close together.
chare::Shape with_sparse_map(const chare::Shape& shape, PyObject* map) {
  if (map == nullptr) return shape.with_map(chare::Map::kRoundRobin);
  const std::string name = PyCallable_Check(map) != 0 ? "function" : readable(map);
  if (name == "block") return shape.with_map(chare::Map::kBlock);
  if (name == "round_robin") return shape.with_map(chare::Map::kRoundRobin);
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format(
          "the map of a sparse array is 'block' or 'round_robin', not {}; to choose the PE of an element, "
          "insert it with pe=",
          PyCallable_Check(map) != 0 ? "a function" : name));
}

chare::Shape with_map(const chare::Shape& shape, PyObject* type, PyObject* map) {
  if (map != nullptr && PyCallable_Check(map) != 0) return with_python_map(shape, ClassInfo::of(type), map);
  std::string name = map == nullptr ? "block" : readable(map);
  if (name == "block") return shape.with_map(chare::Map::kBlock);
  if (name == "round_robin") return shape.with_map(chare::Map::kRoundRobin);
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format("there is no map {}; map is 'block', 'round_robin' or a function from an index to a PE",
                   name));
}

struct ConstructorCall {
  ConstructorCall(const char* function, std::initializer_list<const char*> names, std::size_t num_required,
                  PyObject* positional, PyObject* keywords) {
    std::array<PyObject*, 8> values{};
    std::size_t count = 0;
    auto expect_room = [&] {
      if (count == values.size()) {
        PyErr_Format(PyExc_TypeError, "%s takes at most %zu arguments", function, names.size());
        throw PythonError();
      }
    };
    Py_ssize_t num_positional = PyTuple_GET_SIZE(positional);
    for (Py_ssize_t i = 0; i < num_positional; ++i) {
      expect_room();
      values[count++] = PyTuple_GET_ITEM(positional, i);
    }
    Ref keyword_names = checked(PyTuple_New(keywords == nullptr ? 0 : PyDict_GET_SIZE(keywords)));
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    for (Py_ssize_t k = 0; keywords != nullptr && PyDict_Next(keywords, &position, &key, &value) != 0; ++k) {
      expect_room();
      values[count++] = value;
      PyTuple_SET_ITEM(keyword_names.get(), k, Py_NewRef(key));
    }
    arguments = Arguments(function, names, num_required, values.data(), num_positional, keyword_names.get());
  }
  PyObject* operator[](std::size_t which) const { return arguments[which]; }
  Arguments arguments;
};

Ref make_sparse(PyTypeObject* type, PyObject* chare_class, PyObject* bounds, PyObject* arguments,
                PyObject* map) {
  if (arguments != nullptr && (PyTuple_Check(arguments) == 0 || PyTuple_GET_SIZE(arguments) != 0)) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      "a sparse array begins without elements: pass the constructor's arguments to insert()");
  }
  chare::Shape shape(std::numeric_limits<std::int32_t>::max());
  if (bounds != nullptr && bounds != Py_None) {
    const Coordinates extents(bounds);
    shape = chare::Shape(extents.values.data(), extents.count);
  }
  return make_collection_proxy(
      type, create(chare::CollectionKind::kSparse, with_sparse_map(shape, map), chare_class, nullptr));
}

PyObject* make_array(PyTypeObject* type, PyObject* positional, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    ConstructorCall call("weft.Array", {"chare", "shape", "args", "map", "sparse"}, 1, positional, keywords);
    const int sparse = call[4] == nullptr ? 0 : PyObject_IsTrue(call[4]);
    if (sparse < 0) throw PythonError();
    if (sparse != 0) return make_sparse(type, call[0], call[1], call[2], call[3]).release();
    if (call[1] == nullptr || call[1] == Py_None) {
      throw base::Error(base::StatusCode::kInvalidArgument,
                        "weft.Array needs a shape, an int or a tuple of extents; only a sparse array, "
                        "sparse=True, begins without "
                        "elements");
    }
    Coordinates extents(call[1]);
    chare::Shape shape = with_map(chare::Shape(extents.values.data(), extents.count), call[0], call[3]);
    return make_collection_proxy(type, create(chare::CollectionKind::kArray, shape, call[0], call[2]))
        .release();
  });
}

PyObject* make_group(PyTypeObject* type, PyObject* positional, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    ConstructorCall call("weft.Group", {"chare", "args"}, 1, positional, keywords);
    chare::Shape shape =
        chare::Shape(Engine::current().runtime().num_pes()).with_map(chare::Map::kRoundRobin);
    return make_collection_proxy(type, create(chare::CollectionKind::kGroup, shape, call[0], call[1]))
        .release();
  });
}

PyObject* make_singleton(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("weft.Singleton", {"chare", "pe", "args"}, 1, values, count, names);
    chare::Shape shape = chare::Shape(1).on_pe(arguments[1] == nullptr ? 0 : coordinate(arguments[1]));
    return make_element_proxy(create(chare::CollectionKind::kSingleton, shape, arguments[0], arguments[2]), 0)
        .release();
  });
}

PyType_Slot array_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&make_array)},
    {Py_tp_doc, const_cast<char*>(R"(Array(chare, shape=None, args=(), map='block', sparse=False)
--

Makes a collection of chares over a shape. Returns at once; the proxy can be used at once.

A sparse array, ``weft.Array(Cell, (1000, 1000), sparse=True)``, begins without elements: ``insert`` makes them, with their own
constructor arguments, and ``proxy[i].remove()`` ends them.

``await weft.Array(...)`` gives the proxy when all constructors have returned. If one raises, the await raises its
exception and the collection is destroyed. If the creation is not awaited in the turn that makes it, an exception in
a constructor ends the job. Only the PE that makes a collection can await it.

Args:
    chare: a class derived from weft.Chare, defined at the top level of its module.
    shape: an int, or a tuple of 1 to 6 extents, each at least 1. Of a sparse array the bounds of its indices, whose product is
        less than 2^64; None: one dimension, up to 2^31 - 2.
    args: the constructor's arguments; every element gets its own copy. Not for a sparse array.
    map: the PE of each element: 'block' (contiguous runs of the row-major order per PE), 'round_robin', or a
        function from an index (int or tuple) to a PE, which is called here for every element. Of a sparse array 'round_robin',
        the default there, or 'block'.
    sparse: whether the elements are inserted one by one.

Raises:
    TypeError: the constructor does not take these arguments.
    weft.Error: no job is running, an argument is not as above, or a constructor's argument cannot travel.)")},
    {0, nullptr},
};

PyType_Slot group_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&make_group)},
    {Py_tp_doc, const_cast<char*>(R"(Group(chare, args=())
--

Makes one chare on each PE, whose index is the PE. Returns at once, and can be awaited, as weft.Array.

Args:
    chare: a class derived from weft.Chare, defined at the top level of its module.
    args: the constructor's arguments; every element gets its own copy.

Raises:
    TypeError, weft.Error: as for weft.Array.)")},
    {0, nullptr},
};

PyMethodDef functions[] = {
    {"Singleton", as_method(&make_singleton), METH_FASTCALL | METH_KEYWORDS,
     R"(Singleton(chare, pe=0, args=())
--

Makes one chare and returns its proxy, at once. It can be awaited, as weft.Array.

Args:
    chare: a class derived from weft.Chare, defined at the top level of its module.
    pe: where the chare is made.
    args: the constructor's arguments.

Raises:
    TypeError, weft.Error: as for weft.Array; weft.Error also if there is no such PE.)"},
    {},
};

}  // namespace

void add_constructors(PyObject* module, CollectionProxyTypes& types) {
  types.array = add_proxy_type(module, "weft.Array", array_slots, 0, types.any);
  types.group = add_proxy_type(module, "weft.Group", group_slots, 0, types.any);
  add_functions(module, functions);
}

}  // namespace weft::python
