#include "chare/classes/chare.h"

#include <optional>
#include <utility>

#include "weft/base/error.h"

#include "await/coroutine.h"
#include "base/format.h"
#include "codec/attach.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "engine/ending.h"
#include "engine/engine.h"
#include "support/errors.h"

namespace weft::python {

namespace {

enum class Gone : std::uint8_t { kJobEnded, kDestroyed, kMoved, kRemoved, kNotMade };

struct ChareObject {
  PyObject_HEAD PyChare* chare;  // null when the chare is not on this PE any more
  Gone gone;                     // then: why
};

const char* why_gone(Gone gone) {
  switch (gone) {
    case Gone::kJobEnded:
      return "this chare's job has ended";
    case Gone::kDestroyed:
      return "this chare's collection has been destroyed";
    case Gone::kMoved:
      return "this chare has moved to another PE; what is left here is not it: use its proxy";
    case Gone::kRemoved:
      return "this chare has been removed from its collection";
    case Gone::kNotMade:
      return "this chare was not made: its constructor raised an exception";
  }
  return "this chare is gone";
}

// The chare under construction; its object takes it.
PyChare* being_made = nullptr;

}  // namespace

PyChare::PyChare(const ClassInfo& info) : info_(info) {}

PyChare::~PyChare() {
  if (!object_) return;
  auto* const object = reinterpret_cast<ChareObject*>(object_.get());
  if (object->chare == nullptr) return;  // it has departed
  object->chare = nullptr;
  object->gone = collection().is_destroyed() ? Gone::kDestroyed
                 : runtime().closed()        ? Gone::kJobEnded
                 : is_removed()              ? Gone::kRemoved
                                             : Gone::kNotMade;
}

void PyChare::departed() {
  auto* const object = reinterpret_cast<ChareObject*>(object_.get());
  object->chare = nullptr;
  object->gone = Gone::kMoved;
}

template <class Make>
void PyChare::take_object(Make make) {
  being_made = this;
  const Ref object = Ref::steal(make());
  being_made = nullptr;
  if (!object) throw PythonError();
  if (object.get() == object_.get()) return;
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format("{}.__new__ must return the object that weft.Chare.__new__ made for this element, and "
                   "returned another one",
                   info_.name()));
}

namespace {

// Calls `function(first, *arguments)`.
PyObject* call_with_first(PyObject* function, PyObject* first, PyObject* arguments) {
  const Py_ssize_t count = PyTuple_GET_SIZE(arguments);
  const Ref all = checked(PyTuple_New(count + 1));
  PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(first));
  for (Py_ssize_t i = 0; i < count; ++i)
    PyTuple_SET_ITEM(all.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(arguments, i)));
  return PyObject_CallObject(function, all.get());
}

}  // namespace

void PyChare::construct(PyObject* arguments) {
  const WhileRunning running(as_running());
  PyObject* const type = info_.type();
  if (!info_.has_coroutine_constructor()) {
    return take_object([&] { return PyObject_CallObject(type, arguments); });
  }
  if (PyTuple_CheckExact(arguments) == 0) Decoder::corrupt("the arguments of a constructor");
  const Ref make = attribute(type, "__new__");
  take_object([&] { return call_with_first(make.get(), type, arguments); });
  constructor_arguments_ = Ref::borrow(arguments);
}

// --- Moving

std::unique_ptr<chare::ChareBase> PyChare::make_moved(Pup& state) {
  try {
    Decoder decoder(state);
    const ClassInfo& info = ClassInfo::find(decoder.name());
    if (decoder.number<std::uint64_t>() != info.fingerprint()) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          base::format("the class {} has other methods on this PE than on the one that the chare has "
                       "left; define it in the same way on every PE",
                       info.name()));
    }
    decoder.finish(state);
    auto chare = std::make_unique<PyChare>(info);
    PyObject* const type = info.type();
    chare->take_object([type, &chare] {
      const Ref make = attribute(type, "__new__");
      if (!needs_arguments(make.get())) return PyObject_CallOneArg(make.get(), type);
      // It takes the arguments of the constructor, which are not there any more; the state is all that moves.
      being_made = chare.get();
      return make_object(reinterpret_cast<PyTypeObject*>(type));
    });
    return chare;
  } catch (...) {
    std::rethrow_exception(caught_as_travelling_error());
  }
}

