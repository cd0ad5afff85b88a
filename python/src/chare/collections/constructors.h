// weft.Array, weft.Group and weft.Singleton: how programs make collections.
#pragma once

#include <cstddef>
#include <vector>

#include "chare/collections/collection_proxy.h"
#include "support/support.h"

namespace weft::python {

// Adds the types weft.Array and weft.Group to the module and to `types`, and the function weft.Singleton. REQUIRES: types.any is made.
void add_constructors(PyObject* module, CollectionProxyTypes& types);

// The encoded arguments of a constructor, a tuple. Throws base::Error, which names the class, if one cannot travel.
std::vector<std::byte> encoded_constructor(const ClassInfo& info, PyObject* arguments);

}  // namespace weft::python
