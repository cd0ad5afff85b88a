#include "models/mpi/datatype/signature.h"

#include <algorithm>
#include <utility>

#include "models/mpi/datatype/checked.h"

namespace weft::mpi {
namespace {

// A signature of at most this many pieces is copied into the one that it is part of.
constexpr std::size_t kFewPieces = 8;

// The last piece that begins at or before `position`, where Begin::*what counts the position.
std::size_t piece_with(const Signature& signature, MPI_Count Signature::Begin::* what, MPI_Count position) {
  const auto after = std::upper_bound(
      signature.begins.begin(), signature.begins.end() - 1, position,
      [what](MPI_Count value, const Signature::Begin& begin) { return value < begin.*what; });
  return static_cast<std::size_t>(after - signature.begins.begin()) - 1;
}

}  // namespace

std::optional<MPI_Count> elements_in_bytes(const Signature& signature, MPI_Count bytes) {
  if (bytes == 0) return 0;
  if (signature.size == 0) return std::nullopt;
  const MPI_Count whole = bytes / signature.size;
  MPI_Count counted = whole * signature.elements;
  const MPI_Count rest = bytes - whole * signature.size;
  if (rest == 0) return counted;
  const std::size_t i = piece_with(signature, &Signature::Begin::bytes, rest);
  const Signature::Piece& piece = signature.pieces[i];
  counted += signature.begins[i].elements;
  const MPI_Count within = rest - signature.begins[i].bytes;
  if (piece.basic != nullptr) {
    if (within % piece.basic->size != 0) return std::nullopt;
    return counted + within / piece.basic->size;
  }
  const std::optional<MPI_Count> nested = elements_in_bytes(*piece.nested, within);
  if (!nested) return std::nullopt;
  return counted + *nested;
}

std::optional<MPI_Count> bytes_of_elements(const Signature& signature, MPI_Count elements) {
  if (elements == 0) return 0;
  if (signature.elements == 0) return std::nullopt;
  const MPI_Count whole = elements / signature.elements;
  const MPI_Count rest = elements - whole * signature.elements;
  Wide counted = Wide{whole} * signature.size;
  if (rest != 0) {
    const std::size_t i = piece_with(signature, &Signature::Begin::elements, rest);
    const Signature::Piece& piece = signature.pieces[i];
    const MPI_Count within = rest - signature.begins[i].elements;
    counted += signature.begins[i].bytes;
    if (piece.basic != nullptr) {
      counted += Wide{within} * piece.basic->size;
    } else {
      const std::optional<MPI_Count> nested = bytes_of_elements(*piece.nested, within);
      if (!nested) return std::nullopt;
      counted += *nested;
    }
  }
  if (!fits_count(counted)) return std::nullopt;
  return static_cast<MPI_Count>(counted);
}

void SignatureList::add_basic(const BasicType& basic, MPI_Count repeat) {
  if (repeat == 0) return;
  if (!pieces_.empty() && pieces_.back().basic == &basic) {
    pieces_.back().repeat += repeat;
  } else {
    pieces_.push_back({&basic, nullptr, repeat});
  }
}

void SignatureList::add(const SignaturePointer& part, MPI_Count repeat) {
  if (repeat == 0 || part->size == 0) return;
  if (const BasicType* basic = part->only_basic()) {
    add_basic(*basic, part->elements * repeat);
  } else if (repeat == 1 && part->pieces.size() <= kFewPieces) {
    for (const Signature::Piece& piece : part->pieces) {
      if (piece.basic != nullptr) {
        add_basic(*piece.basic, piece.repeat);
      } else {
        add(piece.nested, piece.repeat);
      }
    }
  } else if (!pieces_.empty() && pieces_.back().nested == part) {
    pieces_.back().repeat += repeat;
  } else {
    pieces_.push_back({nullptr, part, repeat});
  }
}

SignaturePointer SignatureList::finish() {
  auto made = std::make_shared<Signature>();
  made->pieces = std::move(pieces_);
  made->pieces.shrink_to_fit();
  made->begins.reserve(made->pieces.size() + 1);
  for (const Signature::Piece& piece : made->pieces) {
    made->begins.push_back({made->size, made->elements});
    made->size += piece.repeat * (piece.basic != nullptr ? piece.basic->size : piece.nested->size);
    made->elements += piece.repeat * (piece.basic != nullptr ? 1 : piece.nested->elements);
    made->external_size +=
        piece.repeat * (piece.basic != nullptr ? piece.basic->external_size : piece.nested->external_size);
  }
  made->begins.push_back({made->size, made->elements});
  return made;
}

}  // namespace weft::mpi
