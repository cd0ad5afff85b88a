#include "pgas/memory/copy_end.h"

#include <string_view>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "buffers/arrays/array_form.h"
#include "buffers/arrays/arrays.h"
#include "buffers/arrays/dtype.h"
#include "buffers/object_buffer.h"
#include "pgas/memory/global_pointer.h"

namespace weft::python {

namespace {

std::vector<std::ptrdiff_t> c_strides(std::size_t item_bytes, const std::vector<std::int64_t>& extents) {
  const std::vector<std::int64_t> strides = strides_in(static_cast<std::int64_t>(item_bytes), extents);
  return {strides.begin(), strides.end()};
}

PythonEnd array_end(const BufferRequest& request) {
  PythonEnd end;
  ArrayForm form;
  BufferRequest wanted = request;
  wanted.form = &form;
  ObjectBuffer found;
  std::vector<std::int64_t> strides;
  if (find_strided_array_memory(wanted, found, strides)) {
    end.strides.assign(strides.begin(), strides.end());
  } else {
    found = buffer_of(wanted);
    if (!form.dtype) form.extents = {static_cast<std::int64_t>(form.size_bytes)};
  }
  if (form.dtype) end.item_bytes = item_size_bytes(form.dtype);
  end.dtype = std::move(form.dtype);
  end.extents = std::move(form.extents);
  if (end.strides.empty()) end.strides = c_strides(end.item_bytes, end.extents);
  end.stream = std::exchange(found.memory.stream, nullptr);
  end.end = rma::CopyEnd(found.memory);
  end.keeper = std::move(found.keeper);
  return end;
}

// A dimension of a copy, with the strides of both ends.
struct Dimension {
  std::int64_t extent;
  std::ptrdiff_t from_stride;
  std::ptrdiff_t to_stride;
};

bool is_bytes(const Ref& dtype) { return !dtype || is_byte_type(dtype); }

std::string element_type(const PythonEnd& end) {
  return end.dtype ? dtype_name(end.dtype) : std::string("plain bytes");
}

// An end in the words of the program, which may have named it by an index of a global array.
std::string typed_end(const PythonEnd& end) {
  return base::format("{} of {}", end.is_array() ? "an array" : "global memory", element_type(end));
}

// Advice for a copy between different element types. A program that calls a method of GlobalArray has no pointer.
std::string remedy(const PythonEnd& from, const PythonEnd& to, const char* use) {
  if (!from.is_array() && !to.is_array()) {
    return "get() the elements, convert them, and put() them; or cast() a pointer whose memory has the other "
           "type";
  }
  if (from.is_array() && to.is_array()) return "convert one of them, for example with array.astype()";
  const PythonEnd& array = from.is_array() ? from : to;
  const std::string wanted = element_type(from.is_array() ? to : from);
  std::string what = from.is_array()
                         ? base::format("convert the array to {}, for example with array.astype()", wanted)
                         : base::format("give an array of {}, and convert what was read", wanted);
  if (std::string_view(use).find("GlobalArray") == std::string_view::npos)
    what += base::format("; or cast() the pointer if its memory holds {}", element_type(array));
  return what;
}

}  // namespace

std::int64_t PythonEnd::num_elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  return count;
}

std::string PythonEnd::text() const {
  if (!is_array()) return base::format("{} at {}", element_type(*this), rma::describe(end.address));
  return base::format("an array of {} of shape {}", element_type(*this),
                      readable(number_tuple(extents).get()));
}

PythonEnd end_from(PyObject* object, Access access, const char* use) {
  if (!is_global_pointer(object)) return array_end({object, access, use});
  const GlobalPointerObject* const pointer = as_global_pointer(object);
  PythonEnd end;
  end.end = rma::CopyEnd(pointer->address);
  end.dtype = pointer->dtype;
  end.item_bytes = pointer->item_bytes;
  return end;
}

void take_form(PythonEnd& pointer, std::vector<std::int64_t> extents) {
  pointer.strides = c_strides(pointer.item_bytes, extents);
  pointer.extents = std::move(extents);
}

bool is_contiguous(const PythonEnd& array) {
  return is_c_order({array.strides.begin(), array.strides.end()}, static_cast<std::int64_t>(array.item_bytes),
                    array.extents);
}

void expect_same_type(const PythonEnd& from, const PythonEnd& to, const char* use) {
  const bool same_type = from.dtype && to.dtype ? is_same_type(from.dtype, to.dtype)
                                                : is_bytes(from.dtype) && is_bytes(to.dtype);
  if (!same_type) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("{} got {} as its source and {} as its target, whose element types differ; {}", use,
                     typed_end(from), typed_end(to), remedy(from, to, use)));
  }
}

void expect_same_form(const PythonEnd& from, const PythonEnd& to, const char* use) {
  expect_same_type(from, to, use);
  if (from.extents != to.extents) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("{} got {} and {}, whose shapes differ: {} and {}", use, from.text(), to.text(),
                     readable(number_tuple(from.extents).get()), readable(number_tuple(to.extents).get())));
  }
}

std::vector<rma::Run> runs_between(const PythonEnd& from, const PythonEnd& to) {
  std::size_t size_bytes = 0;
  if (!total_bytes(from.extents, from.item_bytes, size_bytes)) {
    throw base::Error(base::StatusCode::kOutOfRange,
                      base::format("a copy of {} elements is larger than an address space",
                                   readable(number_tuple(from.extents).get())));
  }
  // Neighbouring dimensions that both ends hold without gaps are one.
  std::vector<Dimension> dimensions;
  for (std::size_t d = 0; d < from.extents.size(); ++d) {
    const Dimension next{from.extents[d], from.strides[d], to.strides[d]};
    if (next.extent == 0) return {};
    if (next.extent == 1) continue;
    if (!dimensions.empty() && dimensions.back().from_stride == next.from_stride * next.extent &&
        dimensions.back().to_stride == next.to_stride * next.extent) {
      dimensions.back() = {dimensions.back().extent * next.extent, next.from_stride, next.to_stride};
    } else {
      dimensions.push_back(next);
    }
  }
  std::vector<std::ptrdiff_t> from_strides;
  std::vector<std::ptrdiff_t> to_strides;
  std::vector<std::size_t> extents;
  for (const Dimension& dimension : dimensions) {
    from_strides.push_back(dimension.from_stride);
    to_strides.push_back(dimension.to_stride);
    extents.push_back(static_cast<std::size_t>(dimension.extent));
  }
  return rma::runs_of(from_strides, to_strides, extents, from.item_bytes);
}

}  // namespace weft::python
