// The messages between PEs about sparse arrays. Removals are not among them: they go to the element (SparseArrays::on_remove()).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/pup.h"
#include "weft/base/status.h"

namespace weft::chare {

// An operation that PE `pe` has begun.
struct Ticket {
  std::uint32_t pe = 0;
  std::uint32_t reserved = 0;
  std::uint64_t id = 0;
};

struct SparseMessage {
  enum class Kind : std::uint8_t {
    kInsert,    // to the home: make the element; the constructor's arguments follow
    kMake,      // to the PE of the element; they follow too
    kRemoved,   // to the home: the element does not exist any more, or was not made
    kReply,     // to the PE that has begun an operation: its outcome
    kAsk,       // to the PE that has made the array: count the elements
    kSettle,    // to all: answer when the insertions and removals that you have begun are over
    kSettled,   // the answer, or the element that cannot be removed now
    kCount,     // to all: how many elements exist whose home you are?
    kCounted,   // the answer
    kSet,       // to all: the set and its number of elements
    kSetKnown,  // the answer
  };
  enum class Outcome : std::uint8_t {
    kDone,
    kError,      // `code` and `why`
    kException,  // the packed exception follows
  };

  Kind kind = Kind::kInsert;
  std::uint64_t collection = 0;
  std::uint64_t index = 0;
  std::uint32_t number = 0;  // kMake, kRemoved: of the element's move; of counting: the round
  std::uint32_t set = 0;     // of the element: ChareBase::set_; of counting: the set
  std::int32_t pe = -1;      // kInsert: where to make it; -1: on the home
  std::uint32_t constructor = 0;
  // kCounted, kSet: elements; kReply: the ticket; kRemoved: the set for which the element's PE has counted last.
  std::uint64_t count = 0;
  Outcome outcome = Outcome::kDone;
  base::StatusCode code = base::StatusCode::kOk;
  std::string why;
  std::vector<Ticket> tickets;  // of the operations that end with it

  void pup(Pup& p) {
    p | kind | collection | index | number | set | pe | constructor | count | outcome | code | why | tickets;
  }

  SparseMessage with_error(base::StatusCode with_code, std::string with_why) const {
    SparseMessage failed = *this;
    failed.outcome = Outcome::kError;
    failed.code = with_code;
    failed.why = std::move(with_why);
    return failed;
  }
};

}  // namespace weft::chare
