// Encodes Python values to bytes, see encoding.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/pup.h"
#include "weft/chare/argument.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/message.h"

#include "codec/encoding.h"
#include "codec/met_objects.h"
#include "support/support.h"

namespace weft::python {

// A host buffer of this size or more travels out of band. A smaller one is copied, which is cheaper
// than a message of its own. The same size as for vectors in C++.
inline constexpr std::size_t kOutOfBandBytes = chare::argument_detail::kOutOfBandBytes;

// Most arrays that OutOfBand::kCopies attaches: the first message of an object on a channel has their sizes.
inline constexpr std::size_t kMostCopies = 96;

// Which buffers travel out of band, see Encoder::attached(). Device memory and weft.nocopy arrays
// always do, in place. Other host buffers travel as copies.
enum class OutOfBand : std::uint8_t {
  kNothing,  // none: device memory is refused, everything else is in the message
  kLarge,    // large host buffers
  kArrays,   // every array, and nothing else: a post entry method chooses where they land
  kCopies,   // large arrays of host memory, which the program may change at once; none in place
  kHere,     // none, and the value does not travel: it is copied within its PE, see Encoder::kept()
};

// How a buffer is attached.
enum class Attach : std::uint8_t {
  kCopy,     // a copy: the program may change the buffer at once
  kOwn,      // the buffer itself, which only its keeper uses
  kInPlace,  // the program's own buffer, which must not change before it has been sent
};

class Encoder {
 public:
  explicit Encoder(OutOfBand out_of_band = OutOfBand::kNothing)
      : data_(std::exchange(spare_.data, nullptr)),
        capacity_(std::exchange(spare_.capacity, 0)),
        out_of_band_(out_of_band) {
    if (data_ == nullptr) [[unlikely]]
      grow(kFirstCapacityBytes);
  }
  ~Encoder() {
    if (spare_.data == nullptr && capacity_ <= kKeptScratchBytes) [[likely]] {
      spare_ = {data_, capacity_};
    } else {
      std::free(data_);
    }
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // Encodes `object`. Throws PythonError or base::Error if it cannot travel.
  void value(PyObject* object) { nested(object, 0, 0); }
  // As value(), for one of several independent values inside one value: they share no object when they arrive.
  void separate_value(PyObject* object);
  // Encodes the arguments of one call, each as a value. An object that is, or is in, several of them arrives as one.
  void arguments(std::span<PyObject* const> arguments);
  // The number of the argument that is being encoded, for the error of one that cannot travel.
  std::size_t argument_number() const { return argument_number_; }

  template <class T>
  void number(T number) {
    std::memcpy(room(sizeof number), &number, sizeof number);
  }
  void raw(const void* data, std::size_t size_bytes) { std::memcpy(room(size_bytes), data, size_bytes); }
  // Writes the length in 2 bytes, then the text.
  void name(std::string_view text);
  // `keeper` owns `data`, which must not change before copy_to(), because a large block is copied only there.
  void block(Ref keeper, const void* data, std::size_t size_bytes);
  // Whether a host buffer of that size is attached. `is_array`: it is an array, for which a post entry method
  // can choose a place, not bytes or part of a pickle.
  bool attaches(std::size_t size_bytes, bool is_array) const;
  // Writes what pickling with protocol 5 gave: bytes, and a list of the pickle.PickleBuffers that they leave out.
  void pickled(Ref bytes, PyObject* buffers);
  // States that the value is `object` and that it has no other holder, so that its memory need not be copied.
  void own(PyObject* object) { owned_ = object; }
  bool owns(PyObject* object) const { return object == owned_; }
  // Whether the value is copied within its PE (OutOfBand::kHere).
  bool is_copy_here() const { return out_of_band_ == OutOfBand::kHere; }
  // Hands the object itself over. REQUIRES: is_copy_here().
  void keep(Ref object);
  // The objects that a decoder needs for a copy within the PE, see Decoder::set_kept().
  std::span<const Ref> kept() const {
    return beside_ == nullptr ? std::span<const Ref>() : std::span<const Ref>(beside_->kept);
  }
  // Adds a buffer to attached() and writes its number. `keeper` owns it. attach_all() has the copy made, if
  // `how` is kCopy. Throws base::Error if nothing can travel out of band.
  void write_attached(Ref keeper, const memory::Buffer& memory, Attach how);
  // Writes an exception in the place of a value: decoding it throws a base::RemoteError.
  void raised(const std::exception_ptr& error);
  void tag(ValueTag tag) { *room(1) = static_cast<std::byte>(tag); }
  // Writes the bytes that a pup function packs.
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
  std::span<Attached> attached() {
    return beside_ == nullptr ? std::span<Attached>() : std::span<Attached>(beside_->attached);
  }

  std::size_t size_bytes() const { return used_ + blocks_bytes_; }
  void copy_to(std::byte* to) const;
  std::vector<std::byte> copy() const;

 private:
  static constexpr std::size_t kFirstCapacityBytes = 1024;
  static constexpr std::size_t kKeptScratchBytes = std::size_t{1} << 20;

  // The memory of a destroyed encoder, for the next one. One is enough: encoders nest only if pickling calls
  // user code that sends.
  struct Scratch {
    std::byte* data;
    std::size_t capacity;
  };
  struct Block {
    std::size_t position;
    Ref keeper;
    const void* data;
    std::size_t size_bytes;
  };
  // Memory that is not among the encoded bytes. Most values have none.
  struct Beside {
    std::vector<Block> blocks;
    std::vector<Attached> attached;
    std::vector<Ref> kept;
  };
  // A container that is being encoded, with all that it holds.
  struct Walk {
    MetObjects met;
    bool must_link = false;  // it must be a linked pickle; nothing further is written
  };
  // Where a value begins.
  struct Mark {
    std::size_t used = 0;
    std::size_t blocks_bytes = 0;
    std::size_t num_blocks = 0;
    std::size_t num_attached = 0;
    std::size_t num_kept = 0;
  };
  // The parts of a linked pickle.
  struct Parts {
    int count = 0;
    MetObjects outside;  // the objects in containers; those inside objects that are pickled are no parts
  };

  std::byte* room(std::size_t size_bytes) {
    if (size_bytes > capacity_ - used_) grow(size_bytes);
    std::byte* at = data_ + used_;
    used_ += size_bytes;
    return at;
  }
  void grow(std::size_t size_bytes);
  // `known_references`: those of the container that holds the object, and of the walk.
  void nested(PyObject* object, int depth, Py_ssize_t known_references);
  void outermost(PyObject* object);
  Beside& beside() {
    if (beside_ == nullptr) beside_ = std::make_unique<Beside>();
    return *beside_;
  }
  Mark mark() const;
  void go_back_to(const Mark& begin);
  [[gnu::noinline]] void several_arguments(std::span<PyObject* const> arguments);
  void linked_arguments(std::span<PyObject* const> arguments);
  bool container(PyObject* object, int depth);
  // Whether the walk meets the object for the first time. Otherwise its value becomes a linked pickle. An object without
  // further references cannot be met again.
  bool is_new(PyObject* object, Py_ssize_t known_references) {
    if (walk_ == nullptr) return true;
    return !walk_->must_link && (Py_REFCNT(object) <= known_references || is_first_meeting(object));
  }
  [[gnu::noinline]] bool is_first_meeting(PyObject* object);
  void inside(PyObject* object);
  void linked_pickle(PyObject* object);
  int part(PyObject* object);
  bool table_form(PyObject* object);
  void integer(PyObject* object);
  void bytes(PyObject* object);
  void sized(ValueTag short_tag, ValueTag long_tag, const void* data, std::size_t size_bytes);
  void count(ValueTag container_tag, Py_ssize_t count);
  void pickle(PyObject* object);

  std::byte* data_;
  std::size_t used_ = 0;
  std::size_t capacity_;
  std::size_t blocks_bytes_ = 0;
  OutOfBand out_of_band_;
  PyObject* owned_ = nullptr;
  std::unique_ptr<Beside> beside_;  // null until it is needed
  std::size_t argument_number_ = 0;
  Walk* walk_ = nullptr;    // null outside of containers
  Parts* parts_ = nullptr;  // of the pickle that is being made; null for none
  static inline Scratch spare_{};
};

}  // namespace weft::python
