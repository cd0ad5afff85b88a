// The orderly end of a job:
//
//   1. `exit` goes down the spanning tree of PE 0.
//   2. Each PE drops user work and makes progress until its own messages are sent and its children have
//      reported. It then reports to its parent.
//   3. `close` goes down the same tree. A PE stops when its last messages are flushed.
//
// In a job that outlives losses, the first living PE tells each PE itself and is told by each. If it is lost then, each PE that knows of
// the end sends `exit` and `close` to all others, which do the same once, and stops.
//
// A PE that drops the rest of its queue may still send: how much of it it has handled, for instance. So a PE that has stopped makes
// progress until all have (Job::run).
#pragma once

#include <vector>

#include "weft/base/completion.h"
#include "weft/runtime/message.h"
#include "weft/runtime/messenger.h"

namespace weft::runtime {

class Termination final : public Ending {
 public:
  explicit Termination(Messenger& messenger);

  // Ends the job with `code` on every PE.
  void request(int code);
  bool may_stop() override;

 private:
  void begin(int code);
  void on_exit(Message& message);
  void on_close(const Message& message);
  // Without the PE that ends the job: this PE stops, and the others end and stop.
  void close_everywhere();
  void end_with(int code);
  bool all_children_drained() const;
  int root() const;
  // To all other PEs, which handle it with `handler`.
  void tell_all(HandlerId handler, int code);
  void on_loss(int pe);

  struct Flush : base::Completion {
    bool done = false;
  };

  Messenger& messenger_;
  bool begun_ = false;
  bool reported_ = false;
  bool closing_ = false;
  bool has_passed_on_ = false;  // the end, or knows that it need not: see close_everywhere()
  bool flushing_ = false;
  int code_ = 0;  // once requested or begun
  bool requested_ = false;
  std::vector<bool> drained_;  // by PE
  Flush flush_;
};

}  // namespace weft::runtime
