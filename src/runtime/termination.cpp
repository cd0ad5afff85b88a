#include "runtime/termination.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/format.h"
#include "base/refuse_claim.h"
#include "machine/machine.h"
#include "runtime/losses/losses.h"
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

int sender_of(const Message& message, int num_pes) {
  const std::uint32_t pe = message.envelope().source_pe;
  if (pe >= static_cast<std::uint32_t>(num_pes))
    base::refuse_claim(base::format("a message about the end of the job names PE {} as its sender", pe));
  return static_cast<int>(pe);
}

Termination& self(void* context) { return *static_cast<Termination*>(context); }

}  // namespace

Termination::Termination(Messenger& messenger)
    : messenger_(messenger), drained_(static_cast<std::size_t>(messenger.num_pes())) {
  messenger_.losses().on_loss([this](int pe) { on_loss(pe); });
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
      kExitHandler, [](void* context, MessagePtr message) { self(context).on_exit(*message); }, this);
  messenger_.set_handler(
      kDrainedHandler,
      [](void* context, MessagePtr message) {
        Termination& ending = self(context);
        const int pe = sender_of(*message, ending.messenger_.num_pes());
        ending.drained_[static_cast<std::size_t>(pe)] = true;
      },
      this);
  messenger_.set_handler(
      kCloseHandler, [](void* context, MessagePtr message) { self(context).on_close(*message); }, this);
}

void Termination::request(int code) {
  if (begun_) return;
  requested_ = true;
  code_ = code;
  if (messenger_.pe() == root()) {
    begin(code);
  } else {
    MessagePtr message = control_message(messenger_, kExitRequestHandler, code);
    message->envelope().flags |= kUrgentFlag;
    messenger_.send(root(), std::move(message));
  }
}

void Termination::begin(int code) {
  if (begun_) return;
  end_with(code);
  tell_all(kExitHandler, code);
}

void Termination::on_exit(Message& message) {
  int code = 0;
  message.unpacker() | code;
  end_with(code);
  // The hook of that loss, or a `close` that has come first, has found no end to pass on.
  const Losses& losses = messenger_.losses();
  const bool close_was_first = losses.are_survived() && closing_;
  if (close_was_first || losses.is_lost(sender_of(message, messenger_.num_pes()))) close_everywhere();
}

// PE 0 closes when all PEs know of the end. Another one may do so without that, and may be lost before it has told all.
void Termination::on_close(const Message& message) {
  const bool all_know = !messenger_.losses().are_survived() || sender_of(message, messenger_.num_pes()) == 0;
  if (begun_ && !all_know) return close_everywhere();
  closing_ = true;
  has_passed_on_ |= begun_;
}

void Termination::close_everywhere() {
  if (std::exchange(has_passed_on_, true)) return;
  closing_ = true;
  tell_all(kExitHandler, code_);
  tell_all(kCloseHandler, 0);
}

void Termination::end_with(int code) {
  begun_ = true;
  code_ = code;
  messenger_.end_job(code, this);
}

bool Termination::all_children_drained() const {
  const auto is_drained = [this](int pe) { return drained_[static_cast<std::size_t>(pe)]; };
  const Losses& losses = messenger_.losses();
  if (!losses.are_survived()) {
    bool all = true;
    tree_of(messenger_).for_children([&](int child) { all = all && is_drained(child); });
    return all;
  }
  if (messenger_.pe() != root()) return true;
  for (int pe = 0; pe < messenger_.num_pes(); ++pe) {
    if (pe != messenger_.pe() && !losses.is_lost(pe) && !is_drained(pe)) return false;
  }
  return true;
}

int Termination::root() const {
  return messenger_.losses().are_survived() ? messenger_.losses().first_living() : 0;
}

void Termination::tell_all(HandlerId handler, int code) {
  const Losses& losses = messenger_.losses();
  if (!losses.are_survived()) return messenger_.broadcast(control_message(messenger_, handler, code));
  for (int pe = 0; pe < messenger_.num_pes(); ++pe) {
    if (!losses.is_lost(pe)) messenger_.send(pe, control_message(messenger_, handler, code));
  }
}

void Termination::on_loss(int pe) {
  if (pe > root()) return;
  if (begun_) {
    close_everywhere();
  } else if (requested_) {
    request(code_);
  }
}

bool Termination::may_stop() {
  if (messenger_.has_outstanding_sends()) return false;
  if (!reported_ && all_children_drained()) {
    reported_ = true;
    if (messenger_.pe() == root()) {
      tell_all(kCloseHandler, 0);
    } else {
      const int parent = messenger_.losses().are_survived() ? root() : tree_of(messenger_).parent();
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
