#include "chare/checkpoint.h"

#include <algorithm>
#include <memory>
#include <string>

#include "weft/chare/checkpoint.h"

#include "await/future.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "engine/engine.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// REQUIRES: bytes, as os.fsencode() makes them.
std::string path_of(PyObject* folder) {
  char* path = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(folder, &path, &size) != 0) throw PythonError();
  return {path, static_cast<std::size_t>(size)};
}

// Packs the values. REQUIRES: the visitor sizes before it packs.
chare::checkpoint_detail::VisitValues packing(PyObject* values) {
  return [values, encoder = std::make_shared<Encoder>()](Pup& p) {
    if (p.is_sizing()) {
      try {
        encoder->value(values);
      } catch (const PythonError&) {
        rethrow_unsendable("a value of the checkpoint");
      }
      return p.reserve(encoder->size_bytes());
    }
    std::vector<std::byte> bytes = encoder->copy();
    p.bytes(bytes.data(), bytes.size());
  };
}

PyObject* save(PyObject*, PyObject* arguments) {
  return guarded([arguments]() -> PyObject* {
    const char* folder = nullptr;
    PyObject* values = nullptr;
    if (PyArg_ParseTuple(arguments, "yO", &folder, &values) == 0) return nullptr;
    Engine& engine = Engine::current();
    Ref done = wrap_future(engine, chare::checkpoint_detail::save(engine.runtime(), folder, packing(values)));
    future_state(done.get())->end_job_if_unobserved("a checkpoint that was not awaited");
    return done.release();
  });
}

PyObject* protect(PyObject*, PyObject* values) {
  return guarded([values]() -> PyObject* {
    Engine& engine = Engine::current();
    Ref done = wrap_future(engine, chare::checkpoint_detail::protect(engine.runtime(), packing(values)));
    future_state(done.get())->end_job_if_unobserved("a weft.protect that was not awaited");
    return done.release();
  });
}

PyObject* loading_of(Engine& engine, const chare::checkpoint_detail::Loading& loading) {
  const Ref done = wrap_future(engine, loading.done);
  return Py_BuildValue("(OK)", done.get(), static_cast<unsigned long long>(loading.number));
}

PyObject* recover(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    Engine& engine = Engine::current();
    return loading_of(engine, chare::checkpoint_detail::recover(engine.runtime()));
  });
}

PyObject* recoveries(PyObject*, PyObject*) {
  return guarded([] { return PyLong_FromLong(chare::recoveries(Engine::current().runtime())); });
}

PyObject* resize(PyObject*, PyObject* num_pes) {
  return guarded([num_pes]() -> PyObject* {
    Engine& engine = Engine::current();
    constexpr long kMost = 1 << 20;
    const long wanted = PyLong_AsLong(num_pes);
    if (wanted == -1 && PyErr_Occurred() != nullptr) return nullptr;
    const int num_wanted = static_cast<int>(std::clamp(wanted, -kMost, kMost));
    Ref answered = wrap_future(engine, chare::resize(engine.runtime(), num_wanted));
    future_state(answered.get())->end_job_if_unobserved("a weft.resize that was not awaited");
    return answered.release();
  });
}

PyObject* load(PyObject*, PyObject* folder) {
  return guarded([folder]() -> PyObject* {
    Engine& engine = Engine::current();
    return loading_of(engine, chare::checkpoint_detail::load(engine.runtime(), path_of(folder)));
  });
}

// (number): None if a recovery has found nothing.
PyObject* loaded_values(PyObject*, PyObject* number) {
  return guarded([number]() -> PyObject* {
    Engine& engine = Engine::current();
    const unsigned long long loading = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred() != nullptr) return nullptr;
    if (!chare::checkpoint_detail::has_loaded(engine.runtime(), loading)) Py_RETURN_NONE;
    Ref values;
    chare::checkpoint_detail::unpack_values(engine.runtime(), loading, [&values](Pup& p) {
      Decoder decoder(p);
      values = decoder.value();
      decoder.finish(p);
    });
    return values.release();
  });
}

PyObject* has(PyObject*, PyObject* folder) {
  return guarded(
      [folder]() -> PyObject* { return PyBool_FromLong(chare::has_checkpoint(path_of(folder)) ? 1 : 0); });
}

PyMethodDef functions[] = {
    {"_checkpoint", &save, METH_VARARGS, nullptr},
    {"_restore", &load, METH_O, nullptr},
    {"_restored_values", &loaded_values, METH_O, nullptr},
    {"_has_checkpoint", &has, METH_O, nullptr},
    {"_protect", &protect, METH_O, nullptr},
    {"_recover", &recover, METH_NOARGS, nullptr},
    {"_resize", &resize, METH_O, nullptr},
    {"_recoveries", &recoveries, METH_NOARGS, nullptr},
    {},
};

}  // namespace

void init_checkpoint(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace weft::python
