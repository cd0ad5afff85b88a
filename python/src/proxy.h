// Proxies of Python chares: weft.Array, weft.Group, their elements, and the entry methods of either.
#pragma once

#include <optional>
#include <string>

#include "weft/chare/chares.h"
#include "weft/runtime/reduction.h"

#include "classes.h"
#include "engine.h"
#include "support.h"

namespace weft::python {

class Decoder;
class Encoder;

void init_proxy(PyObject* module);

// Of the type that the collection's kind asks for.
Ref make_collection_proxy(chare::Collection& collection, const ClassInfo& info);
// An int, or a tuple for several dimensions.
Ref index_object(const chare::Index& index);

bool is_element_proxy(PyObject* object);
bool is_collection_proxy(PyObject* object);
void encode_element_proxy(Encoder& encoder, PyObject* proxy);
void encode_collection_proxy(Encoder& encoder, PyObject* proxy);
Ref decode_element_proxy(Decoder& decoder);
Ref decode_collection_proxy(Decoder& decoder);

// The chare that an element proxy names; throws base::Error for any other object. `use` says what for.
struct ElementName {
  chare::Collection* collection;
  std::uint64_t index;
};
ElementName element_of(PyObject* proxy, const char* use);

// The entry method `proxy.method` or `proxy[i].method` as the target of a reduction whose result has the form
// `result_form`; nullopt for any other object.
std::optional<runtime::Target> target_of_method(PyObject* object, std::uint8_t result_form);

// In place of Python's current exception, throws base::Error: "`what` cannot be sent: ...; ...".
[[noreturn]] void rethrow_unsendable(const std::string& what, PyObject* value);

}  // namespace weft::python
