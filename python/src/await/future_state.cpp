#include <utility>

#include "weft/chare/outcome.h"

#include "await/future.h"
#include "codec/attach.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/forms.h"
#include "codec/no_copy.h"
#include "runtime/handlers.h"
#include "support/errors.h"

namespace weft::python {

PyFutureState::~PyFutureState() {
  if (!error() || observed_ || where_.empty() || engine_->is_closed() || runtime().exiting()) return;
  runtime().fail_unawaited(error(), where_);
}

Ref PyFutureState::result() {
  observed_ = true;
  if (error()) {
    set_python_error(error());
    throw PythonError();
  }
  return value_;
}

void PyFutureState::set(Ref value) {
  if (remote_.id == 0) {
    store(is_no_copy(value.get()) ? Ref::borrow(no_copy_array(value.get())) : std::move(value));
    return;
  }
  Encoder encoder(Beside::kLarge);
  encoder.value(value.get());
  set_remote_future(runtime(), remote_, encoder);
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
  } catch (...) {  // the awaiting caller gets the error of unpacking
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

// `header` and the encoded value.
template <class... Header>
void send_encoded(runtime::Runtime& runtime, std::uint32_t pe, runtime::HandlerId handler, Encoder& encoder,
                  const Header&... header) {
  const std::size_t header_bytes = (std::size_t{0} + ... + base::packed_size(header));
  auto message = runtime::Message::create(runtime, handler, header_bytes + encoder.size_bytes());
  Pup p = Pup::packer(message->payload(), header_bytes);
  ((p | header), ...);
  encoder.copy_to(message->payload() + header_bytes);
  attach_all(encoder, *message);
  runtime::OperationState* const sending = chare::report_sending_in_place(*message);
  runtime.send(static_cast<int>(pe), std::move(message));
  if (sending != nullptr) sending->drop_handle();
}

}  // namespace

void PyFutureState::send_outcome(std::uint32_t to_pe, runtime::FutureAddress future) {
  observed_ = true;  // the duty is the copy's now
  if (error()) return FutureState::send_outcome(to_pe, future);
  try {
    Encoder encoder(Beside::kLarge);
    encoder.value(value_.get());
    const bool failed = false;
    send_encoded(runtime(), to_pe, runtime::kFutureCopyHandler, encoder, future.pe, future.id, failed);
  } catch (...) {
    std::rethrow_exception(caught_as_travelling_error());
  }
}

void set_remote_future(runtime::Runtime& runtime, runtime::FutureAddress future, Encoder& encoder) {
  send_encoded(runtime, future.pe, runtime::kFutureSetHandler, encoder,
               runtime::FutureSetHeader{future.id, 0}, ResultForm::kValue);
}

}  // namespace weft::python
