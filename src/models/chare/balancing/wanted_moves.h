// Elements of this PE that are to move. They do so in turns of their own, because the caller is as a rule an entry method of
// theirs: a number of them in each turn, so that messages are received in between, and only while the receivers have room, so
// that states do not pile up.
//
// Threads: the PE's.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "weft/runtime/runtime.h"

#include "runtime/owned_work.h"

namespace weft::chare {

class WantedMoves {
 public:
  using Move = std::function<void(runtime::ElementId)>;
  WantedMoves(runtime::Runtime& runtime, Move move) : runtime_(runtime), move_(std::move(move)) {}
  WantedMoves(const WantedMoves&) = delete;
  WantedMoves& operator=(const WantedMoves&) = delete;
  ~WantedMoves() {
    if (waits_for_room_) runtime_.forget_room(&work_);
  }

  // A turn calls Move for the element. Quiescence counts it as a message.
  void add(runtime::ElementId element) {
    runtime_.count_sent();
    wanted_.push_back(element);
    if (wanted_.size() == 1 && !runtime_.closed()) runtime_.post(&work_);
  }

 private:
  static constexpr int kMovesPerTurn = 64;

  // The first element stays in the queue until the work may be posted again.
  void turn() {
    waits_for_room_ = false;
    for (int i = 0; i < kMovesPerTurn; ++i) {
      if (!runtime_.has_room(-1)) {
        waits_for_room_ = true;
        return runtime_.when_room(-1, &work_);
      }
      runtime_.count_processed();
      if (!runtime_.stopped()) move_(wanted_.front());
      wanted_.pop_front();
      if (wanted_.empty()) return;
    }
    runtime_.post_for_next_turn(&work_);
  }

  runtime::Runtime& runtime_;
  Move move_;
  std::deque<runtime::ElementId> wanted_;
  bool waits_for_room_ = false;
  runtime::OwnedWork<&WantedMoves::turn> work_{*this};
};

}  // namespace weft::chare
