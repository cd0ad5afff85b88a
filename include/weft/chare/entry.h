// Entry methods and constructors. An instance of EntryMethod<T, &T::method> registers the functions that
// unpack the arguments, run the method and send its outcome. For proxy.h; programs do not name these
// templates.
#pragma once

#include <concepts>
#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/chare/argument.h"
#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/created.h"
#include "weft/chare/method_run.h"
#include "weft/chare/method_traits.h"
#include "weft/chare/outcome.h"
#include "weft/chare/payload.h"
#include "weft/chare/waiting_call.h"
#include "weft/chare/when.h"

namespace weft::chare {

namespace move_detail {

template <class T>
concept MakesItself = requires(Pup& p) {
  { T::make_moved(p) } -> std::same_as<std::unique_ptr<ChareBase>>;
};

template <class T>
std::unique_ptr<ChareBase> make(Pup& state) {
  if constexpr (MakesItself<T>) {
    return T::make_moved(state);
  } else if constexpr (std::is_constructible_v<T, Moved>) {
    return std::make_unique<T>(Moved());
  } else {
    return std::make_unique<T>();
  }
}

// Whether T, or a class between T and ChareBase, overrides resume_from_sync(). If it is not public there, it is overridden.
template <class T>
constexpr bool overrides_resume_from_sync() {
  if constexpr (requires { &T::resume_from_sync; }) {
    return !std::is_same_v<decltype(&T::resume_from_sync), decltype(&ChareBase::resume_from_sync)>;
  } else {
    return true;
  }
}

template <class T>
constexpr bool kIsMovable = base::HasMemberPup<T> && (MakesItself<T> || std::is_constructible_v<T, Moved> ||
                                                      std::is_default_constructible_v<T>);

// How elements of T take part in load balancing: `static constexpr bool kBalancePeriodically = true;` says that they may move
// between any two calls.
template <class T>
constexpr Balancing balancing_of() {
  if constexpr (requires { T::kBalancePeriodically; }) {
    if constexpr (T::kBalancePeriodically) {
      static_assert(!overrides_resume_from_sync<T>(),
                    "a class takes part in load balancing at sync points (resume_from_sync) or periodically "
                    "(kBalancePeriodically), not both");
      static_assert(kIsMovable<T>,
                    "elements that are balanced periodically must be able to move: give the class a public "
                    "function `void pup(weft::Pup& p)` and a constructor without arguments or one that takes "
                    "weft::Moved");
      return Balancing::kPeriodic;
    }
  }
  return overrides_resume_from_sync<T>() ? Balancing::kAtSync : Balancing::kNone;
}

// The type's functions for moving, null if its class has none.
template <class T>
ChareType describe() {
  ChareType type{runtime::kTypeName<T>,         0, nullptr, nullptr, balancing_of<T>(),
                 when_detail::kHasConditions<T>};
  if constexpr (kIsMovable<T>) {
    type.pup = [](ChareBase& chare, Pup& p) { static_cast<T&>(chare).pup(p); };
    type.make = &make<T>;
  }
  if constexpr (created_detail::BeginsItself<T>) {
    type.begin_created = &T::begin_created;
  } else if constexpr (created_detail::HasCreated<T>) {
    type.begin_created = &created_detail::Run<T>::begin;
  } else {
    static_assert(
        !created_detail::names_created<T>(),
        "created() of a chare is a public method `weft::Task<> created()` without parameters; it runs "
        "after the constructors. Declare it so, or give this member another name");
  }
  return type;
}

}  // namespace move_detail

template <class T>
struct ChareTypeOf {
  static inline ChareType info = move_detail::describe<T>();
  static inline bool registered = runtime::Registry<ChareType>::add(&info);
};

// Sends a call that waits to its chare, which has left this PE. In proxy.h.
template <class T, auto Method, class Arguments>
void send_waiting_on(Collection& collection, std::uint64_t index, const ReplyTo& reply,
                     Arguments&& arguments);

template <class T, auto Method>
class EntryMethod {
  using Traits = entry_detail::MethodTraits<decltype(Method)>;
  using Result = typename Traits::Result;

