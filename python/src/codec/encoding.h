// The encoding of Python values. An encoded value is a tag byte and the bytes that the tag defines, in this
// machine's byte order.
//
// None, bool, int, float, str, bytes, memoryview, array.array of numbers, tuple, list, dict, NumPy arrays and
// scalars of number types, DeviceArrays, futures and proxies have forms of their own. All other values are
// pickled with protocol 5, with their buffers out of band.
//
// Identity is kept within a value: an object that occurs twice arrives as one, and a cycle as a cycle. A container in which an
// object occurs twice, or which holds an object that is pickled, is therefore one pickle, kLinkedPickle. The same holds for the
// arguments of a call together.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::python {

enum class ValueTag : std::uint8_t {
  kNone,
  kTrue,
  kFalse,
  kSmallInt,       // 1 byte, signed
  kInt,            // 8 bytes, signed
  kFloat,          // 8 bytes
  kShortText,      // 1 byte length, UTF-8
  kText,           // 8 bytes length
  kShortBytes,     // 1 byte length
  kBytes,          // 8 bytes length
  kTuple,          // 4 bytes count, values
  kList,           // 4 bytes count, values
  kDict,           // 4 bytes count, keys and values in turn
  kArray,          // ArrayHeader, extents of 8 bytes, the elements
  kAttachedArray,  // the same without the elements; 4 bytes number of the attachment that has them
  // ArrayHeader, extents of 8 bytes, 1 byte memory kind; if there are elements, 4 bytes number of the
  // attachment that has them; then the element type as a value, if it is not in the header.
  kDeviceArray,
  kNumber,         // a NumPy scalar: 1 byte type number, its bytes
  kFuture,         // FutureAddress
  kElement,        // a collection as pup_collection packs it, its class, 8 bytes index, 4 bytes priority
  kCollection,     // a collection as pup_collection packs it, its class
  kAttachedBytes,  // 8 bytes length; 4 bytes number of the attachment that has them
  // A name: the format of an element; 1 byte count of dimensions, extents of 8 bytes, 8 bytes length, the
  // bytes in C order.
  kMemoryView,
  kPickle,  // 4 bytes count of buffers, 8 bytes size, pickle; then for each buffer 8 bytes size and its bytes
  // A collection as pup_collection packs it, its class, the members as SectionMembers packs them. New forms come last: pickles in
  // checkpoints have the numbers of the others.
  kSection,
  // In the state of an element that moves: FutureAddress, 1 byte FutureHandle::Kind, FutureAddress of the link; the text of an
  // unobserved error and the packed error as values; the value, if the future has one.
  kCopiedFuture,
  kCombinedSection,  // as CombinedMembers packs it; then the class of each part
  kTeam,             // as pgas::Team packs it
  kDistObject,       // pgas::ObjectNumber
  // The 16 bytes of a rma::GlobalAddress; 1 byte type number, or -1 and then the element type as a value.
  kGlobalPointer,
  // 4 bytes count of parts, the parts as values; then as kPickle. The pickle names the objects that have forms of their own by
  // their numbers among the parts.
  kLinkedPickle,
  kLinkedArguments,  // a tuple: the arguments of a call. The first one is the value; the next ones are kLinkedArgument
  kLinkedArgument,  // 2 bytes number of an argument of the last kLinkedArguments
  // Four strings of runtime::pack_error(): an exception in the place of a value, which decoding throws. The result of a reduction
  // whose reducer has raised it.
  kRaised,
  kKept,  // 4 bytes number of an object that the encoder keeps, see OutOfBand::kHere; never in a message
  kStandardArray,  // an array.array of numbers: 1 byte type code, 8 bytes length, the elements
};

// Whether nothing can change the value of such a form, which is not one of Python's own, once it is decoded.
constexpr bool is_immutable_form(ValueTag tag) {
  switch (tag) {
    case ValueTag::kNumber:
    case ValueTag::kElement:
    case ValueTag::kCollection:
    case ValueTag::kSection:
    case ValueTag::kCombinedSection:
    case ValueTag::kTeam:
    case ValueTag::kGlobalPointer:
      return true;
    default:
      return false;
  }
}

// A flag in the size of a pickle's buffer: the bytes are in an attachment, whose number follows in 4 bytes.
inline constexpr std::uint64_t kAttachedBuffer = std::uint64_t{1} << 63;

// Containers that are nested deeper are pickled.
inline constexpr int kMaxNesting = 32;
// A separate value in containers, such as a task of a Pool, may be nested as deeply again.
inline constexpr int kMaxNestingReceived = 2 * kMaxNesting;

struct ArrayHeader {
  std::uint8_t type_number = 0;
  std::uint8_t num_dimensions = 0;
  std::uint8_t fortran_order = 0;
};

}  // namespace weft::python
