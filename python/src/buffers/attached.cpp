#include "buffers/attached.h"

namespace weft::python {

namespace {

constexpr const char* kCapsuleName = "weft.landed_memory";

void free_landed(PyObject* capsule) {
  delete static_cast<LandedMemory*>(PyCapsule_GetPointer(capsule, kCapsuleName));
}

}  // namespace

runtime::Attachment attach(Ref keeper, const memory::Buffer& memory) {
  auto release = [](void* owner, const memory::Buffer&) { Py_DECREF(static_cast<PyObject*>(owner)); };
  return runtime::Attachment(memory, release, keeper.release());
}

Ref make_memory_owner(Engine& engine, runtime::Attachment attachment) {
  auto landed = std::make_unique<LandedMemory>(LandedMemory{EngineRef(engine), std::move(attachment)});
  Ref capsule = checked(PyCapsule_New(landed.get(), kCapsuleName, &free_landed));
  static_cast<void>(landed.release());
  return capsule;
}

std::shared_ptr<LandedMemory> share_landed(Engine& engine, runtime::Attachment attachment) {
  return std::make_shared<LandedMemory>(LandedMemory{EngineRef(engine), std::move(attachment)});
}

}  // namespace weft::python