 public:
  static_assert(std::is_base_of_v<typename Traits::Class, T>, "this is not a method of the proxy's chare");
  using Arguments = typename Traits::Arguments;
  using Value = typename runtime::TaskValue<Result>::Value;
  static constexpr bool kHasPayload = payload_detail::kHasPayload<Arguments>;
  // A post entry method reads the arguments before any buffer has landed, so vectors stay in the message.
  static constexpr bool kHasPost = !std::is_void_v<typename payload_detail::PostOf<T, Method>::Found>;
  using Packing = entry_detail::Packing<Arguments, kHasPost>;
  static constexpr bool kBlocksTravelOutOfBand = Packing::kBlocksTravelOutOfBand;
  // Whether its calls carry buffers that land before the method is called.
  static constexpr bool kIsPlaced = kHasPayload || kBlocksTravelOutOfBand;
  // Whether its calls wait until a condition holds, see when.h.
  using ConditionOf = when_detail::ConditionOf<T, Method>;
  static constexpr bool kIsConditional = !std::is_void_v<typename ConditionOf::Found>;
  static_assert(ConditionOf::kCount <= 1, "this entry method has two conditions; join them in one method");
  static_assert(
      !kIsConditional || !kHasPost,
      "an entry method with a post entry method cannot have a condition: a call that waits would keep the "
      "memory that was chosen for it");
  static_assert(!payload_detail::kIsNoCopy<Value>, "return a weft::Payload<T>, which nocopy() makes");
  static_assert(!std::is_reference_v<Value>,
                "an entry method returns a value: its caller may be on another PE");
  static_assert(!Traits::kTakesPointer,
                "this argument cannot travel: it holds a pointer or a reference, which means nothing on "
                "another PE; take a value");
  static_assert(
      !Traits::kTakesMutableReference,
      "an argument of an entry method is a value, and the caller never sees changes of it: take it by "
      "value or by const reference, and return what has changed");

  static const EntryInfo& info() {
    static_cast<void>(registered_);
    static_cast<void>(ChareTypeOf<T>::registered);
    return info_;
  }

  // Runs the method on unpacked arguments. If its condition does not hold, the call waits in the chare.
  static void run(runtime::Runtime& runtime, ChareBase& base, Arguments&& arguments, const ReplyTo& reply) {
    if constexpr (kIsConditional) {
      if (!may_begin(base, arguments, reply)) return;
    }
    run_now(runtime, base, arguments, reply);
    if constexpr (when_detail::kHasConditions<T>) base.run_ready_calls();
  }

 private:
  static constexpr bool kIsCoroutine = runtime::TaskValue<Result>::kIsTask;

  // Moves from `arguments`.
  static void run_now(runtime::Runtime& runtime, ChareBase& base, Arguments& arguments,
                      const ReplyTo& reply) {
    if (base.load() != nullptr || (!kIsCoroutine && runtime.observer() != nullptr)) [[unlikely]]
      return entry_detail::run_watched(base, info(), !kIsCoroutine, &EntryMethod::run_plainly, &arguments,
                                       reply);
    run_plainly(base, &arguments, reply);
  }

  // An entry_detail::Body.
  static void run_plainly(ChareBase& base, void* given, const ReplyTo& reply) {
    auto& arguments = *static_cast<Arguments*>(given);
    if constexpr (kIsCoroutine) {
      using Running = entry_detail::Running<Arguments, Value>;
      Running::start(base, info(), std::move(arguments), reply, [](ChareBase& chare, Arguments& kept) {
        return call(chare, kept, kParameters, kIndices).release();
      });
    } else {
      try {
        if constexpr (std::is_void_v<Result>) {
          call(base, arguments, kParameters, kIndices);
          if (reply.kind != ReplyTo::Kind::kNone) send_nothing(base, reply);
        } else {
          Result result = call(base, arguments, kParameters, kIndices);
          if (reply.kind != ReplyTo::Kind::kNone) send_value(base, reply, value_to_send(result));
        }
      } catch (...) {
        send_error(base, reply, info(), std::current_exception());
      }
      if constexpr (argument_detail::kHasBlock<Arguments>) {
        argument_detail::recycle(base.runtime(), arguments);
      }
    }
  }

  static constexpr std::size_t kNumArguments = std::tuple_size_v<Arguments>;
  static constexpr std::make_index_sequence<kNumArguments> kIndices{};
  static constexpr std::type_identity<typename Traits::Parameters> kParameters{};

  template <class... Parameters, std::size_t... I>
  static Result call(ChareBase& base, [[maybe_unused]] Arguments& arguments,
                     std::type_identity<std::tuple<std::type_identity<Parameters>...>>,
                     std::index_sequence<I...>) {
    return (static_cast<T&>(base).*Method)(argument_detail::pass<Parameters>(std::get<I>(arguments))...);
  }

  // The views of a coroutine, and of a call that waits, need their message after the handler has released it.
  static void hold_if_suspended(Arguments& arguments, runtime::Message* message) {
    if constexpr ((kIsCoroutine || kIsConditional) && argument_detail::kHasElementView<Arguments>) {
      argument_detail::hold(arguments, *message);
    }
  }

  static void invoke(ChareBase& base, Pup& p, const ReplyTo& reply) {
    Arguments arguments{};
    p | arguments;
    hold_if_suspended(arguments, static_cast<runtime::Message*>(p.carrier()));
    run(*static_cast<runtime::Runtime*>(p.context()), base, std::move(arguments), reply);
  }

