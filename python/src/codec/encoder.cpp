#include "codec/encoder.h"

#include <cstdlib>
#include <new>
#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/remote_error.h"

#include "base/format.h"
#include "codec/forms.h"
#include "codec/linked_pickle.h"

namespace weft::python {

namespace {

// A larger block is copied only once, directly into the message.
constexpr std::size_t kInlineBlockBytes = 2048;
// Text and bytes up to this size are written each time that they occur: nothing can change them, and they are small.
constexpr Py_ssize_t kSmallLeafBytes = 1024;

bool is_container(PyObject* object) {
  return PyTuple_CheckExact(object) || PyList_CheckExact(object) || PyDict_CheckExact(object);
}

}  // namespace

void Encoder::grow(std::size_t size_bytes) {
  std::size_t wanted = (used_ + size_bytes) * 2;
  void* grown = std::realloc(data_, wanted);
  if (grown == nullptr) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(grown);
  capacity_ = wanted;
}

void Encoder::copy_to(std::byte* to) const {
  std::size_t from = 0;
  if (blocks_bytes_ != 0) {
    for (const Block& block : beside_->blocks) {
      std::memcpy(to, data_ + from, block.position - from);
      to += block.position - from;
      from = block.position;
      std::memcpy(to, block.data, block.size_bytes);
      to += block.size_bytes;
    }
  }
  std::memcpy(to, data_ + from, used_ - from);
}

std::vector<std::byte> Encoder::copy() const {
  std::vector<std::byte> bytes(size_bytes());
  copy_to(bytes.data());
  return bytes;
}

void Encoder::raised(const std::exception_ptr& error) {
  tag(ValueTag::kRaised);
  packed(base::Pup::sizer(), [&error](base::Pup& p) { runtime::pack_error(p, error); });
}

void Encoder::name(std::string_view text) {
  if (text.size() > 0xffff)
    throw base::Error(base::StatusCode::kInvalidArgument, "a name is longer than 65535 bytes");
  number(static_cast<std::uint16_t>(text.size()));
  raw(text.data(), text.size());
}

void Encoder::block(Ref keeper, const void* data, std::size_t size_bytes) {
  if (size_bytes <= kInlineBlockBytes) {
    raw(data, size_bytes);
  } else {
    beside().blocks.push_back({used_, std::move(keeper), data, size_bytes});
    blocks_bytes_ += size_bytes;
  }
}

bool Encoder::attaches(std::size_t size_bytes, bool is_array) const {
  // All other arguments of a post entry method are decoded before any buffer has landed.
  if (out_of_band_ == OutOfBand::kArrays) return is_array && size_bytes > 0;
  const bool is_wanted =
      out_of_band_ == OutOfBand::kLarge || (out_of_band_ == OutOfBand::kCopies && is_array);
  const std::size_t most =
      out_of_band_ == OutOfBand::kCopies ? kMostCopies : runtime::Message::kMaxAttachments;
  return is_wanted && size_bytes >= kOutOfBandBytes &&
         (beside_ == nullptr || beside_->attached.size() < most);
}

void Encoder::write_attached(Ref keeper, const memory::Buffer& memory, Attach how) {
  const bool is_refused = out_of_band_ == OutOfBand::kCopies && how == Attach::kInPlace;
  if (is_refused || out_of_band_ == OutOfBand::kNothing || out_of_band_ == OutOfBand::kHere) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("an array in {} memory is sent in place, which works in calls of entry methods, and in "
                     "the results of calls of one chare; elsewhere (constructors, reductions, results that "
                     "are gathered, bound arguments, objects on channels) send a copy: await array.to_host()",
                     memory::kind_name(memory.place.kind)));
  }
  std::vector<Attached>& attached = beside().attached;
  if (attached.size() == runtime::Message::kMaxAttachments) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("a call has more than {} arrays that travel out of band; call several times",
                     runtime::Message::kMaxAttachments));
  }
  number(static_cast<std::uint32_t>(attached.size()));
  attached.push_back({std::move(keeper), memory, how});
}

void Encoder::keep(Ref object) {
  tag(ValueTag::kKept);
  number(static_cast<std::uint32_t>(beside().kept.size()));
  beside().kept.push_back(std::move(object));
}

