#include "buffers/arrays/dtype.h"

#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "buffers/arrays/element_types.h"
#include "buffers/arrays/numpy_api.h"
#include "buffers/arrays/numpy_loading.h"

namespace weft::python {

namespace {

// NumPy's own numbers are smaller.
constexpr int kFirstNamedType = 128;

PyArray_Descr* as_descriptor(const Ref& dtype) { return reinterpret_cast<PyArray_Descr*>(dtype.get()); }

}  // namespace

bool is_number_type(int type_number) {
  return PyTypeNum_ISNUMBER(type_number) || PyTypeNum_ISBOOL(type_number);
}

Ref make_dtype(PyObject* description) {
  load_numpy();
  PyArray_Descr* descriptor = nullptr;
  const ElementType* const named =
      PyUnicode_Check(description) ? element_type_from_name(text_of(description)) : nullptr;
  if (named != nullptr) return dtype_of(*named);
  if (PyArray_DescrConverter(description, &descriptor) == 0) throw PythonError();
  Ref dtype = Ref::steal(reinterpret_cast<PyObject*>(descriptor));
  if (PyDataType_REFCHK(descriptor)) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("elements of type {} are Python objects, which device memory and channels cannot hold; "
                     "use a type of plain bytes",
                     readable(dtype.get())));
  }
  return dtype;
}

std::size_t item_size_bytes(const Ref& dtype) {
  return static_cast<std::size_t>(PyDataType_ELSIZE(as_descriptor(dtype)));
}

std::string dtype_name(const Ref& dtype) {
  const ElementType* const type = element_type_of(dtype.get());
  return type == nullptr ? readable(dtype.get()) : type->name;
}

int encoded_type_number(const Ref& dtype) {
  const int number = as_descriptor(dtype)->type_num;
  if (is_number_type(number)) return is_native_byte_order(dtype) ? number : -1;
  const ElementType* const type = element_type_of(dtype.get());
  return type == nullptr ? -1 : kFirstNamedType + static_cast<int>(number_of(*type));
}

Ref dtype_of_number(int number) {
  load_numpy();
  if (is_number_type(number)) return checked(reinterpret_cast<PyObject*>(PyArray_DescrFromType(number)));
  if (number < kFirstNamedType) return {};
  const ElementType* const type =
      element_type_from_number(static_cast<std::size_t>(number - kFirstNamedType));
  return type == nullptr ? Ref() : dtype_of(*type);
}

Ref dtype_or_nothing(Ref object) {
  load_numpy();
  bool usable = PyArray_DescrCheck(object.get()) && !PyDataType_REFCHK(as_descriptor(object));
  return usable ? std::move(object) : Ref();
}

char dtype_letter(const Ref& dtype) { return as_descriptor(dtype)->kind; }

bool is_native_byte_order(const Ref& dtype) { return PyDataType_ISNOTSWAPPED(as_descriptor(dtype)); }

bool is_same_type(const Ref& dtype, const Ref& other) {
  if (PyArray_EquivTypes(as_descriptor(dtype), as_descriptor(other)) != 0) return true;
  const ElementType* const type = element_type_of(dtype.get());
  return type != nullptr && type == element_type_of(other.get());
}

bool is_byte_type(const Ref& dtype) { return as_descriptor(dtype)->type_num == NPY_UBYTE; }

}  // namespace weft::python
