// The remote completions of copies: messages to the target's PE, which run a function there.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <span>

#include "weft/rma/completions.h"
#include "weft/runtime/runtime.h"

namespace weft::rma {

class RemoteHooks {
 public:
  using Hook = void (*)(void* context, int source_pe, std::uint32_t function,
                        std::span<const std::byte> bytes);

  RemoteHooks(runtime::Runtime& runtime, runtime::HandlerId handler);
  RemoteHooks(const RemoteHooks&) = delete;
  RemoteHooks& operator=(const RemoteHooks&) = delete;

  void set(Hook hook, void* context) {
    hook_ = hook;
    context_ = context;
  }
  // REQUIRES: the copy's data is visible to that PE.
  void send(int pe, const RemoteCompletion& completion);

 private:
  void on_message(runtime::Message& message) const;

  runtime::Runtime& runtime_;
  runtime::HandlerId handler_;
  Hook hook_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace weft::rma
