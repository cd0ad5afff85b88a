#include "chare/calls/proxy_core.h"

#include <algorithm>
#include <vector>

#include "weft/chare/proxy.h"

#include "await/future.h"
#include "base/format.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// Why `name`, an attribute of a chare class, is no entry method.
std::string reason(const ClassInfo& info, PyObject* name) {
  const std::string text = readable(name);
  if (text.starts_with('_')) {
    return base::format(
        "{}.{} is no entry method, because names that begin with an underscore are private to the chare; "
        "choose "
        "another name for a method that proxies call",
        info.name(), text);
  }
  if (PyObject_HasAttr(reinterpret_cast<PyObject*>(chare_type()), name) != 0) {
    return base::format(
        "{} belongs to weft.Chare and is no entry method; a chare uses self.{}, so write an entry method "
        "that does",
        text, text);
  }
  const Ref value = Ref::steal(PyObject_GetAttr(info.type(), name));
  if (!value) PyErr_Clear();
  if (value && PyCallable_Check(value.get()) != 0) {
    return base::format("{}.{} is a post entry method, which only the runtime calls; call the entry method",
                        info.name(), text);
  }
  return base::format(
      "{}.{} is an attribute and no method, and a proxy calls methods only; write an entry method that "
      "returns it",
      info.name(), text);
}

}  // namespace

PyObject* no_method(PyObject* self, const ProxyCore& core, PyObject* name) {
  PyObject* other = PyObject_GenericGetAttr(self, name);
  if (other != nullptr || PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return other;
  PyErr_Clear();
  const std::string text = readable(name);
  const bool class_has_it = PyObject_HasAttr(core.info->type(), name) != 0;
  if (text.starts_with("__") || (text.starts_with('_') && !class_has_it))
    return PyObject_GenericGetAttr(self, name);  // its own words
  if (class_has_it) {
    PyErr_SetString(PyExc_AttributeError, reason(*core.info, name).c_str());
    return nullptr;
  }
  if (text == "destroy") {  // only collections have it
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

int refuse_assignment(PyObject* proxy, PyObject* name, PyObject*) {
  PyErr_Format(
      PyExc_AttributeError,
      "the attribute '%U' of a %s cannot be set: a proxy has no state, and the chare's attributes are its "
      "own; write an entry method that sets it",
      name, type_name_of(proxy).c_str());
  return -1;
}

PyObject* list_names(PyObject* proxy, std::span<const ProxyCore> cores) {
  return guarded([&]() -> PyObject* {
    Ref names =
        checked(PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", proxy));
    const ClassInfo& first = *cores.front().info;
    for (std::size_t i = 0; i < first.num_methods(); ++i) {
      PyObject* const name = first.method_name(i);
      if (std::all_of(cores.begin(), cores.end(),
                      [name](const ProxyCore& core) { return core.info->method(name) >= 0; })) {
        checked(PyList_Append(names.get(), name));
      }
    }
    return names.release();
  });
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
