// weft.pgas.DistObject.
#pragma once

#include "weft/pgas/dist_object.h"

#include "support/support.h"

namespace weft::python {

void init_dist_object(PyObject* module);

bool is_dist_object(PyObject* object);
// REQUIRES: is_dist_object(object). Throws base::Error if the job has ended.
const pgas::ObjectName& dist_object_name(PyObject* object);

}  // namespace weft::python
