// What a rank keeps of its tools: the calls MPI_T_... of the tool information interface.
//
// Handles are numbers that no pointer of a program and no constant of mpi.h has, so a wrong one is found out. Threads: the rank's.
#pragma once

#include <cstdint>
#include <map>

namespace weft::mpi {

class ToolState {
 public:
  using Number = std::uintptr_t;
  // The index of the variable behind each handle.
  using Handles = std::map<Number, int>;

  // MPI_T_init_thread without their MPI_T_finalize.
  int num_users = 0;
  Handles control_handles;
  std::map<Number, Handles> sessions;  // of performance variables

  Number new_handle() { return ++last_handle_; }
  // The last MPI_T_finalize: all handles and sessions end.
  void clear() {
    control_handles.clear();
    sessions.clear();
  }

 private:
  Number last_handle_ = 0xff;
};

}  // namespace weft::mpi
