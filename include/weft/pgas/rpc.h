// Calls of functions on other ranks: team.rpc<&function>(rank, arguments...) and team.rpc_ff<...>.
//
//   int add(pgas::World& world, int a, int b) { return a + b + world.rank(); }
//   int sum = co_await world.rpc<&add>(1, 20, 3);                    // 24
//
// A function registers itself by being named in a call; all PEs run the same program and agree on its number. Its first
// parameter may be World&, this PE's world, or const Team&, the team of the call. A parameter DistObject<T>& takes a
// distributed object, and the function gets that of its own PE; the call waits until the PE has made it, and its team. A PE
// that is no member of that team is an error of the call. All other
// parameters are values or const references to them, which last until the function has returned, or until the Task that it
// returns has ended.
//
// Calls to one rank may overtake one another. A call that is sent to a PE where too much waits moves communication forward
// until there is room, see runtime/watermarks.h. Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "weft/base/pup.h"
#include "weft/pgas/function_traits.h"
#include "weft/pgas/team.h"
#include "weft/pgas/world.h"
#include "weft/runtime/future.h"
#include "weft/runtime/message.h"
#include "weft/runtime/registry.h"
#include "weft/runtime/runtime.h"
#include "weft/runtime/task.h"

namespace weft::pgas {

struct RpcInfo;

// One call on the PE that runs the function.
struct RpcCall {
  Team team;
  const RpcInfo* function = nullptr;
  runtime::FutureAddress reply;      // no id: nothing goes back
  rpc_detail::ObjectNumber missing;  // the object that this PE has not made yet, if invoke() returns false

  runtime::Runtime& runtime() const { return team.runtime(); }
  template <class T>
  void send_value(const T& value) const {
    if (reply.id == 0) return;
    const runtime::FutureSetHeader header{reply.id, runtime::FutureSetHeader::kValue};
    runtime::send_future_message(
        runtime(), reply.pe, runtime::Message::pack(runtime(), runtime::kFutureSetHandler, header, value));
  }
  // To the caller; if nothing goes back, it ends the job.
  void send_error(const std::exception_ptr& error) const;
};

// A function that other PEs may call.
struct RpcInfo {
  std::string_view name;
  // Unpacks the arguments and runs the function. Returns false, without effects, if an object is missing.
  bool (*invoke)(RpcCall& call, base::Pup& arguments) = nullptr;
  std::uint32_t id = 0;
};

// A call that is packed now and runs later, on this PE or another, without a result.
struct PackedCall {
  std::uint32_t function = 0;
  std::vector<std::byte> arguments;
  void pup(base::Pup& p) { p | function | arguments; }
};
// Queues the call on this PE. An exception of the function ends the job. Throws Error(kCorrupt) if there is no such
// function, because the bytes may come from a peer.
void run_packed(World& world, const PackedCall& call);

namespace rpc_detail {

// The message of a call, with room for its packed arguments.
class CallMessage {
 public:
  // Throws Error(kOutOfRange) if the team has no such rank.
  CallMessage(const Team& team, int rank, const RpcInfo& function, runtime::FutureAddress reply,
              std::size_t argument_bytes);
  base::Pup packer();
  // Where the arguments are packed, for other languages, which may also attach buffers to the message.
  std::byte* arguments();
  runtime::Message& message() { return *message_; }
  void send() &&;

