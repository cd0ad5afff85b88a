// What `proxy.method` is: callable, with call(...) for the result.
#pragma once

#include <cstdint>
#include <optional>

#include "weft/chare/chares.h"

#include "classes.h"
#include "engine.h"
#include "support.h"

namespace weft::python {

// What every proxy holds.
struct ProxyCore {
  EngineRef engine;
  chare::Collection* collection = nullptr;
  const ClassInfo* info = nullptr;
};

void init_entry_method(PyObject* module);

// Of one element, or without an index of every element.
Ref make_entry_method(const ProxyCore& core, std::optional<std::uint64_t> index, int method,
                      std::int32_t priority);

Ref shape_object(const chare::Shape& shape);

}  // namespace weft::python
