// Decodes bytes to Python values, see encoding.h. The bytes come from a peer: damaged ones throw
// base::Error(kCorrupt).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/pup.h"
#include "weft/runtime/attachment.h"
#include "weft/runtime/message.h"

#include "codec/encoding.h"
#include "support/support.h"

namespace weft::python {

struct ArrayForm;

// Replaces out-of-band arrays by other objects. For a post entry method they are ReceiveBuffers; for the
// entry method they are the objects that the post entry method chose.
class ArraySubstitute {
 public:
  // Null if the array is not replaced. `which` is the number of the attachment, not yet checked.
  virtual Ref in_place_of(std::size_t which, const ArrayForm& form) = 0;

 protected:
  ~ArraySubstitute() = default;
};

class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes)
      : cursor_(bytes.data()), end_(bytes.data() + bytes.size()) {}
  // Decodes the rest of `p`; see finish().
  explicit Decoder(const base::Pup& p)
      : cursor_(p.cursor()),
        end_(p.cursor() + p.remaining_bytes()),
        message_(static_cast<runtime::Message*>(p.carrier())) {}
  // Moves `p` behind the decoded bytes. REQUIRES: made from `p`.
  void finish(base::Pup& p) const { p.skip(static_cast<std::size_t>(cursor_ - p.cursor())); }

  Ref value() { return nested(0); }
  // From now on asks weft._codec.immutable about objects that pickle has made.
  void watch_for_mutable_values() { watches_ = true; }
  // Whether nothing can change the values that were decoded since the last call. Lists, dicts and arrays can be changed, and
  // objects that weft._codec.immutable does not know. REQUIRES: watch_for_mutable_values().
  bool take_immutable() { return !std::exchange(has_mutable_, false); }
  // Whether arguments of a call are still to come that are linked with the value before.
  bool has_linked_arguments() const { return static_cast<bool>(arguments_); }
  // For values that are not made by value().
  void note_mutable_value() { has_mutable_ = true; }

  template <class T>
  T number() {
    T number;
    std::memcpy(&number, raw(sizeof number), sizeof number);
    return number;
  }
  const std::byte* raw(std::uint64_t size_bytes) {
    if (size_bytes > remaining_bytes()) overrun(size_bytes);
    const std::byte* at = cursor_;
    cursor_ += size_bytes;
    return at;
  }
  std::string_view name();
  // The output of Encoder::pickled(): a memoryview of the pickle, which is valid as long as the message, and a list of
  // writable memory.
  struct Pickled {
    Ref bytes;
    Ref buffers;
  };
  Pickled pickled();
  // Reads the number of an attachment. attachment() and host_attachment() return the attachment with that
  // number, and throw if it does not exist or has another size. host_attachment() also throws if it is not in
  // host memory.
  std::size_t attachment_number() { return number<std::uint32_t>(); }
  runtime::Attachment attachment(std::size_t which, std::uint64_t size_bytes);
  runtime::Attachment host_attachment(std::size_t which, std::uint64_t size_bytes);
  // The objects that Encoder::kept() has, for a copy within the PE. They must exist as long as this decoder is used.
  void set_kept(std::span<const Ref> kept) { kept_ = kept; }
  // What attachment() returns, for a value that is in no message. They must exist as long as this decoder is used.
  void set_attachments(std::span<runtime::Attachment> attachments) { attachments_ = attachments; }
  // `substitute` must exist as long as this decoder is used.
  void set_substitute(ArraySubstitute& substitute) { substitute_ = &substitute; }
  Ref in_place_of(std::size_t which, const ArrayForm& form) const {
    return substitute_ == nullptr ? Ref() : substitute_->in_place_of(which, form);
  }
  template <class Function>
  void packed(void* context, Function unpack) {
    base::Pup p = base::Pup::unpacker(cursor_, remaining_bytes(), context);
    unpack(p);
    cursor_ += p.offset_bytes();
  }
  [[noreturn]] static void corrupt(const std::string& what);
  std::size_t remaining_bytes() const { return static_cast<std::size_t>(end_ - cursor_); }

 private:
  [[noreturn]] void overrun(std::uint64_t wanted_bytes) const;
  Ref nested(int depth);
  Ref container(ValueTag tag, int depth);
  Ref text(std::uint64_t size_bytes);
  Ref bytes(std::uint64_t size_bytes);
  Ref pickle(const std::byte* begin);
  Ref linked_pickle(int depth);
  Ref linked_arguments(int depth);
  Ref linked_argument(std::size_t which);
  Ref kept(std::size_t which) const;
  [[noreturn]] void throw_raised();

  const std::byte* cursor_;
  const std::byte* end_;
  runtime::Message* message_ = nullptr;
  std::span<runtime::Attachment> attachments_;  // without a message
  ArraySubstitute* substitute_ = nullptr;
  std::span<const Ref> kept_;
  Ref arguments_;  // a tuple, while arguments of it are still to come
  std::size_t arguments_bytes_ = 0;
  bool is_any_mutable_ = false;  // of these
  bool watches_ = false;
  bool has_mutable_ = false;
};

}  // namespace weft::python
