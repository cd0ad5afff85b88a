// How a job ends in good order.
//
// Exit goes down the spanning tree of PE 0; each PE then drops user work, goes on progressing until its own
// messages are out and its children are done, and reports to its parent; close goes down the same tree, and a
// PE stops once its last messages are flushed. So no PE closes its machine while another still needs it to
// make progress.
#pragma once

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
  void on_exit(Pup p);
  void end_with(int code);
  bool all_children_drained() const;

  struct Flush : base::Completion {
    bool done = false;
  };

  Messenger& messenger_;
  bool begun_ = false;
  bool reported_ = false;
  bool closing_ = false;
  bool flushing_ = false;
  int drained_children_ = 0;
  Flush flush_;
};

}  // namespace weft::runtime
