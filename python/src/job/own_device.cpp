#include "job/own_device.h"

#include "weft/base/error.h"

#include "base/format.h"
#include "buffers/streams/stream.h"
#include "memory/memory.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// Why this process has no device of the kind, and what to do.
[[noreturn]] void no_device(const memory::Memory& memory, memory::Kind kind) {
  if (kind == memory::Kind::kHost) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      "weft.device: host memory belongs to no device; ask for \"cuda\" or \"emulated\"");
  }
  throw base::Error(
      base::StatusCode::kUnsupported,
      base::format("weft.device(\"{}\"): this process has no such device: {}; every machine has "
                   "weft.device(\"emulated\")",
                   memory::kind_name(kind), memory.availability(kind).message()));
}

// (name of the kind, number)
PyObject* own_device(PyObject*, PyObject* kind) {
  return guarded([&]() -> PyObject* {
    memory::Memory& memory = Engine::current().runtime().memory();
    const memory::Place place = place_from(kind, "weft.device");
    const memory::KindBackend* backend = memory.backend(place.kind);
    if (place.is_host() || backend == nullptr) no_device(memory, place.kind);
    if (place.device >= backend->num_devices()) {
      throw base::Error(base::StatusCode::kOutOfRange,
                        base::format("weft.device: there is no {}: this process has {} of that kind",
                                     memory::place_name(place), backend->num_devices()));
    }
    const Ref name = make_text(memory::kind_name(place.kind));
    return Py_BuildValue("(Oi)", name.get(), static_cast<int>(place.device));
  });
}

// For any thread: a library may be imported on another one. The current device is that of the PE's thread.
PyObject* make_own_devices_current(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    Engine* const engine = Engine::running();
    if (engine == nullptr || engine->is_closed()) Py_RETURN_NONE;
    if (engine->is_on_this_thread()) {
      engine->job().make_own_devices_current();
    } else {
      engine->runtime().post_from_any_thread([engine] { engine->job().make_own_devices_current(); });
    }
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"_own_device", &own_device, METH_O, nullptr},
    {"_make_own_devices_current", &make_own_devices_current, METH_NOARGS, nullptr},
    {},
};

}  // namespace

void init_own_device(PyObject* module) { add_functions(module, functions); }

void watch_device_libraries(Engine& engine) {
  if (engine.runtime().memory().backend(memory::Kind::kCuda) == nullptr) return;
  const Ref watch = import_from("weft._job.devices", "watch");
  checked(PyObject_CallNoArgs(watch.get()));
}

}  // namespace weft::python
