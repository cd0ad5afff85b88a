#include "chare/chare.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "weft/chare/entry.h"

#include "await/coroutine.h"
#include "await/future.h"
#include "buffers/arrays.h"
#include "buffers/landing.h"
#include "chare/collection_proxy.h"
#include "chare/indices.h"
#include "chare/reduction.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "support/errors.h"

namespace weft::python {

namespace {

struct ChareObject {
  PyObject_HEAD PyChare* chare;  // null once the job has ended
};

PyTypeObject* type = nullptr;
// Taken by the object that is made next; see PyChare::construct.
PyChare* being_made = nullptr;

// --- Outcomes
// ---------------------------------------------------------------------------------------------------

void send_error_from(PyChare& chare, const chare::ReplyTo& reply, std::size_t method) {
  Engine& engine = Engine::current();
  if (PyErr_Occurred() != nullptr && ended_by_exception(engine)) return;
  std::exception_ptr error = caught_as_travelling_error();
  chare::EntryInfo entry;
  entry.name = method < chare.info().num_methods() ? text_of(chare.info().method_name(method)) : "?";
  chare::send_error(chare, reply, entry, error);
}

// REQUIRES: the reply goes somewhere. Throws when the value cannot travel.
void send_result(PyChare& chare, const chare::ReplyTo& reply, PyObject* value) {
  bool gathered = reply.kind == chare::ReplyTo::Kind::kGather;
  // A large array that nobody else holds cannot change under way.
  InPlace in_place = is_sole_owner(value) ? InPlace::kLarge : InPlace::kNoCopy;
  Encoder encoder(gathered ? InPlace::kNothing : in_place);
  encoder.value(value);
  if (gathered) {
    std::vector<std::byte> outcome(1 + encoder.size_bytes());
    encoder.copy_to(outcome.data() + 1);
    chare.collection().chares().contribute_outcome(reply, chare, outcome);
    return;
  }
  set_remote_future(chare.runtime(), {reply.pe, reply.id}, encoder);
}

void finish(PyChare& chare, const chare::ReplyTo& reply, std::size_t method, PyObject* value) {
  if (reply.kind == chare::ReplyTo::Kind::kNone) return;
  try {
    try {
      send_result(chare, reply, value);
    } catch (const PythonError&) {
      rethrow_unsendable(fmt::format("the result of {}", chare.where_in(method)));
    }
  } catch (...) {
    send_error_from(chare, reply, method);
  }
}

class EntryCoroutine final : public Coroutine {
 public:
  EntryCoroutine(Engine& engine, Ref coroutine, PyChare& chare, const chare::ReplyTo& reply,
                 std::size_t method)
      : Coroutine(engine, std::move(coroutine)), chare_(chare), reply_(reply), method_(method) {
    chare_.coroutine_started();
  }

 private:
  void returned(Ref result) override {
    finish(chare_, reply_, method_, result.get());
    chare_.coroutine_ended();
  }
  void raised() override {
    try {
      throw PythonError();
    } catch (...) {
      send_error_from(chare_, reply_, method_);
    }
    chare_.coroutine_ended();
  }

  PyChare& chare_;
  chare::ReplyTo reply_;
  std::size_t method_;
};

// --- Calling
// ----------------------------------------------------------------------------------------------------

// The arguments of a call, with the chare in front, on the stack for usual counts.
class CallArguments {
 public:
  CallArguments(PyObject* self, Decoder& decoder, const CallHeader& header) {
    push(Ref::borrow(self));
    if (header.form == CallHeader::Form::kResult) {
      push(decode_result(decoder, header.result_form));
      num_positional_ = 2;
      return;
    }
    std::size_t positional = decoder.number<std::uint8_t>();
    std::size_t keywords = decoder.number<std::uint8_t>();
    num_positional_ = positional + 1;
    for (std::size_t i = 0; i < positional + keywords; ++i) push(decoder.value());
    if (keywords == 0) return;
    keyword_names_ = checked(PyTuple_New(static_cast<Py_ssize_t>(keywords)));
    for (std::size_t i = 0; i < keywords; ++i) {
      PyTuple_SET_ITEM(keyword_names_.get(), static_cast<Py_ssize_t>(i), make_text(decoder.name()).release());
    }
  }
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;
  ~CallArguments() {
    for (std::size_t i = 0; i < count_; ++i) Py_DECREF(values()[i]);
  }

  Ref call(PyObject* method_name) {
    return checked(PyObject_VectorcallMethod(method_name, values(), num_positional_, keyword_names_.get()));
  }

 private:
  static Ref decode_result(Decoder& decoder, std::uint8_t form) {
    auto result_form = static_cast<ResultForm>(form);
    return result_form == ResultForm::kValue ? decoder.value() : decode_reduced(decoder, result_form);
  }
  PyObject** values() { return many_.empty() ? few_.data() : many_.data(); }
  void push(Ref value) {
    if (many_.empty() && count_ == few_.size()) many_.assign(few_.begin(), few_.end());
    if (many_.empty()) {
      few_[count_] = value.release();
    } else {
      many_.push_back(value.release());
    }
    ++count_;
  }

