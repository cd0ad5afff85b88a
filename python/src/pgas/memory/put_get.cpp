#include "pgas/memory/put_get.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "weft/base/error.h"
#include "weft/pgas/pgas.h"

#include "base/format.h"
#include "buffers/arrays/arrays.h"
#include "buffers/arrays/dtype.h"
#include "buffers/object_buffer.h"
#include "pgas/memory/copies.h"
#include "pgas/memory/copy_end.h"
#include "pgas/memory/element_value.h"
#include "pgas/memory/global_operations.h"
#include "pgas/memory/global_pointer.h"
#include "support/errors.h"

namespace weft::python {

namespace {

constexpr const char* kPut = "weft.pgas.put";
constexpr const char* kGet = "weft.pgas.get";

template <class Bits>
rma::Done put_bits(pgas::Pgas& pgas, const std::byte* element, const rma::GlobalAddress& to) {
  Bits bits;
  std::memcpy(&bits, element, sizeof bits);
  return pgas.put(bits, rma::GlobalPtr<Bits>(to));
}

Ref put_element(Engine& engine, PyObject* value, const GlobalPointerObject* to) {
  pgas::Pgas& pgas = engine.pgas();
  if (to->item_bytes <= sizeof(std::uint64_t) && std::has_single_bit(to->item_bytes)) {
    alignas(std::uint64_t) std::byte element[sizeof(std::uint64_t)];
    store_for(to, value, element, kPut);
    const auto put = [&] {
      switch (to->item_bytes) {
        case 1:
          return put_bits<std::uint8_t>(pgas, element, to->address);
        case 2:
          return put_bits<std::uint16_t>(pgas, element, to->address);
        case 4:
          return put_bits<std::uint32_t>(pgas, element, to->address);
        default:
          return put_bits<std::uint64_t>(pgas, element, to->address);
      }
    };
    return operation_of(engine, put(), Ref(), Ref::borrow(Py_None));
  }
  Ref copy = checked(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(to->item_bytes)));
  auto* const element = reinterpret_cast<std::byte*>(PyBytes_AS_STRING(copy.get()));
  store_for(to, value, element, kPut);
  rma::Done done = pgas.put_memory({element, to->item_bytes, {}, nullptr}, to->address);
  return operation_of(engine, std::move(done), std::move(copy), Ref::borrow(Py_None));
}

// The result of a get of an element whose size no integer type has: its bytes are in the only element of the array `cell`.
Ref element_of_array(runtime::OperationState*, const Ref& cell) {
  ArrayForm form;
  const ObjectBuffer found = buffer_of({cell.get(), Access::kRead, kGet, &form});
  return load_element(static_cast<const std::byte*>(found.memory.data), ElementCode::kOther, form.dtype);
}

Ref get_element(Engine& engine, const GlobalPointerObject* from) {
  pgas::Pgas& pgas = engine.pgas();
  const rma::GlobalAddress& address = from->address;
  switch (from->item_bytes) {
    case 1:
      return operation_of(engine, pgas.get(rma::GlobalPtr<std::uint8_t>(address)), from->code, from->dtype);
    case 2:
      return operation_of(engine, pgas.get(rma::GlobalPtr<std::uint16_t>(address)), from->code, from->dtype);
    case 4:
      return operation_of(engine, pgas.get(rma::GlobalPtr<std::uint32_t>(address)), from->code, from->dtype);
    case 8:
      return operation_of(engine, pgas.get(rma::GlobalPtr<std::uint64_t>(address)), from->code, from->dtype);
    default:
      break;
  }
  Ref cell = make_array(ArrayForm{from->dtype, {}, from->item_bytes});
  const ObjectBuffer found = buffer_of({cell.get(), Access::kWrite, kGet});
  runtime::OperationState* const state = pgas.get_memory(address, found.memory).release();
  if (state == nullptr) return make_finished_operation(element_of_array(nullptr, cell));
  return make_operation_object(engine, state, cell, cell, &element_of_array);
}

PyObject* put(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments(kPut, {"value", "to"}, 2, values, count, names);
    Engine& engine = Engine::current();
    const GlobalPointerObject* const to = global_pointer_from(arguments[1], kPut);
    const bool is_text = PyBytes_CheckExact(arguments[0]) != 0 && dtype_letter(to->dtype) == 'S';
    if (is_text || is_one_element(arguments[0])) return put_element(engine, arguments[0], to).release();
    return copy_between(engine, arguments[0], arguments[1], {}, kPut).release();
  });
}

PyObject* get(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments(kGet, {"source", "shape", "out"}, 1, values, count, names);
    Engine& engine = Engine::current();
    const GlobalPointerObject* const from = global_pointer_from(arguments[0], kGet);
    const bool has_shape = arguments[1] != nullptr && arguments[1] != Py_None;
    const bool has_out = arguments[2] != nullptr && arguments[2] != Py_None;
    if (!has_shape && !has_out) return get_element(engine, from).release();
    if (has_shape && has_out) {
      throw base::Error(base::StatusCode::kInvalidArgument,
                        "weft.pgas.get got a shape and an array; `out` has a shape of its own");
    }
    const Ref out = has_out ? Ref::borrow(arguments[2])
                            : make_array(make_form(from->dtype, extents_from(arguments[1], kGet)));
    return copy_between(engine, arguments[0], out.get(), {}, kGet).release();
  });
}

PyMethodDef functions[] = {
    {"put", as_method(&put), METH_FASTCALL | METH_KEYWORDS, R"(put(value, to)
--

Writes one element, or the elements of an array from `to` on.

A put into a host segment on this host is over when the call returns. Nothing is needed of the PE that owns the memory.

Args:
    value: a number, which the pointer's element type must be able to hold; or an array of that type, in memory of any kind.
        NumPy arrays may have any strides, others are contiguous. An array stays unchanged until the operation is over, which
        keeps it alive.
    to: a GlobalPointer.

Returns:
    a weft.Operation of None. It is over when the data is visible at the target.

Raises:
    weft.Error: a value or an array of another type. The call or the await raises it if the pointer does not lead to so many
        elements of a segment; nothing is written then.)"},
    {"get", as_method(&get), METH_FASTCALL | METH_KEYWORDS, R"(get(source, shape=None, out=None)
--

Reads one element, or the elements from `source` on.

Args:
    source: a GlobalPointer.
    shape: an int or a sequence of ints: a new NumPy array of that shape is read.
    out: the array to read into, writable, of the pointer's type, in memory of any kind. It belongs to the operation until that
        is over.

Returns:
    a weft.Operation of the array. Without `shape` and `out`, of one element: a bool, an int or a float, and a NumPy scalar for
    other types.

Raises:
    weft.Error: as put(); `out` is read-only.)"},
    {},
};

}  // namespace

void init_put_get(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