 private:
  runtime::Runtime& runtime_;
  int pe_;
  runtime::MessagePtr message_;
};

// Throws Error(kInvalidArgument) if that PE is no member of the team of an object that is sent to it.
void expect_member(const Team& team, int pe);

// The object of this PE; null if it or its team is not made yet. Throws Error if it has been destroyed or has another type,
// or if no PE can have made its team.
void* find_object(runtime::Runtime& runtime, const ObjectNumber& where);

// An argument of a call on that rank.
template <class Argument>
void expect_reaches(const Team& team, int rank, const Argument& argument) {
  if constexpr (kIsDistObject<Argument>) expect_member(argument.team(), team.pe_of(rank));
}

// The form in which an argument is packed for a parameter that is stored as `Value`.
template <class Value, class Argument>
decltype(auto) packable(Argument&& argument) {
  if constexpr (std::is_same_v<std::remove_cvref_t<Argument>, Value>) {
    return std::as_const(argument);
  } else {
    static_assert(std::is_constructible_v<Value, Argument&&>,
                  "the argument does not convert to the function's parameter");
    return Value(std::forward<Argument>(argument));
  }
}

// The argument with which the function is called.
template <class Parameter>
decltype(auto) pass(Stored<Parameter>& stored) {
  if constexpr (kIsObjectArgument<Stored<Parameter>>) {
    return (*stored.object);
  } else {
    return std::move(stored);
  }
}

// Finds the object of an argument. Returns whether it is there.
template <class Value>
bool find_argument(RpcCall& call, Value& value) {
  if constexpr (kIsObjectArgument<Value>) {
    using Object = std::remove_pointer_t<decltype(value.object)>;
    value.object = static_cast<Object*>(find_object(call.runtime(), value.where));
    if (value.object == nullptr) call.missing = value.where;
    return value.object != nullptr;
  } else {
    return true;
  }
}

}  // namespace rpc_detail

template <auto Function>
class RpcFunction {
  using Traits = rpc_detail::FunctionTraits<std::remove_const_t<decltype(Function)>>;
  using Result = typename Traits::Result;
  using Arguments = typename Traits::Arguments;
  using Value = typename Traits::Value;
  static_assert(!std::is_reference_v<Value>, "a function returns a value: its caller may be on another PE");
  static_assert(
      !Traits::kTakesMutableReference,
      "an argument is a value, and the caller never sees changes of it: take it by value or by const "
      "reference, and return what has changed");

 public:
  static const RpcInfo& info() {
    static_cast<void>(registered_);
    return info_;
  }

  template <class... Args>
  static void send(const Team& team, int rank, runtime::FutureAddress reply, Args&&... arguments) {
    static_assert(sizeof...(Args) == Traits::kNumArguments, "the function takes another number of arguments");
    (rpc_detail::expect_reaches(team, rank, arguments), ...);
    visit_packed(
        [&](const auto&... values) {
          [[maybe_unused]] void* const context = &team.runtime();
          const std::size_t size_bytes = (std::size_t{0} + ... + base::packed_size(values, context));
          rpc_detail::CallMessage message(team, rank, info(), reply, size_bytes);
          base::Pup p = message.packer();
          static_cast<void>((p | ... | values));
          std::move(message).send();
        },
        std::forward<Args>(arguments)...);
  }
  template <class... Args>
  static PackedCall pack(runtime::Runtime& runtime, Args&&... arguments) {
    static_assert(sizeof...(Args) == Traits::kNumArguments, "the function takes another number of arguments");
    PackedCall call;
    static_cast<void>(runtime::Registry<RpcInfo>::all());  // numbers it
    call.function = info().id;
    visit_packed(
        [&](const auto&... values) {
          call.arguments.resize((std::size_t{0} + ... + base::packed_size(values, &runtime)));
          base::Pup p = base::Pup::packer(call.arguments.data(), call.arguments.size(), &runtime);
          static_cast<void>((p | ... | values));
        },
        std::forward<Args>(arguments)...);
    return call;
  }

