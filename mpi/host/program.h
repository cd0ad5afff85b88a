// The program whose ranks this process runs: checks that it can have virtual ranks, and makes the image that is loaded once
// per rank.
//
// The loader takes the image for a shared library. The image differs from the file in its dynamic entries: it has no mark of
// an executable, and no constructors and destructors. The host runs those itself, as the C library does for a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "elf_file.h"

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
  const std::vector<std::byte>& image() const { return image_; }

  // Offsets from the load address. 0: there is none.
  std::uint64_t entry() const { return file_.header().e_entry; }
  std::uint64_t first_constructor = 0;  // DT_INIT
  std::uint64_t last_destructor = 0;    // DT_FINI
  FunctionArray early_constructors;
  FunctionArray constructors;
  FunctionArray destructors;

 private:
  FunctionArray take_array(std::int64_t tag, std::int64_t size_tag);
  std::uint64_t take_function(std::int64_t tag);

  ElfFile file_;
  std::vector<std::byte> image_;
};

}  // namespace weft::mpi_host
