// A generalized request: an operation of the program's own, MPI_Grequest_start.
//
// Threads: the PE's.
#pragma once

#include "weft/mpi/mpi.h"

#include "models/mpi/p2p/request.h"

namespace weft::mpi {

class GeneralizedRequest final : public Request {
 public:
  struct Functions {
    MPI_Grequest_query_function* query;
    MPI_Grequest_free_function* free;
    MPI_Grequest_cancel_function* cancel;
    void* extra_state;
  };

  explicit GeneralizedRequest(const Functions& functions)
      : Request(Type::kGeneralized), functions_(functions) {
    activate();
    acquire();  // until finish()
  }
  ~GeneralizedRequest() override;

  // MPI_Grequest_complete.
  void finish();
  bool is_finished() const { return is_complete(); }

  void cancel() override;
  void query() override;

 private:
  Functions functions_;
};

}  // namespace weft::mpi
