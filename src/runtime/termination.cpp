#include "runtime/termination.h"

#include "weft/runtime/runtime.h"

#include "machine/machine.h"
#include "runtime/collective/spanning_tree.h"
#include "runtime/handlers.h"

namespace weft::runtime {

namespace {

MessagePtr control_message(Runtime& runtime, HandlerId handler, int code) {
  MessagePtr message = Message::pack(runtime, handler, code);
  message->envelope().flags |= kControlFlag;
  return message;
}

Termination& self(void* context) { return *static_cast<Termination*>(context); }

}  // namespace

void Termination::install() {
  runtime_.set_handler(
      kExitRequestHandler,
      [](void* context, MessagePtr message) {
        int code = 0;
        message->unpacker() | code;
        self(context).begin(code);
      },
      this);
  runtime_.set_handler(
      kExitHandler, [](void* context, MessagePtr message) { self(context).on_exit(message->unpacker()); },
      this);
  runtime_.set_handler(
      kDrainedHandler, [](void* context, MessagePtr) { ++self(context).drained_children_; }, this);
  runtime_.set_handler(kCloseHandler, [](void* context, MessagePtr) { self(context).closing_ = true; }, this);
}

void Termination::request(int code) {
  if (begun_) return;
  if (runtime_.pe() == 0) {
    begin(code);
  } else {
    runtime_.send(0, control_message(runtime_, kExitRequestHandler, code));
  }
}

void Termination::begin(int code) {
  if (begun_) return;
  begun_ = true;
  code_ = code;
  runtime_.broadcast(control_message(runtime_, kExitHandler, code));
}

void Termination::on_exit(Pup p) {
  p | code_;
  begun_ = true;
}

bool Termination::all_children_drained() const {
  return drained_children_ == SpanningTree(0, runtime_.pe(), runtime_.num_pes()).num_children();
}

bool Termination::advance(bool sends_outstanding) {
  if (sends_outstanding) return false;
  if (!reported_ && all_children_drained()) {
    reported_ = true;
    if (runtime_.pe() == 0) {
      runtime_.broadcast(control_message(runtime_, kCloseHandler, 0));
    } else {
      int parent = SpanningTree(0, runtime_.pe(), runtime_.num_pes()).parent();
      runtime_.send(parent, control_message(runtime_, kDrainedHandler, 0));
    }
    return false;
  }
  if (!closing_) return false;
  if (!flushing_) {
    flushing_ = true;
    flush_.function = [](base::Completion* completion, base::Status, std::size_t) {
      static_cast<Flush*>(completion)->done = true;
    };
    flush_.done = !runtime_.machine().flush(&flush_).is_pending();
  }
  return flush_.done;
}

}  // namespace weft::runtime
