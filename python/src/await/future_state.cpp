#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/error.h"
#include "weft/chare/outcome.h"

#include "await/future.h"
#include "base/format.h"
#include "codec/attach.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/forms.h"
#include "codec/value_copy.h"
#include "runtime/future_table.h"
#include "runtime/message/handlers.h"
#include "support/errors.h"

namespace weft::python {

PyFutureState::~PyFutureState() {
  if (is_unread_ && !error()) [[unlikely]]
    count_unread();
  if (is_lost_) [[unlikely]]
    engine_->lost_calls().end(this);
  if (!error() || observed_ || where_.empty() || engine_->is_closed() || runtime().exiting()) return;
  runtime().fail_unawaited(error(), std::string(where_));
}

namespace {

// The text of the subject is Python code, which runs in the middle of other code.
template <class Function>
void beside_error(Function&& function) {
  const Ref error = PyErr_Occurred() == nullptr ? Ref() : PythonError::take();
  function();
  if (error) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
}

}  // namespace

void PyFutureState::count_unread() {
  // What the end of the job drops does not count, unless the program has dropped it before.
  if (engine_->is_closed() || (runtime().exiting() && !is_lost_)) return;
  beside_error([this] { engine_->count_unread(subject_.get()); });
}

void PyFutureState::find_reader() {
  is_lost_ = false;
  engine_->lost_calls().end(this);
}

void PyFutureState::lose_reader() {
  if (!is_unread_ || is_ready() || where_.empty() || engine_->is_closed()) return;
  is_lost_ = true;
  beside_error(
      [this] { engine_->lost_calls().start(this, subject_ ? readable(subject_.get()) : std::string()); });
}

PyObject* PyFutureState::result() {
  observe();
  if (error()) {
    raise_error();
    return nullptr;
  }
  return Py_NewRef(value_.get());
}

// Most errors are read once. If there are more readers, the second one makes the exception that those behind it copy, in a small part of
// the time.
void PyFutureState::raise_error() noexcept {
  if (!error_was_raised_) {
    error_was_raised_ = true;
    value_ = Ref();  // the values that came before the error
    return set_python_error(error());
  }
  if (!value_) {
    set_python_error(error());
    value_ = PythonError::take();
  }
  set_to_another(value_.get());
}

void PyFutureState::set(Ref value) { store(std::move(value)); }

void PyFutureState::set_to_copy(PyObject* value) {
  expect_room();
  try {
    if (remote_.id != 0) {
      Encoder encoder(OutOfBand::kLarge);
      encoder.value(value);
      Setter::Packed room;
      return set_remote_future(runtime(), remote_, encoder, Setter::here(own_pe()).pack(room));
    }
    store(copy_of_value(value));
  } catch (const PythonError&) {
    rethrow_unsendable("the value of a future");
  }
  note_setter();
}

Ref PyFutureState::copy_for_set(PyObject* value) {
  try {
    return copy_of_value(value);
  } catch (const PythonError&) {
    rethrow_unsendable("the value of a future");
  }
}

void PyFutureState::set_to_error(PyObject* exception) {
  expect_room();
  set_error(as_travelling_error(exception));
  if (remote_.id == 0) note_setter();
}

void PyFutureState::expect_room() const {
  if (remote_.id != 0 || !is_set() || expects_more()) return;
  const std::string who = setter();
  const std::string by = who.empty() ? std::string() : base::format("; {} has set it", who);
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      collects() ? base::format("a future of several values was set more often than it has values{}", by)
                 : base::format("a future was set a second time, and each is set exactly once{}", by));
}

void PyFutureState::note_setter() {
  setter_ = Setter::here(own_pe());
  if (!is_exported()) return;
  Setter::Packed room;
  runtime::FutureTable::of(messenger()).remember_setter(address().id, own_pe(), setter_.pack(room));
}

std::string PyFutureState::setter() const {
  return setter_.is_known() ? setter_.text(messenger()) : std::string();
}

