// The chare model on one PE: collections of chares, and the messages to them. This interface has no user
// types: C++ proxies (proxy.h) and the Python package both use it.
//
// A broadcast with shape, map and constructor arguments makes a collection; each PE makes the elements whose
// home it is. A message that arrives before its collection has been made waits. Threads: one PE's thread.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/chare/index.h"
#include "weft/runtime/runtime.h"
#include "weft/runtime/typed_target.h"

namespace weft::chare {

class Bundles;
class ChareBase;
class Chares;
class Checkpoints;
class Collection;
class LeavingChares;
class PostponedCalls;
class Sections;
class SparseArrays;
class PeriodicBalancing;
class SyncPoints;
class WaitingCall;
struct BroadcastId;
struct Departure;
struct MoveHeader;

// The destination of the outcome of a call: a future, or the gather of a call to a whole collection.
struct ReplyTo {
  enum class Kind : std::uint32_t { kNone, kFuture, kGather };
  Kind kind = Kind::kNone;
  std::uint32_t pe = 0;
  std::uint64_t id = 0;

  // Set in the id of a gather for an element that has moved: its outcome goes to the caller's PE directly, because the PE
  // where the element is now has given its part of the results already.
  static constexpr std::uint64_t kDirectly = std::uint64_t{1} << 63;
  std::uint64_t gather() const { return id & ~kDirectly; }
  bool is_direct() const { return kind == Kind::kGather && (id & kDirectly) != 0; }
  // Whether it can be a destination in this job. What a peer sends is checked.
  bool is_valid(int num_pes) const {
    return kind <= Kind::kGather && pe < static_cast<std::uint32_t>(num_pes);
  }
};

// Travels in front of the packed arguments of an entry method.
struct EntryHeader {
  std::uint64_t collection = 0;
  std::uint64_t index = 0;  // of the element; in a call to all elements the number of the broadcast
  std::uint32_t entry = 0;
  // How often the element has moved, as far as the sender knows; in a call to all elements the source of the broadcast.
  std::uint32_t move_or_source = 0;
  ReplyTo reply;
};
static_assert(std::is_trivially_copyable_v<EntryHeader> && sizeof(EntryHeader) == 40);

// The function that runs on an element that is not ready when it has been constructed, see created.h. A constructor that is a coroutine comes
// from another language.
enum class CreationPart : std::uint8_t { kConstructor, kCreated };

// How the elements of a class take part in load balancing.
enum class Balancing : std::uint8_t {
  kNone,
  kAtSync,    // its elements may call ChareBase::at_sync(): it overrides resume_from_sync()
  kPeriodic,  // elements may move between any two calls: it has a constant kBalancePeriodically
};
constexpr bool is_valid(Balancing balancing) { return balancing <= Balancing::kPeriodic; }

// A chare type, its constructors and its entry methods, as the compiler registered them.
struct ChareType {
  std::string_view name;
  std::uint32_t id = 0;
  // For elements that move to another PE; both null if those of this type cannot. `pup` visits the members; the state is
  // sized, packed and unpacked in this order. `make` makes the element that unpacks it, and may read from the state first.
  void (*pup)(ChareBase& chare, Pup& p) = nullptr;
  std::unique_ptr<ChareBase> (*make)(Pup& state) = nullptr;
  Balancing balancing = Balancing::kNone;
  // Whether it is a C++ class with conditions of entry methods, see when.h.
  bool has_conditions = false;
  // Starts created() of an element that was just constructed, see created.h; Chares::created_ended() tells its end. Null: the
  // class has no such method.
  void (*begin_created)(ChareBase& chare) = nullptr;
};
struct ConstructorInfo {
  std::string_view name;
  const ChareType* type = nullptr;
  // Returns null if the constructor has ended the job.
  std::unique_ptr<ChareBase> (*construct)(Pup& arguments) = nullptr;
  std::uint32_t id = 0;
  // Calls Collection::set_class_name(), set_balancing() and set_has_created(), on every PE and before its elements are made.
  // Null: the C++ type tells all.
  void (*name_collection)(Collection& made, Pup& arguments) = nullptr;
};
// State that the entry method of a language keeps between the calls of one message to several elements, see EntryInfo::invoke_shared.
struct SharedCall {
  virtual ~SharedCall() = default;
};
struct EntryInfo {
  std::string_view name;
  const ChareType* type = nullptr;
  // Runs the method. An exception, now or later in its coroutine, goes to `reply`, or ends the job if there
  // is none.
  void (*invoke)(ChareBase& chare, Pup& arguments, const ReplyTo& reply) = nullptr;
  std::uint32_t id = 0;
  // For calls with buffers beside the message; null for a method whose calls have none. Called before they
  // land:
  //   - it unpacks the arguments;
  //   - it chooses where the buffers land, or leaves that to the runtime;
  //   - it stores the state for invoke_placed() in `kept`.
  // Returns false after an exception, which went to `reply`: the method must then not run.
  bool (*place)(ChareBase& chare, Pup& arguments, const ReplyTo& reply,
                std::span<runtime::ReceiveBuffer> receive_buffers, std::shared_ptr<void>& kept) = nullptr;
  // Called after the buffers have landed, instead of invoke().
  void (*invoke_placed)(ChareBase& chare, runtime::Message& message, const ReplyTo& reply,
                        void* kept) = nullptr;
  // Whether the method has a post entry method, which may choose memory in which another call lands too.
  bool chooses_memory = false;
  // The method of a call, for error messages, if the entry method stands for several. Null: it is `name`.
  std::string (*method_of)(const Collection& collection, Pup& arguments) = nullptr;
  // For a method with a condition: makes the waiting call whose arguments WaitingCall::pup_arguments() has packed. Null if
  // no such call travels so.
  std::unique_ptr<WaitingCall> (*unpack_waiting)(Pup& arguments, const ReplyTo& reply) = nullptr;
  // Called instead of invoke() for each of several elements that get the same message in one turn. The message has no buffers
  // beside it, and more than a few bytes of arguments.
  // `shared` is null for the first, which may set it: values that the others need not unpack again. It is destroyed when the last has
  // been called. Null: invoke() serves all.
  void (*invoke_shared)(ChareBase& chare, Pup& arguments, const ReplyTo& reply,
                        std::unique_ptr<SharedCall>& shared) = nullptr;
};

// Where a call goes, and whether flow control may hold it back: it does not hold back one that is forwarded.
enum class CallTo : std::uint8_t { kElement, kAll };
enum class IsForwarded : bool { kNo, kYes };

// kSparse: an array whose elements are inserted and removed one by one; its shape bounds their indices.
enum class CollectionKind : std::uint8_t { kSingleton, kGroup, kArray, kSparse };

// How a language other than C++ names a class, see Collection::set_class_name().
struct ClassNames {
  std::string name;
  std::string key;
  auto operator<=>(const ClassNames&) const = default;
};

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
  bool is_sparse() const { return kind_ == CollectionKind::kSparse; }
  // The number of elements; of a sparse array, what the latest done_inserting() that this PE knows of has counted, 0 before.
  std::uint64_t num_elements() const { return is_sparse() ? num_counted() : shape_.size(); }
  const ChareType* type() const { return type_; }
  // Whether this PE has made its elements.
  bool is_created() const { return created_; }
  // Whether it has been destroyed on this PE, see Chares::destroy(), or could not be created. Its name and shape stay.
  bool is_destroyed() const { return destroyed_; }
  // Whether one of its constructors has failed on this PE, or the creation on all.
  bool has_failed() const { return failure_ != nullptr; }
  // Throws Error(kClosed), which names the collection, if it has been destroyed on this PE.
  void expect_alive() const {
    if (destroyed_) [[unlikely]]
      throw_destroyed();
  }

