// The table of the forms in which values travel beyond those of Python's own types (encoding.h).
//
// Each topic adds its types when the extension is initialised; afterwards the table does not change. The codec
// therefore knows none of these topics.
#pragma once

#include "codec/encoding.h"
#include "support/support.h"

namespace weft::python {

class Decoder;
class Encoder;

// Writes a tag and what follows it. Returns false, with nothing written, if the object has no form of its own;
// it is pickled then. Throws PythonError or base::Error if the object cannot travel.
using EncodeFunction = bool (*)(Encoder& encoder, PyObject* object);
// Reads what follows the tag. Throws PythonError or base::Error if that is damaged.
using DecodeFunction = Ref (*)(Decoder& decoder);

// For objects of exactly this type, which lives as long as the process.
void add_encoding(PyTypeObject* type, EncodeFunction encode);
// For objects of types that are not in the table: recognised by what they can do.
void add_protocol_encoding(EncodeFunction encode);
void add_decoding(ValueTag tag, DecodeFunction decode);

// Null for none.
EncodeFunction encoding_of(const PyTypeObject* type);
DecodeFunction decoding_of(ValueTag tag);
// False if no protocol encoding takes the object.
bool encode_by_protocol(Encoder& encoder, PyObject* object);

}  // namespace weft::python
