#include "chare/calls/waiting_call.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "weft/chare/entry.h"
#include "weft/chare/waiting_call.h"

#include "base/format.h"
#include "chare/calls/method_run.h"
#include "codec/decoder.h"
#include "codec/encoder.h"

namespace weft::python {

namespace {

enum class Asked : std::uint8_t { kHolds, kDoesNotHold, kHasRaised };

Asked ask(PyChare& chare, const Condition& condition, CallArguments& arguments, const chare::ReplyTo& reply,
          std::size_t method) {
  try {
    return condition.holds(arguments) ? Asked::kHolds : Asked::kDoesNotHold;
  } catch (...) {
    send_error_from(chare, reply, method, " (its condition)");
    return Asked::kHasRaised;
  }
}

// Names its method itself, and travels in the state of its chare.
const chare::EntryInfo waiting_info{"weft::python entry", &chare::ChareTypeOf<PyChare>::info};

class WaitingPythonCall final : public chare::WaitingCall {
 public:
  WaitingPythonCall(const ClassInfo& info, const chare::ReplyTo& reply, std::size_t method,
                    std::unique_ptr<CallArguments> arguments)
      : WaitingCall(waiting_info, reply),
        info_(info),
        method_(method),
        arguments_(std::move(arguments)),
        known_(condition().known_of(*arguments_)) {}

  bool try_to_begin(chare::ChareBase& base) override {
    auto& chare = static_cast<PyChare&>(base);
    const Asked asked = ask(chare, condition(), *arguments_, reply(), method_);
    if (asked == Asked::kHolds) run_method(chare, *arguments_, reply(), method_);
    return asked != Asked::kDoesNotHold;
  }
  // Those with arguments that may change are a group of their own.
  const void* group() const override {
    if (known_.is_plain) return &condition();
    return condition().group_of_others();
  }
  std::optional<std::uint64_t> key() const override { return known_.key; }
  std::optional<std::uint64_t> key_of(chare::ChareBase& base) const override {
    return condition().key_of_chare(static_cast<PyChare&>(base).object());
  }
  bool has_changed(chare::ChareBase& base, std::shared_ptr<void>& seen) const override {
    if (!known_.is_plain) return true;
    if (seen == nullptr) seen = std::make_shared<Ref>();
    return condition().has_changed(static_cast<PyChare&>(base).object(), *static_cast<Ref*>(seen.get()));
  }
  std::string method_name() const override { return std::string(text_of(info_.method_name(method_))); }
  Travel travel() const override { return Travel::kInState; }

  void encode(Encoder& encoder) const {
    encoder.number(reply());
    encoder.number(static_cast<std::uint16_t>(method_));
    arguments_->encode(encoder);
  }

 private:
  const Condition& condition() const { return *info_.condition(method_); }

  const ClassInfo& info_;
  std::size_t method_;
  std::unique_ptr<CallArguments> arguments_;
  Condition::OfCall known_;
};

void encode_waiting_calls(Encoder& encoder, const PyChare& chare) {
  const std::vector<chare::WaitingCall*> calls = chare.waiting_calls();
  if (calls.empty()) return;
  encoder.number(static_cast<std::uint32_t>(calls.size()));
  for (const chare::WaitingCall* const call : calls)
    static_cast<const WaitingPythonCall*>(call)->encode(encoder);
}

// Throws base::Error(kCorrupt) for a call that does not fit.
void decode_waiting_calls(Decoder& decoder, PyChare& chare) {
  const auto count = decoder.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto reply = decoder.number<chare::ReplyTo>();
    const std::size_t method = decoder.number<std::uint16_t>();
    if (!reply.is_valid(chare.num_pes()) || method >= chare.info().num_methods() ||
        chare.info().condition(method) == nullptr) {
      Decoder::corrupt(base::format("a call of method {} that waits in {}", method, chare.where()));
    }
    const CallHeader header{static_cast<std::uint16_t>(method), CallHeader::Form::kArguments, 0};
    chare.add_waiting_call(std::make_unique<WaitingPythonCall>(
        chare.info(), reply, method, std::make_unique<CallArguments>(chare.object(), decoder, header)));
  }
}

const bool registered = PyChare::set_waiting_call_codec({&encode_waiting_calls, &decode_waiting_calls});

}  // namespace

bool run_or_wait(PyChare& chare, const Condition& condition, std::unique_ptr<CallArguments> arguments,
                 const chare::ReplyTo& reply, std::size_t method) {
  static_cast<void>(registered);
  const bool was_asked = !chare.has_postponed_calls();
  if (was_asked) {
    const Asked asked = ask(chare, condition, *arguments, reply, method);
    if (asked == Asked::kHolds) run_method(chare, *arguments, reply, method);
    if (asked != Asked::kDoesNotHold) return asked == Asked::kHolds;
  }
  chare.add_waiting_call(
      std::make_unique<WaitingPythonCall>(chare.info(), reply, method, std::move(arguments)), was_asked);
  return false;
}

}  // namespace weft::python
