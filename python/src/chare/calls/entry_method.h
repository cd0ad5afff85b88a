// weft.EntryMethod: the object `proxy.method`. It is callable, and call(...) gives a future of the result.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "weft/chare/section_members.h"
#include "weft/runtime/reduction.h"

#include "chare/calls/proxy_core.h"
#include "support/support.h"

namespace weft::python {

struct CombinedMethod;

void init_entry_method(PyObject* module);

// The entry method of one element; without an index that of every element, or of every member of `section`.
Ref make_entry_method(const ProxyCore& core, std::optional<std::uint64_t> index, int method,
                      std::int32_t priority, chare::SectionMembers::Pointer section = nullptr);
// The entry method of every member of a combined section.
Ref make_combined_method(std::shared_ptr<const CombinedMethod> method);

// The entry method `proxy.method`, `proxy[i].method` or `section.method` as the target of a reduction whose result has the form
// `result_form`; nullopt for any other object.
std::optional<runtime::Target> target_of_method(PyObject* object, std::uint8_t result_form);

}  // namespace weft::python
