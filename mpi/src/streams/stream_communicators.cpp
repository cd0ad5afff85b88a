// Streams as objects of the program, and communicators with them.
#include "streams/stream_communicators.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "collectives/on_stream.h"
#include "communication/communication.h"
#include "entry/entry.h"
#include "entry/objects.h"
#include "memory/memory.h"
#include "models/mpi/communicators/communicator_creation.h"
#include "models/mpi/stream/program_stream.h"
#include "models/mpi/stream/stream_transfers.h"
#include "objects/attributes.h"
#include "system/device_memory.h"

namespace weft::mpi {

namespace {

Error find_stream(MPIX_Stream handle, ProgramStream** found) {
  *found = object_of<ProgramStream>(handle, ObjectKind::kStream);
  if (*found != nullptr) return check_running();
  return {MPI_ERR_ARG, handle == MPIX_STREAM_NULL
                           ? "the stream is MPIX_STREAM_NULL; give one of MPIX_Stream_create"
                           : "the handle is no stream of MPIX_Stream_create; has it been freed?"};
}

// --- The keys of MPIX_Stream_create

// "cudaStream_t" and "cuda" name kind cuda.
Error find_kind(const Info& info, memory::Kind* kind) {
  const std::string* const type = info.find("type");
  if (type == nullptr) {
    return {MPI_ERR_INFO_VALUE,
            "the info object has no key `type`; Weft has streams of devices alone: set it to cudaStream_t"};
  }
  constexpr std::string_view kSuffix = "Stream_t";
  std::string_view name = *type;
  if (name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
  const std::optional<memory::Kind> found = memory::kind_from_name(name);
  if (!found || *found == memory::Kind::kHost) {
    return {
        MPI_ERR_INFO_VALUE,
        base::format("`type` is '{}'; give cudaStream_t, or emulated for a device that the CPU stands in for",
                     *type)};
  }
  *kind = *found;
  return {};
}

Error find_device(const Info& info, memory::Kind kind, memory::Place* device) {
  *device = this_process().runtime().own_place(kind);
  if (Error error = find_place(&info, device); !error.ok()) return error;
  memory::KindBackend* const backend = this_process().runtime().memory().backend(kind);
  if (backend == nullptr) {
    return {MPI_ERR_UNSUPPORTED_OPERATION,
            base::format("this process has no device of kind {}", memory::kind_name(kind))};
  }
  if (device->kind == kind && device->device >= 0 && device->device < backend->num_devices()) return {};
  return {
      MPI_ERR_INFO_VALUE,
      base::format("weft_memory_kind names {}, which is no device of kind {}; this process has {} of them",
                   memory::place_name(*device), memory::kind_name(kind), backend->num_devices())};
}

// The bytes that MPIX_Info_set_hex has written.
Error parse_hex_stream(const std::string& hex, memory::StreamHandle* stream) {
  std::array<unsigned char, sizeof *stream> bytes{};
  bool is_right = hex.size() == 2 * bytes.size();
  for (std::size_t i = 0; is_right && i < bytes.size(); ++i) {
    const char* const digits = hex.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, bytes[i], 16);
    is_right = error == std::errc() && end == digits + 2;
  }
  if (!is_right) {
    return {
        MPI_ERR_INFO_VALUE,
        base::format("`value` is '{}'; set it by MPIX_Info_set_hex(info, \"value\", &stream, sizeof stream)",
                     hex)};
  }
  std::memcpy(static_cast<void*>(stream), bytes.data(), bytes.size());
  return {};
}

Error make_stream(const Info& info, MPIX_Stream* handle) {
  memory::Kind kind = memory::Kind::kHost;
  memory::Place device;
  if (Error error = find_kind(info, &kind); !error.ok()) return error;
  if (Error error = find_device(info, kind, &device); !error.ok()) return error;
  runtime::Runtime& runtime = this_process().runtime();
  memory::KindBackend& backend = *runtime.memory().backend(kind);
  const std::string* const value = info.find("value");
  memory::StreamHandle stream = nullptr;
  auto owner = ProgramStream::Owner::kProgram;
  if (value != nullptr) {
    if (Error error = parse_hex_stream(*value, &stream); !error.ok()) return error;
    if (stream == nullptr) stream = backend.default_stream();
  } else if (backend.software_device() != nullptr) {
    base::Result<memory::StreamHandle> made = backend.create_stream(device.device);
    if (!made.ok()) return {MPI_ERR_OTHER, std::string(made.status().message())};
    stream = *made;
    owner = ProgramStream::Owner::kThis;
  } else {
    return {MPI_ERR_INFO_VALUE, "the info object has no key `value`; name the stream by MPIX_Info_set_hex"};
  }
  // Fails for a stream that does not exist, or is of another device.
  base::Result<memory::EventHandle> event = backend.record(stream, device.device);
  if (!event.ok()) {
    return {MPI_ERR_INFO_VALUE, base::format("`value` names no stream of {}: {}", memory::place_name(device),
                                             event.status().message())};
  }
  backend.release_event(*event);
  *handle =
      make_handle<MPIX_Stream>(Ref<ProgramStream>::adopt(new ProgramStream(runtime, device, stream, owner)));
  return {};
}

void remember(const std::shared_ptr<StreamTransfers>& transfers) {
  auto& all = this_process().stream_transfers;
  std::erase_if(all, [](const auto& one) { return one.expired(); });
  all.push_back(transfers);
}

}  // namespace

Error close_streams(Communicator& communicator) {
  const std::shared_ptr<StreamTransfers> transfers = std::exchange(communicator.stream_transfers, nullptr);
  return outcome_on_stream([&] { this_process().run(transfers->close()); });
}

void wait_for_streams(Process& process) {
  for (const std::weak_ptr<StreamTransfers>& one : process.stream_transfers) {
    const std::shared_ptr<StreamTransfers> transfers = one.lock();
    if (transfers == nullptr) continue;
    process.runtime().memory().wait_for_devices([&] {
      if (!transfers->is_idle()) process.progress();
      return transfers->is_idle();
    });
  }
}

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPIX_Info_set_hex(MPI_Info info, const char* key, const void* value, int value_size) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Info* object = nullptr;
    if (Error error = find_object(info, &object); !error.ok()) return error;
    if (info == MPI_INFO_ENV)
      return {MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed or freed; duplicate it first"};
    if (value_size <= 0 || value_size > (MPI_MAX_INFO_VAL - 1) / 2) {
      return {MPI_ERR_ARG, weft::base::format("the value has {} bytes; give 1 to {}", value_size,
                                              (MPI_MAX_INFO_VAL - 1) / 2)};
    }
    if (Error error = require({{value, "value"}}); !error.ok()) return error;
    std::string hex;
    for (const unsigned char byte :
         std::span(static_cast<const unsigned char*>(value), static_cast<std::size_t>(value_size)))
      hex += weft::base::format("{:02x}", byte);
    return object->set(key, hex.c_str());
  });
}

