// The proxies of collections as values: weft.Array, weft.Group and weft.CollectionProxy objects. What Python sees
// of them is in collection_type.*, and the constructors are in constructors.*.
#pragma once

#include "chare/calls/proxy_core.h"
#include "support/support.h"

namespace weft::python {

struct CollectionProxyTypes {
  PyTypeObject* any = nullptr;  // weft.CollectionProxy, the base of the others
  PyTypeObject* array = nullptr;
  PyTypeObject* group = nullptr;
};
// Once, when the extension is initialised. Adds their form to the codec.
void set_collection_proxy_types(const CollectionProxyTypes& types);

// Makes a proxy of the type that belongs to the collection's kind.
Ref make_collection_proxy(chare::Collection& collection, const ClassInfo& info);
Ref make_collection_proxy(PyTypeObject* type, const ProxyCore& core);
// Makes such a type. `base`: null for types.any.
PyTypeObject* add_proxy_type(PyObject* module, const char* name, PyType_Slot* slots, unsigned flags,
                             PyTypeObject* base);
void deallocate_collection_proxy(PyObject* proxy);

bool is_collection_proxy(PyObject* object);
// REQUIRES: is_collection_proxy(proxy).
const ProxyCore& collection_core(PyObject* proxy);

}  // namespace weft::python
