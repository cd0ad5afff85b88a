// The two ends of a copy in Python: global pointers, and arrays of any kind.
//
// Threads: the PE's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/pgas/pgas.h"

#include "buffers/arrays/buffer_request.h"
#include "engine/engine.h"
#include "rma/copy/copies.h"
#include "rma/copy/run.h"
#include "support/support.h"

namespace weft::python {

struct PythonEnd {
  rma::CopyEnd end{rma::GlobalAddress()};
  Ref dtype;  // null: plain bytes
  std::size_t item_bytes = 1;
  std::vector<std::int64_t> extents;      // of an array
  std::vector<std::ptrdiff_t> strides;    // in bytes
  memory::StreamHandle stream = nullptr;  // of the array's library
  Ref keeper;                             // owns the array's memory

  bool is_array() const { return end.is_local; }
  std::int64_t num_elements() const;
  // "float64 of shape (3,)", or as pointer_text().
  std::string text() const;
};

// Throws base::Error, whose message begins with `use`, for an object that is neither, for memory that cannot be used, and for
// a read-only array if the access is kWrite. NumPy arrays may have any strides.
PythonEnd end_from(PyObject* object, Access access, const char* use);
// Gives a pointer the form of an array in C order.
void take_form(PythonEnd& pointer, std::vector<std::int64_t> extents);

// Whether the elements of an array lie in C order without gaps.
bool is_contiguous(const PythonEnd& array);

// Throws base::Error unless both ends have the same element type.
void expect_same_type(const PythonEnd& from, const PythonEnd& to, const char* use);
// Throws base::Error unless both ends have the same element type and the same extents.
void expect_same_form(const PythonEnd& from, const PythonEnd& to, const char* use);

// The bytes of the copy. REQUIRES: both have the same form.
std::vector<rma::Run> runs_between(const PythonEnd& from, const PythonEnd& to);

}  // namespace weft::python