void Encoder::nested(PyObject* object, int depth, Py_ssize_t known_references) {
  if (object == Py_None) {
    tag(ValueTag::kNone);
  } else if (PyLong_CheckExact(object)) {
    integer(object);
  } else if (PyFloat_CheckExact(object)) {
    tag(ValueTag::kFloat);
    number(PyFloat_AS_DOUBLE(object));
  } else if (PyBool_Check(object)) {
    tag(object == Py_True ? ValueTag::kTrue : ValueTag::kFalse);
  } else if (PyUnicode_CheckExact(object)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text == nullptr) {  // lone surrogates
      PyErr_Clear();
      pickle(object);
    } else if (size <= kSmallLeafBytes || is_new(object, known_references)) {
      sized(ValueTag::kShortText, ValueTag::kText, text, static_cast<std::size_t>(size));
    }
  } else if (PyBytes_CheckExact(object)) {
    if (PyBytes_GET_SIZE(object) <= kSmallLeafBytes || is_new(object, known_references)) bytes(object);
  } else if (depth == 0) {
    outermost(object);
  } else if (is_new(object, known_references)) {
    if (!container(object, depth)) inside(object);
  }
}

namespace {

// Sets a member and resets it at the end of the scope.
template <class T>
class Setting {
 public:
  Setting(T& member, T value) : member_(member), before_(std::exchange(member, value)) {}
  ~Setting() { member_ = before_; }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  T& member_;
  T before_;
};

}  // namespace

void Encoder::outermost(PyObject* object) {
  if (!is_container(object)) {
    if (!table_form(object)) pickle(object);
    return;
  }
  if (walk_ != nullptr) {  // in the form of an object that is in a container
    if (is_new(object, 0) && !container(object, 1)) pickle(object);
    return;
  }
  const Mark begin = mark();
  Walk walk;
  walk.met.add(object);
  {
    const Setting<Walk*> walking(walk_, &walk);
    if (!container(object, 0)) walk.must_link = true;
  }
  if (!walk.must_link) [[likely]]
    return;
  go_back_to(begin);
  linked_pickle(object);
}

Encoder::Mark Encoder::mark() const {
  if (beside_ == nullptr) return {.used = used_};
  return {used_, blocks_bytes_, beside_->blocks.size(), beside_->attached.size(), beside_->kept.size()};
}

void Encoder::go_back_to(const Mark& begin) {
  used_ = begin.used;
  blocks_bytes_ = begin.blocks_bytes;
  if (beside_ == nullptr) return;
  const auto shorten = [](auto& vector, std::size_t size) {
    vector.erase(vector.begin() + static_cast<std::ptrdiff_t>(size), vector.end());
  };
  shorten(beside_->blocks, begin.num_blocks);
  shorten(beside_->attached, begin.num_attached);
  shorten(beside_->kept, begin.num_kept);
}

// --- Arguments of a call

namespace {

// Whether it makes no difference if the object arrives once or several times: nothing can change it, and it is small.
bool is_small_leaf(PyObject* object) {
  return is_plain_constant(object) &&
         !(PyUnicode_CheckExact(object) && PyUnicode_GET_LENGTH(object) > kSmallLeafBytes) &&
         !(PyBytes_CheckExact(object) && PyBytes_GET_SIZE(object) > kSmallLeafBytes);
}

}  // namespace

void Encoder::arguments(std::span<PyObject* const> arguments) {
  if (arguments.size() == 1) return value(arguments.front());
  std::size_t num_objects = 0;
  for (PyObject* const one : arguments) num_objects += is_small_leaf(one) ? 0 : 1;
  // A post entry method chooses a place for each array, which one that arrives once for several arguments would not have.
  if (num_objects > 1 && out_of_band_ != OutOfBand::kArrays) return several_arguments(arguments);
  for (argument_number_ = 0; argument_number_ < arguments.size(); ++argument_number_)
    value(arguments[argument_number_]);
}

void Encoder::several_arguments(std::span<PyObject* const> arguments) {
  const Mark begin = mark();
  Walk walk;
  {
    const Setting<Walk*> walking(walk_, &walk);
    for (argument_number_ = 0; argument_number_ < arguments.size() && !walk.must_link; ++argument_number_)
      nested(arguments[argument_number_], 1, 0);
  }
  if (!walk.must_link) [[likely]]
    return;
  go_back_to(begin);
  linked_arguments(arguments);
}

// The first argument has all of them.
void Encoder::linked_arguments(std::span<PyObject* const> arguments) {
  const Ref all = checked(PyTuple_New(static_cast<Py_ssize_t>(arguments.size())));
  for (std::size_t i = 0; i < arguments.size(); ++i)
    PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i), Py_NewRef(arguments[i]));
  tag(ValueTag::kLinkedArguments);
  try {
    linked_pickle(all.get());
  } catch (const PythonError&) {
    const Ref error = PythonError::take();
    // Finds the one that cannot travel, which throws.
    Encoder each(out_of_band_);
    for (argument_number_ = 0; argument_number_ < arguments.size(); ++argument_number_)
      each.value(arguments[argument_number_]);
    argument_number_ = 0;
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
    throw;
  }
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    tag(ValueTag::kLinkedArgument);
    number(static_cast<std::uint16_t>(i));
  }
}

