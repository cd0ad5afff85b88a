#include "checkpoint/element_file.h"

#include <algorithm>
#include <cstring>

#include "weft/base/error.h"

#include "base/format.h"
#include "checkpoint/crc32c.h"
#include "checkpoint/disk_file.h"

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

base::Result<ElementFileWriter> ElementFileWriter::create(const std::string& path, std::uint64_t checkpoint,
                                                          std::uint32_t pe) {
  base::Result<DiskFile> file = DiskFile::create(path);
  if (!file.ok()) return file.status();
  return begin(std::make_unique<DiskFile>(std::move(*file)), checkpoint, pe);
}

base::Result<ElementFileWriter> ElementFileWriter::begin(std::unique_ptr<ByteSink> sink,
                                                         std::uint64_t checkpoint, std::uint32_t pe) {
  ElementFileWriter writer(std::move(sink));
  writer.small_.reserve(kSmallBytes);
  Header header;
  header.pe = pe;
  header.checkpoint = checkpoint;
  std::uint32_t unused = 0;
  if (base::Status status = writer.append(std::as_bytes(std::span(&header, 1)), unused); !status.ok())
    return status;
  return writer;
}

base::Status ElementFileWriter::add_element(std::uint32_t collection, std::uint64_t index,
                                            std::uint32_t flags, std::span<const std::byte> state) {
  entries_.push_back({collection, flags, index, offset_, state.size(), 0, {}});
  return append(state, entries_.back().state_crc);
}

base::Status ElementFileWriter::add_buffer(std::uint32_t kind, std::span<const std::byte> bytes) {
  entries_.back().buffers.push_back({bytes.size(), 0, kind});
  return append(bytes, entries_.back().buffers.back().crc);
}

base::Status ElementFileWriter::append(std::span<const std::byte> bytes, std::uint32_t& crc) {
  offset_ += bytes.size();
  if (bytes.size() < kDirectBytes) {
    if (small_.size() + bytes.size() > kSmallBytes) {
      if (base::Status status = flush(); !status.ok()) return status;
    }
    small_.insert(small_.end(), bytes.begin(), bytes.end());
    crc = sink_->needs_checksums() ? crc32c(bytes.data(), bytes.size()) : 0;
    return {};
  }
  base::Status status = flush();
  crc = 0;
  while (status.ok() &&
         !bytes.empty()) {  // in parts that stay in the cache between the checksum and the system's copy
    const std::size_t part = std::min(bytes.size(), kDirectBytes);
    if (sink_->needs_checksums()) crc = crc32c(bytes.data(), part, crc);
    status = write(bytes.first(part));
    bytes = bytes.subspan(part);
  }
  return status;
}

base::Status ElementFileWriter::flush() {
  base::Status status = write(small_);
  small_.clear();
  return status;
}

base::Status ElementFileWriter::write(std::span<const std::byte> bytes) {
  base::Status status = sink_->write(bytes.data(), bytes.size());
  not_written_back_ += bytes.size();
  if (!status.ok() || not_written_back_ < kWriteBackBytes) return status;
  not_written_back_ = 0;
  sink_->start_writing_back();
  return {};
}

base::Result<FileSummary> ElementFileWriter::finish() {
  const std::vector<std::byte> index = base::pack(entries_);
  FileSummary summary;
  summary.index_offset = offset_;
  summary.index_bytes = index.size();
  summary.num_elements = entries_.size();
  base::Status status = append(index, summary.index_crc);
  if (status.ok()) status = flush();
  if (status.ok()) status = sink_->finish();
  if (!status.ok()) return status;
  return summary;
}

base::Result<ElementFileReader> ElementFileReader::open(const std::string& path, std::uint64_t checkpoint,
                                                        std::uint32_t pe, const FileSummary& summary,
                                                        std::span<const std::uint64_t> num_indices) {
  base::Result<DiskFile> file = DiskFile::open(path);
  if (!file.ok()) return file.status();
  return read(std::make_unique<DiskFile>(std::move(*file)), checkpoint, pe, summary, num_indices);
}

base::Result<ElementFileReader> ElementFileReader::read(std::unique_ptr<ByteSource> source,
                                                        std::uint64_t checkpoint, std::uint32_t pe,
                                                        const FileSummary& summary,
                                                        std::span<const std::uint64_t> num_indices) {
  ElementFileReader reader(std::move(source));
  base::Status status = reader.read_index(checkpoint, pe, summary);
  if (status.ok()) status = reader.check_index(num_indices, summary.index_offset);
  if (!status.ok()) return status;
  return reader;
}

