// Python values to bytes; see encoding.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "weft/base/pup.h"

#include "encoding.h"
#include "support.h"

namespace weft::python {

class Encoder {
 public:
  // Where `attaches`, large buffers are left for the caller to attach to the message: see attached().
  explicit Encoder(bool attaches = false);
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
  // Whether a buffer of that size is to be attached, and the writing of its number in place of its bytes.
  bool attaches(std::size_t size_bytes) const;
  void write_attached(Ref keeper, const void* data, std::size_t size_bytes);
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
    const void* data;
    std::size_t size_bytes;
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
  bool other_type(PyObject* object);
  void integer(PyObject* object);
  void sized(ValueTag short_tag, ValueTag long_tag, const void* data, std::size_t size_bytes);
  void count(ValueTag container_tag, Py_ssize_t count);
  void pickle(PyObject* object);

  std::byte* data_;
  std::size_t used_ = 0;
  std::size_t capacity_;
  std::vector<Block> blocks_;
  std::size_t blocks_bytes_ = 0;
  bool attaches_;
  std::vector<Attached> attached_;
};

}  // namespace weft::python
