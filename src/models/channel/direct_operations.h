// The operations that the direct path has under way; private to direct_path.cpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/runtime/operation.h"

#include "models/channel/channels.h"
#include "models/channel/direct_path.h"

namespace weft::channel {

// One receive on both paths. Goes when its operation is over and nothing will call its completions any more.
struct DirectPath::Receive {
  struct Half : base::Completion {
    Half(Function on_complete, Receive* receive_in) : base::Completion(on_complete), receive(receive_in) {}
    Receive* receive;
    bool is_pending = false;
  };

  Receive(DirectPath& path_in, ChannelEnd& end_in, std::uint32_t counter_in, const memory::Buffer& buffer_in,
          runtime::OperationState* operation_in)
      : path(path_in), end(end_in), counter(counter_in), buffer(buffer_in), operation(operation_in) {}

  bool is_over() const { return operation == nullptr; }
  bool can_go() const { return is_over() && !tagged.is_pending && !stream_done.is_pending; }
  bool is_copied() const {
    return slot != nullptr && slot->outcome.load(std::memory_order_acquire) == Slot::done(counter);
  }
  void end_with(base::Status status, std::size_t size_bytes) {
    if (slot != nullptr) std::exchange(slot, nullptr)->word.store(Slot::kFree, std::memory_order_release);
    exported.reset();
    std::exchange(operation, nullptr)->complete(std::move(status), size_bytes);
  }
  // Whether no sender has taken the offer, nor will.
  bool take_back() {
    std::uint64_t posted = Slot::posted(counter);
    return slot == nullptr || slot->word.compare_exchange_strong(posted, Slot::kFree);
  }

  DirectPath& path;
  ChannelEnd& end;
  std::uint32_t counter;
  memory::Buffer buffer;
  runtime::OperationState* operation;         // null when it is over
  Slot* slot = nullptr;                       // null when not posted
  std::shared_ptr<Exports::Export> exported;  // what is posted
  Half tagged{[](base::Completion* self, base::Status status, std::size_t size_bytes) {
                auto& half = *static_cast<Half*>(self);
                half.is_pending = false;
                tagged_ended(*half.receive, std::move(status), size_bytes);
              },
              this};
  Half stream_done{[](base::Completion* self, base::Status status, std::size_t) {
                     auto& half = *static_cast<Half*>(self);
                     half.is_pending = false;
                     if (status.ok()) half.receive->path.stream_is_done(*half.receive);
                   },
                   this};
};

// A copy under way into a peer's buffer.
struct DirectPath::Copy : base::Completion {
  Copy(DirectPath& path_in, ChannelEnd& end_in, std::uint32_t counter_in, Slot& slot_in,
       Imports::Import& import_in, runtime::OperationState* operation_in)
      : base::Completion([](base::Completion* self, base::Status status, std::size_t) {
          const std::unique_ptr<Copy> copy(static_cast<Copy*>(self));
          copy->path.copied(*copy, std::move(status));
        }),
        path(path_in),
        end(end_in),
        counter(counter_in),
        slot(slot_in),
        import(import_in),
        operation(operation_in) {}

  DirectPath& path;
  ChannelEnd& end;
  std::uint32_t counter;
  Slot& slot;
  Imports::Import& import;
  runtime::OperationState* operation;
  std::size_t size_bytes = 0;
};

// A send that waits for its stream, on the CPU as on the tagged path, because its receive was not posted: it
// may be by then.
struct DirectPath::LateSend : base::Completion {
  LateSend(DirectPath& path_in, ChannelEnd& end_in, std::uint32_t counter_in,
           const memory::ConstBuffer& source_in, runtime::OperationState* operation_in)
      : base::Completion([](base::Completion* self, base::Status status, std::size_t) {
          const std::unique_ptr<LateSend> late(static_cast<LateSend*>(self));
          late->path.stream_is_done(*late, std::move(status));
        }),
        path(path_in),
        end(end_in),
        counter(counter_in),
        source(source_in),
        operation(operation_in) {}

  DirectPath& path;
  ChannelEnd& end;
  std::uint32_t counter;
  memory::ConstBuffer source;
  runtime::OperationState* operation;
};

}  // namespace weft::channel
