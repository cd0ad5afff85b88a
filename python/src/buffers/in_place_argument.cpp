#include "buffers/in_place_argument.h"

#include "weft/base/error.h"

#include "buffers/arrays/array_codec.h"
#include "buffers/arrays/arrays.h"
#include "buffers/arrays/dtype.h"
#include "buffers/arrays/numpy_loading.h"
#include "buffers/arrays/read_only.h"
#include "buffers/device/device_array.h"
#include "buffers/object_buffer.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/forms.h"
#include "codec/landed_memory.h"
#include "codec/no_copy.h"
#include "engine/engine.h"
#include "support/errors.h"

namespace weft::python {

namespace {

PyObject* no_copy(PyObject*, PyObject* array) {
  return guarded([&]() -> PyObject* {
    has_numpy();
    // Checks the array now, because an error here names the line that calls weft.nocopy.
    if (!is_plain_array(array)) static_cast<void>(buffer_of({array, Access::kRead, "weft.nocopy"}));
    return make_no_copy(Ref::borrow(array)).release();
  });
}

PyMethodDef functions[] = {
    {"nocopy", &no_copy, METH_O,
     "nocopy(array, /)\n--\n\n"
     "Marks an argument of an entry method to be sent in place: ``proxy[i].halo(weft.nocopy(a))``.\n\n"
     "The runtime keeps the array alive while it is sent. The caller must not change the array before the\n"
     "send is over: ``await proxy[i].halo.send(weft.nocopy(a))``. Until then a NumPy array is read-only,\n"
     "and a write to it raises ValueError. Its existing views and its base stay writable.\n\n"
     "A NumPy array arrives as a NumPy array, any other buffer as a weft.DeviceArray. If the entry method\n"
     "has a post entry method, that chooses where the array lands. Device memory is always sent in place,\n"
     "with or without nocopy. This function copies nothing and does not block.\n\n"
     "Args:\n"
     "    array: a contiguous NumPy array of any size, or any buffer that Channel.send takes.\n\n"
     "Returns:\n"
     "    An object to pass as an argument of an entry method.\n\n"
     "Raises:\n"
     "    weft.Error: the object is not such a buffer. If a NumPy array is not contiguous, the call of the\n"
     "        entry method raises this error."},
    {},
};

// The type number of an element type that no number encodes. The dtype follows as a value.
constexpr std::uint8_t kOtherType = 255;

bool encode_device_array(Encoder& encoder, PyObject* object) {
  ArrayForm form;
  BufferRequest request{object, Access::kRead, "an entry method", &form};
  ObjectBuffer found = buffer_of(request);
  if (!form.dtype && form.extents.empty()) {  // an object that has only bytes
    form = make_form(make_dtype(make_text("u1").get()), {static_cast<std::int64_t>(form.size_bytes)});
  }
  if (!form.dtype) {
    unusable(request,
             "whose element type neither NumPy nor Weft has; pass a view of it as integers, such as "
             "tensor.view(torch.int16)");
  }
  memory::Place place = is_device_array(object) ? as_device_array(object)->memory.place : found.memory.place;
  int type_number = encoded_type_number(form.dtype);
  encoder.tag(ValueTag::kDeviceArray);
  encoder.number(ArrayHeader{type_number < 0 ? kOtherType : static_cast<std::uint8_t>(type_number),
                             static_cast<std::uint8_t>(form.extents.size()), 0});
  for (std::int64_t extent : form.extents) encoder.number(extent);
  encoder.number(place.kind);
  if (num_elements(form) > 0) {
    encoder.write_attached(keep_read_only(std::move(found.keeper)), found.memory, Attach::kInPlace);
  }
  if (type_number < 0) encoder.value(form.dtype.get());
  return true;
}

bool encode_foreign(Encoder& encoder, PyObject* object) {
  if (!is_device_object(object)) return false;
  if (!encoder.is_copy_here()) return encode_device_array(encoder, object);
  encoder.keep(Ref::borrow(object));
  return true;
}

bool encode_no_copy(Encoder& encoder, PyObject* object) {
  PyObject* array = no_copy_array(object);
  if (encoder.is_copy_here()) {
    encoder.keep(Ref::borrow(array));
    return true;
  }
  if (!is_plain_array(array)) return encode_device_array(encoder, array);
  encode_array_in_place(encoder, array);
  return true;
}

// An array without elements. It has no attachment, because there are no bytes to send.
Ref make_empty(ArrayForm form, memory::Kind kind) {
  memory::Buffer memory;
  memory.place = Engine::current().runtime().own_place(kind);
  return make_device_array(std::move(form), memory, nullptr);
}

Ref decode_device_array(Decoder& decoder) {
  auto header = decoder.number<ArrayHeader>();
  std::vector<std::int64_t> extents(header.num_dimensions);
  bool empty = false;
  for (std::int64_t& extent : extents) {
    extent = decoder.number<std::int64_t>();
    if (extent < 0) decoder.corrupt("a negative extent");
    empty |= extent == 0;
  }
  auto kind = decoder.number<memory::Kind>();
  if (header.num_dimensions > 32 || static_cast<int>(kind) >= memory::kNumKinds) {
    decoder.corrupt("an array of no such kind");
  }
  std::size_t which = empty ? 0 : decoder.attachment_number();
  ArrayForm form;
  form.extents = std::move(extents);
  form.dtype = header.type_number == kOtherType ? dtype_or_nothing(decoder.value())
                                                : dtype_of_number(header.type_number);
  if (!form.dtype || !total_bytes(form.extents, item_size_bytes(form.dtype), form.size_bytes)) {
    decoder.corrupt("an array of no such type or size");
  }
  if (form.size_bytes == 0) return make_empty(std::move(form), kind);
  if (Ref other = decoder.in_place_of(which, form)) return other;
  runtime::Attachment attachment = decoder.attachment(which, form.size_bytes);
  auto landed = share_landed(Engine::current(), std::move(attachment));
  memory::Buffer memory = landed->attachment.buffer();
  memory.stream = nullptr;  // it has landed
  return make_device_array(std::move(form), memory, std::move(landed));
}

}  // namespace

void init_in_place_arguments(PyObject* module) {
  add_functions(module, functions);
  add_encoding(no_copy_type(), &encode_no_copy, Nature::kData);
  add_encoding(device_array_type, &encode_device_array);
  add_protocol_encoding(&encode_foreign);
  add_decoding(ValueTag::kDeviceArray, &decode_device_array);
}

}  // namespace weft::python