void PyFutureState::store(Ref value) {
  if (!accept()) return;
  if (collects()) {
    checked(PyList_Append(value_.get(), value.get()));
    if (expects_more()) return;
  } else {
    value_ = std::move(value);
  }
  mark_ready();
}

void PyFutureState::collect(std::uint64_t count) {
  promises_left_ = count;
  value_ = checked(PyList_New(0));
  expect_values(count);
  if (count == 0) mark_ready();
}

bool PyFutureState::promise() {
  if (promises_left_ == 0 || (is_set() && !collects())) return false;
  --promises_left_;
  return true;
}

void PyFutureState::set_packed(Pup& p) {
  try {
    Decoder decoder(p);
    ResultForm form = bare_form_ < 0 ? decoder.number<ResultForm>() : static_cast<ResultForm>(bare_form_);
    Ref value = decode_result(decoder, form);
    store(std::move(value));
    decoder.finish(p);
    const bool is_value = bare_form_ < 0 && form == ResultForm::kValue;
    if (is_value && p.remaining_bytes() != 0 && p.carrier() != nullptr) [[unlikely]] {  // set() of another PE
      setter_ = Setter::unpack(static_cast<runtime::Message*>(p.carrier())->envelope().source_pe,
                               {reinterpret_cast<const char*>(p.cursor()), p.remaining_bytes()});
    }
  } catch (...) {  // the awaiting caller gets the error of unpacking, and that of a reducer
    if (bare_form_ >= 0) end_job_if_unobserved("an allreduce whose result was not awaited");
    set_error(caught_as_travelling_error());
  }
}

void PyFutureState::pup_value(Pup& p) {
  try {
    Decoder decoder(p);
    value_ = decoder.value();
    decoder.finish(p);
  } catch (...) {
    return end_with(caught_as_travelling_error());
  }
  mark_ready();
}

void PyFutureState::arrive(Ref value) {
  if (!waits_for_copy()) return;
  value_ = std::move(value);
  mark_ready();
}

void PyFutureState::arrive_error(std::exception_ptr error) {
  if (waits_for_copy()) end_with(std::move(error));
}

namespace {

// `header`, the encoded value, and `trailer`.
template <class... Header>
void send_encoded(runtime::Runtime& runtime, std::uint32_t pe, runtime::HandlerId handler, Encoder& encoder,
                  std::string_view trailer, const Header&... header) {
  const std::size_t header_bytes = (std::size_t{0} + ... + base::packed_size(header));
  const std::size_t value_bytes = encoder.size_bytes();
  auto message = runtime::Message::create(runtime, handler, header_bytes + value_bytes + trailer.size());
  Pup p = Pup::packer(message->payload(), header_bytes);
  ((p | header), ...);
  encoder.copy_to(message->payload() + header_bytes);
  std::copy(trailer.begin(), trailer.end(),
            reinterpret_cast<char*>(message->payload() + header_bytes + value_bytes));
  attach_all(encoder, *message);
  runtime::OperationState* const sending = chare::report_sending_in_place(*message);
  runtime.send(static_cast<int>(pe), std::move(message));
  if (sending != nullptr) sending->drop_handle();
}

}  // namespace

void PyFutureState::send_outcome(std::uint32_t to_pe, runtime::FutureAddress future) {
  observe();  // the duty is the copy's now
  if (error()) return FutureState::send_outcome(to_pe, future);
  try {
    Encoder encoder(OutOfBand::kLarge);
    encoder.value(value_.get());
    const bool failed = false;
    send_encoded(runtime(), to_pe, runtime::kFutureCopyHandler, encoder, {}, future.pe, future.id, failed);
  } catch (...) {
    std::rethrow_exception(caught_as_travelling_error());
  }
}

void set_remote_future(runtime::Runtime& runtime, runtime::FutureAddress future, Encoder& encoder,
                       std::string_view setter) {
  send_encoded(runtime, future.pe, runtime::kFutureSetHandler, encoder, setter,
               runtime::FutureSetHeader{future.id, 0}, ResultForm::kValue);
}

}  // namespace weft::python
