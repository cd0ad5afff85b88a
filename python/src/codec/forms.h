// The table of the wire forms of types that are not Python's own (encoding.h).
//
// Each topic adds its types when the extension is initialised; afterwards the table does not change. The
// codec therefore knows none of these topics.
#pragma once

#include "codec/encoding.h"
#include "support/support.h"

namespace weft::python {

class Decoder;
class Encoder;

// Writes a tag and the bytes that it defines. Returns false and writes nothing if the object has no form of
// its own; it is then pickled. Throws PythonError or base::Error if the object cannot travel.
using EncodeFunction = bool (*)(Encoder& encoder, PyObject* object);
// Reads the bytes behind the tag. Throws PythonError or base::Error if they are damaged.
using DecodeFunction = Ref (*)(Decoder& decoder);

// For objects of exactly this type, which must exist as long as the process.
void add_encoding(PyTypeObject* type, EncodeFunction encode);
// For objects of types that are not in the table; the function recognises them by their protocols.
void add_protocol_encoding(EncodeFunction encode);
void add_decoding(ValueTag tag, DecodeFunction decode);

// Null for none.
EncodeFunction encoding_of(const PyTypeObject* type);
DecodeFunction decoding_of(ValueTag tag);
// False if no protocol encoding takes the object.
bool encode_by_protocol(Encoder& encoder, PyObject* object);

}  // namespace weft::python
