#include "runtime/termination.h"

#include <utility>

#include "machine/machine.h"
#include "runtime/message/handlers.h"
#include "runtime/tree/spanning_tree.h"

namespace weft::runtime {

namespace {

MessagePtr control_message(Messenger& messenger, HandlerId handler, int code) {
  MessagePtr message = Message::pack(messenger, handler, code);
  message->envelope().flags |= kControlFlag;
  return message;
}

SpanningTree tree_of(const Messenger& messenger) {
  return SpanningTree(0, messenger.pe(), messenger.num_pes(), messenger.host_groups());
}

Termination& self(void* context) { return *static_cast<Termination*>(context); }

}  // namespace

Termination::Termination(Messenger& messenger) : messenger_(messenger) {
  // Urgent, so that a call in which PE 0 waits for other PEs ends.
  messenger_.set_urgent_handler(
      kExitRequestHandler,
      [](void* context, MessagePtr message) {
        int code = 0;
        message->unpacker() | code;
        Messenger& messenger = self(context).messenger_;
        messenger.announce_end();
        messenger.post_from_any_thread([context, code] { self(context).begin(code); });
      },
      this);
  messenger_.set_handler(
      kExitHandler, [](void* context, MessagePtr message) { self(context).on_exit(message->unpacker()); },
      this);
  messenger_.set_handler(
      kDrainedHandler, [](void* context, MessagePtr) { ++self(context).drained_children_; }, this);
  messenger_.set_handler(
      kCloseHandler, [](void* context, MessagePtr) { self(context).closing_ = true; }, this);
}

void Termination::request(int code) {
  if (begun_) return;
  if (messenger_.pe() == 0) {
    begin(code);
  } else {
    MessagePtr message = control_message(messenger_, kExitRequestHandler, code);
    message->envelope().flags |= kUrgentFlag;
    messenger_.send(0, std::move(message));
  }
}

void Termination::begin(int code) {
  if (begun_) return;
  end_with(code);
  messenger_.broadcast(control_message(messenger_, kExitHandler, code));
}

void Termination::on_exit(Pup p) {
  int code = 0;
  p | code;
  end_with(code);
}

void Termination::end_with(int code) {
  begun_ = true;
  messenger_.end_job(code, this);
}

bool Termination::all_children_drained() const {
  return drained_children_ == tree_of(messenger_).num_children();
}

bool Termination::may_stop() {
  if (messenger_.has_outstanding_sends()) return false;
  if (!reported_ && all_children_drained()) {
    reported_ = true;
    if (messenger_.pe() == 0) {
      messenger_.broadcast(control_message(messenger_, kCloseHandler, 0));
    } else {
      int parent = tree_of(messenger_).parent();
      messenger_.send(parent, control_message(messenger_, kDrainedHandler, 0));
    }
    return false;
  }
  if (!closing_) return false;
  if (!flushing_) {
    flushing_ = true;
    flush_.function = [](base::Completion* completion, base::Status, std::size_t) {
      static_cast<Flush*>(completion)->done = true;
    };
    flush_.done = !messenger_.machine().flush(&flush_).is_pending();
  }
  return flush_.done;
}

}  // namespace weft::runtime
