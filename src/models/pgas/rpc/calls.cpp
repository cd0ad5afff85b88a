#include "models/pgas/rpc/calls.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/remote_error.h"

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::pgas {

Calls::Calls(runtime::Runtime& runtime, TeamTable& teams, runtime::HandlerId handler)
    : runtime_(runtime), teams_(teams) {
  static_cast<void>(runtime::Registry<RpcInfo>::all());  // numbers them
  runtime_.set_handler(
      handler,
      [](void* self, runtime::MessagePtr message) { static_cast<Calls*>(self)->on_call(std::move(message)); },
      this);
}

const RpcInfo& Calls::check(const CallHeader& header) const {
  const RpcInfo* const function = runtime::Registry<RpcInfo>::find(header.function);
  if (function == nullptr || header.caller_pe >= static_cast<std::uint32_t>(runtime_.num_pes())) {
    base::refuse_claim(base::format("a call names function {} for PE {}, which this job does not have",
                                    header.function, header.caller_pe));
  }
  return *function;
}

void Calls::on_call(runtime::MessagePtr message) {
  Pup p = message->unpacker();
  CallHeader header;
  p | header;
  const RpcInfo& function = check(header);
  TeamState* const team = teams_.find_or_wait(header.team, message);
  if (team == nullptr) return;
  RpcCall call;
  call.team = Team(team);
  call.function = &function;
  call.reply = {header.caller_pe, header.reply};
  bool has_run = false;
  try {
    has_run = function.invoke(call, p);
  } catch (...) {  // the arguments do not unpack, or name an object that does not exist
    return call.send_error(std::current_exception());
  }
  if (has_run) return;
  TeamState* const owner = teams_.find(call.missing.team);
  if (owner == nullptr) return teams_.wait_for(call.missing.team, std::move(message));
  owner->objects.wait_for(call.missing.number, std::move(message));
}

// --- What the templates of rpc.h use

void RpcCall::send_error(const std::exception_ptr& error) const {
  const std::string where = base::format("{}, a function that rank {} of a team of {} ran on PE {}",
                                         function->name, team.rank(), team.size(), runtime().pe());
  if (reply.id == 0) {
    if (!runtime().must_end()) runtime().fail_unawaited(error, where);
    return;
  }
  const std::exception_ptr remote = runtime::as_remote_error(error, "in " + where);
  const runtime::FutureSetHeader header{reply.id, runtime::FutureSetHeader::kError};
  runtime::send_future_message(runtime(), reply.pe, runtime::pack_future_error(runtime(), header, remote));
}

namespace {

runtime::MessagePtr make_call(const Team& team, std::uint32_t function, runtime::FutureAddress reply,
                              std::size_t argument_bytes) {
  runtime::Runtime& runtime = team.runtime();
  runtime::MessagePtr message =
      runtime::Message::create(runtime, team.state()->call_handler, sizeof(CallHeader) + argument_bytes);
  const CallHeader header{team.id(), reply.id, function, static_cast<std::uint32_t>(runtime.pe())};
  Pup::packer(message->payload(), sizeof header) | header;
  return message;
}

}  // namespace

void run_packed(World& world, const PackedCall& call) {
  if (runtime::Registry<RpcInfo>::find(call.function) == nullptr) {
    base::refuse_claim(
        base::format("a packed call names function {}, which this program does not have", call.function));
  }
  runtime::MessagePtr message = make_call(world, call.function, {}, call.arguments.size());
  std::ranges::copy(call.arguments, message->payload() + sizeof(CallHeader));
  world.runtime().send(world.runtime().pe(), std::move(message));
}

namespace rpc_detail {

CallMessage::CallMessage(const Team& team, int rank, const RpcInfo& function, runtime::FutureAddress reply,
                         std::size_t argument_bytes)
    : runtime_(team.runtime()),
      pe_(team.pe_of(rank)),
      message_(make_call(team, function.id, reply, argument_bytes)) {}

base::Pup CallMessage::packer() {
  return Pup::packer(arguments(), message_->payload_bytes() - sizeof(CallHeader), &runtime_);
}

std::byte* CallMessage::arguments() { return message_->payload() + sizeof(CallHeader); }

void CallMessage::send() && { runtime_.send_call(pe_, std::move(message_)); }

}  // namespace rpc_detail

}  // namespace weft::pgas
