// The memory of one message at one rank: where its bytes are, how many, and how elements lie in memory.
//
// Threads: any. A view owns no memory. It keeps the layout of a datatype, which the program may free meanwhile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "weft/memory/buffer.h"

#include "models/mpi/datatype/even_runs.h"

namespace weft::mpi {

// How `count` elements that are not one dense range lie in memory.
class ElementLayout {
 public:
  virtual ~ElementLayout() = default;
  // Writes the packed bytes of `count` elements at `buffer` to `packed`. Host memory.
  virtual void pack(const std::byte* buffer, std::int64_t count, std::byte* packed) const = 0;
  // Reads the leading `size_bytes` of the packed form of `count` elements, and writes no other byte of `buffer`. Host memory.
  virtual void unpack(const std::byte* packed, std::size_t size_bytes, std::byte* buffer,
                      std::int64_t count) const = 0;
  // Calls `visit` with the runs of the leading `size_bytes` of the packed form, in its order. Any memory.
  virtual void visit_runs(const std::byte* buffer, std::int64_t count, std::size_t size_bytes,
                          const RunVisitor& visit) const = 0;
};

struct DataView {
  std::byte* data = nullptr;
  // The size of the packed form.
  std::size_t size_bytes = 0;
  memory::Place place;
  // The stream of device memory: work that is queued there comes first. Null: nothing to wait for.
  memory::StreamHandle stream = nullptr;
  // Null: the bytes are one dense range at `data`.
  std::shared_ptr<const ElementLayout> layout;
  std::int64_t count = 0;  // of elements; read if there is a layout

  bool is_dense() const { return layout == nullptr; }

  // REQUIRES: host memory.
  void pack(std::byte* packed) const {
    if (is_dense()) {
      std::memcpy(packed, data, size_bytes);
    } else {
      layout->pack(data, count, packed);
    }
  }
  // Takes at most the bytes that the view has room for. REQUIRES: host memory.
  void unpack(const std::byte* packed, std::size_t packed_bytes) const {
    const std::size_t taken = std::min(packed_bytes, size_bytes);
    if (taken == 0) return;
    if (is_dense()) {
      std::memcpy(data, packed, taken);
    } else {
      layout->unpack(packed, taken, data, count);
    }
  }
  // Copies the bytes to another view, which takes as many as it has room for. REQUIRES: host memory on both sides.
  void copy_to(const DataView& to) const {
    if (size_bytes == 0) return;
    if (is_dense()) {
      to.unpack(data, size_bytes);
    } else if (to.is_dense() && size_bytes <= to.size_bytes) {
      pack(to.data);
    } else {
      std::vector<std::byte> packed(size_bytes);
      pack(packed.data());
      to.unpack(packed.data(), packed.size());
    }
  }

  static DataView of_bytes(const void* data, std::size_t size_bytes) {
    DataView view;
    view.data = static_cast<std::byte*>(const_cast<void*>(data));
    view.size_bytes = size_bytes;
    return view;
  }
};

}  // namespace weft::mpi