  std::array<PyObject*, 8> few_;
  std::vector<PyObject*> many_;
  std::size_t count_ = 0;
  std::size_t num_positional_ = 0;
  Ref keyword_names_;
};

void invoke(chare::ChareBase& base, Pup& p, const chare::ReplyTo& reply) {
  auto& chare = static_cast<PyChare&>(base);
  std::size_t method = chare.info().num_methods();
  try {
    Decoder decoder(p);
    auto header = decoder.number<CallHeader>();
    method = header.method;
    if (method >= chare.info().num_methods()) {
      throw base::Error(base::StatusCode::kCorrupt,
                        fmt::format("{} has no entry method {}", chare.where(), method));
    }
    auto* message = static_cast<runtime::Message*>(p.carrier());
    const std::shared_ptr<void> chosen = message == nullptr ? nullptr : message->take_kept();
    if (chosen != nullptr) decoder.set_chosen(*static_cast<std::vector<Ref>*>(chosen.get()));
    CallArguments arguments(chare.object(), decoder, header);
    Ref result = arguments.call(chare.info().method_name(method));
    if (is_coroutine(result.get())) {
      (new EntryCoroutine(Engine::current(), std::move(result), chare, reply, method))->start();
    } else {
      finish(chare, reply, method, result.get());
    }
  } catch (...) {
    send_error_from(chare, reply, method);
  }
}

// Runs the post entry method of a call, if there is one, before the buffers of the call land.
bool post(chare::ChareBase& base, Pup& p, const chare::ReplyTo& reply, std::span<runtime::Landing> landings) {
  auto& chare = static_cast<PyChare&>(base);
  std::size_t method = chare.info().num_methods();
  try {
    Decoder decoder(p);
    auto header = decoder.number<CallHeader>();
    if (header.method >= method) return true;  // invoke() says what is wrong with it
    method = header.method;
    PyObject* name = chare.info().post_entry(method);
    if (name == nullptr) return true;
    Posting posting(landings);
    decoder.set_posting(posting);
    CallArguments arguments(chare.object(), decoder, header);
    Ref result = arguments.call(name);
    if (is_coroutine(result.get())) {
      checked(PyObject_CallMethod(result.get(), "close", nullptr));
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          fmt::format("the post entry method {}.{} is a coroutine; it chooses where buffers land "
                      "and cannot wait",
                      chare.info().name(), text_of(name)));
    }
    auto& message = *static_cast<runtime::Message*>(p.carrier());
    message.keep(std::make_shared<std::vector<Ref>>(posting.take_chosen()));
    return true;
  } catch (...) {
    send_error_from(chare, reply, method);
    return false;
  }
}

std::unique_ptr<chare::ChareBase> construct(Pup& p) {
  try {
    Decoder decoder(p);
    const ClassInfo& info = ClassInfo::find(decoder.name());
    if (decoder.number<std::uint64_t>() != info.fingerprint()) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          fmt::format("the class {} has other methods on this PE than where the collection was made; "
                      "define it in the same way on every PE",
                      info.name()));
    }
    auto chare = std::make_unique<PyChare>(info);
    if (!chare->collection().has_display_name()) chare->collection().set_display_name(info.name());
    Ref arguments = decoder.value();
    chare->construct(arguments.get());
    return chare;
  } catch (...) {
    if (PyErr_Occurred() != nullptr && ended_by_exception(Engine::current())) {
      return nullptr;
    }
    std::rethrow_exception(caught_as_travelling_error());
  }
}

chare::ConstructorInfo constructor_info{"weft::python constructor", &chare::ChareTypeOf<PyChare>::info,
                                        &construct, 0};
chare::EntryInfo entry_info{"weft::python entry", &chare::ChareTypeOf<PyChare>::info, &invoke, 0, &post};
const bool registered = chare::ChareTypeOf<PyChare>::registered &&
                        runtime::Registry<chare::ConstructorInfo>::add(&constructor_info) &&
                        runtime::Registry<chare::EntryInfo>::add(&entry_info);

// --- The Python type
// --------------------------------------------------------------------------------------------

PyObject* make(PyTypeObject* subtype, PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyChare* chare = std::exchange(being_made, nullptr);
    if (chare == nullptr) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          fmt::format("{} is a chare class and cannot be called directly; make chares with weft.Array, "
                      "weft.Group or weft.Singleton",
                      subtype->tp_name));
    }
    Ref object = checked(subtype->tp_alloc(subtype, 0));
    reinterpret_cast<ChareObject*>(object.get())->chare = chare;
    chare->set_object(object);
    return object.release();
  });
}

PyObject* get_index(PyObject* self, void*) {
  return guarded([self] { return index_object(chare_of(self).index()).release(); });
}

PyObject* get_proxy(PyObject* self, void*) {
  return guarded([self] {
    PyChare& chare = chare_of(self);
    return make_collection_proxy(chare.collection(), chare.info()).release();
  });
}

