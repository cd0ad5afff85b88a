// A stream of the device for the programs of these tests.
#pragma once

#include <weft_mpi_stream.h>

#include "../device.hpp"

namespace device {

// A stream of the device, and the handle of MPI for it.
struct Stream {
  Stream() {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    if (kind() == "cuda") {
      CHECK(Cuda::driver().StreamCreate(&cuda, 1) == 0);
      MPI_Info_set(info, "type", "cudaStream_t");
      CHECK(MPIX_Info_set_hex(info, "value", &cuda, sizeof cuda) == MPI_SUCCESS);
    } else {
      MPI_Info_set(info, "type", "emulated");
    }
    CHECK(MPIX_Stream_create(info, &handle) == MPI_SUCCESS && handle != MPIX_STREAM_NULL);
    MPI_Info_free(&info);
  }
  ~Stream() {
    MPIX_Stream_free(&handle);
    if (cuda != nullptr) Cuda::driver().StreamDestroy(cuda);
  }
  MPI_Comm with(MPI_Comm parent) const {
    MPI_Comm comm = MPI_COMM_NULL;
    CHECK(MPIX_Stream_comm_create(parent, handle, &comm) == MPI_SUCCESS);
    return comm;
  }
  void wait() const { CHECK(Weft_stream_synchronize(handle) == MPI_SUCCESS); }

  Cuda::Stream cuda = nullptr;
  MPIX_Stream handle = MPIX_STREAM_NULL;
};

inline std::vector<char> pattern(int count, int seed) {
  std::vector<char> bytes(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 31 + i / 251 + static_cast<std::size_t>(seed) * 77);
  return bytes;
}

inline int class_of(int code) {
  int error_class = MPI_ERR_UNKNOWN;
  MPI_Error_class(code, &error_class);
  return error_class;
}

}  // namespace device