  ChareBase* find(std::uint64_t index) const;
  // The element with that index if it is on this PE, also if its created() has not ended.
  ChareBase* find_constructed(std::uint64_t index) const;
  // Those whose created() has not ended count too.
  std::size_t num_local() const;
  // Whether its elements may move. Those of a group, one for each PE, do not, nor those of a class without a pup function.
  bool can_move() const;
  // The home PE of the element. Until the collection's map has arrived, it is this PE, where messages wait.
  int home(std::uint64_t index) const;
  // The class's name in error messages, instead of the name of its C++ type, and what finds the class in its language.
  void set_class_name(std::string_view name, std::string_view key);
  // Empty for a C++ class.
  std::string_view class_key() const {
    return class_names_ == nullptr ? std::string_view() : class_names_->key;
  }
  // The balancing for which its class asks.
  Balancing balancing() const { return balancing_; }
  void set_balancing(Balancing balancing) { balancing_ = balancing; }
  // Whether its elements are measured and take part in load balancing in this job.
  bool is_balanced() const { return is_balanced_; }
  // Whether created() runs on its elements when they have been constructed.
  bool has_created() const { return has_created_; }
  void set_has_created(bool has_created) { has_created_ = has_created; }
  // "Ring", for error messages.
  std::string name() const;
  // "Ring[3]", for error messages.
  std::string element_name(std::uint64_t index) const;