PyObject* contribute(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("Chare.contribute", {"value", "reducer", "target"}, 3, values, count, names);
    contribute_to_target(chare_of(self), arguments[0], arguments[1], arguments[2]);
    Py_RETURN_NONE;
  });
}

PyObject* allreduce(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("Chare.allreduce", {"value", "reducer"}, 2, values, count, names);
    return contribute_to_all(chare_of(self), arguments[0], arguments[1]).release();
  });
}

PyObject* no_pickle(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        fmt::format("a chare ({}) does not travel in messages; send its proxy, self.proxy[self.index]",
                    chare_of(self).where()));
  });
}

PyGetSetDef properties[] = {
    {"index", &get_index, nullptr,
     "This chare's index in its collection: an int, or a tuple for 2 to 6 dimensions; a group's is the PE.",
     nullptr},
    {"proxy", &get_proxy, nullptr, "The proxy of the collection that this chare is in.", nullptr},
    {},
};

PyMethodDef methods[] = {
    {"contribute", as_method(&contribute), METH_FASTCALL | METH_KEYWORDS,
     "contribute($self, value, reducer, target)\n--\n\n"
     "Takes part in the collection's next reduction; every element must, in the same order.\n\n"
     "The result goes to `target`: a weft.Future, or an entry method of an element or of a whole collection\n"
     "(``proxy[i].method`` or ``proxy.method``, not called), whose only argument it is. NumPy arrays, all of "
     "the same\n"
     "shape, are reduced element by element.\n\n"
     "Args:\n"
     "    value: this chare's part.\n"
     "    reducer: a weft.Reducer, the same for every element.\n"
     "    target: where the result goes; that of any element is used.\n\n"
     "Raises:\n"
     "    weft.Error: not a reducer or target, or the value cannot be sent."},
    {"allreduce", as_method(&allreduce), METH_FASTCALL | METH_KEYWORDS,
     "allreduce($self, value, reducer)\n--\n\n"
     "The same with the result for every element: ``total = await self.allreduce(x, weft.Reducer.sum)``."},
    {"__reduce__", &no_pickle, METH_NOARGS, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&free_object)},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>("Base class of a program's objects.\n\n"
                                  "Every public method of a subclass is an entry method: "
                                  "``proxy.method(args)`` calls it asynchronously from\n"
                                  "any PE. Entry methods of a chare run one after the other, ``async def`` "
                                  "ones each to its next await. Chares\n"
                                  "are made in collections (weft.Array, weft.Group, weft.Singleton); "
                                  "``self.index`` and ``self.proxy`` work\n"
                                  "in ``__init__`` already.")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.Chare", sizeof(ChareObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

PyChare::~PyChare() {
  if (object_) reinterpret_cast<ChareObject*>(object_.get())->chare = nullptr;
}

void PyChare::construct(PyObject* arguments) {
  being_made = this;
  const Ref object = Ref::steal(PyObject_CallObject(info_.type(), arguments));
  being_made = nullptr;
  if (!object) throw PythonError();
  if (object.get() == object_.get()) return;
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      fmt::format("{}.__new__ gave another object than the one that weft.Chare.__new__ makes, for "
                  "each element a new one; return that",
                  info_.name()));
}

std::string PyChare::where_in(std::size_t method) const {
  return fmt::format("{}.{} on PE {}", collection().element_name(linear_index()),
                     text_of(info_.method_name(method)), pe());
}

PyTypeObject* chare_type() { return type; }

PyChare& chare_of(PyObject* object) {
  PyChare* chare = reinterpret_cast<ChareObject*>(object)->chare;
  if (chare == nullptr) throw base::Error(base::StatusCode::kClosed, "this chare's job has ended");
  return *chare;
}

const chare::ConstructorInfo& python_constructor() { return constructor_info; }
const chare::EntryInfo& python_entry() {
  static_cast<void>(registered);
  return entry_info;
}

std::vector<std::byte> pack_constructor(const ClassInfo& info, PyObject* arguments) {
  Encoder encoder;
  encoder.name(info.key());
  encoder.number(info.fingerprint());
  encoder.value(arguments);
  return encoder.copy();
}

bool ended_by_exception(Engine& engine) {
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) {
    PyErr_Clear();
    engine.interrupt();
    return true;
  }
  if (PyErr_ExceptionMatches(PyExc_SystemExit) == 0) return false;
  Ref exit = PythonError::take();
  Ref code = Ref::steal(PyObject_GetAttrString(exit.get(), "code"));
  if (!code || code.get() == Py_None) {
    engine.runtime().exit(0);
  } else if (PyLong_Check(code.get())) {
    engine.runtime().exit(static_cast<int>(PyLong_AsLong(code.get())));
  } else {
    PySys_FormatStderr("%s\n", readable(code.get()).c_str());
    engine.runtime().exit(1);
  }
  PyErr_Clear();
  return true;
}

void init_chare(PyObject* module) { type = add_type(module, spec); }

}  // namespace weft::python
