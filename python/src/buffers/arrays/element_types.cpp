#include "buffers/arrays/element_types.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/format.h"
#include "buffers/arrays/numpy_api.h"
#include "buffers/arrays/numpy_loading.h"

namespace weft::python {

namespace {

constexpr dlpack::DataType byte_float(dlpack::TypeCode code) { return {code, 8, 1}; }

// The position in the table is part of the number that encodes a type.
constexpr std::array kTypes = {
    ElementType{"bfloat16", {dlpack::kBfloat, 16, 1}},
    ElementType{"float8_e3m4", byte_float(dlpack::kFloat8E3m4)},
    ElementType{"float8_e4m3", byte_float(dlpack::kFloat8E4m3)},
    ElementType{"float8_e4m3b11fnuz", byte_float(dlpack::kFloat8E4m3b11fnuz)},
    ElementType{"float8_e4m3fn", byte_float(dlpack::kFloat8E4m3fn)},
    ElementType{"float8_e4m3fnuz", byte_float(dlpack::kFloat8E4m3fnuz)},
    ElementType{"float8_e5m2", byte_float(dlpack::kFloat8E5m2)},
    ElementType{"float8_e5m2fnuz", byte_float(dlpack::kFloat8E5m2fnuz)},
    ElementType{"float8_e8m0fnu", byte_float(dlpack::kFloat8E8m0fnu)},
    // Two elements in a byte. ml_dtypes has only its float4_e2m1fn, one element in a byte.
    ElementType{"float4_e2m1fn_x2", {dlpack::kFloat4E2m1fn, 4, 2}},
    ElementType{"complex32", {dlpack::kComplex, 32, 1}},
};

PyArray_Descr* as_descriptor(PyObject* dtype) { return reinterpret_cast<PyArray_Descr*>(dtype); }

const ElementType* found_or_null(const ElementType* found) { return found == kTypes.end() ? nullptr : found; }

// The name of a type that another package registered with NumPy, such as "bfloat16".
std::string registered_name(PyArray_Descr* descriptor) {
  return readable(attribute(reinterpret_cast<PyObject*>(descriptor->typeobj), "__name__").get());
}

// The name of the only field of a record; empty for other types.
std::string_view field_name(PyArray_Descr* descriptor) {
  PyObject* const names = PyDataType_NAMES(descriptor);
  if (names == nullptr || PyTuple_GET_SIZE(names) != 1) return {};
  return text_of(PyTuple_GET_ITEM(names, 0));
}

// Null if the package cannot be imported or does not have the type.
Ref dtype_of_package(const ElementType& type) {
  Ref module = Ref::steal(PyImport_ImportModule("ml_dtypes"));
  Ref scalar = module ? Ref::steal(PyObject_GetAttrString(module.get(), type.name)) : Ref();
  PyArray_Descr* descriptor = nullptr;
  if (scalar && PyArray_DescrConverter(scalar.get(), &descriptor) == 0) descriptor = nullptr;
  if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_Exception) == 0) throw PythonError();
  PyErr_Clear();
  Ref dtype = Ref::steal(reinterpret_cast<PyObject*>(descriptor));
  const bool fits = dtype && static_cast<std::size_t>(PyDataType_ELSIZE(descriptor)) == type.size_bytes();
  return fits ? std::move(dtype) : Ref();
}

Ref dtype_of_own(const ElementType& type) {
  const Ref fields =
      checked(Py_BuildValue("[(ss)]", type.name, base::format("u{}", type.size_bytes()).c_str()));
  PyArray_Descr* descriptor = nullptr;
  if (PyArray_DescrConverter(fields.get(), &descriptor) == 0) throw PythonError();
  return Ref::steal(reinterpret_cast<PyObject*>(descriptor));
}

}  // namespace

const ElementType* element_type_of(PyObject* dtype) {
  PyArray_Descr* const descriptor = as_descriptor(dtype);
  std::string name;
  if (descriptor->type_num >= NPY_USERDEF) name = registered_name(descriptor);
  if (descriptor->type_num == NPY_VOID) name = field_name(descriptor);
  if (name.empty()) return nullptr;
  const ElementType* const type = element_type_from_name(name);
  const bool fits =
      type != nullptr && static_cast<std::size_t>(PyDataType_ELSIZE(descriptor)) == type->size_bytes();
  return fits ? type : nullptr;
}

const ElementType* element_type_from_name(std::string_view name) {
  return found_or_null(
      std::ranges::find_if(kTypes, [name](const ElementType& type) { return type.name == name; }));
}

const ElementType* element_type_from_dlpack(const dlpack::DataType& type) {
  return found_or_null(std::ranges::find_if(kTypes, [&type](const ElementType& each) {
    return each.dlpack.code == type.code && each.dlpack.bits == type.bits && each.dlpack.lanes == type.lanes;
  }));
}

const ElementType* element_type_from_number(std::size_t number) {
  return number < kTypes.size() ? &kTypes[number] : nullptr;
}

std::size_t number_of(const ElementType& type) { return static_cast<std::size_t>(&type - kTypes.data()); }

Ref dtype_of(const ElementType& type) {
  // Lives as long as the process: the elements of an array may outlive a job.
  static std::array<PyObject*, kTypes.size()> made{};
  load_numpy();
  PyObject*& dtype = made[number_of(type)];
  if (dtype == nullptr) {
    Ref found = dtype_of_package(type);
    dtype = (found ? std::move(found) : dtype_of_own(type)).release();
  }
  return Ref::borrow(dtype);
}

}  // namespace weft::python
