// The encoding of the results of calls and reductions.
#pragma once

#include <cstdint>

#include "codec/decoder.h"
#include "support/support.h"

namespace weft::python {

// The byte in front of an encoded result.
enum class ResultForm : std::uint8_t {
  kValue,    // one encoded value
  kGather,   // a packed count, then as many encoded values: a list
  kConcat,   // the same; each value is a list or array, and the result is one list or array of all elements
  kReduced,  // the name of a custom reducer's function, empty for the others; then one encoded value
  kNothing,  // no bytes: of a reduction without a value
};

// Throws PythonError or base::Error if the result is damaged.
Ref decode_result(Decoder& decoder, ResultForm form);

}  // namespace weft::python