 private:
  friend class Bundles;
  friend class Chares;
  friend class SyncPoints;
  friend class Checkpoints;
  friend class PeriodicBalancing;
  friend class Sections;
  friend class SparseArrays;
  friend class LostElements;
  struct Elements;

  std::uint64_t num_counted() const;
  [[noreturn, gnu::cold]] void throw_destroyed() const;
  // "the collection Ring has been destroyed".
  std::string why_gone() const;

  Chares& chares_;
  std::uint64_t id_;
  CollectionKind kind_ = CollectionKind::kArray;
  Shape shape_;
  const ChareType* type_ = nullptr;
  bool created_ = false;
  bool destroyed_ = false;
  Balancing balancing_ = Balancing::kNone;
  bool is_balanced_ = false;
  bool has_created_ = false;
  std::unique_ptr<std::string> failure_;     // why it was not made on all PEs; null if it was, or may be
  const ClassNames* class_names_ = nullptr;  // shared by the collections of the class; null for a C++ class
  // Not shared while the collection lives. One that has been destroyed has none, see Chares::Parts.
  std::shared_ptr<Elements> elements_;
};

class Chares final : public runtime::Model {
 public:
  static constexpr runtime::ModelNeeds kNeeds{.name = "chare", .num_handlers = 31, .uses_tags = false};

  Chares(runtime::Runtime& runtime, const runtime::ModelRange& range);
  ~Chares() override;
  // Drops messages that wait for collections, while the coroutines that may await their sending still exist.
  void close() override;
  // The registered names and the period of load balancing, which must be equal on all PEs.
  std::vector<std::pair<std::string, std::string>> fingerprint() const override;
  // The load balancer's: WEFT_LB, WEFT_LB_PERIOD, WEFT_LB_VERBOSE, WEFT_LB_CLOCK, WEFT_LB_RECORD.
  std::vector<runtime::ModelOption> options() override;
  // Fails, and names the element, if it has suspended coroutines.
  base::Status obstacle_to_moving(runtime::ElementId element) const override;

  // Calls that wait for their conditions, messages for elements that are not there, and how many reductions the elements take part in.
  void list_waits(runtime::WaitList& waits) const override;
  bool describe_future(const runtime::FutureState& future, runtime::Wait& wait) const override;

