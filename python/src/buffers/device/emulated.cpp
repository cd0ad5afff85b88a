#include "buffers/device/emulated.h"

#include <memory>
#include <string>
#include <utility>

#include "weft/base/error.h"

#include "await/memory_operation.h"
#include "await/operation.h"
#include "base/format.h"
#include "base/value_or_throw.h"
#include "buffers/arrays/array_form.h"
#include "buffers/arrays/arrays.h"
#include "buffers/arrays/dtype.h"
#include "buffers/device/device_array.h"
#include "buffers/streams/stream.h"
#include "engine/ending.h"
#include "engine/engine.h"
#include "memory/kinds/kind.h"
#include "memory/kinds/software_device.h"
#include "memory/memory.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// The device of a place, if the CPU runs the device's kernels; else null.
memory::SoftwareDevice* software_device(Engine& engine, memory::Place place) {
  memory::KindBackend* const backend = engine.runtime().memory().backend(place.kind);
  return backend == nullptr ? nullptr : backend->software_device();
}

// The device whose kernel is running; null for none.
memory::SoftwareDevice* running_device = nullptr;

// A Python function that runs as device code when the device is polled. Its arguments that are device arrays are
// passed as arrays over the device's view of the memory.
class Kernel {
 public:
  Kernel(Engine& engine, memory::SoftwareDevice& device, PyObject* function, PyObject* arguments)
      : engine_(engine),
        device_(device),
        function_(Ref::borrow(function)),
        arguments_(Ref::borrow(arguments)) {}

  base::Status run() const {
    if (engine_->is_closed()) return {base::StatusCode::kClosed, "the job ended before the kernel ran"};
    try {
      Ref views = device_views();
      const RunningKernel running(device_);
      Ref result = Ref::steal(PyObject_CallObject(function_.get(), views.get()));
      end_if_forked();
      if (!result) throw PythonError();
      return {};
    } catch (...) {
      return failure();
    }
  }

 private:
  struct RunningKernel {
    explicit RunningKernel(memory::SoftwareDevice& device) : before(std::exchange(running_device, &device)) {}
    ~RunningKernel() { running_device = before; }
    RunningKernel(const RunningKernel&) = delete;
    RunningKernel& operator=(const RunningKernel&) = delete;
    memory::SoftwareDevice* const before;  // a kernel may make progress, which runs others
  };

  Ref device_views() const {
    Py_ssize_t count = PyTuple_GET_SIZE(arguments_.get());
    Ref views = checked(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* argument = PyTuple_GET_ITEM(arguments_.get(), i);
      PyTuple_SET_ITEM(views.get(), i,
                       is_device_array(argument) ? device_view(argument).release() : Py_NewRef(argument));
    }
    return views;
  }
  Ref device_view(PyObject* array) const {
    const memory::Buffer& memory = as_device_array(array)->memory;
    const ArrayForm& form = as_device_array(array)->form;
    if (memory.size_bytes == 0) return make_array(form);
    base::Result<void*> data = device_.device_view(memory.data, memory.size_bytes);
    if (!data.ok()) base::throw_status(data.status());
    return make_array_over(form, *data, Ref::borrow(array));
  }
  // REQUIRES: called in a catch block.
  base::Status failure() const {
    try {
      throw;
    } catch (const PythonError&) {
      if (ended_by_exception(*engine_)) return {base::StatusCode::kCancelled, "a kernel ended the job"};
      Ref error = PythonError::take();
      return {base::StatusCode::kInternal,
              base::format("the kernel {} raised {}: {}", readable(function_.get()),
                           type_name_of(error.get()), readable(error.get()))};
    } catch (const base::Error& error) {
      return {error.code(), base::format("the kernel {}: {}", readable(function_.get()), error.what())};
    }
  }

  EngineRef engine_;
  memory::SoftwareDevice& device_;
  Ref function_;
  Ref arguments_;  // a tuple
};

// The place of the arrays. All must be on one emulated device.
memory::Place place_of(Engine& engine, PyObject* arguments) {
  memory::Place place;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); ++i) {
    PyObject* argument = PyTuple_GET_ITEM(arguments, i);
    if (!is_device_array(argument)) continue;
    memory::Place here = as_device_array(argument)->memory.place;
    if (software_device(engine, here) == nullptr || (!place.is_host() && here != place)) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          base::format("weft.emulated.launch takes arrays of one emulated device; argument {} is "
                       "on {}{}",
                       i + 1, memory::place_name(here),
                       place.is_host() ? "" : ", another on " + memory::place_name(place)));
    }
    place = here;
  }
  if (place.is_host()) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      "weft.emulated.launch takes at least one weft.DeviceArray of kind emulated");
  }
  return place;
}

