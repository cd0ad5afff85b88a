#include "weft/base/pup.h"

#include "weft/base/error.h"

#include "base/format.h"

namespace weft::base {

void Pup::overrun(std::size_t wanted_bytes) const {
  if (mode_ == Mode::kPacking) {
    throw Error(
        StatusCode::kInternal,
        base::format(
            "a pup function packs more than it sized: {} bytes at offset {}, {} are left; it must visit "
            "the same members in the same order in every mode",
            wanted_bytes, offset_bytes(), remaining_bytes()));
  }
  throw Error(
      StatusCode::kCorrupt,
      base::format(
          "a message ends too early: {} bytes or elements are needed at offset {} and {} bytes are left; "
          "sender and receiver disagree about the types of the arguments",
          wanted_bytes, offset_bytes(), remaining_bytes()));
}

void Pup::refuse(const char* what) const {
  throw Error(
      StatusCode::kCorrupt,
      base::format("a message holds {} before offset {}; sender and receiver disagree about the types of the "
                   "arguments",
                   what, offset_bytes()));
}

}  // namespace weft::base
