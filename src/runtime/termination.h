// How a job ends in good order.
//
// Exit goes down the spanning tree of PE 0; each PE then drops user work, goes on progressing until its own
// messages are out and its children are done, and reports to its parent; close goes down the same tree, and a
// PE stops once its last messages are flushed. So no PE closes its machine while another still needs it to
// make progress.
#pragma once

#include "weft/base/completion.h"
#include "weft/runtime/message.h"

namespace weft::runtime {

class Termination {
 public:
  explicit Termination(Runtime& runtime) : runtime_(runtime) {}

  void install();
  void request(int code);
  // Called each turn once the job is ending. Returns whether this PE may stop.
  bool advance(bool sends_outstanding);

  bool begun() const { return begun_; }
  int code() const { return code_; }

 private:
  void begin(int code);
  void on_exit(Pup p);
  bool all_children_drained() const;

  struct Flush : base::Completion {
    bool done = false;
  };

  Runtime& runtime_;
  bool begun_ = false;
  bool reported_ = false;
  bool closing_ = false;
  bool flushing_ = false;
  int code_ = 0;
  int drained_children_ = 0;
  Flush flush_;
};

}  // namespace weft::runtime
