// NumPy's C API, for dtype.cpp, arrays.cpp, array_codec.cpp, read_only.cpp and numpy_loading.cpp.
//
// The extension has one table of NumPy's functions, which numpy_loading.cpp defines and fills in. Each use REQUIRES
// numpy_is_loaded().
#pragma once

#include "support/support.h"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL weft_numpy_api
#ifndef WEFT_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
