// The chare model on one PE: collections of objects, and what reaches them. Types know nothing here: C++
// proxies (proxy.h) and the Python package both stand on this interface.
//
// A collection is made by a broadcast that carries shape, map and constructor arguments; each PE makes the
// elements whose home it is. What arrives for a collection or an element before it is there waits. Threads:
// one PE's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/chare/index.h"
#include "weft/runtime/runtime.h"

namespace weft::chare {

class ChareBase;
class Chares;
struct Placement;
class VectorPool;

// Where the outcome of a call goes: to a future, or into the gather of a call to a whole collection.
struct ReplyTo {
  enum class Kind : std::uint32_t { kNone, kFuture, kGather };
  Kind kind = Kind::kNone;
  std::uint32_t pe = 0;
  std::uint64_t id = 0;
};

// What travels in front of the packed arguments of an entry method.
struct EntryHeader {
  std::uint64_t collection = 0;
  std::uint64_t index = 0;
  std::uint32_t entry = 0;
  std::uint32_t reserved = 0;
  ReplyTo reply;
};
static_assert(std::is_trivially_copyable_v<EntryHeader> && sizeof(EntryHeader) == 40);

// A chare type, its constructors and its entry methods, as the compiler registered them.
struct ChareType {
  std::string_view name;
  std::uint32_t id = 0;
};
struct ConstructorInfo {
  std::string_view name;
  const ChareType* type = nullptr;
  // Null when the constructor has ended the job.
  std::unique_ptr<ChareBase> (*construct)(Pup& arguments) = nullptr;
  std::uint32_t id = 0;
};
struct EntryInfo {
  std::string_view name;
  const ChareType* type = nullptr;
  // Runs the method; an exception, now or in its coroutine, goes where `reply` says or ends the job.
  void (*invoke)(ChareBase& chare, Pup& arguments, const ReplyTo& reply) = nullptr;
  std::uint32_t id = 0;
  // For calls with buffers beside the message, null for a method that has none. Before they land: unpacks the
  // arguments, chooses where the buffers land (the runtime allocates otherwise), and leaves in `kept` what
  // invoke_placed() needs. Returns whether the method is to run when they have landed: not after an exception,
  // which went where `reply` says.
  bool (*place)(ChareBase& chare, Pup& arguments, const ReplyTo& reply, std::span<runtime::Landing> landings,
                std::shared_ptr<void>& kept) = nullptr;
  // After that, in the place of invoke().
  void (*invoke_placed)(ChareBase& chare, runtime::Message& message, const ReplyTo& reply,
                        void* kept) = nullptr;
  // Whether a post entry method may choose memory of the program's, in which another call lands perhaps.
  bool chooses_memory = false;
};

enum class CollectionKind : std::uint8_t { kSingleton, kGroup, kArray };

class Collection {
 public:
  Collection(Chares& chares, std::uint64_t id);
  ~Collection();
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;

  Chares& chares() const { return chares_; }
  std::uint64_t id() const { return id_; }
  CollectionKind kind() const { return kind_; }
  const Shape& shape() const { return shape_; }
  const ChareType* type() const { return type_; }
  // Whether this PE has made its elements.
  bool is_created() const { return created_; }

  ChareBase* find(std::uint64_t index) const;
  std::size_t num_local() const;
  // This PE while the collection's map has not arrived: what is sent waits here until it has.
  int home(std::uint64_t index) const;
  // What messages to people call it, in place of its C++ type's name.
  void set_display_name(std::string name) { display_name_ = std::move(name); }
  bool has_display_name() const { return !display_name_.empty(); }
  // "Ring[3]" for messages to people.
  std::string element_name(std::uint64_t index) const;

 private:
  friend class Chares;
  struct Elements;

  Chares& chares_;
  std::uint64_t id_;
  CollectionKind kind_ = CollectionKind::kArray;
  Shape shape_;
  const ChareType* type_ = nullptr;
  bool created_ = false;
  std::string display_name_;
  std::unique_ptr<Elements> elements_;
};

class Chares final : public runtime::Model {
 public:
  static constexpr runtime::ModelNeeds kNeeds{.name = "chare", .num_handlers = 6, .uses_tags = false};

  Chares(runtime::Runtime& runtime, const runtime::ModelRange& range);
  ~Chares() override;
  // Gives up what waits for collections, before the coroutines that may await its sending go.
  void close() override;
  // What the compiler registered: the same program on every PE.
  std::vector<std::pair<std::string, std::string>> fingerprint() const override;
  // A suspended coroutine of the element.
  std::string obstacle_to_moving(runtime::ElementId element) const override;

