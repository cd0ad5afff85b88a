// Signature: the basic types of one element of a datatype, in the order in which they travel. It counts basic elements for
// MPI_Get_elements, and it says how packed bytes are to be interpreted, for "external32".
//
// Repetitions are not written out: the signature of 10^9 structs of an int and a double has three pieces.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/datatype/basic_type.h"

namespace weft::mpi {

struct Signature;
using SignaturePointer = std::shared_ptr<const Signature>;

struct Signature {
  // `repeat` times a basic type, or `repeat` times another signature.
  struct Piece {
    const BasicType* basic;
    SignaturePointer nested;
    MPI_Count repeat;
  };
  // Where a piece begins.
  struct Begin {
    MPI_Count bytes;
    MPI_Count elements;
  };

  std::vector<Piece> pieces;
  std::vector<Begin> begins;  // of each piece; then the totals
  MPI_Count size = 0;         // packed bytes
  MPI_Count elements = 0;     // basic elements
  MPI_Count external_size = 0;

  // The basic type if there is one only; null otherwise.
  const BasicType* only_basic() const { return pieces.size() == 1 ? pieces[0].basic : nullptr; }
};

// How many basic elements the first `bytes` packed bytes of many elements of the datatype hold. Nothing if they end within a basic
// element, or if the signature is empty and `bytes` is not 0.
std::optional<MPI_Count> elements_in_bytes(const Signature& signature, MPI_Count bytes);

// How many packed bytes the first `elements` basic elements have. Nothing if the number does not fit 64 bits, or if the signature is
// empty and `elements` is not 0.
std::optional<MPI_Count> bytes_of_elements(const Signature& signature, MPI_Count elements);

// Makes the signature of parts in the order of the calls. The sums must fit 64 bits: the constructors check the
// size before, and there are not more elements than bytes.
class SignatureList {
 public:
  void add_basic(const BasicType& basic, MPI_Count repeat);
  void add(const SignaturePointer& part, MPI_Count repeat);
  SignaturePointer finish();

 private:
  std::vector<Signature::Piece> pieces_;
};

// Calls visit(const BasicType&, MPI_Count number) for the runs of basic elements of `count` elements of the datatype, in order.
template <class Visit>
void for_each_basic_run(const Signature& signature, MPI_Count count, Visit&& visit) {
  if (const BasicType* basic = signature.only_basic()) {
    if (count > 0) visit(*basic, count * signature.elements);
    return;
  }
  for (MPI_Count i = 0; i < count; ++i) {
    for (const Signature::Piece& piece : signature.pieces) {
      if (piece.basic != nullptr) {
        visit(*piece.basic, piece.repeat);
      } else {
        for_each_basic_run(*piece.nested, piece.repeat, visit);
      }
    }
  }
}

}  // namespace weft::mpi
