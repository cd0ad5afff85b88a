// The arguments `source`, `remote` and `stream` of a copy as the completions of the model.
#pragma once

#include "pgas/memory/copy_end.h"
#include "support/support.h"

namespace weft::python {

// The arguments `source`, `remote` and `stream` of a copy; null or None for each that is absent.
struct CopyReports {
  PyObject* source = nullptr;
  PyObject* remote = nullptr;
  PyObject* stream = nullptr;
};

// The streams that the libraries of the arrays name count too; `stream` goes before them. `stream_keeper` keeps it. Throws
// base::Error, whose message begins with `use`.
rma::Completions completions_from(Engine& engine, const CopyReports& reports, const PythonEnd& from,
                                  const PythonEnd& to, const char* use, Ref& stream_keeper);

}  // namespace weft::python
