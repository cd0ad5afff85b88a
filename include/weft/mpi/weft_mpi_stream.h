/* Messages and collectives that are queued on streams of GPUs, with the names of MPICH (MPIX_). No CPU takes part when
   they run. See docs/mpi.md, "Operations on streams".

       MPI_Info_set(info, "type", "cudaStream_t");
       MPIX_Info_set_hex(info, "value", &stream, sizeof stream);
       MPIX_Stream_create(info, &mpi_stream);
       MPIX_Stream_comm_create(MPI_COMM_WORLD, mpi_stream, &comm);
       MPIX_Send_enqueue(row, n, MPI_DOUBLE, up, 0, comm);   // after the work that is queued on `stream`

   A program that may run with other MPI libraries tests whether they have a function:

       #pragma weak MPIX_Send_enqueue
       if (MPIX_Send_enqueue) ...
*/
#ifndef WEFT_MPI_STREAM_H
#define WEFT_MPI_STREAM_H

#include "mpi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MPIX_ABI_Stream* MPIX_Stream;
#define MPIX_STREAM_NULL ((MPIX_Stream)0)

/* Sets the value of the key to the bytes of `value`, in hexadecimal. */
int MPIX_Info_set_hex(MPI_Info info, const char* key, const void* value, int value_size);

/* Names a stream. Keys of the info object:
     type              "cudaStream_t", or "emulated" for a device that the CPU stands in for
     value             the bytes of the stream, by MPIX_Info_set_hex; null is the default stream. Without it, an emulated stream is
                       made, which goes with the handle
     weft_memory_kind  the device, as for MPI_Alloc_mem: "cuda:1". Without it, the one that Weft uses for the process
   The stream must exist until the handle and all communicators with it are freed. */
int MPIX_Stream_create(MPI_Info info, MPIX_Stream* stream);
int MPIX_Stream_free(MPIX_Stream* stream);

/* Duplicates the communicator. The new one has a stream of each rank. All ranks call it, and so they do with
   MPI_Comm_free, which waits for the streams. It takes 65 MiB of device memory, and 1 MiB for each rank of the
   communicator. Duplicates of the new communicator have no stream. */
int MPIX_Stream_comm_create(MPI_Comm comm, MPIX_Stream stream, MPI_Comm* newcomm);
/* MPIX_STREAM_NULL for a communicator without a stream. idx is 0. */
int MPIX_Comm_get_stream(MPI_Comm comm, int idx, MPIX_Stream* stream);

/* Queue a message on the stream and return. The data is in memory of the stream's device, and the elements have no gaps. Messages between
   two ranks match in the order of the calls: the tag and the size of each receive are those of the send, and MPI_ANY_SOURCE and
   MPI_ANY_TAG are errors. */
int MPIX_Send_enqueue(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
int MPIX_Send_enqueue_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                        MPI_Comm comm);
int MPIX_Recv_enqueue(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                      MPI_Status* status);
int MPIX_Recv_enqueue_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                        MPI_Status* status);

/* Start a message, which is queued later, at the latest by the call that waits for its request. Work that is queued on the stream before
   that call may come before the message. Work that is queued after it comes after the message. No other call takes the requests. */
int MPIX_Isend_enqueue(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                       MPI_Request* request);
int MPIX_Isend_enqueue_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                         MPI_Comm comm, MPI_Request* request);
int MPIX_Irecv_enqueue(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                       MPI_Request* request);
int MPIX_Irecv_enqueue_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                         MPI_Comm comm, MPI_Request* request);
int MPIX_Wait_enqueue(MPI_Request* request, MPI_Status* status);
int MPIX_Waitall_enqueue(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[]);

/* Queue a collective on the stream and return. The arguments are those of MPI_Allreduce and its kin, MPI_IN_PLACE too; the
   data is as that of messages. Messages that have been started come first, receives too. Reductions take MPI_SUM, MPI_PROD,
   MPI_MIN and MPI_MAX of MPI_INT32_T, MPI_INT64_T, MPI_REAL2, MPI_FLOAT, MPI_DOUBLE, and types that are the same in memory.
   The communicator has at most 16 ranks, each with a stream of its own, of the device that Weft uses for the process:
   MPI_ERR_UNSUPPORTED_OPERATION else. */
int MPIX_Barrier_enqueue(MPI_Comm comm);
int MPIX_Allreduce_enqueue(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                           MPI_Comm comm);
int MPIX_Allreduce_enqueue_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                             MPI_Op op, MPI_Comm comm);
int MPIX_Reduce_enqueue(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                        int root, MPI_Comm comm);
int MPIX_Reduce_enqueue_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                          MPI_Op op, int root, MPI_Comm comm);
int MPIX_Reduce_scatter_block_enqueue(const void* sendbuf, void* recvbuf, int recvcount,
                                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
int MPIX_Reduce_scatter_block_enqueue_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                                        MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
int MPIX_Bcast_enqueue(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);
int MPIX_Bcast_enqueue_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm);
int MPIX_Allgather_enqueue(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPI_Comm comm);
int MPIX_Allgather_enqueue_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                             MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm);
int MPIX_Alltoall_enqueue(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                          int recvcount, MPI_Datatype recvtype, MPI_Comm comm);
int MPIX_Alltoall_enqueue_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                            MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm);

/* Returns when all that is queued on the stream is done, and MPI goes on meanwhile: for emulated streams, which work only while their
   process is in a call of MPI. A CUDA program may as well call cudaStreamSynchronize. */
int Weft_stream_synchronize(MPIX_Stream stream);

#ifdef __cplusplus
}
#endif

#endif
