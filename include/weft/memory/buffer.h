// Memory of any kind as the layers above see it: a pointer, a size, the place of the memory, and the stream
// whose queued work must be done before the memory is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/memory/kinds.h"

namespace weft::memory {

// kHost, kCuda, kEmulated: see kinds.h.
#define WEFT_KIND_ENUMERATOR(enumerator, name) enumerator,
enum class Kind : std::uint8_t { WEFT_FOR_EACH_MEMORY_KIND(WEFT_KIND_ENUMERATOR) };
enum class KindCount : std::uint8_t { WEFT_FOR_EACH_MEMORY_KIND(WEFT_KIND_ENUMERATOR) kCount };
#undef WEFT_KIND_ENUMERATOR
inline constexpr int kNumKinds = static_cast<int>(KindCount::kCount);

std::string_view kind_name(Kind kind);
std::optional<Kind> kind_from_name(std::string_view name);

// A kind and, for device kinds, the device's ordinal in this process.
struct Place {
  Kind kind = Kind::kHost;
  std::int16_t device = 0;

  bool is_host() const { return kind == Kind::kHost; }
  friend bool operator==(const Place&, const Place&) = default;
};

// "host", "cuda:1"
std::string place_name(Place place);

// A queue of device work, as its kind names it. For CUDA it is a CUstream; 0x1 and 0x2 are the legacy and the
// per-thread default stream. Null: there is no queued work to wait for.
using StreamHandle = void*;

struct Buffer {
  void* data = nullptr;
  std::size_t size_bytes = 0;
  Place place;
  StreamHandle stream = nullptr;
};

struct ConstBuffer {
  ConstBuffer() = default;
  ConstBuffer(const void* data_in, std::size_t size_in, Place place_in = {}, StreamHandle stream_in = nullptr)
      : data(data_in), size_bytes(size_in), place(place_in), stream(stream_in) {}
  ConstBuffer(const Buffer& other)
      : data(other.data), size_bytes(other.size_bytes), place(other.place), stream(other.stream) {}

  const void* data = nullptr;
  std::size_t size_bytes = 0;
  Place place;
  StreamHandle stream = nullptr;
};

}  // namespace weft::memory