  // --- Calls with out-of-band buffers: unpacked before the buffers land, run afterwards

  using Placed = entry_detail::Placed<Arguments>;

  static bool place(ChareBase& base, Pup& p, const ReplyTo& reply,
                    std::span<runtime::ReceiveBuffer> receive_buffers, std::shared_ptr<void>& kept) {
    std::shared_ptr<Placed> placed = Placed::unpack(p, base.runtime(), receive_buffers);
    const bool wanted = post(base, *placed, reply, receive_buffers);
    kept = std::move(placed);
    return wanted;
  }
  // Null if its calls have no out-of-band buffers.
  static constexpr auto place_function() {
    if constexpr (kHasPost) {
      return &EntryMethod::place;
    } else if constexpr (kIsPlaced) {
      return &Placed::place;
    } else {
      return nullptr;
    }
  }

  static void invoke_placed(ChareBase& base, runtime::Message& message, const ReplyTo& reply, void* kept) {
    auto& placed = *static_cast<Placed*>(kept);
    placed.take_landed(message);
    hold_if_suspended(placed.arguments, &message);
    run(message.runtime(), base, std::move(placed.arguments), reply);
  }

  // Runs the post entry method. Returns whether the entry method is to run.
  static bool post(ChareBase& base, Placed& placed, const ReplyTo& reply,
                   std::span<runtime::ReceiveBuffer> receive_buffers) {
    return [&]<auto PostMethod>(payload_detail::Constant<PostMethod>) {
      return post_with<PostMethod>(base, placed, reply, receive_buffers);
    }(typename payload_detail::PostOf<T, Method>::Found());
  }

  template <auto PostMethod>
  static bool post_with(ChareBase& base, Placed& placed, const ReplyTo& reply,
                        std::span<runtime::ReceiveBuffer> receive_buffers) {
    using Wanted = typename payload_detail::PostArguments<Arguments>::Type;
    using PostTraits = entry_detail::MethodTraits<decltype(PostMethod)>;
    static_assert(kHasPayload, "only an entry method with payloads has a post entry method");
    static_assert(
        std::is_same_v<typename PostTraits::Arguments, Wanted>,
        "a post entry method takes the arguments of its entry method, with a weft::ReceiveBuffer<T>& in the "
        "place of each weft::Payload<T>");
    static_assert(std::is_void_v<typename PostTraits::Result>,
                  "a post entry method returns nothing and cannot wait");
    static const EntryInfo post_info{runtime::kValueName<PostMethod>, &ChareTypeOf<T>::info};
    try {
      call_post<PostMethod>(base, placed, receive_buffers,
                            std::type_identity<typename PostTraits::Parameters>(), kIndices);
      return true;
    } catch (...) {
      send_error(base, reply, post_info, std::current_exception());
      return false;
    }
  }

  template <auto PostMethod, class... Parameters, std::size_t... I>
  static void call_post(ChareBase& base, Placed& placed, std::span<runtime::ReceiveBuffer> receive_buffers,
                        std::type_identity<std::tuple<std::type_identity<Parameters>...>>,
                        std::index_sequence<I...>) {
    std::tuple<std::conditional_t<payload_detail::kIsPayload<std::tuple_element_t<I, Arguments>>,
                                  std::decay_t<Parameters>, std::monostate>...>
        chosen;
    const auto argument = [&]<std::size_t Which, class Parameter>() -> decltype(auto) {
      using Value = std::tuple_element_t<Which, Arguments>;
      if constexpr (payload_detail::kIsPayload<Value>) {
        auto& receive_buffer = std::get<Which>(chosen);
        receive_buffer.bind(base.runtime(), receive_buffers[placed.which[Which]]);
        return (receive_buffer);
      } else if constexpr (argument_detail::kIsView<Parameter>) {
        return argument_detail::view_of<Parameter>(std::get<Which>(placed.arguments));
      } else {
        return std::as_const(std::get<Which>(placed.arguments));  // the entry method gets it afterwards
      }
    };
    (static_cast<T&>(base).*PostMethod)(argument.template operator()<I, Parameters>()...);
  }

  // --- Calls that wait for their condition

  // Whether that is a data member.
  static constexpr bool kHasKey = when_detail::kIsMember<typename ConditionOf::Found>;

  enum class Condition : std::uint8_t { kHolds, kDoesNotHold, kHasThrown };

  static Condition ask_condition(ChareBase& base, const Arguments& arguments, const ReplyTo& reply) {
    return [&]<auto Asked>(when_detail::Constant<Asked>) {
      static const EntryInfo asked_info{runtime::kValueName<Asked>, &ChareTypeOf<T>::info};
      try {
        const bool holds = when_detail::holds<Asked>(static_cast<const T&>(base), arguments);
        return holds ? Condition::kHolds : Condition::kDoesNotHold;
      } catch (...) {
        send_error(base, reply, asked_info, std::current_exception());
        return Condition::kHasThrown;
      }
    }(typename ConditionOf::Found());
  }

