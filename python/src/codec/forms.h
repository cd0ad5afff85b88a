// The table of the encodings of types that are not Python's own (encoding.h).
//
// Each topic adds its types when the extension is initialised; afterwards the table does not change. The
// codec therefore knows none of these topics.
#pragma once

#include <cstdint>

#include "codec/encoding.h"
#include "support/support.h"

namespace weft::python {

// Objects that nothing can change and that refer to nothing. Pickle writes them without asking.
inline bool is_plain_constant(PyObject* value) {
  return value == Py_None || PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyBool_Check(value) ||
         PyUnicode_CheckExact(value) || PyBytes_CheckExact(value);
}

class Decoder;
class Encoder;

// Writes a tag and the bytes that it defines. Returns false and writes nothing if the object has no form of
// its own; it is then pickled. Throws PythonError or base::Error if the object cannot travel.
using EncodeFunction = bool (*)(Encoder& encoder, PyObject* object);
// Reads the bytes behind the tag. Throws PythonError or base::Error if they are damaged.
using DecodeFunction = Ref (*)(Decoder& decoder);

// How objects of a type are copied within their PE (OutOfBand::kHere), and inside a pickle (kLinkedPickle).
enum class Nature : std::uint8_t {
  kData,  // by their form; it has all that they consist of
  kName,  // within their PE they are handed over themselves: they cannot change, or they name something that is elsewhere
  kOwner,  // as kName; in a pickle that travels they are pickled, because their form may lead back to the value that they are in
};

struct Encoding {
  const PyTypeObject* type = nullptr;
  EncodeFunction encode = nullptr;  // null for none
  Nature nature = Nature::kData;
};

// For objects of exactly this type, which must exist as long as the process.
void add_encoding(PyTypeObject* type, EncodeFunction encode, Nature nature = Nature::kName);
// For objects of types that are not in the table; the function recognises them by their protocols.
void add_protocol_encoding(EncodeFunction encode);
void add_decoding(ValueTag tag, DecodeFunction decode);

const Encoding& encoding_of(const PyTypeObject* type);
// Null for none.
DecodeFunction decoding_of(ValueTag tag);
// False if no protocol encoding takes the object.
bool encode_by_protocol(Encoder& encoder, PyObject* object);

}  // namespace weft::python
