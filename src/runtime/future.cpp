#include "weft/runtime/future.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <typeinfo>

#include "weft/runtime/runtime.h"

#include "runtime/parts.h"

namespace weft::runtime {

namespace {

std::string readable_type(const std::type_info& type) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                              std::free);
  return status == 0 ? name.get() : type.name();
}

}  // namespace

std::exception_ptr as_remote_error(const std::exception_ptr& error, const std::string& where) {
  std::string frame = where.empty() ? "" : "  " + where + "\n";
  try {
    std::rethrow_exception(error);
  } catch (const base::RemoteError& remote) {
    return std::make_exception_ptr(
        base::RemoteError(remote.type(), remote.remote_message(), remote.traceback() + frame));
  } catch (const std::exception& exception) {
    return std::make_exception_ptr(
        base::RemoteError(readable_type(typeid(exception)), exception.what(), frame));
  } catch (...) {
    return std::make_exception_ptr(
        base::RemoteError("unknown exception", "not derived from std::exception", frame));
  }
}

void pack_error(Pup& p, const std::exception_ptr& error) {
  std::string type;
  std::string message;
  std::string traceback;
  try {
    std::rethrow_exception(as_remote_error(error, ""));
  } catch (const base::RemoteError& remote) {
    type = remote.type();
    message = remote.remote_message();
    traceback = remote.traceback();
  }
  p | type | message | traceback;
}

std::exception_ptr unpack_error(Pup& p) {
  std::string type;
  std::string message;
  std::string traceback;
  p | type | message | traceback;
  return std::make_exception_ptr(base::RemoteError(type, message, traceback));
}

void FutureState::expect_unset() const {
  if (ready_) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      "a future was set a second time; each is set exactly once");
  }
}

void FutureState::mark_ready() {
  ready_ = true;
  while (waiters_ != nullptr) {
    Work* work = waiters_;
    waiters_ = work->next;
    runtime_.post(work);
  }
}

void FutureState::when_ready(Work* work) {
  if (remote_.id != 0) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      fmt::format("this future belongs to PE {}; only that PE can wait for it", remote_.pe));
  }
  if (ready_) {
    runtime_.post(work);
    return;
  }
  // In order of arrival: waiters are few, the list is walked.
  Work** last = &waiters_;
  while (*last != nullptr) last = &(*last)->next;
  work->next = nullptr;
  *last = work;
}

void FutureState::forget_export() {
  auto& futures = runtime_.parts_->exported_futures;
  if (futures.erase(address_.id) > 0) release();
}

std::exception_ptr set_and_gone() {
  return std::make_exception_ptr(base::Error(base::StatusCode::kNotFound,
                                             "a future came home to the PE that made it after it had been "
                                             "set there and let go; keep the one that was sent"));
}

void throw_taken() {
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      "the value of this future was taken before, and it cannot be copied: get() or co_await it "
      "once and keep what it gives");
}

void FutureState::forget(Work* work) {
  for (Work** at = &waiters_; *at != nullptr; at = &(*at)->next) {
    if (*at == work) {
      *at = work->next;
      return;
    }
  }
}

void list_pending(Runtime& runtime, DetachedTask* task) { runtime.list_pending(task); }

void FutureState::set_error(std::exception_ptr error) {
  if (remote_.id != 0) {
    FutureSetHeader header{remote_.id, 1};
    Pup sizer = Pup::sizer(&runtime_);
    sizer | header;
    pack_error(sizer, error);
    MessagePtr message = Message::create(runtime_, kFutureSetHandler, sizer.offset_bytes());
    Pup packer = Pup::packer(message->payload(), message->payload_bytes(), &runtime_);
    packer | header;
    pack_error(packer, error);
    send_future_message(runtime_, remote_.pe, std::move(message));
    return;
  }
  expect_unset();
  error_ = std::move(error);
  mark_ready();
}

FutureAddress FutureState::address() {
  if (remote_.id != 0) return remote_;
  if (address_.id == 0) address_ = {static_cast<std::uint32_t>(runtime_.pe()), runtime_.export_future(this)};
  return address_;
}

void send_future_message(Runtime& runtime, std::uint32_t pe, MessagePtr message) {
  runtime.send(static_cast<int>(pe), std::move(message));
}

FutureState* find_exported_future(Runtime& runtime, std::uint64_t id) {
  auto& futures = runtime.parts_->exported_futures;
  auto found = futures.find(id);
  return found == futures.end() ? nullptr : found->second;
}

std::uint32_t future_home_pe(Runtime& runtime) { return static_cast<std::uint32_t>(runtime.pe()); }

std::uint64_t Runtime::export_future(FutureState* state) {
  std::uint64_t id = parts_->next_future++;
  state->acquire();
  parts_->exported_futures.emplace(id, state);
  return id;
}

void Runtime::set_exported_future(MessagePtr message) {
  Pup p = message->unpacker();
  FutureSetHeader header;
  p | header;
  auto found = parts_->exported_futures.find(header.id);
  if (found == parts_->exported_futures.end()) {
    fail(fmt::format("PE {} set a future of PE {} that was set before; each is set exactly once",
                     message->envelope().source_pe, pe_));
    return;
  }
  FutureState* state = found->second;
  parts_->exported_futures.erase(found);
  if (header.failed != 0) {
    state->set_error(unpack_error(p));
  } else {
    state->set_packed(p);
  }
  state->release();
}

void Runtime::fail_unawaited(const std::exception_ptr& error, const std::string& where) {
  try {
    std::rethrow_exception(as_remote_error(error, where));
  } catch (const base::RemoteError& remote) {
    fail(fmt::format("PE {}: an exception that nobody awaits left {}\n{}: {}\n{}", pe_, where, remote.type(),
                     remote.remote_message(), remote.traceback()));
  }
}

}  // namespace weft::runtime
