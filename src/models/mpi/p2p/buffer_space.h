// The memory of buffered sends, which a program attaches to a communicator, a session or the process.
//
// A send takes a piece and gives it back when its bytes have left. Pieces lie in the program's memory, or, for
// MPI_BUFFER_AUTOMATIC, in memory of the system. Threads: the PE's.
#pragma once

#include <cstddef>
#include <list>
#include <vector>

#include "models/mpi/p2p/request.h"

namespace weft::mpi {

class BufferSpace {
 public:
  BufferSpace() = default;
  BufferSpace(const BufferSpace&) = delete;
  BufferSpace& operator=(const BufferSpace&) = delete;

  bool is_attached() const { return attached_; }
  bool is_automatic() const { return automatic_; }
  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }
  // REQUIRES: nothing is attached.
  void attach(void* data, std::size_t size_bytes);
  void attach_automatic();
  // REQUIRES: no piece is in use.
  void detach();

  // Null if there is no room of that size.
  std::byte* take(std::size_t size_bytes);
  // Frees a piece that is not used. REQUIRES: take() returned it, and keep() did not get it.
  void give_back(std::byte* piece);
  // The piece is free when the request, which sends it, is complete. REQUIRES: take() returned it.
  void keep(std::byte* piece, Ref<Request> sending) { sending_.push_back({piece, std::move(sending)}); }
  bool is_in_use() {
    reclaim();
    return !sending_.empty();
  }

 private:
  struct Piece {
    std::byte* data;
    std::size_t size_bytes;
  };

  struct Sending {
    std::byte* data;
    Ref<Request> request;
  };

  // Frees the pieces whose bytes have left.
  void reclaim();

  bool attached_ = false;
  bool automatic_ = false;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
  std::list<Piece> pieces_;  // in the program's memory, by address
  std::vector<Sending> sending_;
};

}  // namespace weft::mpi
