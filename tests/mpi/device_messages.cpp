// Messages in device memory in all modes, between every pair of kinds: argument 1 names the kind, emulated or cuda.
#include "device.hpp"

namespace {

using device::Bytes;

int rank = 0;
int size = 1;
int right = 0;
int left = 0;

std::vector<char> pattern(std::size_t count, int seed) {
  std::vector<char> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<char>(i * 7 + static_cast<std::size_t>(seed));
  return bytes;
}

enum Mode { kStandard, kSynchronous, kReady, kBuffered, kNumModes };

void start_send(Mode mode, const Bytes& out, int count, MPI_Request* request) {
  switch (mode) {
    case kStandard:
      MPI_Isend(out.data(), count, MPI_CHAR, right, mode, MPI_COMM_WORLD, request);
      return;
    case kSynchronous:
      MPI_Issend(out.data(), count, MPI_CHAR, right, mode, MPI_COMM_WORLD, request);
      return;
    case kReady:
      MPI_Irsend(out.data(), count, MPI_CHAR, right, mode, MPI_COMM_WORLD, request);
      return;
    default:
      MPI_Ibsend(out.data(), count, MPI_CHAR, right, mode, MPI_COMM_WORLD, request);
  }
}

// Around a ring, in all modes.
void ring(int count, const std::string& from, const std::string& to) {
  for (int mode = 0; mode < kNumModes; ++mode) {
    Bytes out(static_cast<std::size_t>(count), from);
    Bytes in(static_cast<std::size_t>(count) + 1, to);
    out.write(pattern(out.size(), rank + mode));
    in.write(std::vector<char>(in.size(), 'x'));
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Irecv(in.data(), count, MPI_CHAR, mode % 2 == 0 ? left : MPI_ANY_SOURCE, mode, MPI_COMM_WORLD,
              &requests[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    start_send(static_cast<Mode>(mode), out, count, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    int received = -1;
    MPI_Get_count(&statuses[0], MPI_CHAR, &received);
    CHECK(received == count && statuses[0].MPI_SOURCE == left);
    std::vector<char> expected = pattern(static_cast<std::size_t>(count), left + mode);
    expected.push_back('x');
    CHECK(in.read() == expected);
  }
}

void persistent(int count) {
  Bytes out(static_cast<std::size_t>(count));
  Bytes in(static_cast<std::size_t>(count));
  MPI_Request requests[2];
  MPI_Send_init(out.data(), count, MPI_CHAR, right, 31, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(in.data(), count, MPI_CHAR, left, 31, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < 5; ++round) {
    out.write(pattern(out.size(), rank * 10 + round));
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(in.read() == pattern(in.size(), left * 10 + round));
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

// The first elements of a gapped type at the sender, dense bytes at the receiver, with other partitions.
void partitioned(MPI_Datatype type, int partitions, int count) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  int part_bytes = 0;
  MPI_Type_get_extent(type, &lower, &extent);
  MPI_Pack_size(count, type, MPI_COMM_WORLD, &part_bytes);
  const auto span = static_cast<std::size_t>(extent) * static_cast<std::size_t>(partitions * count);
  const int bytes = partitions * part_bytes;
  Bytes out(span);
  Bytes in(static_cast<std::size_t>(bytes));
  MPI_Request requests[2];
  MPI_Psend_init(out.data(), partitions, count, type, right, 33, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(in.data(), 2, bytes / 2, MPI_BYTE, left, 33, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  for (int round = 0; round < 2; ++round) {
    out.write(pattern(span, rank + round));
    MPI_Startall(2, requests);
    for (int i = partitions - 1; i >= 0; --i) MPI_Pready(i, requests[0]);
    for (int arrived = 0; arrived == 0;) MPI_Parrived(requests[1], 1, &arrived);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    const std::vector<char> theirs = pattern(span, left + round);
    std::vector<char> packed(in.size());
    int at = 0;
    MPI_Pack(theirs.data(), partitions * count, type, packed.data(), bytes, &at, MPI_COMM_WORLD);
    CHECK(in.read() == packed);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

// Each message goes once around the ring, and finds its receives posted; one of seven was cancelled and posted again.
void posted_early(int count) {
  const auto bytes = static_cast<std::size_t>(count);
  Bytes out(bytes);
  std::vector<Bytes> in;
  for (int i = 0; i < 2; ++i) in.emplace_back(bytes);
  MPI_Request request;
  MPI_Irecv(in[0].data(), count, MPI_CHAR, left, 41, MPI_COMM_WORLD, &request);
  for (int round = 0; round < 40; ++round) {
    Bytes& now = in[static_cast<std::size_t>(round % 2)];
    if (rank == 0) {
      out.write(pattern(bytes, round));
      MPI_Send(out.data(), count, MPI_CHAR, right, 41, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(now.read() == pattern(bytes, round));
    for (int again = round % 7 == 3 ? 0 : 1; again < 2 && round < 39; ++again) {
      MPI_Irecv(in[static_cast<std::size_t>(1 - round % 2)].data(), count, MPI_CHAR, left, 41, MPI_COMM_WORLD,
                &request);
      if (again == 1) continue;
      int was_cancelled = 0;
      MPI_Status status;
      MPI_Cancel(&request);
      MPI_Wait(&request, &status);
      MPI_Test_cancelled(&status, &was_cancelled);
      CHECK(was_cancelled);
    }
    if (rank != 0) MPI_Send(now.data(), count, MPI_CHAR, right, 41, MPI_COMM_WORLD);
  }
}

void probed(int count) {
  Bytes out(pattern(static_cast<std::size_t>(count), rank));
  Bytes in(static_cast<std::size_t>(count));
  MPI_Request request;
  MPI_Message message;
  MPI_Status status;
  MPI_Isend(out.data(), count, MPI_CHAR, right, 21, MPI_COMM_WORLD, &request);
  MPI_Mprobe(MPI_ANY_SOURCE, 21, MPI_COMM_WORLD, &message, &status);
  MPI_Mrecv(in.data(), count, MPI_CHAR, &message, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(in.read() == pattern(in.size(), left));
}

void exchanges(int count) {
  Bytes out(pattern(static_cast<std::size_t>(count), rank));
  Bytes in(static_cast<std::size_t>(count));
  MPI_Sendrecv(out.data(), count, MPI_CHAR, right, 3, in.data(), count, MPI_CHAR, left, 3, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK(in.read() == pattern(in.size(), left));
  MPI_Sendrecv_replace(in.data(), count, MPI_CHAR, left, 4, right, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(in.read() == pattern(in.size(), rank));
  MPI_Request request;
  MPI_Isendrecv_replace(in.data(), count, MPI_CHAR, right, 5, left, 5, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(in.read() == pattern(in.size(), left));
}

void truncated(int count) {
  Bytes out(pattern(static_cast<std::size_t>(count), 1));
  Bytes in(std::vector<char>(static_cast<std::size_t>(count), 'x'));
  MPI_Request request;
  int error_class = 0;
  MPI_Isend(out.data(), count, MPI_CHAR, right, 9, MPI_COMM_WORLD, &request);
  const int code = MPI_Recv(in.data(), count / 2, MPI_CHAR, left, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Error_class(code, &error_class);
  CHECK(error_class == MPI_ERR_TRUNCATE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const std::vector<char> now = in.read();
  for (std::size_t i = static_cast<std::size_t>(count) / 2; i < now.size(); ++i) CHECK(now[i] == 'x');
}

// --- Datatypes with gaps

// A column of a matrix, blocks of different lengths, and a struct with a hole: what the host packs is what the device sends.
std::vector<MPI_Datatype> gapped_types() {
  std::vector<MPI_Datatype> types(3);
  const int lengths[] = {3, 1, 40};
  const int places[] = {0, 7, 10};
  const MPI_Aint bytes[] = {0, 16};
  const int one_each[] = {5, 2};
  const MPI_Datatype parts[] = {MPI_CHAR, MPI_DOUBLE};
  MPI_Type_vector(100, 2, 9, MPI_SHORT, &types[0]);
  MPI_Type_indexed(3, lengths, places, MPI_INT, &types[1]);
  MPI_Type_create_struct(2, one_each, bytes, parts, &types[2]);
  for (MPI_Datatype& type : types) MPI_Type_commit(&type);
  return types;
}

void gaps(MPI_Datatype type, int count) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  int packed_size = 0;
  MPI_Type_get_extent(type, &lower, &extent);
  MPI_Pack_size(count, type, MPI_COMM_WORLD, &packed_size);
  const auto span = static_cast<std::size_t>(extent) * static_cast<std::size_t>(count);
  const auto pack = [&](const std::vector<char>& elements) {
    std::vector<char> packed(static_cast<std::size_t>(packed_size));
    int at = 0;
    MPI_Pack(elements.data(), count, type, packed.data(), packed_size, &at, MPI_COMM_WORLD);
    return packed;
  };
  const auto unpack = [&](const std::vector<char>& packed, std::vector<char> elements) {
    int at = 0;
    MPI_Unpack(packed.data(), packed_size, &at, elements.data(), count, type, MPI_COMM_WORLD);
    return elements;
  };
  const std::vector<char> theirs = pack(pattern(span, left));
  Bytes out(pattern(span, rank));
  // Into elements with gaps, and into dense bytes.
  Bytes in(std::vector<char>(span, 'x'));
  MPI_Sendrecv(out.data(), count, type, right, 6, in.data(), count, type, left, 6, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK(in.read() == unpack(theirs, std::vector<char>(span, 'x')));
  Bytes dense(static_cast<std::size_t>(packed_size));
  MPI_Sendrecv(out.data(), count, type, right, 7, dense.data(), packed_size, MPI_BYTE, left, 7,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(dense.read() == theirs);
  // From host memory.
  std::vector<char> host = pattern(span, rank);
  in.write(std::vector<char>(span, 'y'));
  MPI_Sendrecv(host.data(), count, type, right, 8, in.data(), count, type, left, 8, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK(in.read() == unpack(theirs, std::vector<char>(span, 'y')));
  // Packed from device to device and back.
  Bytes packed(static_cast<std::size_t>(packed_size) + 3);
  int at = 3;
  MPI_Pack(out.data(), count, type, packed.data(), packed_size + 3, &at, MPI_COMM_WORLD);
  CHECK(at == packed_size + 3);
  std::vector<char> bytes = packed.read();
  bytes.erase(bytes.begin(), bytes.begin() + 3);
  CHECK(bytes == pack(pattern(span, rank)));
  at = 3;
  in.write(std::vector<char>(span, 'z'));
  MPI_Unpack(packed.data(), packed_size + 3, &at, in.data(), count, type, MPI_COMM_WORLD);
  CHECK(in.read() == unpack(bytes, std::vector<char>(span, 'z')));
}

// --- The stream of a communicator

void hint_is_checked() {
  MPI_Info info;
  MPI_Comm comm;
  int error_class = 0;
  MPI_Info_create(&info);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Info_set(info, "weft_stream", "the second one");
  MPI_Error_class(MPI_Comm_set_info(comm, info), &error_class);
  CHECK(error_class == MPI_ERR_INFO_VALUE);
  // A stream does not matter to host memory.
  MPI_Info_set(info, "weft_stream", "0x1234");
  CHECK(MPI_Comm_set_info(comm, info) == MPI_SUCCESS);
  int value = rank;
  int got = -1;
  MPI_Sendrecv(&value, 1, MPI_INT, right, 0, &got, 1, MPI_INT, left, 0, comm, MPI_STATUS_IGNORE);
  CHECK(got == left);
  MPI_Info_free(&info);
  MPI_Comm_free(&comm);
}

// Copies that are queued on the stream are sent without a wait in between.
void queued_copies_are_sent() {
  const device::Cuda& cuda = device::Cuda::driver();
  constexpr std::size_t kBytes = 64 << 20;
  device::Cuda::Stream stream = nullptr;
  CHECK(cuda.StreamCreate(&stream, 1) == 0);
  MPI_Info info;
  MPI_Comm comm;
  char text[32];
  std::snprintf(text, sizeof text, "%p", stream);
  MPI_Info_create(&info);
  MPI_Info_set(info, "weft_stream", text);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  MPI_Info_free(&info);
  Bytes source(pattern(kBytes, rank));
  Bytes out(kBytes);
  Bytes in(kBytes);
  for (int i = 0; i < 20; ++i)
    cuda.MemcpyDtoDAsync(reinterpret_cast<device::Cuda::Address>(out.data()),
                         reinterpret_cast<device::Cuda::Address>(i < 19 ? in.data() : source.data()), kBytes,
                         stream);
  MPI_Sendrecv(out.data(), 1 << 20, MPI_CHAR, right, 0, in.data(), 1 << 20, MPI_CHAR, left, 0, comm,
               MPI_STATUS_IGNORE);
  std::vector<char> got = in.read();
  got.resize(1 << 20);
  CHECK(got == pattern(1 << 20, left));
  CHECK(cuda.StreamSynchronize(stream) == 0);
  MPI_Comm_free(&comm);
  cuda.StreamDestroy(stream);
}

}  // namespace

int main(int argc, char** argv) {
  device::kind() = argc > 1 ? argv[1] : "emulated";
  std::vector<char> attached(8000000);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  right = (rank + 1) % size;
  left = (rank + size - 1) % size;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
  const std::string kind = device::kind();
  for (const int count : {0, 1, 200, 4096, 5000, 70000, 3000000}) {
    ring(count, kind, kind);
    ring(count, kind, "host");
    ring(count, "host", kind);
    exchanges(count);
    if (count == 0) continue;
    persistent(count);
    partitioned(MPI_CHAR, 4, count);
    posted_early(count);
    probed(count);
    if (count > 1) truncated(count);
  }
  for (MPI_Datatype type : gapped_types()) {
    for (const int count : {1, 2, 200}) {
      gaps(type, count);
      partitioned(type, 6, count);
    }
    MPI_Type_free(&type);
  }
  hint_is_checked();
  if (kind == "cuda") queued_copies_are_sent();
  void* buffer = nullptr;
  int detached = 0;
  MPI_Buffer_detach(&buffer, &detached);
  MPI_Finalize();
  if (rank == 0) std::printf("messages of %d ranks in %s memory: as expected\n", size, kind.c_str());
  return 0;
}
