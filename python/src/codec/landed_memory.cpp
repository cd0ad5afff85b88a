#include "codec/landed_memory.h"

#include <new>
#include <utility>

namespace weft::python {

namespace {

struct LandedBytesObject {
  PyObject_HEAD std::shared_ptr<LandedMemory> landed;
};

PyTypeObject* type = nullptr;

LandedBytesObject* as_landed(PyObject* object) { return reinterpret_cast<LandedBytesObject*>(object); }

void deallocate(PyObject* self) {
  Engine::drop_on_pe_thread(std::move(as_landed(self)->landed));
  as_landed(self)->~LandedBytesObject();
  free_object(self);
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const memory::Buffer& memory = as_landed(self)->landed->attachment.buffer();
  return PyBuffer_FillInfo(view, self, memory.data, static_cast<Py_ssize_t>(memory.size_bytes), 0, flags);
}

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
    {0, nullptr},
};
PyType_Spec spec = {"weft._LandedBytes", sizeof(LandedBytesObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

void init_landed_memory(PyObject* module) { type = add_type(module, spec); }

std::shared_ptr<LandedMemory> share_landed(Engine& engine, runtime::Attachment attachment) {
  return std::make_shared<LandedMemory>(LandedMemory{EngineRef(engine), std::move(attachment)});
}

Ref make_landed_bytes(Engine& engine, runtime::Attachment attachment) {
  std::shared_ptr<LandedMemory> landed = share_landed(engine, std::move(attachment));
  Ref object = checked(PyType_GenericAlloc(type, 0));
  new (&as_landed(object.get())->landed) std::shared_ptr<LandedMemory>(std::move(landed));
  return object;
}

}  // namespace weft::python