 private:
  template <class Visit, class... Args>
  static void visit_packed(Visit visit, Args&&... arguments) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      visit(rpc_detail::packable<std::tuple_element_t<I, Arguments>>(std::forward<Args>(arguments))...);
    }(std::make_index_sequence<Traits::kNumArguments>());
  }

  static bool invoke(RpcCall& call, base::Pup& p) {
    Arguments arguments{};
    p | arguments;
    const bool has_all = std::apply(
        [&call](auto&... values) { return (rpc_detail::find_argument(call, values) && ...); }, arguments);
    if (has_all) run(call, std::move(arguments));
    return has_all;
  }

  template <class... Parameters>
  static Result apply_to(const RpcCall& call, Arguments& arguments,
                         std::type_identity<std::tuple<std::type_identity<Parameters>...>>) {
    return std::apply(
        [&](auto&... stored) -> Result {
          if constexpr (std::is_same_v<typename Traits::Context, World&>) {
            return Function(call.team.world(), rpc_detail::pass<Parameters>(stored)...);
          } else if constexpr (std::is_same_v<typename Traits::Context, const Team&>) {
            return Function(call.team, rpc_detail::pass<Parameters>(stored)...);
          } else {
            return Function(rpc_detail::pass<Parameters>(stored)...);
          }
        },
        arguments);
  }
  static Result apply(const RpcCall& call, Arguments& arguments) {
    return apply_to(call, arguments, std::type_identity<typename Traits::Parameters>());
  }

  static void run(const RpcCall& call, Arguments&& arguments) {
    if constexpr (Traits::kIsTask) {
      start_coroutine(call, std::move(arguments));
    } else {
      try {
        if constexpr (std::is_void_v<Result>) {
          apply(call, arguments);
          call.send_value(std::monostate());
        } else {
          call.send_value(apply(call, arguments));
        }
      } catch (...) {
        call.send_error(std::current_exception());
      }
    }
  }

  // The function's coroutine. It keeps the arguments and the team, which the function may have taken by reference.
  struct Running final : runtime::DetachedTask {
    Running(const RpcCall& call_in, Arguments&& arguments_in)
        : call(call_in), arguments(std::move(arguments_in)) {}
    void finished() noexcept override {
      try {
        if constexpr (std::is_void_v<Value>) {
          coroutine.promise().take();
          call.send_value(std::monostate());
        } else {
          call.send_value(coroutine.promise().take());
        }
      } catch (...) {
        call.send_error(std::current_exception());
      }
      abandon();
    }
    void abandon() noexcept override {
      coroutine.destroy();
      delete this;
    }

    RpcCall call;
    Arguments arguments;
    std::conditional_t<Traits::kIsTask, typename runtime::Task<Value>::Handle, std::coroutine_handle<>>
        coroutine;
  };

  static void start_coroutine(const RpcCall& call, Arguments&& arguments) {
    auto running = std::make_unique<Running>(call, std::move(arguments));
    try {
      running->coroutine = apply(running->call, running->arguments).release();
    } catch (...) {
      return call.send_error(std::current_exception());
    }
    running->coroutine.promise().detached = running.get();
    const auto coroutine = running->coroutine;
    call.runtime().start_detached(running.release(), coroutine);
  }

  static inline RpcInfo info_{runtime::value_name<Function>(), &RpcFunction::invoke, 0};
  static inline bool registered_ = runtime::Registry<RpcInfo>::add(&info_);
};

template <auto Function, class... Args>
runtime::Future<RpcValue<Function>> Team::rpc(int rank, Args&&... arguments) const {
  expect_rank(rank);
  runtime::Future<RpcValue<Function>> result(runtime());
  try {
    RpcFunction<Function>::send(*this, rank, result.state()->address(), std::forward<Args>(arguments)...);
  } catch (...) {                                         // for instance arguments that cannot be packed
    result.state()->set_error(std::current_exception());  // else the PE would keep the future for a result
    throw;
  }
  return result;
}

template <auto Function, class... Args>
void Team::rpc_ff(int rank, Args&&... arguments) const {
  RpcFunction<Function>::send(*this, rank, {}, std::forward<Args>(arguments)...);
}

// The call of a function that another part of the model sends, for instance behind a copy.
template <auto Function, class... Args>
PackedCall pack_call(runtime::Runtime& runtime, Args&&... arguments) {
  return RpcFunction<Function>::pack(runtime, std::forward<Args>(arguments)...);
}

}  // namespace weft::pgas
