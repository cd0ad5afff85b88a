// The proxy of one chare.
#pragma once

#include <cstdint>

#include "chare/calls/proxy_core.h"
#include "support/support.h"

namespace weft::python {

void init_element_proxy(PyObject* module);

Ref make_element_proxy(const ProxyCore& core, std::uint64_t index, std::int32_t priority = 0);
bool is_element_proxy(PyObject* object);

// REQUIRES: is_element_proxy(proxy).
const ProxyCore& element_core(PyObject* proxy);
// The chare that an element proxy names; throws base::Error for any other object. `use` says what for.
struct ElementName {
  chare::Collection* collection;
  std::uint64_t index;
};
ElementName element_of(PyObject* proxy, const char* use);

}  // namespace weft::python
