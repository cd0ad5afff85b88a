// The program whose ranks this process runs: checks that it can have virtual ranks, and says what of it is loaded once per rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/elf_file.h"

namespace weft::mpi_host {

// An array of functions in the program, as offsets from its load address.
struct FunctionArray {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};

class Program {
 public:
  // Throws: Refusal.
  explicit Program(ElfFile file);

  const ElfFile& file() const { return file_; }
  const std::string& path() const { return file_.path(); }
  // The segments that are loaded, in ascending order. They lie in [0, image_bytes()) and share no page.
  const std::vector<Elf64_Phdr>& loaded_segments() const { return loaded_segments_; }
  // The size of a copy in whole pages.
  std::uint64_t image_bytes() const { return image_bytes_; }
  // Why its ranks cannot move to other processes; null if they can.
  const char* obstacle_to_moves() const;

  // Offsets from the load address. 0: there is none.
  std::uint64_t entry() const { return file_.header().e_entry; }
  std::uint64_t first_constructor = 0;  // DT_INIT
  std::uint64_t last_destructor = 0;    // DT_FINI
  FunctionArray early_constructors;
  FunctionArray constructors;
  FunctionArray destructors;

 private:
  void read_segments();
  FunctionArray read_array(std::int64_t tag, std::int64_t size_tag) const;
  std::uint64_t read_function(std::int64_t tag) const;

  ElfFile file_;
  std::vector<Elf64_Phdr> loaded_segments_;
  std::uint64_t image_bytes_ = 0;
};

}  // namespace weft::mpi_host
