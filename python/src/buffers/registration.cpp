#include "buffers/registration.h"

#include <memory>

#include "weft/runtime/device/registered_memory.h"

#include "buffers/object_buffer.h"
#include "engine/engine.h"
#include "support/errors.h"

namespace weft::python {

namespace {

constexpr const char* kUse = "weft.register";

struct Registration {
  Registration(Engine& engine_in, const memory::Buffer& buffer)
      : engine(engine_in), memory(engine_in.runtime(), buffer.data, buffer.size_bytes) {}

  EngineRef engine;  // declared first, so that it is destroyed after `memory`
  runtime::RegisteredMemory memory;
};

// Ends the registration at once, on any thread. It cannot wait for the PE's next turn: the memory is freed next,
// and another array may then get the same addresses. The GIL keeps the PE's thread from using registrations
// meanwhile.
void forget(PyObject* capsule) {
  if (Engine::in_forked_child()) return;  // the registration belongs to the parent process
  delete static_cast<Registration*>(PyCapsule_GetPointer(capsule, kUse));
}

// Returns a capsule whose destructor ends the registration. The capsule does not keep the memory.
PyObject* register_memory(PyObject*, PyObject* array) {
  return guarded([&]() -> PyObject* {
    Engine& engine = Engine::current();
    const ObjectBuffer buffer = buffer_of({array, Access::kRead, kUse});
    auto registration = std::make_unique<Registration>(engine, buffer.memory);
    Ref capsule = checked(PyCapsule_New(registration.get(), kUse, &forget));
    static_cast<void>(registration.release());
    return capsule.release();
  });
}

PyMethodDef functions[] = {
    {"_register_memory", &register_memory, METH_O, nullptr},
    {},
};

}  // namespace

void init_registration(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
