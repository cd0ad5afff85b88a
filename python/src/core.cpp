// weft._core: the extension module. One init_<topic> per file.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "await/future.h"
#include "await/operation.h"
#include "buffers/arrays.h"
#include "buffers/device_array.h"
#include "buffers/emulated.h"
#include "buffers/landing.h"
#include "buffers/object_buffer.h"
#include "buffers/payload.h"
#include "buffers/registration.h"
#include "buffers/stream.h"
#include "channel/channel.h"
#include "chare/chare.h"
#include "chare/collection_proxy.h"
#include "chare/element_proxy.h"
#include "chare/entry_method.h"
#include "job/run.h"
#include "machine/factory.h"
#include "memory/report.h"
#include "support/errors.h"

NB_MODULE(_core, m) {
  using namespace weft::python;
  PyObject* module = m.ptr();
  try {
    init_arrays(module);
    init_errors(module);
    init_future(module);
    init_operation(module);
    init_chare(module);
    init_element_proxy(module);
    init_collection_proxy(module);
    init_entry_method(module);
    init_channel(module);
    init_object_buffer(module);
    init_device_array(module);
    init_stream(module);
    init_emulated(module);
    init_registration(module);
    init_landing(module);
    init_payload(module);
    init_run(module);
  } catch (const PythonError&) {
    throw nanobind::python_error();
  }
  m.def("machine_report", &weft::machine::machine_report,
        "Version and transports of the UCX in use, one per line.");
  m.def(
      "memory_report",
      [] {
        auto options = weft::memory::MemoryOptions::from_environment(/*local_rank=*/0);
        if (!options.ok()) return std::vector{std::string(options.status().message())};
        weft::memory::Memory memory(*options);
        return weft::memory::report(memory);
      },
      "The memory kinds and their devices, one kind per line.");
}
