#include "rma/segment/locked_files.h"

#include <string>
#include <utility>

#include "base/format.h"

namespace weft::rma {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {

struct FileLock {
  FileLock(memory::KindBackend& kind_in, std::shared_ptr<SegmentOwner*> owner_in,
           std::shared_ptr<base::SharedMapping> file_in)
      : kind(kind_in), owner(std::move(owner_in)), file(std::move(file_in)) {}
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() {
    if (*owner != nullptr) kind.unlock_host(file->data());
  }

  memory::KindBackend& kind;  // gone when the job has ended
  std::shared_ptr<SegmentOwner*> owner;
  std::shared_ptr<base::SharedMapping> file;
};

}  // namespace

Result<std::shared_ptr<void>> LockedFiles::lock(const KnownSegment& segment, memory::KindBackend& kind,
                                                memory::Place device) {
  if (kind.software_device() != nullptr) {
    return Status(StatusCode::kUnsupported, base::format("kernels of {} devices reach device memory alone",
                                                         memory::kind_name(kind.kind())));
  }
  const std::shared_ptr<base::SharedMapping>& file = segment.shared.file;
  if (const auto known = locks_.find(file.get()); file != nullptr && known != locks_.end()) {
    if (std::shared_ptr<void> lock = known->second.lock(); lock != nullptr) return lock;
  }
  // The program may have locked its own memory, and copies may have the segment's locked.
  if (kind.host_copy_is_async(segment.memory.data, segment.size_bytes)) return std::shared_ptr<void>();
  if (file == nullptr) {
    return Status(StatusCode::kUnsupported,
                  "it is host memory of the program whose pages are not locked; allocate it page-locked, or "
                  "use make_segment()");
  }
  if (Status status = kind.lock_host(file->data(), file->name().file.size_bytes, device.device); !status.ok())
    return status;
  std::shared_ptr<void> lock = std::make_shared<FileLock>(kind, owner_, file);
  std::erase_if(locks_, [](const auto& entry) { return entry.second.expired(); });
  locks_[file.get()] = lock;
  return lock;
}

}  // namespace weft::rma
