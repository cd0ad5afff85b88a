#include "chare/chare_type.h"

#include <fmt/format.h>

#include "weft/base/error.h"

#include "chare/chare.h"
#include "chare/classes.h"
#include "chare/collection_proxy.h"
#include "chare/indices.h"
#include "chare/reduction.h"
#include "support/errors.h"

namespace weft::python {

namespace {

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&] { return PyChare::make_object(type); });
}

PyObject* get_index(PyObject* self, void*) {
  return guarded([self] { return index_object(chare_of(self).index()).release(); });
}

PyObject* get_proxy(PyObject* self, void*) {
  return guarded([self] {
    PyChare& chare = chare_of(self);
    return make_collection_proxy(chare.collection(), chare.info()).release();
  });
}

PyObject* contribute(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("Chare.contribute", {"value", "reducer", "target"}, 3, values, count, names);
    contribute_to_target(chare_of(self), arguments[0], arguments[1], arguments[2]);
    Py_RETURN_NONE;
  });
}

PyObject* allreduce(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("Chare.allreduce", {"value", "reducer"}, 2, values, count, names);
    return contribute_to_all(chare_of(self), arguments[0], arguments[1]).release();
  });
}

PyObject* no_pickle(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        fmt::format("a chare ({}) does not travel in messages; send its proxy, self.proxy[self.index]",
                    chare_of(self).where()));
  });
}

PyGetSetDef properties[] = {
    {"index", &get_index, nullptr,
     "This chare's index in its collection: an int, or a tuple for 2 to 6 dimensions; a group's is the PE.",
     nullptr},
    {"proxy", &get_proxy, nullptr, "The proxy of the collection that this chare is in.", nullptr},
    {},
};

PyMethodDef methods[] = {
    {"contribute", as_method(&contribute), METH_FASTCALL | METH_KEYWORDS,
     "contribute($self, value, reducer, target)\n--\n\n"
     "Takes part in the collection's next reduction; every element must, in the same order.\n\n"
     "The result goes to `target`: a weft.Future, or an entry method of an element or of a whole collection\n"
     "(``proxy[i].method`` or ``proxy.method``, not called), whose only argument it is. NumPy arrays, all of "
     "the same\n"
     "shape, are reduced element by element.\n\n"
     "Args:\n"
     "    value: this chare's part.\n"
     "    reducer: a weft.Reducer, the same for every element.\n"
     "    target: where the result goes; that of any element is used.\n\n"
     "Raises:\n"
     "    weft.Error: not a reducer or target, or the value cannot be sent."},
    {"allreduce", as_method(&allreduce), METH_FASTCALL | METH_KEYWORDS,
     "allreduce($self, value, reducer)\n--\n\n"
     "The same with the result for every element: ``total = await self.allreduce(x, weft.Reducer.sum)``."},
    {"__reduce__", &no_pickle, METH_NOARGS, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&free_object)},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>("Base class of a program's objects.\n\n"
                                  "Every public method of a subclass is an entry method: "
                                  "``proxy.method(args)`` calls it asynchronously from\n"
                                  "any PE. Entry methods of a chare run one after the other, ``async def`` "
                                  "ones each to its next await. Chares\n"
                                  "are made in collections (weft.Array, weft.Group, weft.Singleton); "
                                  "``self.index`` and ``self.proxy`` work\n"
                                  "in ``__init__`` already.")},
    {0, nullptr},
};

}  // namespace

void init_chare(PyObject* module) {
  PyType_Spec spec = {"weft.Chare", static_cast<int>(PyChare::object_size_bytes()), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  set_chare_type(add_type(module, spec));
}

}  // namespace weft::python
