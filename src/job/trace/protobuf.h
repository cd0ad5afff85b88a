// Writes protocol buffers: the wire format of fields, without a schema.
//
// Source: https://protobuf.dev/programming-guides/encoding. The number of a field comes from the schema of what is written.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::job {

class Protobuf {
 public:
  void number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
  }
  // Eight bytes, whatever the value.
  void fixed(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 1);
    for (int shift = 0; shift < 64; shift += 8) byte(value >> shift);
  }
  void text(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3 | kWithLength);
    varint(value.size());
    bytes_ += value;
  }
  // A message inside this one; fill() writes its fields.
  template <class Fill>
  void message(int field, const Fill& fill) {
    varint(static_cast<std::uint64_t>(field) << 3 | kWithLength);
    const std::size_t begin = bytes_.size();
    byte(0);
    fill();
    set_length(begin);
  }

  std::string_view bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  static constexpr std::uint64_t kWithLength = 2;

  void byte(std::uint64_t value) { bytes_.push_back(static_cast<char>(value & 0xff)); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(value | 0x80);
    byte(value);
  }
  // Most messages are shorter than 128 bytes, so that their length has the one byte that was left for it.
  void set_length(std::size_t begin) {
    std::uint64_t length = bytes_.size() - begin - 1;
    for (std::size_t at = begin;; ++at) {
      const bool is_last = length < 0x80;
      bytes_[at] = static_cast<char>(length | (is_last ? 0 : 0x80));
      if (is_last) return;
      length >>= 7;
      bytes_.insert(at + 1, 1, '\0');
    }
  }

  std::string bytes_;
};

}  // namespace weft::job
