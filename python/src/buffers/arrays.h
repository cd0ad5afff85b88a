// NumPy arrays, scalars and element types. The only file that knows NumPy's C API.
#pragma once

#include <cstddef>

#include "weft/runtime/attachment.h"

#include "buffers/array_form.h"
#include "buffers/object_buffer.h"
#include "support/support.h"

namespace weft::python {

class Decoder;
class Encoder;

// Imports NumPy.
void init_arrays(PyObject* module);

// An ndarray (no subclass) of a number type in native byte order; others are pickled.
bool is_plain_array(PyObject* object);
// Whether the reference at hand is the only one to an array that owns its memory.
bool is_sole_owner(PyObject* object);
bool is_plain_number(PyObject* object);
// Contiguous ones, in C or Fortran order, as they are; others are copied into C order first.
void encode_array(Encoder& encoder, PyObject* array);
// Contiguous or an error, and beside the message.
void encode_array_in_place(Encoder& encoder, PyObject* array);
void encode_number(Encoder& encoder, PyObject* number);
Ref decode_array(Decoder& decoder);
Ref decode_attached_array(Decoder& decoder);
// A one-dimensional array of bytes that owns the memory.
Ref make_byte_array(runtime::Attachment attachment);
Ref decode_number(Decoder& decoder);

// --- Element types and shapes, for memory of any kind

// numpy.dtype(`description`); throws base::Error for one whose elements are Python objects.
Ref make_dtype(PyObject* description);
std::size_t item_size_bytes(const Ref& dtype);
// "float64", or a record's fields.
std::string dtype_name(const Ref& dtype);
// kind ('b', 'i', 'u', 'f', 'c', 'V' ...) of NumPy's array interface.
// NumPy's number of a plain number type in native byte order, -1 for other types; and back, null for none.
int plain_type_number(const Ref& dtype);
Ref plain_dtype(int type_number);
// Null unless `object` is a numpy.dtype without Python objects.
Ref dtype_or_nothing(Ref object);
char dtype_letter(const Ref& dtype);
bool is_native_byte_order(const Ref& dtype);

// A new array in C order; its elements are not set.
Ref make_array(const ArrayForm& form);
// One over memory that `owner` keeps.
Ref make_array_over(const ArrayForm& form, void* data, Ref owner);

// The memory of an ndarray of any type; false for other objects. Throws base::Error as buffer_of does.
bool find_array_memory(const BufferRequest& request, ObjectBuffer& found);

}  // namespace weft::python
