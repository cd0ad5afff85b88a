// A whole programming model in a hundred lines: the proof of the recipe in src/runtime/README.md.
//
// Each PE has a count. add() asks another PE, with a message, to add to its count; send_block() and
// receive_block() move memory with tags of the model's own type. An element that is pinned cannot move.
#pragma once

#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weft/runtime/runtime.h"

#include "machine/machine.h"

namespace weft::counter {

class Counter final : public runtime::Model {
 public:
  static constexpr runtime::ModelNeeds kNeeds{.name = "counter", .num_handlers = 2, .uses_tags = true};

  Counter(runtime::Runtime& runtime, const runtime::ModelRange& range) : runtime_(runtime), range_(range) {
    runtime_.set_handler(
        range_.first_handler + kAdd,
        [](void* self, runtime::MessagePtr message) {
          static_cast<Counter*>(self)->on_add(message->unpacker());
        },
        this);
    runtime_.set_handler(
        range_.first_handler + kClear,
        [](void* self, runtime::MessagePtr) { static_cast<Counter*>(self)->count_ = 0; }, this);
  }

  int count() const { return count_; }
  const runtime::ModelRange& range() const { return range_; }

  // Adds `steps` times the model's step to the count of that PE.
  void add(int pe, int steps) {
    runtime_.send(pe, runtime::Message::pack(runtime_, range_.first_handler + kAdd, steps * step_));
  }
  void clear_all() {
    runtime_.broadcast(runtime::Message::create(runtime_, range_.first_handler + kClear, 0));
  }

  // Blocks are matched by number, which the program chooses. Memory is the caller's until the operation ends.
  runtime::Operation send_block(int pe, std::uint64_t number, const memory::ConstBuffer& block) {
    return started(block.size_bytes, [&](base::Completion* completion) {
      return runtime_.machine().tag_send(pe, machine::make_tag(range_.tag_type, number), block, completion);
    });
  }
  runtime::Operation receive_block(std::uint64_t number, const memory::Buffer& block) {
    return started(block.size_bytes, [&](base::Completion* completion) {
      return runtime_.machine().tag_receive(machine::make_tag(range_.tag_type, number), machine::kFullTagMask,
                                            block, completion);
    });
  }

  void pin(runtime::ElementId element) { pinned_.emplace(element.collection, element.index); }

  // --- runtime::Model
  std::vector<std::pair<std::string, std::string>> fingerprint() const override {
    return {{"the counter's step", std::to_string(step_)}};
  }
  std::vector<runtime::ModelOption> options() override {
    return {{"WEFT_COUNTER_STEP", "a number from 1 to 9", [this](std::string_view value) {
               if (value.size() != 1 || value[0] < '1' || value[0] > '9') return false;
               step_ = value[0] - '0';
               return true;
             }}};
  }
  std::vector<std::string> report() const override {
    return {"the counter stands at " + std::to_string(count_)};
  }
  base::Status obstacle_to_moving(runtime::ElementId element) const override {
    if (!pinned_.contains({element.collection, element.index})) return {};
    return {StatusCode::kInvalidArgument, "the counter has it pinned"};
  }

 private:
  enum CounterHandler : runtime::HandlerId { kAdd, kClear };  // offsets in the range

  void on_add(Pup p) {
    int steps = 0;
    p | steps;
    count_ += steps;
  }
  template <class Start>
  runtime::Operation started(std::size_t size_bytes, Start start) {
    auto* operation = runtime::OperationState::create(runtime_);
    operation->started(start(operation->completion()), size_bytes);
    return runtime::Operation(operation);
  }

  runtime::Runtime& runtime_;
  runtime::ModelRange range_;
  int count_ = 0;
  int step_ = 1;
  std::set<std::pair<std::uint64_t, std::uint64_t>> pinned_;
};

}  // namespace weft::counter
