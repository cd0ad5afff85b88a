#include "buffers/device/device_array.h"

#include <new>
#include <utility>

#include "weft/base/error.h"

#include "engine/engine.h"
#include "memory/memory.h"

namespace weft::python {

PyTypeObject* device_array_type = nullptr;

namespace {

// Owns the memory of an array that allocate_device_array() made.
class OwnMemory {
 public:
  OwnMemory(Engine& engine, std::size_t size_bytes, memory::Place place) : engine_(engine) {
    base::Result<memory::Buffer> made = engine.runtime().memory().allocate(size_bytes, place);
    if (!made.ok()) base::throw_status(made.status());
    memory_ = *made;
  }
  ~OwnMemory() {
    // The result is ignored: deallocate fails only if the device has failed, and its memory is lost then.
    static_cast<void>(engine_->runtime().memory().deallocate(memory_));
  }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;
  const memory::Buffer& memory() const { return memory_; }

 private:
  EngineRef engine_;
  memory::Buffer memory_;
};

Ref make_object(ArrayForm form, const memory::Buffer& memory, std::shared_ptr<void> owner,
                LandedMemory* landed, Ref stream_keeper) {
  Ref object = checked(PyType_GenericAlloc(device_array_type, 0));
  DeviceArrayObject* array = as_device_array(object.get());
  new (&array->form) ArrayForm(std::move(form));
  new (&array->memory) memory::Buffer(memory);
  new (&array->owner) std::shared_ptr<void>(std::move(owner));
  array->landed = landed;
  new (&array->stream_keeper) Ref(std::move(stream_keeper));
  return object;
}

}  // namespace

Ref allocate_device_array(ArrayForm form, memory::Place place) {
  auto own = std::make_shared<OwnMemory>(Engine::current(), form.size_bytes, place);
  const memory::Buffer& memory = own->memory();
  return make_object(std::move(form), memory, std::move(own), nullptr, Ref());
}

Ref make_device_array(ArrayForm form, const memory::Buffer& memory, std::shared_ptr<LandedMemory> landed) {
  LandedMemory* owner = landed.get();
  return make_object(std::move(form), memory, std::move(landed), owner, Ref());
}

Ref make_device_array_over(ArrayForm form, const memory::Buffer& memory, std::shared_ptr<void> owner) {
  return make_object(std::move(form), memory, std::move(owner), nullptr, Ref());
}

Ref make_view(DeviceArrayObject* array, ArrayForm form, std::size_t offset_bytes) {
  memory::Buffer memory = array->memory;
  memory.size_bytes = form.size_bytes;
  if (memory.data != nullptr) memory.data = static_cast<std::byte*>(memory.data) + offset_bytes;
  return make_object(std::move(form), memory, array->owner, array->landed, array->stream_keeper);
}

Ref make_view_on(DeviceArrayObject* array, memory::StreamHandle stream, Ref keeper) {
  memory::Buffer memory = array->memory;
  memory.stream = stream;
  return make_object(array->form, memory, array->owner, array->landed, std::move(keeper));
}

ObjectBuffer device_array_buffer(const BufferRequest& request) {
  const DeviceArrayObject* const array = as_device_array(request.object);
  if (request.form != nullptr) *request.form = array->form;
  // An empty array becomes an empty host buffer: a transfer of no bytes has no stream to wait for.
  const memory::Buffer memory = array->memory.size_bytes == 0 ? memory::Buffer() : array->memory;
  return {memory, Ref::borrow(request.object)};
}

}  // namespace weft::python
