#include "machine/ucx/handles/movable_datatype.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"

namespace weft::machine::ucx {

namespace {

void* start_pack(void*, const void* source, std::size_t) { return const_cast<void*>(source); }

// UCX asks for this before it knows that nothing will be received with the datatype.
void* start_unpack(void*, void* buffer, std::size_t) { return buffer; }

std::size_t packed_size(void* state) { return static_cast<const MovableSource*>(state)->size_bytes; }

std::size_t pack(void* state, std::size_t offset, void* into, std::size_t room) {
  auto& source = *static_cast<MovableSource*>(state);
  const std::size_t size_bytes = std::min(room, source.size_bytes - offset);
  if (size_bytes > 0) std::memcpy(into, source.data + offset, size_bytes);  // an empty source has no address
  *source.read_bytes += size_bytes;
  return size_bytes;
}

// Nothing is received with this datatype.
ucs_status_t unpack(void*, std::size_t, const void*, std::size_t) { return UCS_ERR_UNSUPPORTED; }

void finish(void*) {}

}  // namespace

base::Result<MovableDatatype> MovableDatatype::create() {
  const ucp_generic_dt_ops_t operations{start_pack, start_unpack, packed_size, pack, unpack, finish};
  ucp_datatype_t datatype = ucp_dt_make_contig(1);
  const ucs_status_t status = ucp_dt_create_generic(&operations, nullptr, &datatype);
  if (status != UCS_OK) {
    return base::Status(base::StatusCode::kOutOfMemory,
                        base::format("UCX could not make a datatype: {}", ucs_status_string(status)));
  }
  return MovableDatatype(datatype);
}

MovableDatatype::~MovableDatatype() {
  if (datatype_ != ucp_dt_make_contig(1)) ucp_dt_destroy(datatype_);
}

}  // namespace weft::machine::ucx
