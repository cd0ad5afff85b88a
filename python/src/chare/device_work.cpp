#include "chare/device_work.h"

#include <memory>
#include <new>
#include <utility>

#include "weft/base/error.h"
#include "weft/chare/element_load.h"

#include "buffers/streams/stream.h"
#include "engine/engine.h"
#include "support/errors.h"

namespace weft::python {

namespace {

constexpr const char* kUse = "Chare.device_work";

// A share of the load of a chare, or of what is measured for the PE's observer. The object that has it may outlive the chare, and the job.
class LoadShare {
 public:
  // `load`: null for a chare without load balancing.
  LoadShare(Engine& engine, chare::ElementLoad* load) : engine_(engine), load_(load) {
    if (load_ != nullptr) load_->acquire();
  }
  ~LoadShare() {
    if (load_ != nullptr) load_->release();
  }
  LoadShare(const LoadShare&) = delete;
  LoadShare& operator=(const LoadShare&) = delete;

  // Null when the job has ended. Throws base::Error on another thread than the PE's.
  runtime::DeviceTime* device_time() {
    if (engine_->is_closed()) return nullptr;
    engine_->expect_open();
    runtime::Runtime& runtime = engine_->runtime();
    return load_ != nullptr ? &load_->device_time(runtime) : &runtime.device_meter().of_others(runtime);
  }

 private:
  EngineRef engine_;
  chare::ElementLoad* load_;
};

struct DeviceWork {
  std::shared_ptr<LoadShare> load;  // null if the chare is not measured
  PlacedStream stream;
  bool is_open = false;
};

struct DeviceWorkObject {
  PyObject_HEAD DeviceWork work;
};

PyTypeObject* device_work_type = nullptr;

DeviceWork& work_of(PyObject* object) { return reinterpret_cast<DeviceWorkObject*>(object)->work; }

PyObject* enter(PyObject* self, PyObject*) {
  return guarded([self] {
    DeviceWork& work = work_of(self);
    if (work.is_open) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          "Chare.device_work: this context is entered already; call device_work() for each `with`");
    }
    runtime::DeviceTime* const time = work.load == nullptr ? nullptr : work.load->device_time();
    if (time != nullptr) time->begin(work.stream.place, work.stream.stream.handle);
    work.is_open = true;
    return Py_NewRef(self);
  });
}

// On another thread it throws, and the body stays open.
void close(DeviceWork& work) {
  if (!work.is_open) return;
  runtime::DeviceTime* const time = work.load == nullptr ? nullptr : work.load->device_time();
  work.is_open = false;
  if (time != nullptr) time->end(work.stream.place, work.stream.stream.handle);
}

PyObject* exit(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    close(work_of(self));
    Py_RETURN_NONE;
  });
}

void deallocate(PyObject* self) {
  Engine::drop_on_pe_thread(std::move(work_of(self).load));
  work_of(self).~DeviceWork();
  free_object(self);
}

PyMethodDef methods[] = {
    {"__enter__", &enter, METH_NOARGS, nullptr},
    {"__exit__", &exit, METH_VARARGS, nullptr},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>(
                    "What Chare.device_work() returns: the body of its `with` is device work of the chare.")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.DeviceWork", sizeof(DeviceWorkObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

void init_device_work(PyObject* module) { device_work_type = add_type(module, spec); }

Ref make_device_work(PyChare& chare, PyObject* stream, PyObject* kind) {
  DeviceWork work;
  work.stream = placed_stream_or_default(stream, kind, kUse);
  const bool is_balanced = chare.load() != nullptr && chare.collection().is_balanced();
  if (is_balanced || chare.runtime().observer() != nullptr) {
    work.load = std::make_shared<LoadShare>(Engine::current(), is_balanced ? chare.load() : nullptr);
  }
  Ref object = checked(PyType_GenericAlloc(device_work_type, 0));
  new (&work_of(object.get())) DeviceWork(std::move(work));
  return object;
}

}  // namespace weft::python
