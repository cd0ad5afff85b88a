// What a programming model is to the runtime: its state on one PE, and what it brings to the job.
//
// A model is a class M derived from Model, with
//
//   static constexpr ModelNeeds kNeeds{.name = "counter", .num_handlers = 2, .uses_tags = true};
//   M(Runtime& runtime, const ModelRange& range);
//
// Runtime::install<M>() allots it a range of message handlers and, if it uses tags, a type of tags. Ranges
// follow the order of installation, which is the same on all PEs: the job compares names and ranges at its
// start. In its constructor a model sets the handlers of its range, before any message can arrive.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/runtime/handler_id.h"
#include "weft/runtime/observer.h"

namespace weft::runtime {

struct ModelNeeds {
  std::string_view name;  // of the model, one word; no other model of the job has it
  HandlerId num_handlers = 0;
  bool uses_tags = false;
};

// What a model may use, the same on every PE.
struct ModelRange {
  HandlerId first_handler = 0;
  HandlerId num_handlers = 0;
  // For machine::make_tag(); the model lays out the other 60 bits. 0: the model asked for none.
  std::uint8_t tag_type = 0;
};

// A setting that a model reads when the job starts.
struct ModelOption {
  std::string_view variable;  // of the environment: "WEFT_CHANNEL_PATH"
  std::string_view values;    // for people: "auto or tagged"
  // Returns false for a value that it does not know.
  std::function<bool(std::string_view value)> set;
};

class Model {
 public:
  virtual ~Model() = default;

  // Ends what the model itself keeps waiting. The machine has ended what was in flight; coroutines that wait
  // for it are still there. Destroyed with the runtime, in the reverse order of installation.
  virtual void close() {}

  // What must be the same on all PEs: names, in words for people, with values of any text. Called once, after
  // all models are installed.
  virtual std::vector<std::pair<std::string, std::string>> fingerprint() const { return {}; }
  // Called once, before the fingerprint is taken.
  virtual std::vector<ModelOption> options() { return {}; }
  // Lines for `weft run --stats`, each a sentence about this PE; called when the job has ended.
  virtual std::vector<std::string> report() const { return {}; }
  // Why the element cannot move to another PE now, as far as this model is concerned; empty if it can.
  virtual std::string obstacle_to_moving(ElementId element) const {
    static_cast<void>(element);
    return {};
  }
};

}  // namespace weft::runtime
