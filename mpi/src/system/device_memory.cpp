#include "system/device_memory.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>

#include "base/format.h"
#include "communication/communication.h"
#include "entry/objects.h"
#include "memory/memory.h"

namespace weft::mpi {

Error find_place(const Info* info, memory::Place* place) {
  const std::string* const text = info == nullptr ? nullptr : info->find("weft_memory_kind");
  if (text == nullptr) return {};
  const std::size_t colon = text->find(':');
  const std::optional<memory::Kind> kind = memory::kind_from_name(text->substr(0, colon));
  if (!kind) {
    return {MPI_ERR_INFO_VALUE,
            base::format("weft_memory_kind is '{}'; give host, cuda or emulated, and a device if you "
                         "like, as in cuda:1",
                         *text)};
  }
  *place = {};
  if (*kind == memory::Kind::kHost) return {};
  if (Error error = check_running(); !error.ok()) return error;
  *place = this_process().runtime().own_place(*kind);
  if (colon == std::string::npos) return {};
  const char* const last = text->data() + text->size();
  const auto [end, error] = std::from_chars(text->data() + colon + 1, last, place->device);
  if (error != std::errc() || end != last)
    return {MPI_ERR_INFO_VALUE, base::format("weft_memory_kind is '{}': no number of a device", *text)};
  return {};
}

Error allocate_on_device(MPI_Aint size, MPI_Info info_handle, void** address) {
  Info* info = nullptr;
  if (Error error = find_optional(info_handle, &info); !error.ok()) return error;
  memory::Place place;
  if (Error error = find_place(info, &place); !error.ok()) return error;
  if (place.is_host()) return {};
  // Each allocation has an address of its own.
  const auto size_bytes = static_cast<std::size_t>(std::max<MPI_Aint>(1, size));
  base::Result<memory::Buffer> buffer = this_process().runtime().memory().allocate(size_bytes, place);
  if (!buffer.ok()) return {MPI_ERR_NO_MEM, std::string(buffer.status().message())};
  this_rank().device_memory.emplace(buffer->data, *buffer);
  *address = buffer->data;
  return {};
}

bool free_on_device(void* address) {
  const LibraryRuns library;
  Rank& rank = this_rank();
  const auto found = rank.device_memory.find(address);
  if (found == rank.device_memory.end()) return false;
  if (rank.process != nullptr) static_cast<void>(rank.process->runtime().memory().deallocate(found->second));
  rank.device_memory.erase(found);
  return true;
}

}  // namespace weft::mpi
