// Entry methods and constructors, found by the compiler: an instance of EntryMethod<T, &T::method> registers
// how to unpack the arguments, run the method and send its outcome. Used by proxy.h; programs do not name
// these.
#pragma once

#include <exception>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/payload.h"

namespace weft::chare {

template <class T>
struct ChareTypeOf {
  static inline ChareType info{runtime::type_name<T>(), 0};
  static inline bool registered = runtime::Registry<ChareType>::add(&info);
};

// Where an outcome goes once it is known.
void send_value(ChareBase& chare, const ReplyTo& reply, const std::function<void(Pup&)>& pack_value);
void send_error(ChareBase& chare, const ReplyTo& reply, const EntryInfo& entry,
                const std::exception_ptr& error);

namespace entry_detail {

template <class Method>
struct MethodTraits;
template <class R, class C, class... Args>
struct MethodTraits<R (C::*)(Args...)> {
  using Result = R;
  using Class = C;
  using Arguments = std::tuple<std::decay_t<Args>...>;
};
template <class R, class C, class... Args>
struct MethodTraits<R (C::*)(Args...) const> : MethodTraits<R (C::*)(Args...)> {};
template <class R, class C, class... Args>
struct MethodTraits<R (C::*)(Args...) noexcept> : MethodTraits<R (C::*)(Args...)> {};
template <class R, class C, class... Args>
struct MethodTraits<R (C::*)(Args...) const noexcept> : MethodTraits<R (C::*)(Args...)> {};

template <class T>
struct TaskValue {
  static constexpr bool kIsTask = false;
  using Value = T;
};
template <class T>
struct TaskValue<runtime::Task<T>> {
  static constexpr bool kIsTask = true;
  using Value = T;
};

template <auto Method>
std::string_view method_name() {
  return runtime::value_name<Method>();
}

}  // namespace entry_detail

template <class T, auto Method>
class EntryMethod {
  using Traits = entry_detail::MethodTraits<decltype(Method)>;
  using Result = typename Traits::Result;

 public:
  static_assert(std::is_base_of_v<typename Traits::Class, T>, "this is not a method of the proxy's chare");
  using Arguments = typename Traits::Arguments;
  using Value = typename entry_detail::TaskValue<Result>::Value;
  static constexpr bool kHasPayload = payload_detail::kHasPayload<Arguments>;
  static_assert(!payload_detail::kIsNoCopy<Value>, "return a weft::Payload<T>, which nocopy() makes");

  static const EntryInfo& info() {
    static_cast<void>(registered_);
    static_cast<void>(ChareTypeOf<T>::registered);
    return info_;
  }

  // Runs the method on arguments that are here already.
  static void run(ChareBase& base, Arguments&& arguments, const ReplyTo& reply) {
    if constexpr (entry_detail::TaskValue<Result>::kIsTask) {
      start_coroutine(base, std::move(arguments), reply);
    } else {
      run_to_end(base, std::move(arguments), reply);
    }
  }

 private:
  static Result call(ChareBase& base, Arguments& arguments) {
    T& chare = static_cast<T&>(base);
    return std::apply([&chare](auto&... argument) { return (chare.*Method)(std::move(argument)...); },
                      arguments);
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
      base.coroutine_ended();
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
    std::conditional_t<entry_detail::TaskValue<Result>::kIsTask, typename runtime::Task<Value>::Handle, int>
        coroutine{};
  };

  static void start_coroutine(ChareBase& base, Arguments&& arguments, const ReplyTo& reply) {
    runtime::Runtime& runtime = base.runtime();
    auto* running = new (runtime.pool().allocate(sizeof(Running))) Running(base, std::move(arguments), reply);
    try {
      running->coroutine = call(base, running->arguments).release();
    } catch (...) {
      send_error(base, reply, info(), std::current_exception());
      running->abandon();
      return;
    }
    running->coroutine.promise().detached = running;
    base.coroutine_started();
    runtime.start_detached(running, running->coroutine);
  }

  static void invoke(ChareBase& base, Pup& p, const ReplyTo& reply) {
    Arguments arguments{};
    p | arguments;
    run(base, std::move(arguments), reply);
  }

  template <auto PostMethod>
  static bool post_with(ChareBase& base, Pup& p, const ReplyTo& reply, std::span<runtime::Landing> landings) {
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
    Wanted arguments{};
    p | arguments;
    try {
      std::apply(
          [&](auto&... argument) {
            (payload_detail::bind(argument, base.runtime(), landings), ...);
            (static_cast<T&>(base).*PostMethod)(payload_detail::pass(argument)...);
          },
          arguments);
      return true;
    } catch (...) {
      send_error(base, reply, post_info, std::current_exception());
      return false;
    }
  }

  static constexpr auto find_post() {
    using Found = typename payload_detail::PostOf<T, Method>::Found;
    if constexpr (std::is_void_v<Found>) {
      return nullptr;
    } else {
      return []<auto PostMethod>(payload_detail::Constant<PostMethod>) {
        return &EntryMethod::template post_with<PostMethod>;
      }(Found());
    }
  }

  static inline EntryInfo info_{entry_detail::method_name<Method>(), &ChareTypeOf<T>::info,
                                &EntryMethod::invoke, 0, find_post()};
  static inline bool registered_ = runtime::Registry<EntryInfo>::add(&info_);
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
