// UCX's view of a MovableSource: a generic datatype, whose bytes UCX asks a function for each time it fills a buffer
// of its own. UCX therefore never keeps an address of the source.
//
// Threads: the PE's thread. The functions run inside the start call of a send and inside progress().
#pragma once

#include <ucp/api/ucp.h>

#include "weft/base/status.h"

#include "machine/machine.h"

namespace weft::machine::ucx {

class MovableDatatype {
 public:
  static base::Result<MovableDatatype> create();
  MovableDatatype(MovableDatatype&& other) noexcept
      : datatype_(std::exchange(other.datatype_, ucp_dt_make_contig(1))) {}
  MovableDatatype& operator=(MovableDatatype&&) = delete;
  ~MovableDatatype();

  // For ucp_request_param_t::datatype; the buffer of the send is then the MovableSource, and its count 1.
  ucp_datatype_t get() const { return datatype_; }

 private:
  explicit MovableDatatype(ucp_datatype_t datatype) : datatype_(datatype) {}
  ucp_datatype_t datatype_;
};

}  // namespace weft::machine::ucx
