#include "checkpoint/state_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/pup.h"

#include "base/format.h"

namespace weft::checkpoint_files {

namespace {

// The file has the size of this as 8 bytes, this, and the bytes of the blocks one after the other.
struct Contents {
  struct Part {
    ProtectedState::BlockId id;
    std::uint64_t size_bytes = 0;
    void pup(Pup& p) { p | id | size_bytes; }
  };
  std::uint64_t committed = 0;
  Manifest manifest;
  std::vector<Part> parts;
  void pup(Pup& p) { p | committed | manifest | parts; }
};

base::Status failed(const char* what, int error) {
  return {base::StatusCode::kOutOfMemory,
          base::format("the protected state cannot be handed over: {}: {}", what, std::strerror(error))};
}

base::Status corrupt() {
  return {base::StatusCode::kCorrupt,
          "the protected state that this process was handed is damaged; do not set WEFT_PROTECTED_STATE"};
}

base::Status write_all(int descriptor, const void* data, std::size_t size_bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  while (size_bytes > 0) {
    const ssize_t written = write(descriptor, at, size_bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed("write", errno);
    at += written;
    size_bytes -= static_cast<std::size_t>(written);
  }
  return {};
}

base::Status write_contents(int descriptor, const ProtectedState& state) {
  Contents contents{state.committed(), state.manifest(), {}};
  for (const ProtectedState::BlockId& id : state.block_ids())
    contents.parts.push_back({id, state.find(id)->size()});
  const std::vector<std::byte> packed = base::pack(contents);
  const std::uint64_t packed_bytes = packed.size();
  base::Status status = write_all(descriptor, &packed_bytes, sizeof packed_bytes);
  if (status.ok()) status = write_all(descriptor, packed.data(), packed.size());
  for (const Contents::Part& part : contents.parts) {
    if (!status.ok()) break;
    const BlockPtr block = state.find(part.id);
    status = write_all(descriptor, block->data(), block->size());
  }
  return status;
}

base::Status read_contents(std::span<const std::byte> file, ProtectedState& state) {
  std::uint64_t packed_bytes = 0;
  if (file.size() < sizeof packed_bytes) return corrupt();
  std::memcpy(&packed_bytes, file.data(), sizeof packed_bytes);
  file = file.subspan(sizeof packed_bytes);
  if (packed_bytes > file.size()) return corrupt();
  Contents contents;
  try {
    contents = base::unpack<Contents>(file.first(packed_bytes));
  } catch (const base::Error&) {
    return corrupt();
  }
  file = file.subspan(packed_bytes);
  for (const Contents::Part& part : contents.parts) {
    if (part.size_bytes > file.size()) return corrupt();
    const auto block = std::make_shared<Block>(part.size_bytes);
    if (part.size_bytes > 0) std::memcpy(block->data(), file.data(), part.size_bytes);
    state.put(part.id, block);
    file = file.subspan(part.size_bytes);
  }
  state.set_committed(contents.committed, std::move(contents.manifest));
  return {};
}

}  // namespace

base::Result<int> write_state_file(const ProtectedState& state) {
  const int descriptor = memfd_create("weft-protected-state", 0);
  if (descriptor < 0) return failed("memfd_create", errno);
  if (base::Status status = write_contents(descriptor, state); !status.ok()) {
    close(descriptor);
    return status;
  }
  return descriptor;
}

base::Status read_state_file(int descriptor, ProtectedState& state) {
  struct stat about{};
  if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size <= 0) return corrupt();
  const auto size_bytes = static_cast<std::size_t>(about.st_size);
  void* const mapped = mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (mapped == MAP_FAILED) return failed("mmap", errno);
  base::Status status = read_contents({static_cast<const std::byte*>(mapped), size_bytes}, state);
  munmap(mapped, size_bytes);
  return status;
}

}  // namespace weft::checkpoint_files