void PyChare::pack_state() {
  auto encoder = std::make_unique<Encoder>(OutOfBand::kLarge);
  encoder->name(info_.key());
  encoder->number(info_.fingerprint());
  static constinit Imported pack("weft._chare.migration", "pack_state");
  const Ref parts = checked(PyObject_CallOneArg(pack.get(), object()));
  encoder->pickled(Ref::borrow(PyTuple_GetItem(parts.get(), 0)), PyTuple_GetItem(parts.get(), 1));
  encoder->value(PyTuple_GetItem(parts.get(), 2));
  waiting_call_codec_.encode(*encoder, *this);
  packed_ = std::move(encoder);
}

namespace {

// With Python's error set, which stays: ", in its attribute lock" if that cannot travel.
std::string culprit(PyObject* chare) {
  const Ref error = PythonError::take();
  static constinit Imported find("weft._chare.migration", "culprit");
  const Ref name = Ref::steal(PyObject_CallOneArg(find.get(), chare));
  if (!name) PyErr_Clear();
  const std::string found = name ? readable(name.get()) : std::string();
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
  return found.empty() ? found : base::format(", in its attribute {},", found);
}

}  // namespace

void PyChare::pup(Pup& p) {
  try {
    if (p.is_sizing()) {
      try {
        pack_state();
      } catch (const PythonError&) {
        rethrow_unsendable(base::format("the state of {}{}", where(), culprit(object())));
      }
      p.reserve(packed_->size_bytes());
    } else if (p.is_packing()) {
      const std::shared_ptr<Encoder> encoder = std::move(packed_);
      std::vector<std::byte> bytes = encoder->copy();
      p.bytes(bytes.data(), bytes.size());
      auto& carrier = *static_cast<runtime::Message*>(p.carrier());
      attach_all(*encoder, carrier);
      // Copies are made when the message is sent. What they copy may be the state's alone, as __getstate__ gave it.
      if (carrier.has_attachments()) carrier.keep(encoder);
    } else {
      Decoder decoder(p);
      const auto [pickled, buffers] = decoder.pickled();
      const Ref device_arrays = decoder.value();
      static constinit Imported unpack("weft._chare.migration", "unpack_state");
      checked(PyObject_CallFunctionObjArgs(unpack.get(), object(), pickled.get(), buffers.get(),
                                           device_arrays.get(), nullptr));
      if (decoder.remaining_bytes() != 0) waiting_call_codec_.decode(decoder, *this);
      decoder.finish(p);
    }
    end_if_forked();
  } catch (...) {
    end_if_forked();
    std::rethrow_exception(caught_as_travelling_error());
  }
}

// --- A constructor that is a coroutine, and created()

namespace {

using chare::CreationPart;

// With Python's error indicator set: what has left that part of the creation goes to its caller.
void creation_has_raised(PyChare& chare, CreationPart part) {
  if (ended_by_exception(Engine::current())) return;
  const Ref exception = PythonError::take();
  chare.collection().chares().created_ended(chare, as_travelling_error(exception.get()),
                                            code_of_exception(exception.get()), part);
}

// Sets the error that Python raises for an __init__ that is no coroutine.
void refuse_result_of_constructor(PyObject* result) {
  PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'", type_name_of(result).c_str());
}

// Whether the method has returned work that nothing does.
bool is_left_over(PyObject* result) {
  PyTypeObject* const type = Py_TYPE(result);
  return PyGen_Check(result) || PyType_GetSlot(type, Py_am_await) != nullptr ||
         PyType_GetSlot(type, Py_am_anext) != nullptr;
}

class CreationCoroutine final : public Coroutine {
 public:
  CreationCoroutine(Ref coroutine, PyChare& chare, CreationPart part)
      : Coroutine(Engine::current(), std::move(coroutine)), chare_(chare), part_(part) {
    chare_.coroutine_started();
  }

 private:
  void returned(Ref result) override {
    if (part_ == CreationPart::kConstructor && result.get() != Py_None) {
      refuse_result_of_constructor(result.get());
      return raised();
    }
    has_returned_ = true;
  }
  void raised() override {
    chare_.coroutine_ended();
    creation_has_raised(chare_, part_);
  }
  void after_step() override {
    if (!has_returned_) return;
    const auto& in = chare_.collection();
    const bool is_over = part_ == CreationPart::kCreated || in.is_destroyed() || in.has_failed();
    chare_.coroutine_ended();
    if (is_over) return chare_.collection().chares().created_ended(chare_, nullptr);
    chare_.begin_hook();
  }

  PyChare& chare_;
  CreationPart part_;
  bool has_returned_ = false;
};

}  // namespace

