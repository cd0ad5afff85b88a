// Wrong arguments of messages on streams are errors with a class, and queue nothing.
#include <cstdint>

#include "stream.hpp"

namespace {

using device::Bytes;
using device::class_of;
using device::Stream;

int rank = 0, size = 0;

void wrong_streams() {
  MPI_Info info = MPI_INFO_NULL;
  MPIX_Stream stream = MPIX_STREAM_NULL;
  const auto made = [&] { return class_of(MPIX_Stream_create(info, &stream)); };
  CHECK(made() == MPI_ERR_INFO);
  MPI_Info_create(&info);
  CHECK(made() == MPI_ERR_INFO_VALUE);
  for (const char* const type : {"host", "hipStream_t", "Stream_t", ""}) {
    if (*type != '\0') MPI_Info_set(info, "type", type);
    CHECK(made() == MPI_ERR_INFO_VALUE);
  }
  MPI_Info_set(info, "type", "emulated");
  for (const char* const value : {"1234", "zz00000000000000", "-000000000000000", "efbeadde00000000"}) {
    MPI_Info_set(info, "value", value);
    CHECK(made() == MPI_ERR_INFO_VALUE && stream == MPIX_STREAM_NULL);
  }
  void* null = nullptr;
  CHECK(MPIX_Info_set_hex(info, "value", &null, sizeof null) == MPI_SUCCESS);
  for (const char* const place : {"host", "cuda:0", "emulated:9", "emulated:-1", "x"}) {
    MPI_Info_set(info, "weft_memory_kind", place);
    CHECK(made() == MPI_ERR_INFO_VALUE);
  }
  MPI_Info_set(info, "weft_memory_kind", "emulated:1");
  CHECK(made() == MPI_SUCCESS && MPIX_Stream_free(&stream) == MPI_SUCCESS && stream == MPIX_STREAM_NULL);
  CHECK(class_of(MPIX_Stream_create(info, nullptr)) == MPI_ERR_ARG);
  CHECK(class_of(MPIX_Stream_free(&stream)) == MPI_ERR_ARG &&
        class_of(MPIX_Stream_free(nullptr)) == MPI_ERR_ARG);
  CHECK(class_of(Weft_stream_synchronize(MPIX_STREAM_NULL)) == MPI_ERR_ARG);
  const std::uint16_t number = 0xab01;
  char text[8];
  int length = sizeof text, flag = 0;
  CHECK(MPIX_Info_set_hex(info, "n", &number, 2) == MPI_SUCCESS);
  MPI_Info_get_string(info, "n", &length, text, &flag);
  CHECK(flag == 1 && std::string(text) == "01ab");
  CHECK(class_of(MPIX_Info_set_hex(info, "n", &number, 0)) == MPI_ERR_ARG);
  CHECK(class_of(MPIX_Info_set_hex(info, "n", &number, 600)) == MPI_ERR_ARG);
  CHECK(class_of(MPIX_Info_set_hex(info, "n", nullptr, 2)) == MPI_ERR_ARG);
  CHECK(class_of(MPIX_Info_set_hex(info, nullptr, &number, 2)) == MPI_ERR_INFO_KEY);
  CHECK(class_of(MPIX_Info_set_hex(MPI_INFO_NULL, "n", &number, 2)) == MPI_ERR_INFO);
  CHECK(class_of(MPIX_Info_set_hex(MPI_INFO_ENV, "n", &number, 2)) == MPI_ERR_INFO);
  MPI_Info_free(&info);
}

void wrong_communicators(const Stream& stream) {
  MPI_Comm made = MPI_COMM_NULL;
  MPIX_Stream found = MPIX_STREAM_NULL;
  CHECK(class_of(MPIX_Stream_comm_create(MPI_COMM_NULL, stream.handle, &made)) == MPI_ERR_COMM);
  CHECK(class_of(MPIX_Stream_comm_create(MPI_COMM_WORLD, MPIX_STREAM_NULL, &made)) == MPI_ERR_ARG);
  CHECK(class_of(MPIX_Stream_comm_create(MPI_COMM_WORLD, stream.handle, nullptr)) == MPI_ERR_ARG);
  CHECK(class_of(MPIX_Comm_get_stream(MPI_COMM_WORLD, 1, &found)) == MPI_ERR_ARG);
  CHECK(class_of(MPIX_Comm_get_stream(MPI_COMM_WORLD, 0, nullptr)) == MPI_ERR_ARG);
  if (size == 1) return;
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &inter);
  CHECK(class_of(MPIX_Stream_comm_create(inter, stream.handle, &made)) == MPI_ERR_COMM &&
        made == MPI_COMM_NULL);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

void wrong_messages(MPI_Comm comm) {
  const Bytes bytes(64);
  char host[64] = {0};
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  MPI_Datatype gaps = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 3, MPI_CHAR, &gaps);
  MPI_Type_commit(&gaps);
  // Each argument of each call; nothing is queued.
  const auto send = [&](void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm on) {
    const int code = class_of(MPIX_Send_enqueue(data, count, type, to, tag, on));
    CHECK(code == class_of(MPIX_Isend_enqueue(data, count, type, to, tag, on, &request)));
    return code;
  };
  const auto receive = [&](void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm on) {
    const int code = class_of(MPIX_Recv_enqueue(data, count, type, from, tag, on, &status));
    CHECK(code == class_of(MPIX_Irecv_enqueue(data, count, type, from, tag, on, &request)));
    return code;
  };
  const auto both = [&](auto... arguments) {
    const int code = send(arguments...);
    CHECK(receive(arguments...) == code);
    return code;
  };
  CHECK(both(bytes.data(), 64, MPI_CHAR, rank, 0, MPI_COMM_WORLD) == MPI_ERR_COMM);
  CHECK(both(bytes.data(), 64, MPI_CHAR, rank, 0, MPI_COMM_NULL) == MPI_ERR_COMM);
  CHECK(both(host, 64, MPI_CHAR, rank, 0, comm) == MPI_ERR_BUFFER);
  CHECK(both(nullptr, 64, MPI_CHAR, rank, 0, comm) == MPI_ERR_BUFFER);
  CHECK(both(bytes.data(), 1, gaps, rank, 0, comm) == MPI_ERR_TYPE);
  CHECK(both(bytes.data(), 1, MPI_DATATYPE_NULL, rank, 0, comm) == MPI_ERR_TYPE);
  CHECK(both(bytes.data(), -1, MPI_CHAR, rank, 0, comm) == MPI_ERR_COUNT);
  CHECK(both(bytes.data(), 1, MPI_CHAR, size, 0, comm) == MPI_ERR_RANK);
  CHECK(both(bytes.data(), 1, MPI_CHAR, MPI_ANY_SOURCE, 0, comm) == MPI_ERR_RANK);
  CHECK(both(bytes.data(), 1, MPI_CHAR, rank, MPI_ANY_TAG, comm) == MPI_ERR_TAG);
  CHECK(request == MPI_REQUEST_NULL);
  CHECK(class_of(MPIX_Isend_enqueue(bytes.data(), 1, MPI_CHAR, rank, 0, comm, nullptr)) == MPI_ERR_ARG);
  CHECK(class_of(MPIX_Irecv_enqueue(bytes.data(), 1, MPI_CHAR, rank, 0, comm, nullptr)) == MPI_ERR_ARG);
  MPI_Info info = MPI_INFO_NULL;
  char* elsewhere = nullptr;
  MPI_Info_create(&info);
  MPI_Info_set(info, "weft_memory_kind", rank % 2 == 0 ? "emulated:1" : "emulated:0");
  MPI_Alloc_mem(64, info, &elsewhere);
  CHECK(both(elsewhere, 8, MPI_CHAR, rank, 0, comm) == MPI_ERR_BUFFER);
  MPI_Free_mem(elsewhere);
  MPI_Info_free(&info);
  MPI_Type_free(&gaps);
}