bool Encoder::is_first_meeting(PyObject* object) {
  // A post entry method chooses a place for each array, also for one that occurs twice.
  if (out_of_band_ == OutOfBand::kArrays && !is_container(object)) return true;
  if (walk_->met.add(object)) return true;
  // There is one empty tuple, and there is nothing in it.
  if (PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == 0) return true;
  walk_->must_link = true;
  return false;
}

// An object in a container that is none itself, or that is nested too deeply.
void Encoder::inside(PyObject* object) {
  if (!is_container(object) && table_form(object)) return;
  if (PyComplex_CheckExact(object)) return pickle(object);  // it refers to nothing
  walk_->must_link = true;
}

void Encoder::separate_value(PyObject* object) {
  const Setting<Walk*> outside(walk_, nullptr);
  value(object);
}

void Encoder::bytes(PyObject* object) {
  char* data = PyBytes_AS_STRING(object);
  auto size_bytes = static_cast<std::size_t>(PyBytes_GET_SIZE(object));
  if (is_copy_here() && size_bytes > kInlineBlockBytes) {
    keep(Ref::borrow(object));
  } else if (attaches(size_bytes, false)) {
    tag(ValueTag::kAttachedBytes);
    number(static_cast<std::uint64_t>(size_bytes));
    write_attached(Ref::borrow(object), {data, size_bytes, {}, nullptr}, Attach::kInPlace);
  } else if (size_bytes > kInlineBlockBytes) {
    tag(ValueTag::kBytes);
    number(static_cast<std::uint64_t>(size_bytes));
    block(Ref::borrow(object), data, size_bytes);
  } else {
    sized(ValueTag::kShortBytes, ValueTag::kBytes, data, size_bytes);
  }
}

void Encoder::integer(PyObject* object) {
  int overflow = 0;
  long long number_value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow != 0) {
    pickle(object);
  } else if (number_value >= -128 && number_value <= 127) {
    tag(ValueTag::kSmallInt);
    number(static_cast<std::int8_t>(number_value));
  } else {
    tag(ValueTag::kInt);
    number(static_cast<std::int64_t>(number_value));
  }
}

void Encoder::sized(ValueTag short_tag, ValueTag long_tag, const void* data, std::size_t size_bytes) {
  if (size_bytes <= 0xff) {
    tag(short_tag);
    number(static_cast<std::uint8_t>(size_bytes));
  } else {
    tag(long_tag);
    number(static_cast<std::uint64_t>(size_bytes));
  }
  raw(data, size_bytes);
}

void Encoder::count(ValueTag container_tag, Py_ssize_t count) {
  tag(container_tag);
  number(static_cast<std::uint32_t>(count));
}

bool Encoder::container(PyObject* object, int depth) {
  constexpr Py_ssize_t most = 0xffffffff;
  if (depth >= kMaxNesting) return false;
  if (PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) <= most) {
    Py_ssize_t size = PyTuple_GET_SIZE(object);
    count(ValueTag::kTuple, size);
    for (Py_ssize_t i = 0; i < size; ++i) nested(PyTuple_GET_ITEM(object, i), depth + 1, 1);
    return true;
  }
  if (PyList_CheckExact(object) && PyList_GET_SIZE(object) <= most) {
    Py_ssize_t size = PyList_GET_SIZE(object);
    count(ValueTag::kList, size);
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (i >= PyList_GET_SIZE(object)) {  // changed by user code that pickling called
        PyErr_SetString(PyExc_RuntimeError, "a list changed its size while it was being sent");
        throw PythonError();
      }
      Ref element = Ref::borrow(PyList_GET_ITEM(object, i));
      nested(element.get(), depth + 1, 2);
    }
    return true;
  }
  if (PyDict_CheckExact(object) && PyDict_GET_SIZE(object) <= most) {
    Py_ssize_t size = PyDict_GET_SIZE(object);
    count(ValueTag::kDict, size);
    Py_ssize_t position = 0;
    Py_ssize_t written = 0;
    PyObject* key = nullptr;
    PyObject* item = nullptr;
    while (PyDict_Next(object, &position, &key, &item)) {
      Ref held_key = Ref::borrow(key);
      Ref held_item = Ref::borrow(item);
      nested(key, depth + 1, 2);
      nested(item, depth + 1, 2);
      ++written;
    }
    if (written != size) {
      PyErr_SetString(PyExc_RuntimeError, "a dict changed its size while it was being sent");
      throw PythonError();
    }
    return true;
  }
  return false;
}

