// The file of one PE in a checkpoint: the states of its elements, one behind the other, and then an index of them.
//
//   header | state, buffer, buffer, ... of each element | index
//
// The writer streams: it holds the index in memory, and 1 MiB of small states. The manifest has the place and the
// checksum of the index; the index has the checksums of states and buffers. So every bit of the file is checked. A
// buffer is memory that a state keeps outside of its bytes, such as that of a NumPy array.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/pup.h"
#include "weft/base/status.h"

#include "checkpoint/storage.h"

namespace weft::checkpoint_files {

using base::Pup;

// The revision of the files. Files of another one are refused.
inline constexpr std::uint32_t kFormatVersion = 3;

struct BufferEntry {
  std::uint64_t size_bytes = 0;
  std::uint32_t crc = 0;
  std::uint32_t kind = 0;  // of memory, by its position in weft/memory/kinds.h
  void pup(Pup& p) { p | size_bytes | crc | kind; }
};

struct ElementEntry {
  std::uint32_t collection = 0;  // its position in the manifest
  std::uint32_t flags = 0;       // of the writer's
  std::uint64_t index = 0;
  std::uint64_t offset = 0;  // of the state in the file; the buffers follow it
  std::uint64_t state_bytes = 0;
  std::uint32_t state_crc = 0;
  std::vector<BufferEntry> buffers;
  void pup(Pup& p) { p | collection | flags | index | offset | state_bytes | state_crc | buffers; }
};

// The facts about an element file that the manifest holds.
struct FileSummary {
  std::uint64_t index_offset = 0;
  std::uint64_t index_bytes = 0;
  std::uint64_t num_elements = 0;
  std::uint32_t index_crc = 0;
  std::uint64_t file_bytes() const { return index_offset + index_bytes; }
  void pup(Pup& p) { p | index_offset | index_bytes | num_elements | index_crc; }
};

class ElementFileWriter {
 public:
  // Makes the file. `checkpoint` is the number of the manifest, which no other checkpoint has.
  static base::Result<ElementFileWriter> create(const std::string& path, std::uint64_t checkpoint,
                                                std::uint32_t pe);
  static base::Result<ElementFileWriter> begin(std::unique_ptr<ByteSink> sink, std::uint64_t checkpoint,
                                               std::uint32_t pe);

  // Appends an element. The buffers that add_buffer() appends next are this element's.
  base::Status add_element(std::uint32_t collection, std::uint64_t index, std::uint32_t flags,
                           std::span<const std::byte> state);
  base::Status add_buffer(std::uint32_t kind, std::span<const std::byte> bytes);
  // Returns when the whole file is stored.
  base::Result<FileSummary> finish();

 private:
  explicit ElementFileWriter(std::unique_ptr<ByteSink> sink) : sink_(std::move(sink)) {}
  // Sets the checksum.
  base::Status append(std::span<const std::byte> bytes, std::uint32_t& crc);
  base::Status flush();
  base::Status write(std::span<const std::byte> bytes);

  std::unique_ptr<ByteSink> sink_;
  std::vector<ElementEntry> entries_;
  std::vector<std::byte> small_;
  std::uint64_t offset_ = 0;
  std::uint64_t not_written_back_ = 0;
};

class ElementFileReader {
 public:
  // Reads the index. `num_indices` bounds the indices of the elements, by collection. Fails with kCorrupt, and names the file, if
  // anything does not fit; with kNotFound if there is no file.
  static base::Result<ElementFileReader> open(const std::string& path, std::uint64_t checkpoint,
                                              std::uint32_t pe, const FileSummary& summary,
                                              std::span<const std::uint64_t> num_indices);
  static base::Result<ElementFileReader> read(std::unique_ptr<ByteSource> source, std::uint64_t checkpoint,
                                              std::uint32_t pe, const FileSummary& summary,
                                              std::span<const std::uint64_t> num_indices);

  const std::vector<ElementEntry>& elements() const { return elements_; }
  // Reads the state of the element, or one of its buffers, into memory of its size. Fails with kCorrupt if it is damaged.
  base::Status read_state(const ElementEntry& element, void* to) const;
  base::Status read_buffer(const ElementEntry& element, std::size_t which, void* to) const;
  // Reads everything, with 1 MiB of memory. Fails with kCorrupt if anything is damaged.
  base::Status verify() const;

 private:
  explicit ElementFileReader(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  base::Status damaged(std::string_view what) const;
  base::Status read_index(std::uint64_t checkpoint, std::uint32_t pe, const FileSummary& summary);
  base::Status check_index(std::span<const std::uint64_t> num_indices, std::uint64_t index_offset) const;
  base::Status read_checked(std::uint64_t offset, void* to, std::uint64_t size_bytes,
                            std::uint32_t crc) const;

  std::unique_ptr<ByteSource> source_;
  std::vector<ElementEntry> elements_;
};

}  // namespace weft::checkpoint_files
