// weft.pgas.Segment, make_segment() and make_segment_at().
#pragma once

#include "support/support.h"

namespace weft::python {

void init_segment(PyObject* module);

}  // namespace weft::python