PyObject* launch(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("weft.emulated.launch", {"function", "arguments", "stream"}, 3, values, count,
                        nullptr);
    Engine& engine = Engine::current();
    if (PyCallable_Check(arguments[0]) == 0) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          base::format("weft.emulated.launch takes a function, not a {}", type_name_of(arguments[0])));
    }
    memory::Place place = place_of(engine, arguments[1]);
    NamedStream stream = stream_from(arguments[2], place, "weft.emulated.launch");
    if (stream.handle == nullptr) stream.handle = engine.own_stream(place);
    memory::SoftwareDevice& device = *software_device(engine, place);
    auto kernel = std::make_shared<Kernel>(engine, device, arguments[0], arguments[1]);
    base::Status status = device.launch(stream.handle, place.device, [kernel] { return kernel->run(); });
    if (status.failed()) base::throw_status(status);
    if (engine.runtime().memory().backend(place.kind)->is_capturing(stream.handle, place.device))
      return finished_operation().release();
    // An emulated stream makes progress only while an operation waits for it.
    return start_stream_wait(engine, place, stream.handle, std::move(stream.keeper)).release();
  });
}

// --- Graphs

constexpr const char* kGraphName = "weft._core.EmulatedGraph";

// The emulated device of a stream.
PlacedStream emulated_stream_from(Engine& engine, PyObject* stream, const char* use) {
  PlacedStream named = placed_stream_from(stream, nullptr, use);
  if (software_device(engine, named.place) != nullptr) return named;
  throw base::Error(base::StatusCode::kInvalidArgument,
                    base::format("{} takes a weft.Stream of an emulated device", use));
}

PyObject* begin_capture(PyObject*, PyObject* stream) {
  return guarded([&]() -> PyObject* {
    Engine& engine = Engine::current();
    const PlacedStream on = emulated_stream_from(engine, stream, "weft.emulated.capture");
    base::check(software_device(engine, on.place)->begin_capture(on.stream.handle, on.place.device));
    Py_RETURN_NONE;
  });
}

PyObject* end_capture(PyObject*, PyObject* stream) {
  return guarded([&]() -> PyObject* {
    Engine& engine = Engine::current();
    const PlacedStream on = emulated_stream_from(engine, stream, "weft.emulated.capture");
    using Graph = memory::SoftwareDevice::Graph;
    auto graph = std::make_unique<Graph>(base::value_or_throw(
        software_device(engine, on.place)->end_capture(on.stream.handle, on.place.device)));
    Ref capsule = checked(PyCapsule_New(graph.get(), kGraphName, [](PyObject* self) {
      delete static_cast<Graph*>(PyCapsule_GetPointer(self, kGraphName));
    }));
    static_cast<void>(graph.release());
    return capsule.release();
  });
}

PyObject* launch_graph(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments("weft.emulated.Graph.launch", {"graph", "stream"}, 2, values, count, nullptr);
    Engine& engine = Engine::current();
    PlacedStream on = emulated_stream_from(engine, arguments[1], "weft.emulated.Graph.launch");
    auto* const graph =
        static_cast<memory::SoftwareDevice::Graph*>(PyCapsule_GetPointer(arguments[0], kGraphName));
    if (graph == nullptr) throw PythonError();
    base::check(software_device(engine, on.place)->launch_graph(*graph, on.stream.handle, on.place.device));
    return start_stream_wait(engine, on.place, on.stream.handle, std::move(on.stream.keeper)).release();
  });
}

PyObject* memory_at(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    constexpr const char* kUse = "weft.emulated.memory_at";
    const Arguments arguments(kUse, {"address", "shape", "dtype"}, 3, values, count, nullptr);
    if (running_device == nullptr) {
      throw base::Error(base::StatusCode::kInvalidArgument,
                        "weft.emulated.memory_at is for kernels of weft.emulated.launch, while they run");
    }
    void* const address = PyLong_AsVoidPtr(arguments[0]);
    if (PyErr_Occurred() != nullptr) throw PythonError();
    ArrayForm form = make_form(make_dtype(arguments[2]), extents_from(arguments[1], kUse));
    base::Result<void*> data = running_device->device_view(address, form.size_bytes);
    if (!data.ok()) base::throw_status(data.status());
    return make_array_over(form, *data, Ref::borrow(Py_None)).release();
  });
}

PyObject* set_faults(PyObject*, PyObject* text) {
  return guarded([&]() -> PyObject* {
    const std::string faults(text_of(text));
    Engine& engine = Engine::current();
    for (int kind = 0; kind < memory::kNumKinds; ++kind) {
      auto* const device = software_device(engine, {static_cast<memory::Kind>(kind), 0});
      if (device != nullptr) base::check(device->inject_faults(faults));
    }
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"_emulated_launch", as_method(&launch), METH_FASTCALL, nullptr},
    {"_emulated_begin_capture", &begin_capture, METH_O, nullptr},
    {"_emulated_end_capture", &end_capture, METH_O, nullptr},
    {"_emulated_launch_graph", as_method(&launch_graph), METH_FASTCALL, nullptr},
    {"_emulated_memory_at", as_method(&memory_at), METH_FASTCALL, nullptr},
    {"_emulated_set_faults", &set_faults, METH_O, nullptr},
    {},
};

}  // namespace

void init_emulated(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
