#include "chare/calls/proxy_core.h"

#include <vector>

#include "weft/chare/proxy.h"

#include "await/future.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "support/errors.h"

namespace weft::python {

PyObject* no_method(PyObject* self, const ProxyCore& core, PyObject* name) {
  PyObject* other = PyObject_GenericGetAttr(self, name);
  if (other != nullptr || PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return other;
  if (PyUnicode_Check(name) && readable(name).starts_with('_')) return nullptr;
  PyErr_Clear();
  if (readable(name) == "destroy") {  // only collections have it
    PyErr_Format(
        PyExc_AttributeError,
        "one chare of %s cannot be destroyed alone; destroy its collection: proxy.collection.destroy()",
        core.info->name().c_str());
    return nullptr;
  }
  PyErr_Format(PyExc_AttributeError, "the chare class %s has no entry method '%U'; its entry methods: %s",
               core.info->name().c_str(), name, core.info->method_list().c_str());
  return nullptr;
}

Ref created(const ProxyCore& core, PyObject* proxy) {
  core.engine->expect_open();
  return wrap_future(*core.engine, core.engine->chares().created(*core.collection), Ref::borrow(proxy));
}

Py_hash_t hash_of(const ProxyCore& core, std::uint64_t salt) {
  auto hash = static_cast<Py_hash_t>((reinterpret_cast<std::uintptr_t>(core.collection) >> 4) +
                                     salt * 0x9e3779b97f4a7c15);
  return hash == -1 ? -2 : hash;
}

// Inside a pickled object a proxy travels as the bytes of its own form.
PyObject* reduce_proxy(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    Encoder encoder;
    encoder.value(self);
    std::vector<std::byte> bytes = encoder.copy();
    Ref rebuild = import_from("weft._core", "_decode");
    return Py_BuildValue("O(y#)", rebuild.get(), reinterpret_cast<const char*>(bytes.data()),
                         static_cast<Py_ssize_t>(bytes.size()));
  });
}

void encode_core(Encoder& encoder, ValueTag tag, const ProxyCore& core) {
  core.engine->expect_open_on_any_thread();
  encoder.tag(tag);
  encoder.packed(Pup::sizer(&core.engine->runtime()), [&core](Pup& p) {
    chare::Collection* collection = core.collection;
    chare::pup_collection(p, collection);
  });
  encoder.name(core.info->key());
}

void encode_section(Encoder& encoder, const ProxyCore& core, const chare::SectionMembers& members) {
  encode_core(encoder, ValueTag::kSection, core);
  encoder.packed(Pup::sizer(&core.engine->runtime()), [&members](Pup& p) { members.pack(p); });
}

ProxyCore decode_core(Decoder& decoder) {
  Engine& engine = Engine::current();
  chare::Collection* collection = nullptr;
  decoder.packed(&engine.runtime(), [&collection](Pup& p) { chare::pup_collection(p, collection); });
  if (collection == nullptr)
    throw base::Error(base::StatusCode::kCorrupt, "a proxy arrived damaged: of no collection");
  return {EngineRef(engine), collection, &ClassInfo::find(decoder.name())};
}

}  // namespace weft::python
