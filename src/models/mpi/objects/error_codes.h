// The error classes, codes and strings of one rank: those of mpi.h, and those that the program adds.
//
// A class is also a code. Programs add classes and codes above MPI_ERR_LASTCODE.
// Threads: any.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "models/mpi/objects/error.h"

namespace weft::mpi {

// The name of a class of mpi.h, "MPI_ERR_RANK"; empty for other numbers.
std::string_view error_class_name(int error_class);

class ErrorCodes {
 public:
  // `last_used`: where last_used() is, if that must stay at its address for longer than this object; null: in the object.
  explicit ErrorCodes(int* last_used = nullptr)
      : last_used_(last_used == nullptr ? &own_last_used_ : last_used) {}

  // A new class, or a new code of that class.
  Error add_class(int* error_class);
  Error add_code(int error_class, int* code);
  // Replaces the string of a class or code that the program has added.
  Error set_string(int code, std::string_view text);

  // Removes what the program has added. A class goes after its codes, and each of them after its string.
  Error remove_class(int error_class);
  Error remove_code(int code);
  Error remove_string(int code);

  // --- Of a rank that moves. The address of last_used() moves with it.
  struct Added {
    int error_class = 0;  // its own number if it is a class
    std::string text;
  };
  std::map<int, Added> added() const {
    const std::lock_guard lock(mutex_);
    return added_;
  }
  void replace(std::map<int, Added> added) {
    const std::lock_guard lock(mutex_);
    added_ = std::move(added);
  }

  // The class of a class or code. MPI_ERR_ARG: there is none with that number.
  Error class_of(int code, int* error_class) const;
  Error string_of(int code, std::string* text) const;

  // The largest number that has been in use so far: the attribute MPI_LASTUSEDCODE, which programs read through the address.
  const int* last_used() const { return last_used_; }

 private:
  int add(int error_class);
  Error find_added(int code, std::map<int, Added>::iterator* found);

  mutable std::mutex mutex_;
  std::map<int, Added> added_;
  int own_last_used_ = MPI_ERR_LASTCODE;
  int* const last_used_;
};

}  // namespace weft::mpi
