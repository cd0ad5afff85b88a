#include "checkpoint/element_file.h"

#include <algorithm>
#include <cstring>

#include "weft/base/error.h"

#include "base/format.h"
#include "checkpoint/crc32c.h"

namespace weft::checkpoint_files {

namespace {

constexpr std::size_t kSmallBytes = std::size_t{1} << 20;          // gathered before they are written
constexpr std::size_t kDirectBytes = std::size_t{128} << 10;       // written from where they are
constexpr std::uint64_t kWriteBackBytes = std::uint64_t{8} << 20;  // after which the disk begins

struct Header {
  char magic[8] = {'W', 'E', 'F', 'T', 'E', 'L', 'M', '\n'};
  std::uint32_t version = kFormatVersion;
  std::uint32_t pe = 0;
  std::uint64_t checkpoint = 0;
};
static_assert(sizeof(Header) == 24);

}  // namespace

ElementFileWriter::ElementFileWriter(const std::string& path, std::uint64_t checkpoint, std::uint32_t pe)
    : file_(DiskFile::create(path)) {
  small_.reserve(kSmallBytes);
  Header header;
  header.pe = pe;
  header.checkpoint = checkpoint;
  static_cast<void>(append(std::as_bytes(std::span(&header, 1))));
}

void ElementFileWriter::add_element(std::uint32_t collection, std::uint64_t index, std::uint32_t flags,
                                    std::span<const std::byte> state) {
  entries_.push_back({collection, flags, index, offset_, state.size(), 0, {}});
  entries_.back().state_crc = append(state);
}

void ElementFileWriter::add_buffer(std::uint32_t kind, std::span<const std::byte> bytes) {
  entries_.back().buffers.push_back({bytes.size(), append(bytes), kind});
}

std::uint32_t ElementFileWriter::append(std::span<const std::byte> bytes) {
  offset_ += bytes.size();
  if (bytes.size() < kDirectBytes) {
    if (small_.size() + bytes.size() > kSmallBytes) flush();
    small_.insert(small_.end(), bytes.begin(), bytes.end());
    return crc32c(bytes.data(), bytes.size());
  }
  flush();
  std::uint32_t crc = 0;
  while (!bytes.empty()) {  // in parts that stay in the cache between the checksum and the system's copy
    const std::size_t part = std::min(bytes.size(), kDirectBytes);
    crc = crc32c(bytes.data(), part, crc);
    write(bytes.first(part));
    bytes = bytes.subspan(part);
  }
  return crc;
}

void ElementFileWriter::flush() {
  write(small_);
  small_.clear();
}

void ElementFileWriter::write(std::span<const std::byte> bytes) {
  file_.write(bytes.data(), bytes.size());
  not_written_back_ += bytes.size();
  if (not_written_back_ < kWriteBackBytes) return;
  not_written_back_ = 0;
  file_.start_writing_back();
}

FileSummary ElementFileWriter::finish() {
  const std::vector<std::byte> index = base::pack(entries_);
  FileSummary summary;
  summary.index_offset = offset_;
  summary.index_bytes = index.size();
  summary.num_elements = entries_.size();
  summary.index_crc = append(index);
  flush();
  file_.sync();
  file_.drop_cached_pages();
  return summary;
}

ElementFileReader::ElementFileReader(const std::string& path, std::uint64_t checkpoint, std::uint32_t pe,
                                     const FileSummary& summary, std::span<const std::uint64_t> num_indices)
    : file_(DiskFile::open(path)) {
  const std::uint64_t size_bytes = file_.size_bytes();
  if (summary.index_offset < sizeof(Header) || summary.index_offset > size_bytes ||
      summary.index_bytes != size_bytes - summary.index_offset) {
    refuse(base::format("it has {} bytes instead of {}", size_bytes, summary.file_bytes()));
  }
  Header header;
  file_.read(0, &header, sizeof header);
  Header expected;
  expected.pe = pe;
  expected.checkpoint = checkpoint;
  if (std::memcmp(&header, &expected, sizeof header) != 0) refuse("it is not a file of this checkpoint");
  std::vector<std::byte> index(summary.index_bytes);
  read_checked(summary.index_offset, index.data(), index.size(), summary.index_crc);
  try {
    Pup p = Pup::unpacker(index.data(), index.size());
    p | elements_;
    if (p.remaining_bytes() != 0) refuse("its index has bytes too many");
  } catch (const base::Error& error) {
    refuse(error.what());
  }
  if (elements_.size() != summary.num_elements) refuse("its index has another number of elements");
  check_index(num_indices, summary.index_offset);
}

void ElementFileReader::refuse(const std::string& what) const {
  throw base::Error(base::StatusCode::kCorrupt,
                    base::format("the checkpoint file {} is damaged: {}", file_.path(), what));
}

void ElementFileReader::check_index(std::span<const std::uint64_t> num_indices,
                                    std::uint64_t index_offset) const {
  std::uint64_t offset = sizeof(Header);
  const auto pass = [&](std::uint64_t size_bytes) {
    if (size_bytes > index_offset - offset) refuse("a state reaches into the index");
    offset += size_bytes;
  };
  for (const ElementEntry& element : elements_) {
    if (element.collection >= num_indices.size() || element.index >= num_indices[element.collection]) {
      refuse("it has an element that no collection has");
    }
    if (element.offset != offset) refuse("a state is not where its index says");
    pass(element.state_bytes);
    for (const BufferEntry& buffer : element.buffers) pass(buffer.size_bytes);
  }
  if (offset != index_offset) refuse("it has bytes of no element");
}

void ElementFileReader::read_checked(std::uint64_t offset, void* to, std::uint64_t size_bytes,
                                     std::uint32_t crc) const {
  file_.read(offset, to, size_bytes);
  if (crc32c(to, size_bytes) != crc) {
    refuse(base::format("the checksum of the {} bytes from {} on is wrong", size_bytes, offset));
  }
}

void ElementFileReader::read_state(const ElementEntry& element, void* to) const {
  read_checked(element.offset, to, element.state_bytes, element.state_crc);
}

void ElementFileReader::read_buffer(const ElementEntry& element, std::size_t which, void* to) const {
  std::uint64_t offset = element.offset + element.state_bytes;
  for (std::size_t i = 0; i < which; ++i) offset += element.buffers[i].size_bytes;
  read_checked(offset, to, element.buffers[which].size_bytes, element.buffers[which].crc);
}

void ElementFileReader::verify() const {
  std::vector<std::byte> part(kSmallBytes);
  std::uint64_t begin = 0;  // of the bytes of the file that `part` has
  std::uint64_t end = 0;
  std::uint64_t offset = sizeof(Header);
  const std::uint64_t all =
      elements_.empty() ? 0
                        : file_.size_bytes();  // the index has been checked; reading on into it is harmless
  const auto check = [&](std::uint64_t size_bytes, std::uint32_t expected) {
    std::uint32_t crc = 0;
    const std::uint64_t first = offset;
    for (std::uint64_t left = size_bytes; left > 0;) {
      if (offset == end || begin == end) {
        begin = offset;
        end = begin + std::min<std::uint64_t>(part.size(), all - begin);
        file_.read(begin, part.data(), end - begin);
      }
      const std::uint64_t count = std::min(left, end - offset);
      crc = crc32c(part.data() + (offset - begin), count, crc);
      offset += count;
      left -= count;
    }
    if (crc != expected) {
      refuse(base::format("the checksum of the {} bytes from {} on is wrong", size_bytes, first));
    }
  };
  for (const ElementEntry& element : elements_) {
    check(element.state_bytes, element.state_crc);
    for (const BufferEntry& buffer : element.buffers) check(buffer.size_bytes, buffer.crc);
  }
}

}  // namespace weft::checkpoint_files
