#include "codec/forms.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/error.h"

namespace weft::python {

namespace {

// An open-addressing hash table by type, at most half full: 3 instructions find the first slot.
constexpr unsigned kSlotBits = 7;
constexpr std::size_t kNumSlots = std::size_t{1} << kSlotBits;
std::array<Encoding, kNumSlots> encodings;
std::size_t num_encodings = 0;

std::array<DecodeFunction, 256> decodings;
std::vector<EncodeFunction> protocol_encodings;

// The slot of the type, or the empty one where it would be.
Encoding& slot_of(const PyTypeObject* type) {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  std::size_t slot = (reinterpret_cast<std::uintptr_t>(type) * golden) >> (64 - kSlotBits);
  while (encodings[slot].type != nullptr && encodings[slot].type != type) slot = (slot + 1) % kNumSlots;
  return encodings[slot];
}

}  // namespace

void add_encoding(PyTypeObject* type, EncodeFunction encode, Nature nature) {
  Encoding& slot = slot_of(type);
  if (slot.type == nullptr && ++num_encodings > kNumSlots / 2) {
    throw base::Error(base::StatusCode::kInternal, "the table of value forms is full; raise kSlotBits");
  }
  slot = {type, encode, nature};
}

void add_protocol_encoding(EncodeFunction encode) { protocol_encodings.push_back(encode); }

void add_decoding(ValueTag tag, DecodeFunction decode) { decodings[static_cast<std::size_t>(tag)] = decode; }

const Encoding& encoding_of(const PyTypeObject* type) { return slot_of(type); }

DecodeFunction decoding_of(ValueTag tag) { return decodings[static_cast<std::size_t>(tag)]; }

bool encode_by_protocol(Encoder& encoder, PyObject* object) {
  for (EncodeFunction encode : protocol_encodings) {
    if (encode(encoder, object)) return true;
  }
  return false;
}

}  // namespace weft::python