  runtime::Runtime& runtime() { return runtime_; }
  // The same object for equal names, as long as the Chares live.
  const ClassNames& shared_names(ClassNames names);
  // Storage of large arguments.
  base::VectorPool& vectors();
  // Saves and restores collections, see weft/chare/checkpoint.h.
  Checkpoints& checkpoints();
  // Load balancing, see src/models/chare/sync/ and src/models/chare/periodic/.
  SyncPoints& sync();
  PeriodicBalancing& periodic();
  // Calls to some elements of a collection, and reductions over them, see weft/chare/section.h.
  Sections& sections();
  // Calls that travel in bundles, see weft/chare/bundles/aggregated.h.
  Bundles& bundles();
  // The handlers of messages to one element and to all elements of a collection, for targets of reductions.
  runtime::HandlerId entry_handler() const { return first_handler_ + 1; }
  runtime::HandlerId broadcast_handler() const { return first_handler_ + 2; }
  // All elements of the collection as the target of a reduction. `header` names collection and entry method.
  runtime::Target target_of_all(const EntryHeader& header) const;

  // Starts making a collection on all PEs. Does not block; the collection can be used at once. `arguments`
  // are packed for `constructor`.
  Collection& create(CollectionKind kind, const Shape& shape, const ConstructorInfo& constructor,
                     std::span<const std::byte> arguments);
  // Ready when all constructors have returned, and created() of all elements has ended; calls that are sent before wait for that
  // anyway. If one of them throws, the future gets its exception and the collection is destroyed; if creation is not awaited then, the job ends. Call it in the
  // turn in which the collection is made. Throws Error(kInvalidArgument) on another PE than the one that has made it.
  runtime::Future<> created(Collection& collection);
  // For the languages: created() of the element has ended, or what comes before it has failed. `error` is null, or what has left
  // `part`, and `code` its code in another language. Nothing of the element's method may use the element any more.
  void created_ended(ChareBase& chare, const std::exception_ptr& error,
                     std::optional<base::StatusCode> code = {},
                     CreationPart part = CreationPart::kCreated) noexcept;
  // Ends the collection on all PEs, from any PE. The future is ready when each PE has freed its elements that run
  // nothing; an element with an entry method that waits is freed when the method has ended. What a method awaits on a
  // channel ends with Error(kClosed). Calls that have not begun are refused with Error(kClosed); one that nothing awaits
  // ends the job. Futures of unfinished reductions fail. Throws Error(kClosed) if the collection has been destroyed on this
  // PE; two PEs may destroy it at the same time.
  runtime::Future<> destroy(Collection& collection);
  // Error(kClosed), which nothing awaits, has left the entry method that `where` names. It ends the job, unless the chare's
  // collection has been destroyed: then its methods end so.
  void end_closed_method(const ChareBase& chare, const std::exception_ptr& error, const std::string& where);

  // --- Sparse arrays, see docs/collections.md. All but create_sparse() throw Error(kInvalidArgument) for another collection,
  // and Error(kClosed) if the collection has been destroyed on this PE.

  // Starts making an array without elements on all PEs. Does not block. `constructor` and `arguments` make no element; they tell
  // the class. Throws Error(kInvalidArgument) for a shape with a table.
  Collection& create_sparse(const Shape& shape, const ConstructorInfo& constructor,
                            std::span<const std::byte> arguments);
  // Makes the element on PE `pe`, -1: on its home. The future is ready when the constructor has returned. It fails with the
  // constructor's exception, or with Error(kInvalidArgument) if the element exists. Throws Error(kOutOfRange) if there is no
  // such PE. Flow control may hold the call back, see Messenger::send_call().
  runtime::Future<> insert(Collection& collection, std::uint64_t index, int pe,
                           const ConstructorInfo& constructor, std::span<const std::byte> arguments);
  // Ends the element when nothing of it is suspended. The future is ready when it is gone and can be inserted again. It fails
  // with Error(kNotFound) if there is no such element, with Error(kInvalidArgument) if the element has channels.
  runtime::Future<> remove(Collection& collection, std::uint64_t index);
  // Removes an element of this PE; a failure ends the job.
  void remove_self(ChareBase& chare);
  // Counts the elements. Insertions and removals that were begun before, on any PE, are over when the future is ready. From then
  // on calls with gathered results and reductions concern the elements that were counted. It fails with
  // Error(kInvalidArgument) if an element is to be removed and a method of it waits.
  runtime::Future<> done_inserting(Collection& collection);
  SparseArrays& sparse();

