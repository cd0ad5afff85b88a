// weft._core: the extension module. One init_<topic> per file.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "channel.h"
#include "chare.h"
#include "collection_proxy.h"
#include "device_array.h"
#include "element_proxy.h"
#include "emulated.h"
#include "entry_method.h"
#include "errors.h"
#include "future.h"
#include "landing.h"
#include "machine/factory.h"
#include "memory/report.h"
#include "object_buffer.h"
#include "operation.h"
#include "payload.h"
#include "registration.h"
#include "run.h"
#include "stream.h"

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
