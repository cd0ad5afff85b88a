// The manifest of a checkpoint: its collections, its files, and the program's values. It is written last, so a folder
// with a whole manifest is a whole checkpoint. Every bit of it is checked.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/element_file.h"

namespace weft::checkpoint_files {

// A collection. Names and not numbers, because another build of the program may number its types and maps differently.
struct CollectionEntry {
  std::uint64_t id = 0;  // in the job that has written it: proxies in the states name it
  std::uint8_t kind = 0;
  std::string type_name;   // of the C++ type
  std::string class_name;  // see Collection::set_class_name()
  std::string class_key;
  std::vector<std::int32_t> extents;
  std::uint8_t map = 0;
  std::uint32_t map_pe = 0;
  std::string map_name;
  std::vector<std::uint32_t> table;
  std::uint64_t num_elements =
      0;  // in the files; of a sparse array it may be less than the product of the extents
  std::uint8_t balancing = 0;    // how elements take part in load balancing
  std::uint8_t has_created = 0;  // whether created() runs on elements that are inserted later
  void pup(Pup& p) {
    p | id | kind | type_name | class_name | class_key | extents | map | map_pe | map_name | table |
        num_elements | balancing | has_created;
  }
};

struct Manifest {
  std::uint64_t checkpoint = 0;  // a random number, which the element files repeat
  std::vector<CollectionEntry> collections;
  std::vector<FileSummary> files;  // by PE
  std::vector<std::byte> values;

  // By collection: the product of the extents, which bounds the indices of its elements. REQUIRES: check_manifest().
  std::vector<std::uint64_t> num_indices() const;
  void pup(Pup& p) { p | checkpoint | collections | files | values; }
};

inline constexpr const char* kManifestName = "manifest";
// "elements-3"
std::string element_file_name(std::size_t pe);

// Returns when it is on the disk.
base::Status write_manifest(const std::string& path, const Manifest& manifest);
// Fails with kCorrupt, and names the file, unless its numbers fit together.
base::Status check_manifest(const std::string& path, const Manifest& manifest);
// Fails with kCorrupt, and names the file, unless it is whole and what it says fits together; with kNotFound if there is none.
base::Result<Manifest> read_manifest(const std::string& path);

}  // namespace weft::checkpoint_files