base::Status ElementFileReader::read_index(std::uint64_t checkpoint, std::uint32_t pe,
                                           const FileSummary& summary) {
  const base::Result<std::uint64_t> size_bytes = source_->size_bytes();
  if (!size_bytes.ok()) return size_bytes.status();
  if (summary.index_offset < sizeof(Header) || summary.index_offset > size_bytes.value() ||
      summary.index_bytes != size_bytes.value() - summary.index_offset) {
    return damaged(base::format("it has {} bytes instead of {}", size_bytes.value(), summary.file_bytes()));
  }
  Header header;
  if (base::Status status = source_->read(0, &header, sizeof header); !status.ok()) return status;
  Header expected;
  expected.pe = pe;
  expected.checkpoint = checkpoint;
  if (std::memcmp(&header, &expected, sizeof header) != 0)
    return damaged("it is not a file of this checkpoint");
  std::vector<std::byte> index(summary.index_bytes);
  base::Status status = read_checked(summary.index_offset, index.data(), index.size(), summary.index_crc);
  if (!status.ok()) return status;
  try {
    Pup p = Pup::unpacker(index.data(), index.size());
    p | elements_;
    if (p.remaining_bytes() != 0) return damaged("its index has bytes too many");
  } catch (const base::Error& error) {
    return damaged(error.what());
  }
  if (elements_.size() != summary.num_elements) return damaged("its index has another number of elements");
  return {};
}

base::Status ElementFileReader::damaged(std::string_view what) const {
  return {base::StatusCode::kCorrupt,
          base::format("the checkpoint file {} is damaged: {}", source_->path(), what)};
}

base::Status ElementFileReader::check_index(std::span<const std::uint64_t> num_indices,
                                            std::uint64_t index_offset) const {
  std::uint64_t offset = sizeof(Header);
  const auto pass = [&](std::uint64_t size_bytes) {
    if (size_bytes > index_offset - offset) return false;
    offset += size_bytes;
    return true;
  };
  for (const ElementEntry& element : elements_) {
    if (element.collection >= num_indices.size() || element.index >= num_indices[element.collection]) {
      return damaged("it has an element that no collection has");
    }
    if (element.offset != offset) return damaged("a state is not where its index says");
    bool ends_before_index = pass(element.state_bytes);
    for (const BufferEntry& buffer : element.buffers) {
      ends_before_index = ends_before_index && pass(buffer.size_bytes);
    }
    if (!ends_before_index) return damaged("a state reaches into the index");
  }
  return offset == index_offset ? base::Status() : damaged("it has bytes of no element");
}

base::Status ElementFileReader::read_checked(std::uint64_t offset, void* to, std::uint64_t size_bytes,
                                             std::uint32_t crc) const {
  if (base::Status status = source_->read(offset, to, size_bytes); !status.ok()) return status;
  if (!source_->needs_checksums() || crc32c(to, size_bytes) == crc) return {};
  return damaged(base::format("the checksum of the {} bytes from {} on is wrong", size_bytes, offset));
}

base::Status ElementFileReader::read_state(const ElementEntry& element, void* to) const {
  return read_checked(element.offset, to, element.state_bytes, element.state_crc);
}

base::Status ElementFileReader::read_buffer(const ElementEntry& element, std::size_t which, void* to) const {
  std::uint64_t offset = element.offset + element.state_bytes;
  for (std::size_t i = 0; i < which; ++i) offset += element.buffers[i].size_bytes;
  return read_checked(offset, to, element.buffers[which].size_bytes, element.buffers[which].crc);
}

base::Status ElementFileReader::verify() const {
  if (elements_.empty() || !source_->needs_checksums()) return {};
  const base::Result<std::uint64_t> all =
      source_->size_bytes();  // reading on into the index, which was checked, is harmless
  if (!all.ok()) return all.status();
  std::vector<std::byte> part(kSmallBytes);
  std::uint64_t begin = 0;  // of the bytes of the file that `part` has
  std::uint64_t end = 0;
  std::uint64_t offset = sizeof(Header);
  const auto check = [&](std::uint64_t size_bytes, std::uint32_t expected) -> base::Status {
    std::uint32_t crc = 0;
    const std::uint64_t first = offset;
    for (std::uint64_t left = size_bytes; left > 0;) {
      if (offset == end || begin == end) {
        begin = offset;
        end = begin + std::min<std::uint64_t>(part.size(), all.value() - begin);
        if (base::Status status = source_->read(begin, part.data(), end - begin); !status.ok()) return status;
      }
      const std::uint64_t count = std::min(left, end - offset);
      crc = crc32c(part.data() + (offset - begin), count, crc);
      offset += count;
      left -= count;
    }
    if (crc == expected) return {};
    return damaged(base::format("the checksum of the {} bytes from {} on is wrong", size_bytes, first));
  };
  for (const ElementEntry& element : elements_) {
    base::Status status = check(element.state_bytes, element.state_crc);
    for (const BufferEntry& buffer : element.buffers) {
      if (status.ok()) status = check(buffer.size_bytes, buffer.crc);
    }
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace weft::checkpoint_files
