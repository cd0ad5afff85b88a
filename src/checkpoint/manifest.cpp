#include "checkpoint/manifest.h"

#include <cstring>
#include <optional>

#include "weft/base/error.h"

#include "base/format.h"
#include "checkpoint/crc32c.h"
#include "checkpoint/disk_file.h"

namespace weft::checkpoint_files {

namespace {

struct ManifestHeader {
  char magic[8] = {'W', 'E', 'F', 'T', 'M', 'A', 'N', '\n'};
  std::uint32_t version = kFormatVersion;
  std::uint32_t crc = 0;
  std::uint64_t size_bytes = 0;  // of what follows
};
static_assert(sizeof(ManifestHeader) == 24);

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw base::Error(base::StatusCode::kCorrupt,
                    base::format("the checkpoint file {} is damaged: {}", path, what));
}

// How many indices a collection with these extents has. Nothing if no shape has such extents.
std::optional<std::uint64_t> num_indices_of(const CollectionEntry& collection) {
  std::uint64_t product = 1;
  for (const std::int32_t extent : collection.extents) {
    if (extent < 1 || __builtin_mul_overflow(product, static_cast<std::uint64_t>(extent), &product))
      return {};
  }
  if (collection.extents.empty()) return {};
  return product;
}

}  // namespace

void check_manifest(const std::string& path, const Manifest& manifest) {
  std::uint64_t num_elements = 0;
  for (const CollectionEntry& collection : manifest.collections) {
    const std::optional<std::uint64_t> num_indices = num_indices_of(collection);
    if (!num_indices) refuse(path, "a collection has a shape that does not exist");
    if (collection.num_elements > *num_indices) {
      refuse(path, "a collection has more elements than its shape");
    }
    if (!collection.table.empty() && collection.table.size() != *num_indices) {
      refuse(path, "a map has another number of elements than its collection");
    }
    if (__builtin_add_overflow(num_elements, collection.num_elements, &num_elements))
      refuse(path, "too many elements");
  }
  std::uint64_t in_files = 0;
  if (manifest.files.empty()) refuse(path, "it names no file");
  for (const FileSummary& file : manifest.files) {
    std::uint64_t end = 0;
    if (__builtin_add_overflow(in_files, file.num_elements, &in_files) ||
        __builtin_add_overflow(file.index_offset, file.index_bytes, &end)) {
      refuse(path, "a file has a size that does not exist");
    }
  }
  if (in_files != num_elements) {
    refuse(path, base::format("its files have {} elements and its collections {}", in_files, num_elements));
  }
}

std::string element_file_name(std::size_t pe) { return base::format("elements-{}", pe); }

std::vector<std::uint64_t> Manifest::num_indices() const {
  std::vector<std::uint64_t> all;
  all.reserve(collections.size());
  for (const CollectionEntry& collection : collections) all.push_back(num_indices_of(collection).value());
  return all;
}

void write_manifest(const std::string& path, const Manifest& manifest) {
  const std::vector<std::byte> packed = base::pack(manifest);
  ManifestHeader header;
  header.size_bytes = packed.size();
  header.crc = crc32c(packed.data(), packed.size());
  DiskFile file = DiskFile::create(path);
  file.write(&header, sizeof header);
  file.write(packed.data(), packed.size());
  file.sync();
}

Manifest read_manifest(const std::string& path) {
  const DiskFile file = DiskFile::open(path);
  const std::uint64_t size_bytes = file.size_bytes();
  ManifestHeader header;
  if (size_bytes < sizeof header) refuse(path, base::format("no manifest has {} bytes", size_bytes));
  file.read(0, &header, sizeof header);
  const ManifestHeader expected;
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0) refuse(path, "it is no manifest");
  if (header.version != expected.version) {
    throw base::Error(base::StatusCode::kUnsupported,
                      base::format("the checkpoint file {} has the format {}; this version of Weft reads the "
                                   "format {}",
                                   path, header.version, expected.version));
  }
  if (header.size_bytes != size_bytes - sizeof header) {
    refuse(path, base::format("{} bytes follow its header instead of {}", size_bytes - sizeof header,
                              header.size_bytes));
  }
  std::vector<std::byte> packed(header.size_bytes);
  file.read(sizeof header, packed.data(), packed.size());
  if (crc32c(packed.data(), packed.size()) != header.crc) refuse(path, "its checksum is wrong");
  Manifest manifest;
  try {
    Pup p = Pup::unpacker(packed.data(), packed.size());
    p | manifest;
    if (p.remaining_bytes() != 0) refuse(path, "it has bytes too many");
  } catch (const base::Error& error) {
    refuse(path, error.what());
  }
  check_manifest(path, manifest);
  return manifest;
}

}  // namespace weft::checkpoint_files
