#include "chare/calls/calls.h"

#include <memory>
#include <span>
#include <utility>

#include "await/coroutine.h"
#include "base/format.h"
#include "buffers/receive_buffer.h"
#include "chare/calls/method_run.h"
#include "chare/calls/waiting_call.h"
#include "chare/classes/call_arguments.h"
#include "chare/classes/chare.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "engine/ending.h"
#include "engine/engine.h"
#include "support/errors.h"
#include "support/importable.h"

namespace weft::python {

namespace {

// Substitutes the arrays that the post entry method chose in the arguments of the entry method.
class ChosenArrays final : public ArraySubstitute {
 public:
  explicit ChosenArrays(std::span<const Ref> chosen) : chosen_(chosen) {}
  Ref in_place_of(std::size_t which, const ArrayForm&) override {
    return which < chosen_.size() ? chosen_[which] : Ref();
  }

 private:
  std::span<const Ref> chosen_;
};

// `chosen`: by out-of-band buffer, what the post entry method gave for it. `shared`: as of invoke_shared(), or null.
void invoke_unmeasured(chare::ChareBase& base, Pup& p, const chare::ReplyTo& reply,
                       std::span<const Ref> chosen, std::unique_ptr<chare::SharedCall>* shared) {
  auto& chare = static_cast<PyChare&>(base);
  std::size_t method = chare.info().num_methods();
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
    if (const Condition* const condition = chare.info().condition(method)) [[unlikely]] {
      auto arguments = std::make_unique<CallArguments>(chare.object(), decoder, header, shared);
      if (!run_or_wait(chare, *condition, std::move(arguments), reply, method)) return;
    } else {
      CallArguments arguments(chare.object(), decoder, header, shared);
      run_method(chare, arguments, reply, method);
    }
  } catch (...) {
    send_error_from(chare, reply, method);
  }
  chare.run_ready_calls();
}

void invoke_with(chare::ChareBase& base, Pup& p, const chare::ReplyTo& reply, std::span<const Ref> chosen,
                 std::unique_ptr<chare::SharedCall>* shared = nullptr) {
  if (base.load() == nullptr) [[likely]]
    return invoke_unmeasured(base, p, reply, chosen, shared);
  const runtime::WorkMeter::Span span(base.runtime().meter(), *base.load());
  invoke_unmeasured(base, p, reply, chosen, shared);
}

void invoke(chare::ChareBase& base, Pup& p, const chare::ReplyTo& reply) { invoke_with(base, p, reply, {}); }

void invoke_shared(chare::ChareBase& base, Pup& p, const chare::ReplyTo& reply,
                   std::unique_ptr<chare::SharedCall>& shared) {
  invoke_with(base, p, reply, {}, &shared);
}

void invoke_placed(chare::ChareBase& base, runtime::Message& message, const chare::ReplyTo& reply,
                   void* kept) {
  Pup p = message.unpacker();
  p.skip(sizeof(chare::EntryHeader));
  std::span<const Ref> chosen;
  if (kept != nullptr) chosen = *static_cast<const std::vector<Ref>*>(kept);
  invoke_with(base, p, reply, chosen);
}

// Runs the post entry method of a call, if there is one, before the buffers of the call land.
bool place(chare::ChareBase& base, Pup& p, const chare::ReplyTo& reply,
           std::span<runtime::ReceiveBuffer> receive_buffers, std::shared_ptr<void>& kept) {
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
    Posting posting(receive_buffers);
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
    static_cast<void>(decoder.number<std::uint8_t>());  // this and the next were read by name_collection()
    static_cast<void>(decoder.number<std::uint8_t>());
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
  made.set_class_name(name_in_key(key), key);
  static_cast<void>(decoder.number<std::uint64_t>());  // the fingerprint
  const auto balancing = static_cast<chare::Balancing>(decoder.number<std::uint8_t>());
  made.set_balancing(chare::is_valid(balancing) ? balancing : chare::Balancing::kNone);
  made.set_has_created(decoder.number<std::uint8_t>() != 0);
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
                            &method_of,
                            nullptr,
                            &invoke_shared};
const bool registered = chare::ChareTypeOf<PyChare>::registered &&
                        runtime::Registry<chare::ConstructorInfo>::add(&constructor_info) &&
                        runtime::Registry<chare::EntryInfo>::add(&entry_info);

}  // namespace

const chare::ConstructorInfo& python_constructor() { return constructor_info; }
const chare::EntryInfo& python_entry() {
  static_cast<void>(registered);
  return entry_info;
}

std::vector<std::byte> encode_constructor(const ClassInfo& info, PyObject* arguments) {
  Encoder encoder;
  encoder.name(info.key());
  encoder.number(info.fingerprint());
  encoder.number(static_cast<std::uint8_t>(info.balancing()));
  encoder.number(std::uint8_t{info.has_created()});
  encoder.value(arguments);
  return encoder.copy();
}

}  // namespace weft::python
