// The host memory of segments: parts of files that the PEs of a host map.
//
// Small parts share files, because a file costs its owner a descriptor and each PE a mapping. A large part has a file of its
// own. The parts of a file never overlap, and a part that is allocated again is filled with zeros.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "weft/base/status.h"

#include "base/shared_mapping.h"

namespace weft::rma {

// A part of this PE, or of another PE that this one has mapped.
struct SharedPart {
  std::shared_ptr<base::SharedMapping> file;
  std::size_t offset_bytes = 0;

  std::byte* data() const { return file->data() + offset_bytes; }
};

// The parts that this PE owns.
class SharedParts {
 public:
  // The largest part that shares a file, the size of such files, and the alignment of parts: no two share a cache line.
  static constexpr std::size_t kLargestSharedBytes = std::size_t{64} << 10;
  static constexpr std::size_t kFileBytes = std::size_t{1} << 20;
  static constexpr std::size_t kAlignment = 128;

  // REQUIRES: size_bytes > 0.
  base::Result<SharedPart> allocate(std::size_t size_bytes);
  // REQUIRES: no PE uses the part any more.
  void free(const SharedPart& part, std::size_t size_bytes);
  // That small parts share.
  std::size_t num_files() const { return files_.size(); }

 private:
  struct File {
    std::shared_ptr<base::SharedMapping> file;
    std::map<std::size_t, std::size_t> free;  // offset and size; no two adjoin
  };

  static bool take(File& file, std::size_t size_bytes, std::size_t& offset_bytes);

  std::vector<File> files_;
};

// The files of other PEs that this PE has mapped; each once.
class MappedFiles {
 public:
  // Null if this process cannot see the file, as on another host, or if the part is not inside of it.
  SharedPart open(const base::SharedMappingName& name, std::uint64_t offset_bytes, std::uint64_t size_bytes);

 private:
  std::map<std::uint64_t, std::weak_ptr<base::SharedMapping>> files_;  // by their random numbers
};

}  // namespace weft::rma
