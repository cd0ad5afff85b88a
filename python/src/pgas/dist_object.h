// weft.pgas.DistObject.
#pragma once

#include "weft/pgas/function_traits.h"

#include "support/support.h"

namespace weft::python {

void init_dist_object(PyObject* module);

bool is_dist_object(PyObject* object);
// REQUIRES: is_dist_object(object). Throws base::Error if the job has ended.
const pgas::rpc_detail::ObjectNumber& dist_object_number(PyObject* object);

}  // namespace weft::python