void PyChare::begin_created(chare::ChareBase& base) {
  auto& chare = static_cast<PyChare&>(base);
  std::optional<runtime::WorkMeter::Span> span;
  if (base.load() != nullptr) span.emplace(base.runtime().meter(), *base.load());
  chare.constructor_arguments_ ? chare.begin_constructor() : chare.begin_hook();
}

void PyChare::begin_constructor() {
  const Ref arguments = std::move(constructor_arguments_);
  const WhileRunning running(as_running());
  Ref result;
  try {
    const Ref constructor = attribute(info_.type(), "__init__");
    result = Ref::steal(call_with_first(constructor.get(), object(), arguments.get()));
    end_if_forked();
    if (!result) throw PythonError();
    if (!is_coroutine(result.get())) {
      refuse_result_of_constructor(result.get());
      throw PythonError();
    }
  } catch (const PythonError&) {
    return creation_has_raised(*this, CreationPart::kConstructor);
  }
  (new CreationCoroutine(std::move(result), *this, CreationPart::kConstructor))->start();
}

void PyChare::begin_hook() {
  const WhileRunning running(as_running());
  Ref result = Ref::steal(PyObject_CallMethod(object(), "created", nullptr));
  end_if_forked();
  if (!result) return creation_has_raised(*this, CreationPart::kCreated);
  if (is_coroutine(result.get())) {
    return (new CreationCoroutine(std::move(result), *this, CreationPart::kCreated))->start();
  }
  std::exception_ptr error;
  if (is_left_over(result.get())) {
    error = std::make_exception_ptr(base::Error(
        base::StatusCode::kInvalidArgument,
        base::format(
            "created() of the class {} has returned an object of the type {}, which nothing runs or "
            "awaits. Define it as `async def created(self)`, without yield, and await what it waits for",
            info_.name(), type_name_of(result.get()))));
  }
  collection().chares().created_ended(*this, error);
}

// --- Hooks that cannot wait

void PyChare::migrated() { call_hook("migrated", "before any other call"); }

void PyChare::resume_from_sync() { call_hook("resume_from_sync", "after a step of load balancing"); }

void PyChare::call_hook(const char* name, const char* when) {
  const WhileRunning running(as_running());
  const Ref result = Ref::steal(PyObject_CallMethod(object(), name, nullptr));
  end_if_forked();
  if (result && !is_coroutine(result.get())) return;
  if (!result) {
    if (ended_by_exception(Engine::current())) return;
  } else {
    checked(PyObject_CallMethod(result.get(), "close", nullptr));
    PyErr_Format(PyExc_TypeError, "%s.%s is a coroutine; it runs %s and cannot wait", info_.name().c_str(),
                 name, when);
  }
  try {
    throw PythonError();
  } catch (...) {
    std::rethrow_exception(caught_as_travelling_error());
  }
}

std::string PyChare::where_in(std::size_t method) const {
  return base::format("{}.{} on PE {}", collection().element_name(linear_index()),
                      text_of(info_.method_name(method)), pe());
}

PyObject* PyChare::make_object(PyTypeObject* type) {
  PyChare* chare = std::exchange(being_made, nullptr);
  if (chare == nullptr) {
    const std::string type_name = readable(attribute(reinterpret_cast<PyObject*>(type), "__name__").get());
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("{} is a chare class and cannot be called directly; make chares with weft.Array, "
                     "weft.Group or weft.Singleton",
                     type_name));
  }
  // object.__new__ also makes the place of the attributes, for which CPython 3.11 and 3.12 have faster instructions than for a dict.
  static const auto make = reinterpret_cast<newfunc>(PyType_GetSlot(&PyBaseObject_Type, Py_tp_new));
  const Ref no_arguments = checked(PyTuple_New(0));
  const Ref object = checked(make(type, no_arguments.get(), nullptr));
  reinterpret_cast<ChareObject*>(object.get())->chare = chare;
  chare->object_ = object;
  return Py_NewRef(object.get());
}

std::size_t PyChare::object_size_bytes() { return sizeof(ChareObject); }

PyChare& chare_of(PyObject* object) {
  Engine::refuse_other_threads();
  return chare_for_reading(object);
}

PyChare& chare_for_reading(PyObject* object) {
  const auto* const known = reinterpret_cast<ChareObject*>(object);
  if (known->chare == nullptr) {
    throw base::Error(base::StatusCode::kClosed, why_gone(known->gone));
  }
  return *known->chare;
}

}  // namespace weft::python
