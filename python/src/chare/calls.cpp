#include "chare/calls.h"

#include <array>
#include <memory>
#include <span>
#include <utility>

#include "await/coroutine.h"
#include "await/future.h"
#include "base/format.h"
#include "buffers/arrays.h"
#include "buffers/landing.h"
#include "chare/chare.h"
#include "codec/attach.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/result.h"
#include "engine/ending.h"
#include "engine/engine.h"
#include "support/errors.h"
#include "support/importable.h"

namespace weft::python {

namespace {

void send_error_from(PyChare& chare, const chare::ReplyTo& reply, std::size_t method) {
  Engine& engine = Engine::current();
  if (PyErr_Occurred() != nullptr && ended_by_exception(engine)) return;
  chare::EntryInfo entry;
  entry.name = method < chare.info().num_methods() ? text_of(chare.info().method_name(method)) : "?";
  try {
    throw;
  } catch (const PythonError&) {
    const Ref exception = PythonError::take();
    chare::send_error(chare, reply, entry, as_travelling_error(exception.get()),
                      code_of_exception(exception.get()));
  } catch (...) {
    chare::send_error(chare, reply, entry, std::current_exception());
  }
}

// REQUIRES: the reply goes somewhere. Throws when the value cannot travel.
void send_result(PyChare& chare, const chare::ReplyTo& reply, PyObject* value) {
  const bool gathered = reply.kind == chare::ReplyTo::Kind::kGather;
  Encoder encoder(gathered ? Beside::kNothing : Beside::kLarge);
  // An array that the method has not kept cannot change under way.
  if (is_sole_owner(value)) encoder.own(value);
  encoder.value(value);
  // In front of the value a future wants its form.
  const std::size_t form_bytes = gathered ? 0 : 1;
  chare::ResultMessage result(chare, reply, form_bytes + encoder.size_bytes());
  if (!gathered) *result.value() = static_cast<std::byte>(ResultForm::kValue);
  encoder.copy_to(result.value() + form_bytes);
  if (runtime::Message* const carrier = result.carrier()) attach_all(encoder, *carrier);
  std::move(result).send();
}

void finish(PyChare& chare, const chare::ReplyTo& reply, std::size_t method, PyObject* value) {
  if (reply.kind == chare::ReplyTo::Kind::kNone) return;
  try {
    try {
      send_result(chare, reply, value);
    } catch (const PythonError&) {
      rethrow_unsendable(base::format("the result of {}", chare.where_in(method)));
    }
  } catch (...) {
    send_error_from(chare, reply, method);
  }
}

// One run of an entry method that the PE's observer sees. Made only if there is an observer; the address is the run's
// key.
class ObservedRun {
 public:
  static std::unique_ptr<ObservedRun> begin(const PyChare& chare, std::size_t method) {
    if (chare.runtime().observer() == nullptr) [[likely]]
      return nullptr;
    auto run = std::make_unique<ObservedRun>(chare, method);
    chare.runtime().observer()->entry_began(run->event());
    return run;
  }
  ObservedRun(const PyChare& chare, std::size_t method) : chare_(chare), method_(method) {}

  void end() const {
    if (runtime::Observer* const observer = chare_.runtime().observer()) observer->entry_ended(event());
  }

 private:
  runtime::EntryEvent event() const {
    return {{chare_.collection().id(), chare_.linear_index()}, chare_.info().full_method_name(method_), this};
  }

  const PyChare& chare_;
  std::size_t method_;
};

class EntryCoroutine final : public Coroutine {
 public:
  EntryCoroutine(Engine& engine, Ref coroutine, PyChare& chare, const chare::ReplyTo& reply,
                 std::size_t method, std::unique_ptr<ObservedRun> observed)
      : Coroutine(engine, std::move(coroutine)),
        chare_(chare),
        reply_(reply),
        method_(method),
        observed_(std::move(observed)) {
    chare_.coroutine_started();
  }

