#include "rma/copy/remote_hooks.h"

#include <cstring>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::rma {

RemoteHooks::RemoteHooks(runtime::Runtime& runtime, runtime::HandlerId handler)
    : runtime_(runtime), handler_(handler) {
  runtime_.set_handler(
      handler_,
      [](void* self, runtime::MessagePtr message) { static_cast<RemoteHooks*>(self)->on_message(*message); },
      this);
}

void RemoteHooks::send(int pe, const RemoteCompletion& completion) {
  auto message =
      runtime::Message::create(runtime_, handler_, sizeof completion.function + completion.bytes.size());
  std::memcpy(message->payload(), &completion.function, sizeof completion.function);
  if (!completion.bytes.empty()) {
    std::memcpy(message->payload() + sizeof completion.function, completion.bytes.data(),
                completion.bytes.size());
  }
  runtime_.send(pe, std::move(message));
}

void RemoteHooks::on_message(runtime::Message& message) const {
  const auto source_pe = static_cast<int>(message.envelope().source_pe);
  std::uint32_t function = 0;
  if (hook_ == nullptr || message.payload_bytes() < sizeof function) {
    base::refuse_claim(base::format("a remote completion of PE {} arrived, and nothing runs it", source_pe),
                       "call set_remote_hook() on every PE before");
  }
  std::memcpy(&function, message.payload(), sizeof function);
  hook_(context_, source_pe, function,
        std::span<const std::byte>(message.payload(), message.payload_bytes()).subspan(sizeof function));
}

}  // namespace weft::rma
