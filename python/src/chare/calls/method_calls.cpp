#include "chare/calls/method_calls.h"

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "weft/chare/outcome.h"
#include "weft/chare/proxy.h"
#include "weft/chare/sections.h"

#include "await/future.h"
#include "await/operation.h"
#include "base/format.h"
#include "chare/calls/calls.h"
#include "chare/calls/calls_elsewhere.h"
#include "chare/calls/combined_calls.h"
#include "chare/calls/sent.h"
#include "codec/attach.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "support/errors.h"

namespace weft::python {

std::string name_of(const EntryMethodObject& entry) {
  std::string_view method = text_of(entry.core.info->method_name(entry.method));
  if (entry.to_all) return base::format("{}.{}", entry.core.info->name(), method);
  return base::format("{}.{}", entry.core.collection->element_name(entry.index), method);
}

namespace {

// Pickling gives the GIL away. Meanwhile the job may have ended, if this is another thread than the PE's: the collection is gone then.
void expect_still_open(const EntryMethodObject& entry) {
  if (!entry.core.engine->is_closed()) [[likely]]
    return;
  PyErr_Clear();
  entry.core.engine->expect_open_on_any_thread();
}

}  // namespace

void encode_arguments(const EntryMethodObject& entry, Encoder& encoder,
                      std::span<PyObject* const> arguments) {
  try {
    encoder.arguments(arguments);
  } catch (const PythonError&) {
    expect_still_open(entry);
    rethrow_unsendable(
        base::format("argument {} of {}", entry.num_bound + encoder.argument_number() + 1, name_of(entry)));
  }
}

void write_bound(const EntryMethodObject& entry, Encoder& encoder) {
  if (!entry.bound) return;
  encoder.raw(PyBytes_AS_STRING(entry.bound.get()),
              static_cast<std::size_t>(PyBytes_GET_SIZE(entry.bound.get())));
}

void refuse_count(const EntryMethodObject& entry) {
  throw base::Error(base::StatusCode::kInvalidArgument,
                    base::format("{} is called with more than 255 arguments; send a list", name_of(entry)));
}

bool has_post_entry(const EntryMethodObject& entry) {
  return entry.combined != nullptr ? entry.combined->has_post_entry()
                                   : entry.core.info->post_entry(entry.method) != nullptr;
}

namespace {

// Throws PythonError, the TypeError that the method would raise, if it cannot be called so. `num_positional`: with the bound ones.
void expect_arguments(const EntryMethodObject& entry, Py_ssize_t num_positional, PyObject* keyword_names) {
  if (entry.combined == nullptr) [[likely]]
    return entry.core.info->signature(entry.method).expect(num_positional, keyword_names);
  for (std::size_t i = 0; i < entry.combined->methods.size(); ++i) {
    entry.combined->proxy->cores[i]
        .info->signature(entry.combined->methods[i])
        .expect(num_positional, keyword_names);
  }
}

}  // namespace

void encode_call(const EntryMethodObject& entry, Encoder& encoder, PyObject* const* arguments,
                 Py_ssize_t num_positional, PyObject* keyword_names) {
  expect_arguments(entry, entry.num_bound + num_positional, keyword_names);
  Py_ssize_t num_keywords = keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(keyword_names);
  if (entry.num_bound + num_positional > kMostArguments || num_keywords > kMostArguments) refuse_count(entry);
  encoder.number(CallHeader{entry.method, CallHeader::Form::kArguments, 0});
  encoder.number(static_cast<std::uint8_t>(entry.num_bound + num_positional));
  encoder.number(static_cast<std::uint8_t>(num_keywords));
  write_bound(entry, encoder);
  encode_arguments(entry, encoder, {arguments, static_cast<std::size_t>(num_positional + num_keywords)});
  for (Py_ssize_t k = 0; k < num_keywords; ++k) encoder.name(text_of(PyTuple_GET_ITEM(keyword_names, k)));
}

void raise_if_interrupted(const EntryMethodObject& entry) {
  if (!entry.core.engine->interrupted()) return;
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw PythonError();
}

namespace {

OutOfBand out_of_band_of(const EntryMethodObject& entry) {
  return has_post_entry(entry) ? OutOfBand::kArrays : OutOfBand::kLarge;
}

chare::ReplyTo first_of(Replies replies) { return replies.empty() ? chare::ReplyTo{} : replies.front(); }

Outgoing make_outgoing(const EntryMethodObject& entry, Encoder& encoder, const chare::ReplyTo& reply) {
  chare::Chares& chares = entry.core.engine->chares();
  const chare::EntryHeader header{entry.core.collection->id(), entry.index, python_entry().id, 0, reply};
  const bool is_broadcast = entry.to_all && entry.section == nullptr && entry.combined == nullptr;
  runtime::MessagePtr message = is_broadcast ? chares.make_broadcast_message(header, encoder.size_bytes())
                                             : chares.make_entry_message(header, encoder.size_bytes());
  encoder.copy_to(message->payload() + sizeof header);
  if (encoder.attached().empty()) return {std::move(message)};
  attach_all(encoder, *message);
  runtime::OperationState* const sending = chare::report_sending_in_place(*message);
  return {std::move(message), sending};
}

Sent send(const EntryMethodObject& entry, Outgoing call, Replies replies) {
  chare::Chares& chares = entry.core.engine->chares();
  runtime::MessagePtr& message = call.message;
  Sent sent{call.sending};
  runtime::send_reported(sent.sending, [&] {
    if (entry.combined != nullptr) {
      send_combined(*entry.combined, replies, std::move(message));
    } else if (entry.section != nullptr) {
      chares.sections().send(*entry.core.collection, *entry.section, first_of(replies), std::move(message));
    } else if (entry.to_all) {
      chares.broadcast_entry(*entry.core.collection, std::move(message));
    } else {
      message->envelope().priority = entry.priority;
      sent.pe = chares.send_entry(*entry.core.collection, entry.index, std::move(message));
    }
    if (chares.runtime().exiting()) [[unlikely]]
      raise_if_interrupted(entry);
  });
  return sent;
}

Sent send(const EntryMethodObject& entry, Encoder& encoder, Replies replies) {
  return send(entry, make_outgoing(entry, encoder, first_of(replies)), replies);
}

// The results of all elements, or an error. `places`: where in the list each is; empty: in this order.
void set_gathered(PyFutureState& state, Pup& p, const std::vector<std::uint64_t>& places) {
  if (state.is_set()) return;  // the arguments did not reach a PE that has no elements
  try {
    Ref results;
    const std::exception_ptr error = chare::read_gathered(
        p, [&results](std::uint64_t count) { results = checked(PyList_New(static_cast<Py_ssize_t>(count))); },
        [&](std::uint64_t i, Pup& from) {
          Decoder decoder(from);
          PyList_SET_ITEM(results.get(), static_cast<Py_ssize_t>(places.empty() ? i : places.at(i)),
                          decoder.value().release());
          decoder.finish(from);
        });
    if (error) {
      state.set_error(error);
    } else {
      state.set(std::move(results));
    }
  } catch (...) {
    state.set_error(caught_as_travelling_error());
  }
}

chare::ReplyTo expect_reply(const EntryMethodObject& entry, PyFutureState* state) {
  if (!entry.to_all) return chare::reply_to(*state);
  chare::Chares& chares = entry.core.engine->chares();
  // A share of the state, and none of the Python object, whose end says that the program does not read the results.
  const runtime::FutureShare<PyFutureState> share(state);
  if (entry.section != nullptr) {
    return chares.sections().expect_gather([share, places = entry.section->places_by_index()](Pup& p) {
      set_gathered(*share.get(), p, places);
    });
  }
  return chares.expect_gather([share](Pup& p) { set_gathered(*share.get(), p, {}); }, entry.core.collection);
}

// Calls `send_call` with what the future of `state` expects.
template <class SendCall>
void send_for_result(const EntryMethodObject& entry, PyFutureState* state, SendCall send_call) {
  runtime::OperationState* sending = nullptr;
  if (entry.combined != nullptr) {
    sending = send_expecting_combined(*entry.combined, state, send_call);
  } else {
    const chare::ReplyTo reply = expect_reply(entry, state);
    sending = entry.core.engine->chares().send_expecting(reply, [&] { return send_call({&reply, 1}); });
  }
  chare::delay_until_sent(*state, sending);
}

}  // namespace

Ref send_encoded(const EntryMethodObject& entry, Encoder& encoder) {
  const auto [sending, pe] = send(entry, encoder, {});
  if (sending != nullptr)
    return make_operation_object(*entry.core.engine, sending, Ref(), Ref::borrow(Py_None));
  return make_sent(*entry.core.engine, pe);
}

PyObject* call_without_result(PyObject* self, PyObject* const* arguments, std::size_t count,
                              PyObject* keyword_names) {
  return guarded([&]() -> PyObject* {
    EntryMethodObject& entry = *as_method_object(self);
    if (!entry.core.engine->is_open_here()) [[unlikely]]
      return send_from_other_thread(self, arguments, PyVectorcall_NARGS(count), keyword_names);
    Encoder encoder(out_of_band_of(entry));
    encode_call(entry, encoder, arguments, PyVectorcall_NARGS(count), keyword_names);
    return send_encoded(entry, encoder).release();
  });
}

PyObject* send_with_operation(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                              PyObject* keyword_names) {
  return guarded([&]() -> PyObject* {
    EntryMethodObject& entry = *as_method_object(self);
    if (!entry.core.engine->is_open_here())
      return send_from_other_thread(self, arguments, count, keyword_names);
    Encoder encoder(out_of_band_of(entry));
    encode_call(entry, encoder, arguments, count, keyword_names);
    runtime::OperationState* sending = send(entry, encoder, {}).sending;
    if (sending == nullptr) {
      sending = runtime::OperationState::create(entry.core.engine->runtime());
      sending->started({}, 0);
    }
    return make_operation_object(*entry.core.engine, sending, Ref(), Ref::borrow(Py_None)).release();
  });
}

PyObject* call_with_result(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                           PyObject* keyword_names) {
  return guarded([&]() -> PyObject* {
    EntryMethodObject& entry = *as_method_object(self);
    if (!entry.core.engine->is_open_here()) [[unlikely]]
      return call_from_other_thread(self, arguments, count, keyword_names);
    Encoder encoder(out_of_band_of(entry));
    encode_call(entry, encoder, arguments, count, keyword_names);
    auto* state = new PyFutureState(*entry.core.engine);
    Ref future = make_future_object(state);
    state->end_job_if_unobserved(kUnawaitedCall);
    state->set_subject(Ref::borrow(self));
    state->expect_reader();
    send_for_result(entry, state, [&](Replies replies) { return send(entry, encoder, replies).sending; });
    return future.release();
  });
}

Outgoing encode_outgoing(PyObject* method, PyObject* const* arguments, Py_ssize_t num_positional,
                         PyObject* keyword_names) {
  const EntryMethodObject& entry = *as_method_object(method);
  Encoder encoder(out_of_band_of(entry));
  encode_call(entry, encoder, arguments, num_positional, keyword_names);
  expect_still_open(entry);
  Outgoing call = make_outgoing(entry, encoder, {});
  // A send on this thread would copy them, or send them from where they are.
  for (runtime::Attachment& one : call.message->attachments()) one.copy_now();
  return call;
}

Sent send_outgoing(PyObject* method, Outgoing call, Replies replies) {
  const chare::ReplyTo reply = first_of(replies);
  std::memcpy(call.message->payload() + offsetof(chare::EntryHeader, reply), &reply, sizeof reply);
  return send(*as_method_object(method), std::move(call), replies);
}

void send_for_result(PyObject* method, PyFutureState* state,
                     const std::function<runtime::OperationState*(Replies)>& send_call) {
  send_for_result(*as_method_object(method), state, send_call);
}

Engine& engine_of_method(PyObject* method) { return *as_method_object(method)->core.engine; }

}  // namespace weft::python