bool Encoder::table_form(PyObject* object) {
  const Encoding& form = encoding_of(Py_TYPE(object));
  if (form.encode == nullptr) return encode_by_protocol(*this, object);
  if (is_copy_here() && form.nature != Nature::kData) {
    keep(Ref::borrow(object));
    return true;
  }
  return form.encode(*this, object);
}

namespace {

// Adds the objects that are in containers, at any depth, and are no containers themselves. Constants are left out, since pickle
// writes them without asking.
void collect(PyObject* object, MetObjects& found) {
  MetObjects containers;
  std::vector<PyObject*> pending{object};
  const auto visit = [&](PyObject* one) {
    if (is_plain_constant(one)) return;
    if (!is_container(one)) {
      found.add(one);
    } else if (containers.add(one)) {
      pending.push_back(one);
    }
  };
  while (!pending.empty()) {
    PyObject* const container = pending.back();
    pending.pop_back();
    if (PyDict_CheckExact(container)) {
      Py_ssize_t position = 0;
      PyObject* key = nullptr;
      PyObject* item = nullptr;
      while (PyDict_Next(container, &position, &key, &item) != 0) {
        visit(key);
        visit(item);
      }
    } else {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i)
        visit(PySequence_Fast_GET_ITEM(container, i));
    }
  }
}

}  // namespace

void Encoder::linked_pickle(PyObject* object) {
  tag(ValueTag::kLinkedPickle);
  const std::size_t count_at = used_;
  number(std::uint32_t{0});
  Parts parts;
  collect(object, parts.outside);
  const Ref buffers = checked(PyList_New(0));
  Ref pickled;
  {
    const Setting<Parts*> linking(parts_, &parts);
    pickled = dump_linked([this](PyObject* one) { return part(one); }, object, buffers.get());
  }
  const auto count = static_cast<std::uint32_t>(parts.count);
  std::memcpy(data_ + count_at, &count, sizeof count);
  this->pickled(std::move(pickled), buffers.get());
}

int Encoder::part(PyObject* object) {
  // The parts of an object that is pickled travel as pickle takes them: post entry methods choose no places for it, and arrays of other
  // libraries stay theirs.
  if (parts_ == nullptr || !parts_->outside.has(object)) return -1;
  if (encoding_of(Py_TYPE(object)).nature == Nature::kOwner && !is_copy_here()) return -1;
  return table_form(object) ? parts_->count++ : -1;
}

void Encoder::pickle(PyObject* object) {
  Ref buffers = checked(PyList_New(0));
  Ref append = attribute(buffers.get(), "append");
  Ref arguments = checked(PyTuple_Pack(1, object));
  Ref keywords = checked(Py_BuildValue("{s:i,s:O}", "protocol", 5, "buffer_callback", append.get()));
  Ref pickled = checked(PyObject_Call(pickle_dumps().get(), arguments.get(), keywords.get()));
  tag(ValueTag::kPickle);
  this->pickled(std::move(pickled), buffers.get());
}

void Encoder::pickled(Ref pickle, PyObject* buffers) {
  Py_ssize_t num_buffers = PyList_GET_SIZE(buffers);
  number(static_cast<std::uint32_t>(num_buffers));
  auto size_bytes = static_cast<std::size_t>(PyBytes_GET_SIZE(pickle.get()));
  number(static_cast<std::uint64_t>(size_bytes));
  const char* bytes = PyBytes_AS_STRING(pickle.get());
  block(std::move(pickle), bytes, size_bytes);
  for (Py_ssize_t i = 0; i < num_buffers; ++i) {
    Ref raw_view = checked(PyObject_CallMethod(PyList_GET_ITEM(buffers, i), "raw", nullptr));
    const ViewedBuffer view(raw_view.get());
    const void* data = view->buf;
    auto length = static_cast<std::size_t>(view->len);
    if (attaches(length, false)) {
      number(length | kAttachedBuffer);
      write_attached(std::move(raw_view), {const_cast<void*>(data), length, {}, nullptr}, Attach::kCopy);
    } else {
      number(static_cast<std::uint64_t>(length));
      block(std::move(raw_view), data, length);
    }
  }
}

}  // namespace weft::python
