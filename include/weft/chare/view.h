// The elements behind a parameter of type std::span<const T>. They stay where they arrived: in the message, in the
// memory in which they landed, or in a vector of the call's own. For argument.h; programs do not name this.
//
// In a message the count and the elements are packed as those of a std::vector are, so a packed vector can be viewed
// too. Calls pad the elements to their alignment; how much, the high bits of the count say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/pup.h"
#include "weft/runtime/attachment.h"
#include "weft/runtime/message.h"

namespace weft::chare::argument_detail {

// In the count in front of the elements: a number of 4 bytes follows, of the buffer that has them.
inline constexpr std::uint64_t kOutOfBandFlag = std::uint64_t{1} << 63;
// In the count: 1 + the number of bytes between the count and the elements. 0: there is no padding.
inline constexpr int kPaddingShift = 56;
inline constexpr std::uint64_t kMaxCount = (std::uint64_t{1} << kPaddingShift) - 1;

// The elements of a call's message begin at a multiple of this, up to kMostAlignment.
inline constexpr std::size_t kMostAlignment = 64;
template <class T>
inline constexpr std::size_t kPaddingBytes = alignof(T) <= kMostAlignment ? alignof(T) - 1 : 0;

inline bool is_aligned(const void* data, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(data) % alignment == 0;
}

// Reads the count and the padding before the elements. Returns the count; `after_bytes` is the padding behind them.
// Throws Error(kCorrupt) unless that many elements are left.
std::size_t read_padded_count(Pup& p, std::size_t element_bytes, std::size_t padding_bytes,
                              std::size_t& after_bytes);

// Move-only. span() stays the same when it is moved.
template <class T>
class View {
  static_assert(base::pup_detail::kIsBulk<T> && !std::is_const_v<T>);

 public:
  using Element = T;

  View() = default;
  // Elements of the call's own.
  explicit View(std::vector<T>&& own) : own_(std::move(own)), elements_(own_) {}

  // A reference, because a coroutine may take the span by reference.
  const std::span<const T>& span() const { return elements_; }
  // The elements' storage if they are the call's own; else empty.
  std::vector<T>& own() { return own_; }

  // Elements that land out of band: their number is known, and land() gives the memory.
  void expect(std::size_t count) { expected_ = count; }
  bool is_expected() const { return expected_ != 0; }
  // REQUIRES: host memory with the bytes of the expected elements.
  void land(runtime::Attachment landed) {
    landed_ = std::move(landed);
    view(landed_.buffer().data, std::exchange(expected_, 0));
  }

  // Reads elements that are packed in a message, and views them there. Until hold() they are as long as it.
  void pup(Pup& p) {
    if (!p.is_unpacking()) p.refuse("a view that is no argument");
    base::pup_detail::expect_no_pointer<T>();
    std::size_t after_bytes = 0;
    const std::size_t count = read_padded_count(p, sizeof(T), kPaddingBytes<T>, after_bytes);
    is_in_message_ = view(p.cursor(), count);
    p.skip(count * sizeof(T));
    p.skip(after_bytes);
  }
  // Keeps the message if the elements are in it.
  void hold(runtime::Message& message) {
    if (is_in_message_) message_ = message.share();
  }

 private:
  // Elements whose address is not a multiple of their alignment are copied. Returns whether they are not.
  bool view(const void* data, std::size_t count) {
    if (count == 0) return false;
    if (is_aligned(data, alignof(T))) {
      elements_ = {static_cast<const T*>(data), count};
      return true;
    }
    own_.resize(count);
    std::memcpy(own_.data(), data, count * sizeof(T));
    elements_ = own_;
    return false;
  }

  std::vector<T> own_;
  std::span<const T> elements_;
  std::size_t expected_ = 0;
  runtime::Attachment landed_;
  runtime::MessagePtr message_;
  bool is_in_message_ = false;
};

}  // namespace weft::chare::argument_detail
