// Memory of the programs that measure MPI libraries. That of devices is of Weft's library alone.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "weft/memory/buffer.h"

#include "benchmarks/measuring.h"

// Open MPI's constants are macros that cast addresses.
// NOLINTBEGIN(bugprone-casting-through-void)

namespace weft::benchmarks {

// The hint by which Weft allocates memory of that kind.
class MpiMemoryHint {
 public:
  explicit MpiMemoryHint(memory::Kind kind) {
    if (kind == memory::Kind::kHost) return;
    MPI_Info_create(&info_);
    MPI_Info_set(info_, "weft_memory_kind", kind == memory::Kind::kCuda ? "cuda" : "emulated");
  }
  ~MpiMemoryHint() {
    if (info_ != MPI_INFO_NULL) MPI_Info_free(&info_);
  }
  MpiMemoryHint(const MpiMemoryHint&) = delete;
  MpiMemoryHint& operator=(const MpiMemoryHint&) = delete;
  MPI_Info info() const { return info_; }

 private:
  MPI_Info info_ = MPI_INFO_NULL;
};

// Bytes between host memory and memory of any kind.
inline void copy_bytes(const void* from, void* to, std::size_t size_bytes) {
  MPI_Sendrecv(from, static_cast<int>(size_bytes), MPI_CHAR, 0, 0, to, static_cast<int>(size_bytes), MPI_CHAR,
               0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}
inline void fill_bytes(void* memory, std::size_t size_bytes, char value) {
  const std::vector<char> values(size_bytes, value);
  copy_bytes(values.data(), memory, size_bytes);
}
inline char read_byte(const void* memory) {
  char value = 0;
  copy_bytes(memory, &value, 1);
  return value;
}

// Memory of a kind, on the device of this process. Pages that were never written are all one page of zeros, so all are written.
class MpiMemory {
 public:
  MpiMemory(memory::Kind kind, std::size_t size_bytes, char value = 1) {
    const MpiMemoryHint hint(kind);
    MPI_Alloc_mem(static_cast<MPI_Aint>(std::max<std::size_t>(1, size_bytes)), hint.info(),
                  static_cast<void*>(&data_));
    fill_bytes(data_, size_bytes, value);
  }
  ~MpiMemory() {
    if (data_ != nullptr) MPI_Free_mem(data_);
  }
  MpiMemory(MpiMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  MpiMemory& operator=(MpiMemory&&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

// Other libraries do not know the key of the hint, and would measure host memory.
inline void expect_mpi_memory(memory::Kind kind) {
  if (kind == memory::Kind::kHost) return;
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  int length = 0;
  MPI_Get_library_version(version.data(), &length);
  if (std::string(version.data()).rfind("Weft", 0) != 0)
    die("--memory: device memory is measured with Weft's MPI library alone");
}

}  // namespace weft::benchmarks

// NOLINTEND(bugprone-casting-through-void)