  // The collection with that id. It is not created on this PE until its creation has arrived.
  Collection& collection(std::uint64_t id);
  // For proxies that arrive before the creation: sets kind and shape if they are not known yet.
  void know_shape(Collection& collection, CollectionKind kind, const Shape& shape);

  // In a job that outlives losses: makes an element of an array, or a single chare, that was lost with its PE anew. Its new home runs the
  // constructor with the arguments of the collection. The future is ready when it has returned; it fails with Error(kInvalidArgument) if
  // the element is not lost. Throws Error(kInvalidArgument) for an element of a group, and in other jobs.
  runtime::Future<> revive(Collection& collection, std::uint64_t index);

  // A message to an element: the caller packs the arguments behind the header.
  runtime::MessagePtr make_entry_message(const EntryHeader& header, std::size_t argument_bytes);
  // Sends a call to the last known PE of the element, and returns that PE. Flow control may hold the call back, see
  // Messenger::send_call().
  int send_entry(Collection& collection, std::uint64_t index, runtime::MessagePtr message);
  // Sends a message of another model to an element. Flow control does not hold it back.
  void send_to_element(Collection& collection, std::uint64_t index, runtime::MessagePtr message);
  // For handlers of other models whose payload begins with an EntryHeader (entry unused). Returns the element
  // if it is on this PE, also while its created() runs. Otherwise it keeps or forwards the message and returns null.
  ChareBase* find_or_forward(runtime::MessagePtr& message);
  // A message that runs the entry method on every element of the collection. `header.reply` of kind kGather
  // gathers the outcomes. Attached buffers land once for each element, as in a call to one element.
  runtime::MessagePtr make_broadcast_message(const EntryHeader& header, std::size_t argument_bytes);
  void broadcast_entry(Collection& collection, runtime::MessagePtr message);  // a call, as send_entry()
  // For proxies: one of the two messages, and its sending. `has_payload`: reports when the attachments have been sent; returns the
  // state of that, else null. If the call cannot be sent, the exception is the only report.
  runtime::MessagePtr make_call_message(const EntryHeader& header, CallTo to, std::size_t argument_bytes) {
    return to == CallTo::kAll ? make_broadcast_message(header, argument_bytes)
                              : make_entry_message(header, argument_bytes);
  }
  runtime::OperationState* send_call_message(Collection& collection, std::uint64_t index,
                                             runtime::MessagePtr message, bool has_payload,
                                             IsForwarded is_forwarded);
  runtime::OperationState* broadcast_call_message(Collection& collection, runtime::MessagePtr message,
                                                  bool has_payload);

  // Makes a gather for the outcomes of a call. `done` is called once, with a Pup over an element count and each element's outcome
  // in index order: one byte, which is 1 if the element failed, then the value or the error. If an element fails, `done` is
  // called at once, as if there were one outcome, and what comes later is dropped. `of`: the collection whose elements are
  // called, null if it is not one's elements that give the outcomes. Throws Error(kInvalidArgument) if it is a sparse array whose
  // elements are not counted.
  ReplyTo expect_gather(std::function<void(Pup&)> done, Collection* of = nullptr);
  // Calls `send`, which sends a call with that reply, and returns its result. If it throws, no reply is expected.
  template <class Send>
  auto send_expecting(const ReplyTo& reply, Send send) {
    try {
      return send();
    } catch (...) {
      forget_reply(reply);
      throw;
    }
  }
  // Asks for the element to move, see ChareBase::migrate().
  void migrate(ChareBase& chare, int to_pe);
  // For models that have let the element wait, see Model::prepare_to_move(): asks them again, in a turn of its own.
  void move_again(runtime::ElementId element);
  // See ChareBase.
  void at_sync(ChareBase& chare);
  void set_load_s(ChareBase& chare, std::optional<double> load_s);