  runtime::Runtime& runtime() { return runtime_; }
  // Storage of large arguments.
  VectorPool& vectors();
  // Of messages to an element, and to all elements of a collection: for targets of reductions.
  runtime::HandlerId entry_handler() const { return first_handler_ + 1; }
  runtime::HandlerId broadcast_handler() const { return first_handler_ + 2; }

  // Starts making a collection on all PEs; returns at once, usable at once. `arguments` are packed for
  // `constructor`.
  Collection& create(CollectionKind kind, const Shape& shape, const ConstructorInfo& constructor,
                     std::span<const std::byte> arguments);
  // The collection with that id, not created here yet if its creation has not arrived.
  Collection& collection(std::uint64_t id);
  // For proxies that arrive before the creation does.
  void know_shape(Collection& collection, CollectionKind kind, const Shape& shape);

  // A message to an element: the caller packs the arguments behind the header.
  runtime::MessagePtr make_entry_message(const EntryHeader& header, std::size_t argument_bytes);
  // Sends it to where the element is, or is thought to be.
  void send_entry(Collection& collection, std::uint64_t index, runtime::MessagePtr message);
  // For handlers of other models whose payload begins with an EntryHeader (entry unused): the element if it
  // is here, else null and the message has been kept or forwarded.
  ChareBase* find_or_forward(runtime::MessagePtr& message);
  // Runs the entry method on every element of the collection. `header.reply` of kind kGather collects the
  // outcomes. Buffers that are attached land for each element as those of a call to it alone do.
  runtime::MessagePtr make_broadcast_message(const EntryHeader& header, std::size_t argument_bytes);
  void broadcast_entry(runtime::MessagePtr message);

  // Where a call's outcomes are gathered: `done` gets, once, a Pup over an element count and each element's
  // outcome in index order: a byte that says whether it failed, then the value or the error.
  ReplyTo expect_gather(std::function<void(Pup&)> done);
  // The outcome of one element of a gathering call.
  void contribute_outcome(const ReplyTo& reply, ChareBase& chare, std::span<const std::byte> outcome);

  // Part of a reduction of the chare's collection; see Reductions. The result goes to `target`.
  void contribute(ChareBase& chare, runtime::Reducer reducer, const runtime::Combiner* combiner,
                  std::span<const std::byte> value, const runtime::Target& target);
  // The same; the result goes to `state`, which each contributor has one of.
  void contribute_to_all(ChareBase& chare, runtime::Reducer reducer, const runtime::Combiner* combiner,
                         std::span<const std::byte> value, runtime::FutureState* state);

 private:
  friend class ChareBase;
  struct Parts;

  void on_create(runtime::MessagePtr message);
  void on_entry(runtime::MessagePtr message);
  // Of a message with buffers beside it: has its chare, if it is here, choose where they land.
  runtime::Posting place(runtime::MessagePtr& message, std::span<runtime::Landing> landings);
  void place_dropped(runtime::Message& message);
  void invoke_placed(Placement& placement, runtime::Message& message);
  void on_broadcast(runtime::MessagePtr message);
  // Gives each of these elements a call of its own with the buffers of the broadcast.
  void share_broadcast(runtime::MessagePtr message, EntryHeader header, std::span<ChareBase* const> chares);
  void on_location(runtime::MessagePtr message);
  void on_gathered(runtime::MessagePtr message);
  void on_all_reduced(runtime::MessagePtr message);
  // False when a constructor has ended the job.
  bool construct_elements(Collection& collection, const ConstructorInfo& constructor,
                          std::span<const std::byte> arguments);
  void forward(Collection& collection, const EntryHeader& header, runtime::MessagePtr message);
  void invoke(ChareBase& chare, const EntryInfo& entry, Pup arguments, const ReplyTo& reply);
  const EntryInfo* checked_entry(Collection& collection, const EntryHeader& header);
  runtime::Target gather_target(const ReplyTo& reply) const;

  runtime::Runtime& runtime_;
  runtime::HandlerId first_handler_;
  std::unique_ptr<Parts> parts_;
  std::uint64_t next_collection_ = 1;
};

// A copy of host memory, in a block of the PE's pool, for a message that carries it as an attachment.
runtime::Attachment copy_beside(runtime::Runtime& runtime, const void* data, std::size_t size_bytes);

// A collection by name: what a proxy is in a message. Throws Error for bytes that are none.
void pup_collection(Pup& p, Collection*& collection);

// A future as the target of a reduction.
template <class T>
runtime::Target target_of(const runtime::Future<T>& future) {
  runtime::FutureAddress at = future.state()->address();
  runtime::Target target;
  target.handler = runtime::kFutureSetHandler;
  target.pe = at.pe;
  target.prefix = base::pack(runtime::FutureSetHeader{at.id, 0});
  return target;
}

}  // namespace weft::chare
