#include "codec/decoder.h"

#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/runtime/remote_error.h"

#include "base/format.h"
#include "codec/forms.h"
#include "codec/landed_memory.h"
#include "codec/linked_pickle.h"
#include "engine/engine.h"

namespace weft::python {

void Decoder::corrupt(const std::string& what) {
  throw base::Error(base::StatusCode::kCorrupt, base::format("a value arrived damaged: {}", what));
}

void Decoder::overrun(std::uint64_t wanted_bytes) const {
  corrupt(base::format("{} bytes are announced and {} are left", wanted_bytes, remaining_bytes()));
}

std::string_view Decoder::name() {
  auto size = number<std::uint16_t>();
  return {reinterpret_cast<const char*>(raw(size)), size};
}

runtime::Attachment Decoder::attachment(std::size_t which, std::uint64_t size_bytes) {
  const std::span<runtime::Attachment> all = message_ == nullptr ? attachments_ : message_->attachments();
  if (which >= all.size()) corrupt("a buffer that did not come with it");
  runtime::Attachment& attachment = all[which];
  if (!attachment || attachment.buffer().size_bytes != size_bytes) {
    corrupt(base::format("a buffer of {} bytes instead of {}", attachment.buffer().size_bytes, size_bytes));
  }
  return std::move(attachment);
}

runtime::Attachment Decoder::host_attachment(std::size_t which, std::uint64_t size_bytes) {
  runtime::Attachment found = attachment(which, size_bytes);
  if (!found.buffer().place.is_host()) corrupt("a buffer that is not in host memory");
  return found;
}

Ref Decoder::text(std::uint64_t size_bytes) {
  const std::byte* data = raw(size_bytes);
  PyObject* str =
      PyUnicode_DecodeUTF8(reinterpret_cast<const char*>(data), static_cast<Py_ssize_t>(size_bytes), nullptr);
  if (str == nullptr) {
    PyErr_Clear();
    corrupt("text that is not UTF-8");
  }
  return Ref::steal(str);
}

Ref Decoder::bytes(std::uint64_t size_bytes) {
  const std::byte* data = raw(size_bytes);
  return checked(
      PyBytes_FromStringAndSize(reinterpret_cast<const char*>(data), static_cast<Py_ssize_t>(size_bytes)));
}

Ref Decoder::nested(int depth) {
  auto tag = number<ValueTag>();
  switch (tag) {
    case ValueTag::kNone:
      return Ref::borrow(Py_None);
    case ValueTag::kTrue:
      return Ref::borrow(Py_True);
    case ValueTag::kFalse:
      return Ref::borrow(Py_False);
    case ValueTag::kSmallInt:
      return checked(PyLong_FromLong(number<std::int8_t>()));
    case ValueTag::kInt:
      return checked(PyLong_FromLongLong(number<std::int64_t>()));
    case ValueTag::kFloat:
      return checked(PyFloat_FromDouble(number<double>()));
    case ValueTag::kShortText:
      return text(number<std::uint8_t>());
    case ValueTag::kText:
      return text(number<std::uint64_t>());
    case ValueTag::kShortBytes:
      return bytes(number<std::uint8_t>());
    case ValueTag::kBytes:
      return bytes(number<std::uint64_t>());
    case ValueTag::kList:
    case ValueTag::kDict:
      has_mutable_ = true;
      [[fallthrough]];
    case ValueTag::kTuple:
      return container(tag, depth);
    case ValueTag::kPickle:
      return pickle(cursor_);
    case ValueTag::kLinkedPickle:
      return linked_pickle(depth);
    case ValueTag::kLinkedArguments:
      return linked_arguments(depth);
    case ValueTag::kLinkedArgument:
      return linked_argument(number<std::uint16_t>());
    case ValueTag::kRaised:
      throw_raised();
    case ValueTag::kKept:
      return kept(number<std::uint32_t>());
    default:
      if (!is_immutable_form(tag)) has_mutable_ = true;
      if (DecodeFunction decode = decoding_of(tag)) return decode(*this);
      corrupt(base::format("there is no form {}", static_cast<int>(tag)));
  }
}

void Decoder::throw_raised() {
  std::exception_ptr error;
  packed(nullptr, [&error](base::Pup& p) { error = runtime::unpack_error(p); });
  std::rethrow_exception(error);
}

Ref Decoder::container(ValueTag tag, int depth) {
  if (depth >= kMaxNestingReceived) corrupt("too deeply nested");
  auto count = number<std::uint32_t>();
  // Every value takes at least one byte, so a larger count is corrupt. It must not cause a large allocation.
  if (count > remaining_bytes()) overrun(count);
  if (tag == ValueTag::kTuple) {
    Ref tuple = checked(PyTuple_New(count));
    for (std::uint32_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.get(), i, nested(depth + 1).release());
    return tuple;
  }
  if (tag == ValueTag::kList) {
    Ref list = checked(PyList_New(count));
    for (std::uint32_t i = 0; i < count; ++i) PyList_SET_ITEM(list.get(), i, nested(depth + 1).release());
    return list;
  }
  Ref dict = checked(PyDict_New());
  for (std::uint32_t i = 0; i < count; ++i) {
    Ref key = nested(depth + 1);
    Ref item = nested(depth + 1);
    if (PyObject_Hash(key.get()) == -1 && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      corrupt("a dict key that cannot be one");
    }
    checked(PyDict_SetItem(dict.get(), key.get(), item.get()));
  }
  return dict;
}

Decoder::Pickled Decoder::pickled() {
  auto num_buffers = number<std::uint32_t>();
  auto size_bytes = number<std::uint64_t>();
  const std::byte* data = raw(size_bytes);
  Ref pickled = checked(PyMemoryView_FromMemory(reinterpret_cast<char*>(const_cast<std::byte*>(data)),
                                                static_cast<Py_ssize_t>(size_bytes), PyBUF_READ));
  Ref buffers = checked(PyList_New(0));
  for (std::uint32_t i = 0; i < num_buffers; ++i) {
    auto buffer_bytes = number<std::uint64_t>();
    if ((buffer_bytes & kAttachedBuffer) != 0) {
      std::size_t which = attachment_number();
      Ref memory =
          make_landed_bytes(Engine::current(), host_attachment(which, buffer_bytes & ~kAttachedBuffer));
      checked(PyList_Append(buffers.get(), memory.get()));
      continue;
    }
    const std::byte* buffer = raw(buffer_bytes);
    // A bytearray, because arrays over it are writable and own it.
    Ref owned = checked(PyByteArray_FromStringAndSize(reinterpret_cast<const char*>(buffer),
                                                      static_cast<Py_ssize_t>(buffer_bytes)));
    checked(PyList_Append(buffers.get(), owned.get()));
  }
  return {std::move(pickled), std::move(buffers)};
}

namespace {

// Looks at `size_bytes` objects at most, which bounds the time. Each takes at least a byte of the pickle that names it.
bool is_immutable(PyObject* object, std::size_t size_bytes) {
  static constinit Imported asked("weft._codec.immutable", "is_immutable");
  const Ref budget = checked(PyLong_FromSize_t(size_bytes));
  return checked(PyObject_CallFunctionObjArgs(asked.get(), object, budget.get(), nullptr)).get() == Py_True;
}

}  // namespace

Ref Decoder::linked_pickle(int depth) {
  if (depth >= kMaxNestingReceived) corrupt("too deeply nested");
  const std::byte* const begin = cursor_;
  const auto count = number<std::uint32_t>();
  if (count > remaining_bytes()) overrun(count);
  std::vector<Ref> parts;
  for (std::uint32_t i = 0; i < count; ++i) parts.push_back(nested(depth + 1));
  const PartsToLoad here(parts);
  return pickle(begin);
}

Ref Decoder::linked_arguments(int depth) {
  if (depth >= kMaxNestingReceived) corrupt("too deeply nested");
  const std::byte* const begin = cursor_;
  const bool had_mutable = std::exchange(has_mutable_, false);
  arguments_ = nested(depth + 1);
  arguments_bytes_ = static_cast<std::size_t>(cursor_ - begin);
  is_any_mutable_ = std::exchange(has_mutable_, had_mutable);
  if (PyTuple_CheckExact(arguments_.get()) == 0) corrupt("arguments that are no tuple");
  return linked_argument(0);
}

Ref Decoder::linked_argument(std::size_t which) {
  const std::size_t count = arguments_ ? static_cast<std::size_t>(PyTuple_GET_SIZE(arguments_.get())) : 0;
  if (which >= count) corrupt("an argument that did not come with it");
  Ref argument = Ref::borrow(PyTuple_GET_ITEM(arguments_.get(), static_cast<Py_ssize_t>(which)));
  if (is_any_mutable_ && !(watches_ && is_immutable(argument.get(), arguments_bytes_))) has_mutable_ = true;
  if (which + 1 == count) arguments_ = Ref();
  return argument;
}

Ref Decoder::kept(std::size_t which) const {
  if (which >= kept_.size()) corrupt("an object that did not come with it");
  return kept_[which];
}

// `begin`: where the form of the value begins, for the number of objects that it can have.
Ref Decoder::pickle(const std::byte* begin) {
  const auto [pickled, buffers] = this->pickled();
  Ref arguments = checked(PyTuple_Pack(1, pickled.get()));
  Ref keywords = checked(Py_BuildValue("{s:O}", "buffers", buffers.get()));
  static constinit Imported loads("pickle", "loads");
  Ref object = checked(PyObject_Call(loads.get(), arguments.get(), keywords.get()));
  if (watches_ && !has_mutable_) [[unlikely]]
    has_mutable_ = !is_immutable(object.get(), static_cast<std::size_t>(cursor_ - begin));
  return object;
}

}  // namespace weft::python
