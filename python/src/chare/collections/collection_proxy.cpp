#include "chare/collections/collection_proxy.h"

#include <new>

#include "codec/forms.h"

namespace weft::python {

namespace {

struct CollectionObject {
  PyObject_HEAD ProxyCore core;
};

CollectionProxyTypes types;

CollectionObject* as_collection(PyObject* object) { return reinterpret_cast<CollectionObject*>(object); }

bool encode(Encoder& encoder, PyObject* proxy) {
  encode_core(encoder, ValueTag::kCollection, as_collection(proxy)->core);
  return true;
}

Ref decode(Decoder& decoder) {
  ProxyCore core = decode_core(decoder);
  return make_collection_proxy(*core.collection, *core.info);
}

}  // namespace

void set_collection_proxy_types(const CollectionProxyTypes& made) {
  types = made;
  for (PyTypeObject* type : {types.any, types.array, types.group}) add_encoding(type, &encode);
  add_decoding(ValueTag::kCollection, &decode);
}

Ref make_collection_proxy(chare::Collection& collection, const ClassInfo& info) {
  PyTypeObject* type = types.any;
  if (collection.kind() == chare::CollectionKind::kArray || collection.is_sparse()) type = types.array;
  if (collection.kind() == chare::CollectionKind::kGroup) type = types.group;
  return make_collection_proxy(type, {EngineRef(Engine::current_on_any_thread()), &collection, &info});
}

Ref make_collection_proxy(PyTypeObject* type, const ProxyCore& core) {
  Ref object = checked(PyType_GenericAlloc(type, 0));
  new (&as_collection(object.get())->core) ProxyCore(core);
  return object;
}

PyTypeObject* add_proxy_type(PyObject* module, const char* name, PyType_Slot* slots, unsigned flags,
                             PyTypeObject* base) {
  PyType_Spec spec = {name, static_cast<int>(sizeof(CollectionObject)), 0,
                      static_cast<unsigned>(Py_TPFLAGS_DEFAULT) | flags, slots};
  return add_type(module, spec, base);
}

void deallocate_collection_proxy(PyObject* proxy) {
  as_collection(proxy)->core.~ProxyCore();
  free_object(proxy);
}

bool is_collection_proxy(PyObject* object) {
  return Py_TYPE(object) == types.array || Py_TYPE(object) == types.group || Py_TYPE(object) == types.any;
}

const ProxyCore& collection_core(PyObject* proxy) { return as_collection(proxy)->core; }

}  // namespace weft::python
