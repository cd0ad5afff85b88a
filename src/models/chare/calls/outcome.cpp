#include "weft/chare/outcome.h"

#include <algorithm>
#include <memory>
#include <variant>

#include "weft/chare/chare.h"

namespace weft::chare {

namespace {

// The header in front of the value: a future's, or one byte that says whether the outcome is an error.
std::size_t header_bytes_of(const ReplyTo& reply) {
  return reply.kind == ReplyTo::Kind::kGather ? 1 : base::packed_size(runtime::FutureSetHeader());
}

runtime::MessagePtr make_outcome(ChareBase& chare, const ReplyTo& reply, std::size_t value_bytes,
                                 bool failed) {
  const std::size_t header_bytes = header_bytes_of(reply);
  runtime::MessagePtr message =
      runtime::Message::create(chare.runtime(), runtime::kFutureSetHandler, header_bytes + value_bytes);
  Pup p = Pup::packer(message->payload(), header_bytes, &chare.runtime());
  if (reply.kind == ReplyTo::Kind::kGather) {
    p | failed;
  } else {
    p | runtime::FutureSetHeader{reply.id, static_cast<std::uint8_t>(failed)};
  }
  return message;
}

base::StatusCode code_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const base::Error& known) {
    return known.code();
  } catch (...) {
    return base::StatusCode::kInternal;
  }
}

void send_outcome(ChareBase& chare, const ReplyTo& reply, runtime::MessagePtr message) {
  if (reply.kind == ReplyTo::Kind::kGather) {
    chare.collection().chares().contribute_outcome(reply, chare, message->payload_span());
  } else {
    chare.runtime().send(static_cast<int>(reply.pe), std::move(message));
  }
}

}  // namespace

ResultMessage::ResultMessage(ChareBase& chare, const ReplyTo& reply, std::size_t value_bytes)
    : chare_(chare),
      reply_(reply),
      header_bytes_(header_bytes_of(reply)),
      message_(make_outcome(chare, reply, value_bytes, false)) {}

void ResultMessage::send() && {
  // No caller awaits the sending of the result's buffers, so a failure ends the job.
  if (runtime::OperationState* const sending = report_sending_in_place(*message_)) sending->drop_handle();
  send_outcome(chare_, reply_, std::move(message_));
}

void send_value(ChareBase& chare, const ReplyTo& reply, const ValueToSend& value) {
  Pup sizer = Pup::sizer(&chare.runtime());
  value.pack(sizer, value.value);
  ResultMessage result(chare, reply, sizer.offset_bytes());
  Pup p = Pup::packer(result.value(), sizer.offset_bytes(), &chare.runtime());
  p.set_carrier(result.carrier());
  value.pack(p, value.value);
  std::move(result).send();
}

void send_nothing(ChareBase& chare, const ReplyTo& reply) {
  std::monostate nothing;
  send_value(chare, reply, value_to_send(nothing));
}

void send_error(ChareBase& chare, const ReplyTo& reply, const EntryInfo& entry,
                const std::exception_ptr& error) {
  send_error(chare, reply, entry, error, code_of(error));
}

void send_error(ChareBase& chare, const ReplyTo& reply, const EntryInfo& entry,
                const std::exception_ptr& error, base::StatusCode code) {
  runtime::Runtime& runtime = chare.runtime();
  if (reply.kind == ReplyTo::Kind::kNone) {
    if (code == base::StatusCode::kClosed) {
      chare.collection().chares().end_closed_method(chare, error, chare.where(entry));
    } else {
      runtime.fail_unawaited(error, chare.where(entry));
    }
    return;
  }
  const std::exception_ptr remote = runtime::as_remote_error(error, "in " + chare.where(entry));
  Pup sizer = Pup::sizer(&runtime);
  runtime::pack_error(sizer, remote);
  runtime::MessagePtr message = make_outcome(chare, reply, sizer.offset_bytes(), true);
  Pup p = Pup::packer(message->payload() + header_bytes_of(reply), sizer.offset_bytes(), &runtime);
  runtime::pack_error(p, remote);
  send_outcome(chare, reply, std::move(message));
}

ReplyTo reply_to(runtime::FutureState& result) {
  const runtime::FutureAddress at = result.address();
  return {ReplyTo::Kind::kFuture, at.pe, at.id};
}

runtime::OperationState* report_sending_in_place(runtime::Message& message) {
  const bool only_copies = std::ranges::all_of(message.attachments(), &runtime::Attachment::is_given_away);
  return only_copies ? nullptr : runtime::report_sending(message.runtime(), message);
}

void delay_until_sent(runtime::FutureState& result, runtime::OperationState* sending) {
  if (sending == nullptr) return;
  // Releases the result, also if the runtime closes first.
  struct Held {
    explicit Held(runtime::FutureState& state_in) : state(state_in) {
      state.acquire();
      state.hold();
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() { state.release(); }
    runtime::FutureState& state;
  };
  auto held = std::make_shared<Held>(result);
  runtime::Operation(sending).then([held](const base::Status& status, std::size_t) {
    if (status.failed()) {
      held->state.replace_by_error(
          std::make_exception_ptr(base::Error(status.code(), std::string(status.message()))));
    }
    held->state.end_hold();
  });
}

}  // namespace weft::chare
