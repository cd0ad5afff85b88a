// Python values to bytes; see encoding.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "weft/base/pup.h"
#include "weft/chare/argument.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/message.h"

#include "codec/encoding.h"
#include "support/support.h"

namespace weft::python {

// From this size on a host buffer travels beside the message. Below it, one more copy is cheaper than a message of
// its own. The same size as for vectors in C++.
inline constexpr std::size_t kBesideBytes = chare::argument_detail::kBesideBytes;

// Which buffers travel beside the message, see Encoder::attached(). Device memory and what weft.nocopy names always
// do, in place; other host buffers as copies of their own.
enum class Beside : std::uint8_t {
  kNothing,  // nothing can travel beside the value: device memory is refused, all else is in the message
  kLarge,    // large host buffers
  kArrays,   // every array, and nothing else: for a post entry method, which chooses where they land
};

// What is attached for a buffer.
enum class Attach : std::uint8_t {
  kCopy,     // a copy: the program may change the buffer at once
  kOwn,      // the buffer itself, which has no user but its keeper
  kInPlace,  // the program's own buffer, which must not change before it has been sent
};

class Encoder {
 public:
  explicit Encoder(Beside beside = Beside::kNothing);
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // Throws PythonError or base::Error when the value cannot travel.
  void value(PyObject* object) { nested(object, 0); }

  template <class T>
  void number(T number) {
    std::memcpy(room(sizeof number), &number, sizeof number);
  }
  void raw(const void* data, std::size_t size_bytes) { std::memcpy(room(size_bytes), data, size_bytes); }
  // With its length in 2 bytes.
  void name(std::string_view text);
  // `keeper` owns `data`, which must not change before copy_to(): larger blocks are not copied here.
  void block(Ref keeper, const void* data, std::size_t size_bytes);
  // Whether a host buffer of that size is to be attached. `is_array`: it is an array, for which a post entry method
  // can choose a place, and not bytes or a part of a pickle.
  bool attaches(std::size_t size_bytes, bool is_array) const;
  // The value is `object` alone, which has no other holder: its memory need not be copied.
  void own(PyObject* object) { owned_ = object; }
  bool owns(PyObject* object) const { return object == owned_; }
  // Lists a buffer for attached() and writes its number. `keeper` owns it, and a copy is made when it is attached.
  // Throws base::Error where nothing can travel beside the value.
  void write_attached(Ref keeper, const memory::Buffer& memory, Attach how);
  void tag(ValueTag tag) { *room(1) = static_cast<std::byte>(tag); }
  // What a pup function packs.
  template <class Function>
  void packed(base::Pup sizer, Function pack) {
    pack(sizer);
    std::size_t size_bytes = sizer.offset_bytes();
    base::Pup packer = base::Pup::packer(room(size_bytes), size_bytes, sizer.context());
    pack(packer);
  }

  struct Attached {
    Ref keeper;
    memory::Buffer memory;
    Attach how;
  };
  std::vector<Attached>& attached() { return attached_; }

  std::size_t size_bytes() const { return used_ + blocks_bytes_; }
  void copy_to(std::byte* to) const;
  std::vector<std::byte> copy() const;

 private:
  struct Block {
    std::size_t position;
    Ref keeper;
    const void* data;
    std::size_t size_bytes;
  };

  std::byte* room(std::size_t size_bytes) {
    if (size_bytes > capacity_ - used_) grow(size_bytes);
    std::byte* at = data_ + used_;
    used_ += size_bytes;
    return at;
  }
  void grow(std::size_t size_bytes);
  void nested(PyObject* object, int depth);
  bool container(PyObject* object, int depth);
  bool table_form(PyObject* object);
  void integer(PyObject* object);
  void bytes(PyObject* object);
  void sized(ValueTag short_tag, ValueTag long_tag, const void* data, std::size_t size_bytes);
  void count(ValueTag container_tag, Py_ssize_t count);
  void pickle(PyObject* object);

  std::byte* data_;
  std::size_t used_ = 0;
  std::size_t capacity_;
  std::vector<Block> blocks_;
  std::size_t blocks_bytes_ = 0;
  Beside beside_;
  PyObject* owned_ = nullptr;
  std::vector<Attached> attached_;
};

}  // namespace weft::python
