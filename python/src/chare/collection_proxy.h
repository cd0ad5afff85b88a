// Collections of Python chares: weft.Array, weft.Group, weft.Singleton.
#pragma once

#include "chare/proxy_core.h"
#include "support/support.h"

namespace weft::python {

// REQUIRES: init_element_proxy() was called.
void init_collection_proxy(PyObject* module);

// Of the type that the collection's kind asks for.
Ref make_collection_proxy(chare::Collection& collection, const ClassInfo& info);
bool is_collection_proxy(PyObject* object);
void encode_collection_proxy(Encoder& encoder, PyObject* proxy);
Ref decode_collection_proxy(Decoder& decoder);

}  // namespace weft::python