void wrong_requests(MPI_Comm comm, const Stream& stream) {
  const Bytes bytes(64);
  char host[8] = {0};
  int flag = 0;
  MPI_Request request = MPI_REQUEST_NULL, plain = MPI_REQUEST_NULL;
  MPIX_Irecv_enqueue(bytes.data(), 64, MPI_CHAR, rank, 0, comm, &request);
  CHECK(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)) == MPI_ERR_REQUEST);
  CHECK(class_of(MPI_Test(&request, &flag, MPI_STATUS_IGNORE)) == MPI_ERR_REQUEST);
  CHECK(class_of(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE)) == MPI_ERR_REQUEST);
  CHECK(class_of(MPI_Cancel(&request)) == MPI_ERR_REQUEST &&
        class_of(MPI_Start(&request)) == MPI_ERR_REQUEST);
  CHECK(class_of(MPI_Request_free(&request)) == MPI_ERR_REQUEST);
  CHECK(class_of(MPIX_Wait_enqueue(nullptr, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  CHECK(class_of(MPIX_Waitall_enqueue(-1, &request, MPI_STATUSES_IGNORE)) == MPI_ERR_COUNT);
  CHECK(class_of(MPIX_Waitall_enqueue(1, nullptr, MPI_STATUSES_IGNORE)) == MPI_ERR_ARG);
  CHECK(MPIX_Waitall_enqueue(0, nullptr, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  MPI_Irecv(host, 8, MPI_CHAR, rank, 0, MPI_COMM_WORLD, &plain);
  MPI_Request mixed[2] = {request, plain};
  CHECK(class_of(MPIX_Waitall_enqueue(2, mixed, MPI_STATUSES_IGNORE)) == MPI_ERR_REQUEST &&
        mixed[0] == request);
  MPI_Send(host, 8, MPI_CHAR, rank, 0, MPI_COMM_WORLD);
  MPI_Wait(&plain, MPI_STATUS_IGNORE);
  MPIX_Send_enqueue(bytes.data(), 64, MPI_CHAR, rank, 0, comm);
  CHECK(MPIX_Wait_enqueue(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  stream.wait();
  // Nobody.
  MPI_Status status;
  CHECK(MPIX_Send_enqueue(nullptr, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, comm) == MPI_SUCCESS);
  CHECK(MPIX_Recv_enqueue(bytes.data(), 64, MPI_CHAR, MPI_PROC_NULL, MPI_ANY_TAG, comm, &status) ==
        MPI_SUCCESS);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
  CHECK(MPIX_Irecv_enqueue(bytes.data(), 64, MPI_CHAR, MPI_PROC_NULL, 0, comm, &request) == MPI_SUCCESS);
  CHECK(MPIX_Wait_enqueue(&request, &status) == MPI_SUCCESS && status.MPI_SOURCE == MPI_PROC_NULL);
  CHECK(MPIX_Wait_enqueue(&request, &status) == MPI_SUCCESS && status.MPI_SOURCE == MPI_ANY_SOURCE);
}

// All ranks learn that one cannot.
void unreachable(const Stream& stream) {
  MPI_Comm comm = MPI_COMM_NULL;
  CHECK(class_of(MPIX_Stream_comm_create(MPI_COMM_WORLD, stream.handle, &comm)) ==
        MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK(comm == MPI_COMM_NULL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPIX_Stream_comm_create(MPI_COMM_WORLD, stream.handle, &comm);
}

}  // namespace

int main(int argc, char** argv) {
  device::kind() = "emulated";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  {
    const Stream stream;
    if (argc > 1) unreachable(stream);
    MPI_Comm comm = stream.with(MPI_COMM_WORLD);
    wrong_streams();
    wrong_communicators(stream);
    wrong_messages(comm);
    wrong_requests(comm, stream);
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
  }
  MPI_Finalize();
  if (rank == 0) std::printf("misuse of streams on %d ranks: as expected\n", size);
  return 0;
}
