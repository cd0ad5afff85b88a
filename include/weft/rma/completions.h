// Reports of a copy besides its own end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "weft/memory/buffer.h"
#include "weft/runtime/future.h"

namespace weft::rma {

// Runs on the PE of the copy's target, after the data is visible there. `function` is a number that the hook of
// GlobalMemory::set_remote_hook() understands, the same on all PEs; `bytes` are for it.
struct RemoteCompletion {
  std::uint32_t function = 0;
  std::vector<std::byte> bytes;
};

struct Completions {
  // Set when the source may be overwritten, or to the error if the copy fails before that.
  std::optional<runtime::Future<>> source;
  std::optional<RemoteCompletion> remote;
  // The copy starts after the work that is queued on these streams. Each belongs to the device of that end; an end in host
  // memory has none. REQUIRES: that end is memory of this PE.
  memory::StreamHandle source_stream = nullptr;
  memory::StreamHandle target_stream = nullptr;

  bool is_empty() const {
    return !source.has_value() && !remote.has_value() && source_stream == nullptr && target_stream == nullptr;
  }
  // Returns the result of `prepare`. An exception of `prepare` becomes the error of `source` too.
  template <class Prepare>
  auto or_error(Prepare prepare) const {
    try {
      return prepare();
    } catch (...) {
      if (source.has_value()) source->set_error(std::current_exception());
      throw;
    }
  }
};

}  // namespace weft::rma
