#include "buffers/arrays/buffer_request.h"

#include "weft/base/error.h"

#include "base/format.h"
#include "engine/engine.h"
#include "memory/kinds/native_api.h"
#include "memory/memory.h"

namespace weft::python {

void unusable(const BufferRequest& request, std::string_view why) {
  throw base::Error(base::StatusCode::kInvalidArgument,
                    base::format("{} got a {} {}", request.use, type_name_of(request.object), why));
}

void not_contiguous(const BufferRequest& request, bool is_fortran_order) {
  if (request.access == Access::kWrite) {
    unusable(request,
             "that is not C-contiguous; receive into a contiguous array and copy that into this one");
  }
  unusable(request, is_fortran_order
                        ? "in Fortran order; pass its transpose, array.T, which is C-contiguous, or "
                          "weft.pack(array), a copy in C order"
                        : "that is not C-contiguous; pass weft.pack(array), a contiguous copy");
}

Ref optional_attribute(const BufferRequest& request, const char* name) {
  Ref found = Ref::steal(PyObject_GetAttrString(request.object, name));
  if (found) return found;
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw PythonError();
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) {
    unusable(request, base::format("whose {} cannot be read: {}", name, readable(PythonError::take().get())));
  }
  PyErr_Clear();
  return found;
}

void expect_cuda(const BufferRequest& request) {
  memory::Memory& memory = Engine::current().runtime().memory();
  if (memory.backend(memory::Kind::kCuda) != nullptr) return;
  unusable(request, base::format("in CUDA memory, and this process has no CUDA: {}",
                                 memory.availability(memory::Kind::kCuda).message()));
}

memory::Place cuda_place_of(const BufferRequest& request, const void* address) {
  expect_cuda(request);
  // Not place_of(), which takes memory alone: the object may name a range that the driver has only reserved.
  memory::Place place = Engine::current().runtime().memory().allocation_of(address).place;
  if (memory::native_api_of(place.kind) == memory::NativeApi::kCuda) return place;
  unusable(request,
           base::format("that says it is CUDA memory, and the driver does not know its address {}", address));
}

}  // namespace weft::python
