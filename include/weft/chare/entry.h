// Entry methods and constructors. An instance of EntryMethod<T, &T::method> registers the functions that
// unpack the arguments, run the method and send its outcome. For proxy.h; programs do not name these
// templates.
#pragma once

#include <array>
#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/chare/argument.h"
#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/created.h"
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
  ChareType type{runtime::type_name<T>(),       0, nullptr, nullptr, balancing_of<T>(),
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

namespace entry_detail {

template <auto Method>
std::string_view method_name() {
  return runtime::value_name<Method>();
}

}  // namespace entry_detail

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
  static constexpr bool kBlocksTravelBeside = !kHasPost && argument_detail::kHasBlock<Arguments>;
  // Whether its calls carry buffers that land before the method is called.
  static constexpr bool kIsPlaced = kHasPayload || kBlocksTravelBeside;
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
    run_now(runtime, base, std::move(arguments), reply);
    if constexpr (when_detail::kHasConditions<T>) base.run_ready_calls();
  }

 private:
  static void run_now(runtime::Runtime& runtime, ChareBase& base, Arguments&& arguments,
                      const ReplyTo& reply) {
    if (base.load() != nullptr) [[unlikely]]
      return run_measured(runtime, base, std::move(arguments), reply);
    run_unmeasured(runtime, base, std::move(arguments), reply);
  }
  static void run_unmeasured(runtime::Runtime& runtime, ChareBase& base, Arguments&& arguments,
                             const ReplyTo& reply) {
    if constexpr (runtime::TaskValue<Result>::kIsTask) {
      start_coroutine(runtime, base, std::move(arguments), reply);
    } else {
      if (runtime.observer() != nullptr) [[unlikely]]
        return run_observed(base, std::move(arguments), reply);
      run_to_end(base, std::move(arguments), reply);
    }
  }
  // Inside a span of the element's load. Not cold, as run_observed().
  [[gnu::noinline]] static void run_measured(runtime::Runtime& runtime, ChareBase& base,
                                             Arguments&& arguments, const ReplyTo& reply) {
    const runtime::WorkMeter::Span span(runtime.meter(), *base.load());
    run_unmeasured(runtime, base, std::move(arguments), reply);
  }

  static runtime::EntryEvent event(const ChareBase& base, const void* key) {
    return {{base.collection().id(), base.linear_index()}, info().name, key};
  }
  // REQUIRES: there is an observer. Out of line, so that calls without one save no registers for it.
  [[gnu::cold, gnu::noinline]] static void observe_begin(const ChareBase& base, const void* key) {
    base.runtime().observer()->entry_began(event(base, key));
  }
  [[gnu::cold, gnu::noinline]] static void observe_end(const ChareBase& base, const void* key) {
    base.runtime().observer()->entry_ended(event(base, key));
  }

  // Not cold: the compiler would optimise the inlined method for size.
  [[gnu::noinline]] static void run_observed(ChareBase& base, Arguments&& arguments, const ReplyTo& reply) {
    const void* const key = &arguments;
    observe_begin(base, key);
    run_to_end(base, std::move(arguments), reply);
    if (base.runtime().observer() != nullptr) observe_end(base, key);
  }

  template <class... Parameters>
  static Result call_with(T& chare, Arguments& arguments,
                          std::type_identity<std::tuple<std::type_identity<Parameters>...>>) {
    return std::apply(
        [&chare](auto&... argument) {
          return (chare.*Method)(argument_detail::pass<Parameters>(argument)...);
        },
        arguments);
  }
  static Result call(ChareBase& base, Arguments& arguments) {
    return call_with(static_cast<T&>(base), arguments, std::type_identity<typename Traits::Parameters>());
  }

  static void run_to_end(ChareBase& base, Arguments&& arguments, const ReplyTo& reply) {
    try {
      if constexpr (std::is_void_v<Result>) {
        call(base, arguments);
        if (reply.kind != ReplyTo::Kind::kNone) send_value(base, reply, [](Pup& p) { p | std::monostate(); });
      } else {
        Result result = call(base, arguments);
        if (reply.kind != ReplyTo::Kind::kNone) send_value(base, reply, [&result](Pup& p) { p | result; });
      }
    } catch (...) {
      send_error(base, reply, info(), std::current_exception());
    }
    if constexpr (argument_detail::kHasBlock<Arguments>) {
      argument_detail::recycle(base.runtime(), arguments);
    }
  }

  // The running coroutine of an entry method; keeps the arguments, since the method may take them by
  // reference.
  struct Running final : runtime::DetachedTask {
    Running(ChareBase& base_in, Arguments&& arguments_in, const ReplyTo& reply_in)
        : base(base_in), arguments(std::move(arguments_in)), reply(reply_in) {}

    void finished() noexcept override {
      auto& promise = coroutine.promise();
      if (promise.error) {
        send_error(base, reply, info(), promise.error);
      } else if (reply.kind != ReplyTo::Kind::kNone) {
        reply_value(promise);
      }
      if constexpr (argument_detail::kHasBlock<Arguments>) {
        argument_detail::recycle(base.runtime(), arguments);
      }
      base.coroutine_ended();
      if (base.runtime().observer() != nullptr) [[unlikely]]
        observe_end(base, this);
      abandon();
    }
    void abandon() noexcept override {
      if (coroutine) coroutine.destroy();
      runtime::BlockPool& pool = base.runtime().pool();
      this->~Running();
      pool.deallocate(this, sizeof(Running));
    }
    template <class Promise>
    void reply_value(Promise& promise) noexcept {
      try {
        if constexpr (std::is_void_v<Value>) {
          send_value(base, reply, [](Pup& p) { p | std::monostate(); });
        } else {
          Value value = promise.take();
          send_value(base, reply, [&value](Pup& p) { p | value; });
        }
      } catch (...) {
        send_error(base, reply, info(), std::current_exception());
      }
    }

    ChareBase& base;
    Arguments arguments;
    ReplyTo reply;
    std::conditional_t<runtime::TaskValue<Result>::kIsTask, typename runtime::Task<Value>::Handle, int>
        coroutine{};
  };

  static void start_coroutine(runtime::Runtime& runtime, ChareBase& base, Arguments&& arguments,
                              const ReplyTo& reply) {
    auto* running = new (runtime.pool().allocate(sizeof(Running))) Running(base, std::move(arguments), reply);
    if (runtime.observer() != nullptr) [[unlikely]]
      observe_begin(base, running);
    try {
      running->coroutine = call(base, running->arguments).release();
    } catch (...) {
      send_error(base, reply, info(), std::current_exception());
      if (runtime.observer() != nullptr) [[unlikely]]
        observe_end(base, running);
      running->abandon();
      return;
    }
    running->coroutine.promise().detached = running;
    base.coroutine_started();
    runtime.start_detached(running, running->coroutine);
  }

  // The views of a coroutine, and of a call that waits, need their message after the handler has released it.
  static void hold_if_suspended(Arguments& arguments, runtime::Message* message) {
    if constexpr ((runtime::TaskValue<Result>::kIsTask || kIsConditional) &&
                  argument_detail::kHasElementView<Arguments>) {
      argument_detail::hold(arguments, *message);
    }
  }

  static void invoke(ChareBase& base, Pup& p, const ReplyTo& reply) {
    Arguments arguments{};
    p | arguments;
    hold_if_suspended(arguments, static_cast<runtime::Message*>(p.carrier()));
    run(*static_cast<runtime::Runtime*>(p.context()), base, std::move(arguments), reply);
  }

  // --- Calls with buffers beside the message: unpacked before the buffers land, run afterwards

  static constexpr std::size_t kNumArguments = std::tuple_size_v<Arguments>;
  struct Placed {
    Arguments arguments{};
    // The buffers of payloads and views.
    std::array<std::uint32_t, kNumArguments> which{};
  };

  static bool place(ChareBase& base, Pup& p, const ReplyTo& reply, std::span<runtime::Landing> landings,
                    std::shared_ptr<void>& kept) {
    auto placed = std::make_shared<Placed>();
    placed->which.fill(argument_detail::kNoBuffer);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (argument_detail::unpack_before_landing(p, std::get<I>(placed->arguments), placed->which[I],
                                              base.runtime(), landings),
       ...);
    }(std::make_index_sequence<kNumArguments>());
    argument_detail::expect_distinct(placed->which, landings);
    const bool wanted = post(base, *placed, reply, landings);
    kept = std::move(placed);
    return wanted;
  }

  static void invoke_placed(ChareBase& base, runtime::Message& message, const ReplyTo& reply, void* kept) {
    auto& placed = *static_cast<Placed*>(kept);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (argument_detail::take_after_landing(message, std::get<I>(placed.arguments), placed.which[I]), ...);
    }(std::make_index_sequence<kNumArguments>());
    hold_if_suspended(placed.arguments, &message);
    run(message.runtime(), base, std::move(placed.arguments), reply);
  }

  // Runs the post entry method, if there is one. Returns whether the entry method is to run.
  static bool post(ChareBase& base, Placed& placed, const ReplyTo& reply,
                   std::span<runtime::Landing> landings) {
    using Found = typename payload_detail::PostOf<T, Method>::Found;
    if constexpr (std::is_void_v<Found>) {
      return true;
    } else {
      return [&]<auto PostMethod>(payload_detail::Constant<PostMethod>) {
        return post_with<PostMethod>(base, placed, reply, landings);
      }(Found());
    }
  }

  template <auto PostMethod>
  static bool post_with(ChareBase& base, Placed& placed, const ReplyTo& reply,
                        std::span<runtime::Landing> landings) {
    using Wanted = typename payload_detail::PostArguments<Arguments>::Type;
    using PostTraits = entry_detail::MethodTraits<decltype(PostMethod)>;
    static_assert(kHasPayload, "only an entry method with payloads has a post entry method");
    static_assert(
        std::is_same_v<typename PostTraits::Arguments, Wanted>,
        "a post entry method takes the arguments of its entry method, with a weft::Landing<T>& in the "
        "place of each weft::Payload<T>");
    static_assert(std::is_void_v<typename PostTraits::Result>,
                  "a post entry method returns nothing and cannot wait");
    static const EntryInfo post_info{entry_detail::method_name<PostMethod>(), &ChareTypeOf<T>::info};
    try {
      call_post<PostMethod>(base, placed, landings, std::type_identity<typename PostTraits::Parameters>(),
                            std::make_index_sequence<kNumArguments>());
      return true;
    } catch (...) {
      send_error(base, reply, post_info, std::current_exception());
      return false;
    }
  }

  template <auto PostMethod, class... Parameters, std::size_t... I>
  static void call_post(ChareBase& base, Placed& placed, std::span<runtime::Landing> landings,
                        std::type_identity<std::tuple<std::type_identity<Parameters>...>>,
                        std::index_sequence<I...>) {
    std::tuple<std::conditional_t<payload_detail::kIsPayload<std::tuple_element_t<I, Arguments>>,
                                  std::decay_t<Parameters>, std::monostate>...>
        chosen;
    const auto argument = [&]<std::size_t Which, class Parameter>() -> decltype(auto) {
      using Value = std::tuple_element_t<Which, Arguments>;
      if constexpr (payload_detail::kIsPayload<Value>) {
        auto& landing = std::get<Which>(chosen);
        landing.bind(base.runtime(), landings[placed.which[Which]]);
        return (landing);
      } else if constexpr (argument_detail::kIsView<Parameter>) {
        return argument_detail::view_of<Parameter>(std::get<Which>(placed.arguments));
      } else {
        return std::as_const(std::get<Which>(placed.arguments));  // the entry method gets it afterwards
      }
    };
    (static_cast<T&>(base).*PostMethod)(argument.template operator()<I, Parameters>()...);
  }

  // --- Calls that wait for their condition

  enum class Condition : std::uint8_t { kHolds, kDoesNotHold, kHasThrown };

  static Condition ask_condition(ChareBase& base, const Arguments& arguments, const ReplyTo& reply) {
    return [&]<auto Asked>(when_detail::Constant<Asked>) {
      static const EntryInfo asked_info{entry_detail::method_name<Asked>(), &ChareTypeOf<T>::info};
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
    if (!base.has_postponed_calls()) [[likely]] {
      const Condition condition = ask_condition(base, arguments, reply);
      if (condition != Condition::kDoesNotHold) return condition == Condition::kHolds;
    }
    base.add_waiting_call(std::make_unique<Waiting>(reply, std::move(arguments)));
    return false;
  }

  struct Waiting final : WaitingCall {
    explicit Waiting(const ReplyTo& reply_in, Arguments&& arguments_in = {})
        : WaitingCall(info(), reply_in), arguments(std::move(arguments_in)) {}

    bool try_to_begin(ChareBase& chare) override {
      const Condition condition = ask_condition(chare, arguments, reply());
      if (condition == Condition::kHolds) run_now(chare.runtime(), chare, std::move(arguments), reply());
      return condition != Condition::kDoesNotHold;
    }
    Travel travel() const override { return kHasPayload ? Travel::kAlone : Travel::kBehindState; }
    void pup_arguments([[maybe_unused]] Pup& p) override {
      if constexpr (!kHasPayload) {
        std::apply([&p](auto&... argument) { (argument_detail::pup_waiting(p, argument), ...); }, arguments);
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

  static inline EntryInfo info_{entry_detail::method_name<Method>(),
                                &ChareTypeOf<T>::info,
                                &EntryMethod::invoke,
                                0,
                                kIsPlaced ? &EntryMethod::place : nullptr,
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
  static inline ConstructorInfo info{runtime::type_name<NoElement>(), &ChareTypeOf<T>::info,
                                     [](Pup&) -> std::unique_ptr<ChareBase> { return nullptr; }, 0};
  static inline bool registered = runtime::Registry<ConstructorInfo>::add(&info);
};

template <class T, class... Args>
struct Constructor {
  static std::unique_ptr<ChareBase> construct(Pup& p) {
    std::tuple<Args...> arguments{};
    p | arguments;
    return std::apply([](auto&... argument) { return std::make_unique<T>(std::move(argument)...); },
                      arguments);
  }
  static const ConstructorInfo& get() {
    static_cast<void>(registered);
    static_cast<void>(ChareTypeOf<T>::registered);
    return info;
  }
  static inline ConstructorInfo info{runtime::type_name<Constructor>(), &ChareTypeOf<T>::info, &construct, 0};
  static inline bool registered = runtime::Registry<ConstructorInfo>::add(&info);
};

}  // namespace weft::chare
