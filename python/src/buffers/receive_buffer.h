// weft.ReceiveBuffer: the buffer of an argument that has not landed yet. The post entry method gets it in place of the array
// and chooses where the buffer lands.
//
// Threads: the PE's thread.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "weft/runtime/attachment.h"

#include "buffers/arrays/array_form.h"
#include "codec/decoder.h"
#include "support/support.h"

namespace weft::python {

void init_receive_buffer(PyObject* module);

// One run of a post entry method. Its ReceiveBuffers are valid until this object is destroyed.
class Posting final : public ArraySubstitute {
 public:
  explicit Posting(std::span<runtime::ReceiveBuffer> receive_buffers)
      : receive_buffers_(receive_buffers), chosen_(receive_buffers.size()) {}
  ~Posting();
  Posting(const Posting&) = delete;
  Posting& operator=(const Posting&) = delete;

  // A new ReceiveBuffer for the buffer. Throws base::Error if the message has no such buffer.
  Ref in_place_of(std::size_t which, const ArrayForm& form) override;
  // Has the buffer, an argument of the form `argument`, land in the memory of `array`. Throws base::Error if the array
  // is too small or has elements of another type.
  void into(std::size_t which, const ArrayForm& argument, PyObject* array, PyObject* stream);
  // The array that the method chose for each buffer; null if the runtime chooses the place.
  std::vector<Ref> take_chosen() { return std::move(chosen_); }

 private:
  std::span<runtime::ReceiveBuffer> receive_buffers_;
  std::vector<Ref> chosen_;
  std::vector<Ref> objects_;
};

}  // namespace weft::python