  // The outcome of one element of a gathering call, as expect_gather() says. The caller hears of a failure at once.
  void contribute_outcome(const ReplyTo& reply, ChareBase& chare, std::span<const std::byte> outcome);

  // The chare's part of the next reduction of its collection, see Reductions. The result goes to `target`.
  void contribute(ChareBase& chare, runtime::Reducer reducer, const runtime::Combiner* combiner,
                  std::span<const std::byte> value, const runtime::Target& target);
  // contribute() for a value of kLargeContributionBytes or more, which is not copied if it is the first of this PE.
  void contribute_large(ChareBase& chare, runtime::Reducer reducer, const runtime::Combiner* combiner,
                        std::vector<std::byte>&& value, const runtime::Target& target);
  // A contribution to a reduction whose result goes to the `state` of every contributor.
  void contribute_to_all(ChareBase& chare, runtime::Reducer reducer, const runtime::Combiner* combiner,
                         std::span<const std::byte> value, runtime::FutureState* state);
  // As contribute_large().
  void contribute_large_to_all(ChareBase& chare, runtime::Reducer reducer, const runtime::Combiner* combiner,
                               std::vector<std::byte>&& value, runtime::FutureState* state);

 private:
  // What a contribution of the chare names instead of its target: a method of all elements gets a number.
  runtime::Target numbered_target(ChareBase& chare, const runtime::Target& target);
  // Throws base::LostPe if a PE is lost.
  void expect_reductions(const ChareBase& chare) const;
  // The result of the chare's next reduction goes to `state`. Returns the target of its contribution.
  runtime::Target await_all_reduced(ChareBase& chare, runtime::FutureState* state);

  friend class Bundles;
  friend class ChareBase;
  friend class Checkpoints;
  friend class LeavingChares;
  friend class PeriodicBalancing;
  friend class PostponedCalls;
  friend class Sections;
  friend class LostElements;
  friend class SparseArrays;
  friend class SyncPoints;
  struct Parts;

  void forget_reply(const ReplyTo& reply);

  runtime::Runtime& runtime_;
  runtime::HandlerId first_handler_;
  std::unique_ptr<Parts> parts_;
  std::uint64_t next_collection_ = 1;
};

// A copy of host memory, in a block of the PE's pool, for a message that carries it as an attachment. The copy is made
// late, see Attachment::copy_later(). REQUIRES: the message is sent or dropped before the bytes at `data` change.
runtime::Attachment copy_out_of_band(runtime::Runtime& runtime, const void* data, std::size_t size_bytes);

// Packs a collection as its id, kind and shape, the wire format of a proxy. Throws Error for damaged bytes.
void pup_collection(Pup& p, Collection*& collection);
// Packs the number of a collection, 0 for none, as handles of models have it in a state. A checkpoint notes it as it notes proxies,
// and Error passes. Unpacked from a checkpoint it is the number of the restored collection; returns whether that is so.
bool pup_collection_id(Pup& p, std::uint64_t& id);

// A future as the target of a reduction: of one value, or a FutureList, of which the result is one value.
template <class Future>
  requires requires(const Future& future) {
    { future.state() } -> std::convertible_to<runtime::FutureState*>;
  }
runtime::TargetOf<typename Future::Taken> target_of(const Future& future) {
  runtime::FutureAddress at = future.state()->address();
  runtime::TargetOf<typename Future::Taken> target;
  target.handler = runtime::kFutureSetHandler;
  target.pe = at.pe;
  target.prefix = base::pack_small(runtime::FutureSetHeader{at.id, 0});
  return target;
}

}  // namespace weft::chare
