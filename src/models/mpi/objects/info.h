// An info object: pairs of a key and a value in the order in which the program set them.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/mpi/objects/error.h"
#include "models/mpi/objects/object.h"

namespace weft::mpi {

class Info final : public Object {
 public:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  Info() : Object(ObjectKind::kInfo) {}
  explicit Info(Pairs pairs) : Object(ObjectKind::kInfo), pairs_(std::move(pairs)) {}

  const Pairs& pairs() const { return pairs_; }
  // Null if the key has no value.
  const std::string* find(std::string_view key) const;

  // Replaces the value of a key that is there. Null, empty and too long strings are errors.
  Error set(const char* key, const char* value);
  Error remove(const char* key);

 private:
  Pairs::iterator position_of(std::string_view key);

  Pairs pairs_;
};

// Whether the standard allows a key of that length; null and "" are errors.
Error check_info_key(const char* key);

// The keys that MPI_INFO_ENV and MPI_Info_create_env have for a program with these arguments.
Info::Pairs environment_pairs(int num_arguments, const char* const* arguments);

}  // namespace weft::mpi