int MPIX_Stream_create(MPI_Info info, MPIX_Stream* stream) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Info* object = nullptr;
    if (Error error = require({{stream, "stream"}}); !error.ok()) return error;
    *stream = MPIX_STREAM_NULL;
    if (Error error = check_running(); !error.ok()) return error;
    if (Error error = find_object(info, &object); !error.ok()) return error;
    return make_stream(*object, stream);
  });
}

int MPIX_Stream_free(MPIX_Stream* stream) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    ProgramStream* object = nullptr;
    if (Error error = require({{stream, "stream"}}); !error.ok()) return error;
    if (Error error = find_stream(*stream, &object); !error.ok()) return error;
    object->release();
    *stream = MPIX_STREAM_NULL;
    return {};
  });
}

int MPIX_Stream_comm_create(MPI_Comm comm, MPIX_Stream stream, MPI_Comm* newcomm) {
  return guarded(__func__, comm, [&]() -> Error {
    Communicator* parent = nullptr;
    ProgramStream* found = nullptr;
    if (Error error = require({{newcomm, "newcomm"}}); !error.ok()) return error;
    *newcomm = MPI_COMM_NULL;
    if (Error error = find_intracommunicator(comm, &parent); !error.ok()) return error;
    if (Error error = check_is_of_one_job(*parent, "operations on streams"); !error.ok()) return error;
    if (Error error = find_stream(stream, &found); !error.ok()) return error;
    Process& process = this_process();
    Ref<Communicator> copy = begin_duplicate(*parent);
    process.run(duplicate(Ref<Communicator>(*parent), copy));
    Error error = copy_attributes(comm, *parent, *copy);
    error = process.run(StreamTransfers::connect(copy, Ref<ProgramStream>(*found), std::move(error)));
    if (!error.ok()) {
      static_cast<void>(remove_attributes(handle_of<MPI_Comm>(copy.get()), *copy));
      return error;
    }
    remember(copy->stream_transfers);
    *newcomm = make_handle<MPI_Comm>(std::move(copy));
    return {};
  });
}

int MPIX_Comm_get_stream(MPI_Comm comm, int idx, MPIX_Stream* stream) {
  return with_communicator(__func__, comm, {{stream, "stream"}}, [&](Communicator& communicator) -> Error {
    if (idx != 0)
      return {MPI_ERR_ARG,
              weft::base::format("the index is {}; a communicator has one stream, number 0", idx)};
    const auto& transfers = communicator.stream_transfers;
    *stream = transfers == nullptr ? MPIX_STREAM_NULL : handle_of<MPIX_Stream>(&transfers->stream());
    return {};
  });
}

int Weft_stream_synchronize(MPIX_Stream stream) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    ProgramStream* found = nullptr;
    if (Error error = find_stream(stream, &found); !error.ok()) return error;
    return outcome_on_stream([&] { this_process().run(found->synchronize()); });
  });
}

}  // extern "C"
