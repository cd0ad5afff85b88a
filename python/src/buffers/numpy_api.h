// NumPy's C API: included by dtype.cpp, arrays.cpp, array_codec.cpp and read_only.cpp alone.
//
// The table of NumPy's functions is one for the extension. arrays.cpp, which imports NumPy, defines it.
#pragma once

#include "support/support.h"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL weft_numpy_api
#ifndef WEFT_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
