// Integers that stand for handles, as Fortran has them: MPI_X_toint and MPI_X_fromint.
//
// A predefined handle is its own number. An address gets the next free number from 4096 on, and keeps it: an object that is
// made later at the same address has the same number. Threads: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace weft::mpi {

class HandleNumbers {
 public:
  static constexpr int kFirst = 0x1000;

  // -1 if all numbers are in use.
  int number_of(std::uintptr_t handle);
  // 0 if no handle has the number.
  std::uintptr_t handle_of(int number) const;

  // --- Of a rank that moves: the handles in the order of their numbers.
  std::vector<std::uintptr_t> all() const;
  void replace(std::vector<std::uintptr_t> handles);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uintptr_t, int> numbers_;
  std::vector<std::uintptr_t> handles_;
};

}  // namespace weft::mpi
