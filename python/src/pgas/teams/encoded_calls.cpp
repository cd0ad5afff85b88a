#include "pgas/teams/encoded_calls.h"

#include <utility>

#include "weft/chare/outcome.h"

#include "await/future.h"
#include "buffers/arrays/arrays.h"
#include "codec/attach.h"
#include "engine/ending.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// The message of a call, with the encoded arguments.
class EncodedCall {
 public:
  EncodedCall(const pgas::Team& team, int rank, const pgas::RpcInfo& function, runtime::FutureAddress reply,
              Encoder& encoder)
      : message_(team, rank, function, reply, encoder.size_bytes()) {
    encoder.copy_to(message_.arguments());
    attach_all(encoder, message_.message());
    sending_ = chare::report_sending_in_place(message_.message());
  }
  // Null if nothing was sent in place.
  runtime::OperationState* send() && {
    return runtime::send_reported(sending_, [this] { std::move(message_).send(); });
  }

 private:
  pgas::rpc_detail::CallMessage message_;
  runtime::OperationState* sending_ = nullptr;
};

}  // namespace

Ref send_with_result(Engine& engine, const pgas::Team& team, int rank, const pgas::RpcInfo& function,
                     Encoder& encoder, std::string where) {
  auto* state = new PyFutureState(engine);
  Ref future = make_future_object(state);
  EncodedCall call(team, rank, function, state->address(), encoder);
  runtime::OperationState* const sending = std::move(call).send();
  chare::delay_until_sent(*state, sending);
  state->end_job_if_unobserved(std::move(where));
  return future;
}

void reply_value(const pgas::RpcCall& call, PyObject* value) {
  if (call.reply.id == 0) return;
  Encoder encoder(OutOfBand::kLarge);
  if (is_sole_owner(value)) encoder.own(value);
  try {
    encoder.value(value);
  } catch (const PythonError&) {
    rethrow_unsendable("the result of a call");
  }
  set_remote_future(call.runtime(), call.reply, encoder);
}

void reply_error(const pgas::RpcCall& call, std::string_view name) {
  if (PyErr_Occurred() != nullptr && ended_by_exception(Engine::current())) return;
  pgas::RpcInfo named = *call.function;
  if (!name.empty()) named.name = name;
  pgas::RpcCall answer = call;
  answer.function = &named;
  answer.send_error(caught_as_travelling_error());
}

void send_without_result(const pgas::Team& team, int rank, const pgas::RpcInfo& function, Encoder& encoder) {
  EncodedCall call(team, rank, function, {}, encoder);
  if (runtime::OperationState* const sending = std::move(call).send()) sending->drop_handle();
}

}  // namespace weft::python