  // Returns whether the method is to run now. If it is not, the call waits, or its condition has thrown.
  static bool may_begin(ChareBase& base, Arguments& arguments, const ReplyTo& reply) {
    const bool was_asked = !base.has_postponed_calls();
    if (was_asked) [[likely]] {
      const Condition condition = ask_condition(base, arguments, reply);
      if (condition != Condition::kDoesNotHold) return condition == Condition::kHolds;
    }
    base.add_waiting_call(std::make_unique<Waiting>(reply, std::move(arguments)), was_asked);
    return false;
  }

  struct Waiting final : WaitingCall {
    explicit Waiting(const ReplyTo& reply_in, Arguments&& arguments_in = {})
        : WaitingCall(info(), reply_in), arguments(std::move(arguments_in)) {}

    bool try_to_begin(ChareBase& chare) override {
      const Condition condition = ask_condition(chare, arguments, reply());
      if (condition == Condition::kHolds) run_now(chare.runtime(), chare, arguments, reply());
      return condition != Condition::kDoesNotHold;
    }
    std::optional<std::uint64_t> key() const override {
      if constexpr (kHasKey) {
        return when_detail::hash_of(std::get<0>(arguments));
      } else {
        return std::nullopt;
      }
    }
    std::optional<std::uint64_t> key_of([[maybe_unused]] ChareBase& chare) const override {
      if constexpr (kHasKey) {
        return [&]<auto Member>(when_detail::Constant<Member>) {
          return when_detail::hash_of(
              when_detail::member_of<Member, T, Arguments>(static_cast<const T&>(chare)));
        }(typename ConditionOf::Found());
      } else {
        return std::nullopt;
      }
    }
    Travel travel() const override { return kHasPayload ? Travel::kAlone : Travel::kBehindState; }
    void pup_arguments([[maybe_unused]] Pup& p) override {
      if constexpr (!kHasPayload) {
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          (argument_detail::pup_waiting(p, std::get<I>(arguments)), ...);
        }(kIndices);
      }
    }
    void send_on([[maybe_unused]] Collection& collection, [[maybe_unused]] std::uint64_t index) override {
      if constexpr (kHasPayload) send_waiting_on<T, Method>(collection, index, reply(), std::move(arguments));
    }

    Arguments arguments;
  };

  static std::unique_ptr<WaitingCall> unpack_waiting(Pup& p, const ReplyTo& reply) {
    auto call = std::make_unique<Waiting>(reply);
    call->pup_arguments(p);
    return call;
  }
  static constexpr auto unpack_waiting_function() {
    using Function = decltype(EntryInfo::unpack_waiting);
    if constexpr (kIsConditional && !kHasPayload) {
      return Function(&EntryMethod::unpack_waiting);
    } else {
      return Function(nullptr);
    }
  }

  static inline EntryInfo info_{runtime::kValueName<Method>,
                                &ChareTypeOf<T>::info,
                                &EntryMethod::invoke,
                                0,
                                place_function(),
                                kIsPlaced ? &EntryMethod::invoke_placed : nullptr,
                                kHasPost,
                                nullptr,
                                unpack_waiting_function()};
  static inline bool registered_ = runtime::Registry<EntryInfo>::add(&info_);
};

// Tells the class of a sparse array, which begins without elements.
template <class T>
struct NoElement {
  static const ConstructorInfo& get() {
    static_cast<void>(registered);
    static_cast<void>(ChareTypeOf<T>::registered);
    return info;
  }
  static inline ConstructorInfo info{runtime::kTypeName<NoElement>, &ChareTypeOf<T>::info,
                                     [](Pup&) -> std::unique_ptr<ChareBase> { return nullptr; }, 0};
  static inline bool registered = runtime::Registry<ConstructorInfo>::add(&info);
};

template <class T, class... Args>
struct Constructor {
  static std::unique_ptr<ChareBase> construct(Pup& p) {
    std::tuple<Args...> arguments{};
    p | arguments;
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::make_unique<T>(std::move(std::get<I>(arguments))...);
    }(std::index_sequence_for<Args...>());
  }
  static const ConstructorInfo& get() {
    static_cast<void>(registered);
    static_cast<void>(ChareTypeOf<T>::registered);
    return info;
  }
  static inline ConstructorInfo info{runtime::kTypeName<Constructor>, &ChareTypeOf<T>::info, &construct, 0};
  static inline bool registered = runtime::Registry<ConstructorInfo>::add(&info);
};

}  // namespace weft::chare
