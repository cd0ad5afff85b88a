// What a loss of PEs means for chares, in a job that outlives it (`weft run --on-loss raise`); in other jobs nothing of it exists.
//
// Each PE knows to which PE its calls went whose results it awaits. When that PE is lost, their futures get base::LostPe. An element whose
// home is lost has its home on the next living PE from then on, and that one answers calls to elements that are gone. revive() makes such
// an element anew there. Operations of whole collections need all PEs: those under way fail, and later ones are refused.
//
// Threads: the PE's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/chare/chares.h"
#include "weft/runtime/runtime.h"

namespace weft::chare {

// Whether elements of such collections get another home when theirs is lost.
constexpr bool has_movable_homes(CollectionKind kind) {
  return kind == CollectionKind::kArray || kind == CollectionKind::kSingleton;
}

class LostElements {
 public:
  LostElements(Chares& chares, runtime::HandlerId first_handler);
  LostElements(const LostElements&) = delete;
  LostElements& operator=(const LostElements&) = delete;

  // The collection was made with these, which revive() needs.
  void created(const Collection& collection, const ConstructorInfo& constructor,
               std::span<const std::byte> arguments);
  void ended(const Collection& collection) { origins_.erase(collection.id()); }
  // The shape of a collection that is made now: no element has its home on a lost PE.
  Shape living(const Shape& shape) const;
  // The homes of its elements leave the PEs that are known to be lost. Its elements there were lost.
  void leave_lost_homes(Collection& collection) const;

  // Makes an element that was lost anew, on its home, from the constructor and the arguments that its collection was made with. The future
  // is ready when the constructor has returned, and all living PEs find the element.
  runtime::Future<> revive(Collection& collection, std::uint64_t index);

  // A call to an element that is not there and that no other PE has: it was lost. Its caller gets base::LostPe.
  void answer(const EntryHeader& header, runtime::Message& message);
  // Throws base::LostPe if a PE is lost: `what` needs all PEs.
  void expect_all(const std::string& what) const;

  // Handlers.
  void on_call_moved(runtime::MessagePtr message);
  void on_revive(runtime::MessagePtr message);

 private:
  struct Called {
    std::uint64_t collection = 0;
    std::uint64_t index = 0;
    std::uint32_t entry = 0;
    std::uint32_t move = 0;  // how often the element had moved, as far as the PE knew that sent the call
    std::uint32_t head_bytes = 0;
    std::uint32_t reserved = 0;
    std::array<std::byte, 8>
        head{};  // the first bytes of the arguments, by which a language names the method
  };
  static Called called_by(const EntryHeader& header, runtime::Message& message);
  // The calls to one PE, by the numbers of their futures.
  struct CallsTo {
    std::unordered_map<std::uint64_t, Called> by_future;
    std::size_t sweep_at = 256;  // then those that are over are forgotten
  };
  // What PEs tell one another of an element.
  enum class Step : std::uint32_t {
    kLost,  // to its home: it was lost with its PE, after `moves` moves
    kAsk,   // how often has it moved, as far as you know?
    kMake,  // to its home: make it anew; no PE knows of more than `moves` moves
  };
  struct Revival {
    std::uint64_t collection = 0;
    std::uint64_t index = 0;
    ReplyTo reply;  // none of kLost
    Step step = Step::kLost;
    std::uint32_t moves = 0;
    bool is_valid(int num_pes) const {
      return reply.is_valid(num_pes) && step <= Step::kMake &&
             (reply.kind == ReplyTo::Kind::kFuture) == (step != Step::kLost);
    }
  };
  struct Origin {
    const ConstructorInfo* constructor;
    std::vector<std::byte> arguments;
  };

  // Of each message of this PE. False: it is not sent.
  bool watch(int pe, runtime::Message& message);
  void track(int pe, std::uint64_t future, const Called& called);
  std::exception_ptr error_of(int pe, const Called& called) const;
  void fail(const ReplyTo& reply, const std::exception_ptr& error);
  void on_loss(int pe);
  void fail_calls_to(int pe);
  void move_homes(int pe);
  void ask_all(Collection& collection, std::uint64_t index, const runtime::Future<>& done);
  void make_at_home(Collection& collection, std::uint64_t index, std::uint32_t moves,
                    const runtime::Future<>& done);
  template <class T>
  runtime::Future<T> ask(int pe, Revival revival);
  void send(int pe, const Revival& revival);
  std::uint32_t moves_of(const Collection& collection, std::uint64_t index) const;
  void was_lost(Collection& collection, std::uint64_t index, std::uint32_t moves);
  void answer_make(Collection& collection, const Revival& revival, const runtime::Future<>& made);
  void make_again(Collection& collection, std::uint64_t index, std::uint32_t moves);

  Chares& chares_;
  runtime::Runtime& runtime_;
  runtime::HandlerId first_handler_;
  std::vector<CallsTo> calls_;                         // by PE
  std::unordered_map<std::uint64_t, Origin> origins_;  // by collection
  std::vector<runtime::MessagePtr>
      early_;  // of on_revive(): their senders know of losses of which this PE does not
};

}  // namespace weft::chare