 private:
  void returned(Ref result) override {
    finish(chare_, reply_, method_, result.get());
    ended();
  }
  void raised() override {
    try {
      throw PythonError();
    } catch (...) {
      send_error_from(chare_, reply_, method_);
    }
    ended();
  }
  void ended() {
    chare_.coroutine_ended();
    if (observed_) [[unlikely]]
      observed_->end();
  }

  PyChare& chare_;
  chare::ReplyTo reply_;
  std::size_t method_;
  std::unique_ptr<ObservedRun> observed_;
};

// The arguments of a call, with the chare in front, on the stack for usual counts.
class CallArguments {
 public:
  // Delegates, so that the destructor drops what was decoded if a later value does not decode.
  CallArguments(PyObject* self, Decoder& decoder, const CallHeader& header) : CallArguments(self) {
    if (header.form == CallHeader::Form::kResult) {
      const std::size_t bound = decoder.number<std::uint8_t>();
      for (std::size_t i = 0; i < bound; ++i) push(decoder.value());
      const auto form = static_cast<ResultForm>(header.result_form);
      if (form != ResultForm::kNothing) push(decode_result(decoder, form));
      num_positional_ = count_;
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
    PyObject* result =
        PyObject_VectorcallMethod(method_name, values(), num_positional_, keyword_names_.get());
    end_if_forked();
    return checked(result);
  }

 private:
  explicit CallArguments(PyObject* self) { push(Ref::borrow(self)); }
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

// `chosen`: by buffer beside the message, what the post entry method gave for it.
void invoke_unmeasured(chare::ChareBase& base, Pup& p, const chare::ReplyTo& reply,
                       std::span<const Ref> chosen) {
  auto& chare = static_cast<PyChare&>(base);
  std::size_t method = chare.info().num_methods();
  std::unique_ptr<ObservedRun> observed;
  try {
    Decoder decoder(p);
    auto header = decoder.number<CallHeader>();
    method = header.method;
    if (method >= chare.info().num_methods()) {
      throw base::Error(base::StatusCode::kCorrupt,
                        base::format("{} has no entry method {}", chare.where(), method));
    }
    ChosenArrays substitute(chosen);
    if (!chosen.empty()) decoder.set_substitute(substitute);
    CallArguments arguments(chare.object(), decoder, header);
    observed = ObservedRun::begin(chare, method);
    Ref result = arguments.call(chare.info().method_name(method));
    if (is_coroutine(result.get())) {
      (new EntryCoroutine(Engine::current(), std::move(result), chare, reply, method,
                          std::exchange(observed, nullptr)))
          ->start();
    } else {
      finish(chare, reply, method, result.get());
    }
  } catch (...) {
    send_error_from(chare, reply, method);
  }
  if (observed) [[unlikely]]
    observed->end();
}

void invoke_with(chare::ChareBase& base, Pup& p, const chare::ReplyTo& reply, std::span<const Ref> chosen) {
  if (base.load() == nullptr) [[likely]]
    return invoke_unmeasured(base, p, reply, chosen);
  const runtime::WorkMeter::Span span(base.runtime().meter(), *base.load());
  invoke_unmeasured(base, p, reply, chosen);
}

void invoke(chare::ChareBase& base, Pup& p, const chare::ReplyTo& reply) { invoke_with(base, p, reply, {}); }

void invoke_placed(chare::ChareBase& base, runtime::Message& message, const chare::ReplyTo& reply,
                   void* kept) {
  Pup p = message.unpacker();
  p.skip(sizeof(chare::EntryHeader));
  std::span<const Ref> chosen;
  if (kept != nullptr) chosen = *static_cast<const std::vector<Ref>*>(kept);
  invoke_with(base, p, reply, chosen);
}

// Runs the post entry method of a call, if there is one, before the buffers of the call land.
bool place(chare::ChareBase& base, Pup& p, const chare::ReplyTo& reply, std::span<runtime::Landing> landings,
           std::shared_ptr<void>& kept) {
  auto& chare = static_cast<PyChare&>(base);
  std::size_t method = chare.info().num_methods();
  try {
    // Without the message: nothing has landed yet, and a value that asks for its buffer is refused.
    Decoder decoder(std::span(p.cursor(), p.remaining_bytes()));
    auto header = decoder.number<CallHeader>();
    if (header.method >= method) return true;  // invoke() says what is wrong with it
    method = header.method;
    PyObject* name = chare.info().post_entry(method);
    if (name == nullptr) return true;
    Posting posting(landings);
    decoder.set_substitute(posting);
    CallArguments arguments(chare.object(), decoder, header);
    Ref result = arguments.call(name);
    if (is_coroutine(result.get())) {
      checked(PyObject_CallMethod(result.get(), "close", nullptr));
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          base::format("the post entry method {}.{} is a coroutine; it chooses where buffers land "
                       "and cannot wait",
                       chare.info().name(), text_of(name)));
    }
    kept = std::make_shared<std::vector<Ref>>(posting.take_chosen());
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
          base::format("the class {} has other methods on this PE than where the collection was made; "
                       "define it in the same way on every PE",
                       info.name()));
    }
    static_cast<void>(decoder.number<std::uint8_t>());  // read by name_collection()
    auto chare = std::make_unique<PyChare>(info);
    Ref arguments = decoder.value();
    chare->construct(arguments.get());
    end_if_forked();
    return chare;
  } catch (...) {
    end_if_forked();
    if (PyErr_Occurred() != nullptr && ended_by_exception(Engine::current())) {
      return nullptr;
    }
    std::rethrow_exception(caught_as_travelling_error());
  }
}

// On every PE, also on one that has no element and has not imported the class.
void name_collection(chare::Collection& made, Pup& arguments) {
  Decoder decoder(arguments);
  const std::string_view key = decoder.name();
  made.set_class_name(std::string(name_in_key(key)), std::string(key));
  static_cast<void>(decoder.number<std::uint64_t>());  // the fingerprint
  made.set_balanced(decoder.number<std::uint8_t>() != 0);
}

std::string method_of(const chare::Collection& collection, Pup& arguments) {
  const std::size_t method = Decoder(arguments).number<CallHeader>().method;
  try {
    const ClassInfo& info = ClassInfo::find(collection.class_key());
    if (method < info.num_methods()) return std::string(text_of(info.method_name(method)));
  } catch (const base::Error&) {  // the class cannot be imported here
    return base::format("entry method {}", method);
  } catch (const PythonError&) {
    PyErr_Clear();
  }
  return base::format("entry method {}", method);
}

chare::ConstructorInfo constructor_info{"weft::python constructor", &chare::ChareTypeOf<PyChare>::info,
                                        &construct, 0, &name_collection};
chare::EntryInfo entry_info{"weft::python entry",
                            &chare::ChareTypeOf<PyChare>::info,
                            &invoke,
                            0,
                            &place,
                            &invoke_placed,
                            true,
                            &method_of};
const bool registered = chare::ChareTypeOf<PyChare>::registered &&
                        runtime::Registry<chare::ConstructorInfo>::add(&constructor_info) &&
                        runtime::Registry<chare::EntryInfo>::add(&entry_info);

}  // namespace

const chare::ConstructorInfo& python_constructor() { return constructor_info; }
const chare::EntryInfo& python_entry() {
  static_cast<void>(registered);
  return entry_info;
}

std::vector<std::byte> pack_constructor(const ClassInfo& info, PyObject* arguments) {
  Encoder encoder;
  encoder.name(info.key());
  encoder.number(info.fingerprint());
  encoder.number(std::uint8_t{info.is_balanced()});
  encoder.value(arguments);
  return encoder.copy();
}

}  // namespace weft::python
