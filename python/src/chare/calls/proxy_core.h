// The common part of the proxies of elements and of collections.
#pragma once

#include <cstdint>
#include <span>

#include "weft/chare/chares.h"
#include "weft/chare/section_members.h"

#include "chare/classes/classes.h"
#include "codec/encoding.h"
#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

class Decoder;
class Encoder;

struct ProxyCore {
  EngineRef engine;
  chare::Collection* collection = nullptr;
  const ClassInfo* info = nullptr;
};

// The attribute `name` of a proxy, which is no entry method. If there is none, returns null with an AttributeError that says why
// the name is no entry method, or lists the entry methods.
PyObject* no_method(PyObject* proxy, const ProxyCore& core, PyObject* name);
// tp_setattro of any proxy: raises AttributeError.
int refuse_assignment(PyObject* proxy, PyObject* name, PyObject* value);
// __dir__ of a proxy of these: its own names and the entry methods that all of them have.
PyObject* list_names(PyObject* proxy, std::span<const ProxyCore> cores);
// A future of `proxy`, ready when its collection has been created. Throws base::Error on another PE than its creator's.
Ref created(const ProxyCore& core, PyObject* proxy);
Py_hash_t hash_of(const ProxyCore& core, std::uint64_t salt);
// __reduce__ of any proxy.
PyObject* reduce_proxy(PyObject* proxy, PyObject*);

// The tag of a proxy, its collection and its class.
void encode_core(Encoder& encoder, ValueTag tag, const ProxyCore& core);
ProxyCore decode_core(Decoder& decoder);
// The form of a section, see ValueTag::kSection.
void encode_section(Encoder& encoder, const ProxyCore& core, const chare::SectionMembers& members);

}  // namespace weft::python
