#include "job/report.h"

#include <string>
#include <vector>

#include "engine/engine.h"
#include "machine/factory/factory.h"
#include "machine/machine.h"
#include "memory/memory.h"
#include "memory/report.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// [(transfer, memory kind, path, messages, bytes)]
PyObject* transport_use(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    Ref list = checked(PyList_New(0));
    for (const machine::TransportUse& use : Engine::current().runtime().machine().transport_use()) {
      Ref type = make_text(machine::transfer_type_name(use.type));
      Ref kind = make_text(memory::kind_name(use.kind));
      Ref path = make_text(machine::transfer_path_name(use.path));
      Ref row = checked(Py_BuildValue("(OOOKK)", type.get(), kind.get(), path.get(),
                                      static_cast<unsigned long long>(use.messages),
                                      static_cast<unsigned long long>(use.bytes)));
      checked(PyList_Append(list.get(), row.get()));
    }
    return list.release();
  });
}

// [([PE], transports)]
PyObject* peer_transports(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    Ref list = checked(PyList_New(0));
    for (const machine::PeerTransports& peer : Engine::current().runtime().machine().peer_transports()) {
      Ref pes = checked(PyList_New(0));
      for (const int pe : peer.pes) {
        checked(PyList_Append(pes.get(), checked(PyLong_FromLong(pe)).get()));
      }
      Ref row = checked(Py_BuildValue("(Os)", pes.get(), peer.transports.c_str()));
      checked(PyList_Append(list.get(), row.get()));
    }
    return list.release();
  });
}

Ref list_of(const std::vector<std::string>& lines) {
  Ref list = checked(PyList_New(0));
  for (const std::string& line : lines) checked(PyList_Append(list.get(), make_text(line).get()));
  return list;
}

PyObject* machine_report(PyObject*, PyObject*) {
  return guarded([] { return list_of(machine::machine_report()).release(); });
}

std::vector<std::string> memory_lines() {
  auto options = memory::MemoryOptions::from_environment(/*local_rank=*/0);
  if (!options.ok()) return {std::string(options.status().message())};
  memory::Memory memory(*options);
  return memory::report(memory);
}

PyObject* memory_report(PyObject*, PyObject*) {
  return guarded([] { return list_of(memory_lines()).release(); });
}

PyMethodDef functions[] = {
    {"_transport_use", &transport_use, METH_NOARGS, nullptr},
    {"_peer_transports", &peer_transports, METH_NOARGS, nullptr},
    {"machine_report", &machine_report, METH_NOARGS,
     "machine_report()\n--\n\nVersion and transports of the UCX in use, one per line."},
    {"memory_report", &memory_report, METH_NOARGS,
     "memory_report()\n--\n\nThe memory kinds and their devices, one kind per line."},
    {},
};

}  // namespace

void init_report(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
