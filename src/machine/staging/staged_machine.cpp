#include "machine/staging/staged_machine.h"

#include "base/format.h"

namespace weft::machine {

using base::StatusCode;

std::string_view staging_mode_name(StagingMode mode) {
  return mode == StagingMode::kHost ? "host" : "device";
}

std::string_view transfer_type_name(TransferType type) {
  switch (type) {
    case TransferType::kTagSend:
      return "tagged send";
    case TransferType::kAmSend:
      return "active message";
    case TransferType::kPut:
      return "put";
    case TransferType::kGet:
      return "get";
    case TransferType::kReceive:
      return "receive";
    case TransferType::kPeerCopy:
      return "peer copy";
  }
  return "transfer";
}

std::string_view transfer_path_name(TransferPath path) {
  switch (path) {
    case TransferPath::kThroughUcx:
      return "through UCX";
    case TransferPath::kStaged:
      return "staged";
    case TransferPath::kOwnPe:
      return "own PE";
    case TransferPath::kPeerMapped:
      return "peer-mapped";
    case TransferPath::kBounced:
      return "bounced";
    case TransferPath::kPulled:
      return "pulled";
    case TransferPath::kShared:
      return "shared";
    case TransferPath::kHostQueue:
      return "host queue";
  }
  return "unknown";
}

base::Status closed_machine(int pe) {
  return {StatusCode::kClosed,
          base::format("the machine of PE {} is closed: nothing can be started any more", pe)};
}

base::Status lost_peer(int pe) {
  return {StatusCode::kPeerFailed, base::format("PE {} is lost: its process has ended", pe)};
}

base::Status bad_peer(int pe, int num_pes, bool closed) {
  if (closed) {
    return {StatusCode::kClosed,
            base::format("this PE's machine is closed: nothing can be sent to PE {} any more", pe)};
  }
  return {StatusCode::kOutOfRange,
          base::format("there is no PE {}: this job has PEs 0 to {}", pe, num_pes - 1)};
}

base::Status bad_am_id(AmId id) {
  return {StatusCode::kInvalidArgument,
          base::format("active message id {} is above the largest one, {}", id, kMaxAmId)};
}

base::Status bad_header(std::size_t size_bytes) {
  return {StatusCode::kInvalidArgument,
          base::format(
              "an active message's header of {} bytes is above the limit of {}; send the rest as payload",
              size_bytes, kMaxAmHeaderBytes)};
}

base::Status bad_payload_buffer(std::size_t payload_bytes, std::size_t buffer_bytes, int pe) {
  return {
      StatusCode::kTruncated,
      base::format(
          "an active message's payload of {} bytes does not fit the buffer of {} bytes given for it on PE "
          "{}; give one of at least the payload's size",
          payload_bytes, buffer_bytes, pe)};
}

base::Status bad_remote_range(int pe, const RemoteMemory& remote, std::size_t offset_bytes,
                              std::size_t size_bytes) {
  return {StatusCode::kOutOfRange,
          base::format("{} bytes at offset {} lie outside the {} bytes that PE {} registered", size_bytes,
                       offset_bytes, remote.size_bytes, pe)};
}

base::Status not_registered(const RemoteMemory& memory) {
  return {StatusCode::kNotFound,
          base::format(
              "memory at {:#x} of {} bytes is not registered here; only its owner can deregister it, once",
              memory.address, memory.size_bytes)};
}

base::Status refused_by_owner(StatusCode code, int pe, std::string_view what) {
  if (code == StatusCode::kPending || code > StatusCode::kInternal) code = StatusCode::kCorrupt;
  if (code == StatusCode::kOk) return {};
  return {code,
          base::format("PE {} could not serve a {} on its memory: {}; is the memory still registered there?",
                       pe, what, base::status_code_name(code))};
}

base::Status bad_atomic(int pe, const RemoteMemory& remote, std::size_t offset_bytes) {
  if (!remote.place.is_host()) {
    return {
        StatusCode::kUnsupported,
        base::format(
            "atomics reach host memory only, and PE {} registered {} memory; send an active message to its "
            "owner instead",
            pe, memory::kind_name(remote.place.kind))};
  }
  return {StatusCode::kInvalidArgument,
          base::format("an atomic at offset {} of the memory of PE {} is not at a multiple of 8 bytes",
                       offset_bytes, pe)};
}

}  // namespace weft::machine
