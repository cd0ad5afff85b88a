#include "memory/kinds/emulated/exported_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "base/format.h"

namespace weft::memory {

using base::Result;
using base::SharedFile;
using base::Status;
using base::StatusCode;

namespace {

// Travels between processes of one build as it lies in memory.
struct Record {
  base::SharedFileReference file;
  std::uint64_t size_bytes = 0;
  std::uint64_t generation = 0;
};

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

Status not_exported(std::string_view why) {
  return Status(StatusCode::kInvalidArgument,
                base::format("these bytes name no emulated allocation of this host: {}", why));
}

Status freed_by_owner(const Record& record) {
  return Status(StatusCode::kNotFound,
                base::format("the emulated allocation of {} bytes that process {} exported has been freed",
                             record.size_bytes, record.file.pid));
}

}  // namespace

Result<ExportedFile> ExportedFile::create(std::size_t size_bytes, std::size_t mapped_bytes,
                                          std::uint64_t generation) {
  Result<SharedFile> file = SharedFile::create("weft-emulated", mapped_bytes + page_bytes());
  if (!file.ok()) return file.status();
  ExportedFile exported;
  exported.file_ = std::move(*file);
  exported.size_bytes_ = size_bytes;
  if (Status status = exported.map_generation(); status.failed()) return status;
  std::atomic_ref(*exported.generation_).store(generation);
  return exported;
}

Result<ExportedFile> ExportedFile::open(std::span<const std::byte> bytes) {
  Record record;
  if (bytes.size() != sizeof record) {
    return not_exported(base::format("{} bytes instead of {}", bytes.size(), sizeof record));
  }
  std::memcpy(&record, bytes.data(), sizeof record);
  Result<SharedFile> file = SharedFile::open(record.file);
  if (file.status().code() == StatusCode::kNotFound) return freed_by_owner(record);
  if (!file.ok()) return not_exported(file.status().message());
  ExportedFile exported;
  exported.file_ = std::move(*file);
  exported.size_bytes_ = record.size_bytes;
  const std::size_t file_bytes = exported.file_.size_bytes();
  // The size is a claim of the peer: it must fill the pages of the file, all but the last one.
  const bool fills_its_pages = file_bytes >= page_bytes() && record.size_bytes <= exported.mapped_bytes() &&
                               exported.mapped_bytes() - record.size_bytes < page_bytes();
  if (!fills_its_pages) {
    return not_exported(
        base::format("a file of {} bytes cannot hold an allocation of {}", file_bytes, record.size_bytes));
  }
  if (Status status = exported.map_generation(); status.failed()) return status;
  if (std::atomic_ref(*exported.generation_).load() != record.generation) return freed_by_owner(record);
  return exported;
}

ExportedFile::~ExportedFile() {
  if (generation_ != nullptr) ::munmap(generation_, page_bytes());
}

std::size_t ExportedFile::mapped_bytes() const { return file_.size_bytes() - page_bytes(); }

Status ExportedFile::map_generation() {
  Result<void*> page = file_.map(mapped_bytes(), page_bytes());
  if (!page.ok()) return page.status();
  generation_ = static_cast<std::uint64_t*>(*page);
  return {};
}

std::vector<std::byte> ExportedFile::exported() const {
  const Record record{file_.reference(), size_bytes_, std::atomic_ref(*generation_).load()};
  const auto* begin = reinterpret_cast<const std::byte*>(&record);
  return {begin, begin + sizeof record};
}

bool ExportedFile::was_freed() const { return std::atomic_ref(*generation_).load() == 0; }

void ExportedFile::mark_freed() { std::atomic_ref(*generation_).store(0); }

}  // namespace weft::memory
