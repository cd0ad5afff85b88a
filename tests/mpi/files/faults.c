/* Errors of one process in collective calls, and what is rare: no process waits for one that has failed. Run on 1 and more ranks. */
#define _GNU_SOURCE /* F_OFD_SETLKW, syscall */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../expect.h"

static int rank, size;

/* The library's calls of fcntl come here. Without locks: as of a file system of NFS whose server has no lock service. */
static int has_locks = 1;
int fcntl(int descriptor, int command, ...) {
  va_list arguments;
  long argument;
  va_start(arguments, command);
  argument = va_arg(arguments, long);
  va_end(arguments);
  if (!has_locks && (command == F_OFD_SETLKW || command == F_OFD_SETLK)) {
    errno = ENOLCK;
    return -1;
  }
  return (int)syscall(SYS_fcntl, descriptor, command, argument);
}
static const char* const path = "faulty_file";

static MPI_File open_new(int mode, MPI_Info hints) {
  MPI_File file;
  EXPECT(MPI_File_open(MPI_COMM_WORLD, path, mode | MPI_MODE_CREATE, hints, &file) == MPI_SUCCESS);
  return file;
}
static void close_and_delete(MPI_File* file) {
  EXPECT(MPI_File_close(file) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) EXPECT(MPI_File_delete(path, MPI_INFO_NULL) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
}
static MPI_Info hints_of(const char* use, const char* buffer_bytes) {
  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "romio_cb_write", use);
  MPI_Info_set(hints, "romio_cb_read", use);
  MPI_Info_set(hints, "cb_nodes", "1");
  MPI_Info_set(hints, "cb_buffer_size", buffer_bytes);
  return hints;
}

/* The last rank has wrong arguments. All get its error, whoever accesses the file. */
static void check_one_wrong(const char* use) {
  const int is_wrong = rank == size - 1;
  MPI_Info hints = hints_of(use, "4096");
  MPI_File file = open_new(MPI_MODE_RDWR, hints);
  MPI_Status status;
  MPI_Offset position = -1;
  int value = rank, i;
  for (i = 0; i < 2; ++i) {
    const int expected = i == 0 ? MPI_ERR_ARG : MPI_ERR_TYPE;
    const MPI_Offset offset = is_wrong && i == 0 ? -4 : 4 * rank;
    const MPI_Datatype type = is_wrong && i == 1 ? MPI_DATATYPE_NULL : MPI_INT;
    EXPECT(class_of(MPI_File_write_at_all(file, offset, &value, 1, type, &status)) == expected);
    EXPECT(class_of(MPI_File_read_at_all(file, offset, &value, 1, type, &status)) == expected);
  }
  EXPECT(MPI_File_get_size(file, &position) == MPI_SUCCESS && position == 0);
  EXPECT(class_of(MPI_File_write_ordered(file, &value, is_wrong ? -1 : 1, MPI_INT, &status)) ==
         MPI_ERR_COUNT);
  EXPECT(MPI_File_seek(file, 4 * rank, MPI_SEEK_SET) == MPI_SUCCESS);
  EXPECT(class_of(MPI_File_write_all(file, is_wrong ? NULL : &value, 1, MPI_INT, &status)) == MPI_ERR_BUFFER);
  EXPECT(MPI_File_get_position(file, &position) == MPI_SUCCESS && position == 4 * rank);
  /* Atomic accesses are those of each process alone. */
  EXPECT(MPI_File_set_atomicity(file, 1) == MPI_SUCCESS);
  EXPECT(class_of(MPI_File_write_at_all(file, is_wrong ? -1 : 0, &value, 1, MPI_INT, &status)) ==
         (is_wrong ? MPI_ERR_ARG : MPI_SUCCESS));
  MPI_Info_free(&hints);
  close_and_delete(&file);
}

/* The same of accesses that go on behind the call: the request has the error, and so has the end of a split access. */
static void check_one_wrong_later(const char* use) {
  const int is_wrong = rank == size - 1;
  MPI_Info hints = hints_of(use, "4096");
  MPI_File file = open_new(MPI_MODE_RDWR, hints);
  MPI_Request requests[4];
  MPI_Status status, statuses[4];
  int value = rank, values[4] = {0}, i;
  EXPECT(MPI_File_iwrite_at_all(file, is_wrong ? -4 : 4 * rank, &value, 1, MPI_INT, &requests[0]) ==
         MPI_SUCCESS);
  EXPECT(MPI_File_iwrite_all(file, &value, 1, is_wrong ? MPI_DATATYPE_NULL : MPI_INT, &requests[1]) ==
         MPI_SUCCESS);
  EXPECT(MPI_File_iread_all(file, &values[2], is_wrong ? -1 : 1, MPI_INT, &requests[2]) == MPI_SUCCESS);
  EXPECT(MPI_File_iread_at_all(file, 4 * rank, is_wrong ? NULL : &values[3], 1, MPI_INT, &requests[3]) ==
         MPI_SUCCESS);
  EXPECT(class_of(MPI_Waitall(4, requests, statuses)) == MPI_ERR_IN_STATUS);
  for (i = 0; i < 4; ++i) {
    const int expected[4] = {MPI_ERR_ARG, MPI_ERR_TYPE, MPI_ERR_COUNT, MPI_ERR_BUFFER};
    EXPECT(class_of(statuses[i].MPI_ERROR) == expected[i]);
  }
  EXPECT(MPI_File_write_all_begin(file, &value, is_wrong ? -1 : 1, MPI_INT) == MPI_SUCCESS);
  EXPECT(class_of(MPI_File_write_all_end(file, &value, &status)) == MPI_ERR_COUNT);
  EXPECT(MPI_File_read_ordered_begin(file, is_wrong ? NULL : &value, 1, MPI_INT) == MPI_SUCCESS);
  EXPECT(class_of(MPI_File_read_ordered_end(file, &value, &status)) == MPI_ERR_BUFFER);
  /* An access of one process has its error from the call. */
  EXPECT(class_of(MPI_File_iwrite_at(file, -4, &value, 1, MPI_INT, &requests[0])) == MPI_ERR_ARG);
  /* The file is as before. */
  EXPECT(MPI_File_iwrite_at_all(file, 4 * rank, &value, 1, MPI_INT, &requests[0]) == MPI_SUCCESS);
  EXPECT(MPI_Wait(&requests[0], &status) == MPI_SUCCESS);
  EXPECT(MPI_File_read_at_all(file, 4 * rank, values, 1, MPI_INT, &status) == MPI_SUCCESS &&
         values[0] == rank);
  MPI_Info_free(&hints);
  close_and_delete(&file);
}

/* The file system has no locks: atomic mode is refused, and all else works. */
static void check_without_locks(void) {
  MPI_File file = open_new(MPI_MODE_RDWR, MPI_INFO_NULL);
  MPI_Status status;
  MPI_Offset position = -1;
  int value = rank, flag = -1;
  has_locks = rank != size - 1;
  EXPECT(class_of(MPI_File_set_atomicity(file, 1)) == MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPI_File_get_atomicity(file, &flag) == MPI_SUCCESS && flag == 0);
  has_locks = 0;
  EXPECT(MPI_File_write_shared(file, &value, 1, MPI_INT, &status) == MPI_SUCCESS);
  EXPECT(MPI_File_write_ordered(file, &value, 1, MPI_INT, &status) == MPI_SUCCESS);
  EXPECT(MPI_File_get_position_shared(file, &position) == MPI_SUCCESS && position == 8 * size);
  EXPECT(MPI_File_write_at_all(file, 4 * rank, &value, 1, MPI_INT, &status) == MPI_SUCCESS);
  EXPECT(MPI_File_read_at(file, 4 * rank, &value, 1, MPI_INT, &status) == MPI_SUCCESS && value == rank);
  /* The locks go while the mode is on. */
  has_locks = 1;
  EXPECT(MPI_File_set_atomicity(file, 1) == MPI_SUCCESS);
  has_locks = 0;
  EXPECT(class_of(MPI_File_write_at(file, 4 * rank, &value, 1, MPI_INT, &status)) ==
         MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(class_of(MPI_File_read_at_all(file, 4 * rank, &value, 1, MPI_INT, &status)) ==
         MPI_ERR_UNSUPPORTED_OPERATION);
  has_locks = 1;
  close_and_delete(&file);
}

/* Arguments that must be the same. */
static void check_different(void) {
  MPI_File file = open_new(MPI_MODE_RDWR, MPI_INFO_NULL);
  const int different = size > 1 ? MPI_ERR_NOT_SAME : MPI_SUCCESS, is_last = rank == size - 1;
  MPI_Offset position = -1;
  int flag = -1;
  EXPECT(class_of(MPI_File_set_size(file, 10 + is_last)) == different);
  EXPECT(class_of(MPI_File_preallocate(file, 10 + is_last)) == different);
  EXPECT(class_of(MPI_File_set_size(file, is_last ? -1 : 0)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_File_seek_shared(file, is_last, MPI_SEEK_SET)) == different);
  EXPECT(class_of(MPI_File_seek_shared(file, 1, is_last ? 99 : MPI_SEEK_SET)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_File_set_atomicity(file, is_last)) == different);
  EXPECT(MPI_File_get_atomicity(file, &flag) == MPI_SUCCESS && flag == (size == 1));
  EXPECT(MPI_File_seek_shared(file, 7, MPI_SEEK_SET) == MPI_SUCCESS);
  EXPECT(MPI_File_get_position_shared(file, &position) == MPI_SUCCESS && position == 7);
  close_and_delete(&file);
}

static void check_modes(void) {
  const int is_writable = MPI_MODE_RDWR;
  struct stat status;
  MPI_File file = open_new(is_writable, MPI_INFO_NULL), again;
  /* MPI_MODE_EXCL is about the creation alone. */
  EXPECT(MPI_File_open(MPI_COMM_WORLD, path, is_writable | MPI_MODE_EXCL, MPI_INFO_NULL, &again) ==
         MPI_SUCCESS);
  EXPECT(MPI_File_close(&again) == MPI_SUCCESS);
  close_and_delete(&file);
  /* The program goes to another folder while the file is open. */
  if (rank == 0) EXPECT(mkdir("below", 0700) == 0);
  file = open_new(is_writable | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
  EXPECT(chdir("below") == 0);
  EXPECT(MPI_File_close(&file) == MPI_SUCCESS);
  EXPECT(chdir("..") == 0 && stat(path, &status) != 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) EXPECT(rmdir("below") == 0);
}

/* The aggregator has no memory for its part of the file. */
static void check_memory(void) {
  enum { kMany = 1 << 16 };
  static int many[kMany];
  struct rlimit before, little;
  MPI_Info hints = hints_of("enable", "2000000000");
  MPI_File file = open_new(MPI_MODE_RDWR, hints);
  MPI_Status status;
  const MPI_Offset far = 1900000000;
  FILE* const statm = fopen("/proc/self/statm", "r");
  long pages = 0;
  int value = rank + 5;
  EXPECT(statm != NULL && fscanf(statm, "%ld", &pages) == 1 && fclose(statm) == 0);
  EXPECT(getrlimit(RLIMIT_AS, &before) == 0);
  little = before;
  little.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (1u << 29);
  if (rank == 0) EXPECT(setrlimit(RLIMIT_AS, &little) == 0);
  EXPECT(class_of(MPI_File_write_at_all(file, rank == 0 ? 0 : far + rank * (MPI_Offset)sizeof many, many,
                                        rank == 0 ? kMany : kMany - rank, MPI_INT, &status)) ==
         (size > 1 ? MPI_ERR_NO_MEM : MPI_SUCCESS));
  EXPECT(class_of(MPI_File_read_at_all(file, rank == 0 ? 0 : far + rank * (MPI_Offset)sizeof many, many,
                                       kMany, MPI_INT, &status)) ==
         (size > 1 ? MPI_ERR_NO_MEM : MPI_SUCCESS));
  if (rank == 0) EXPECT(setrlimit(RLIMIT_AS, &before) == 0);
  /* The file and its messages are as before. */
  EXPECT(MPI_File_write_at_all(file, 4 * rank, &value, 1, MPI_INT, &status) == MPI_SUCCESS);
  value = 0;
  EXPECT(MPI_File_read_at_all(file, 4 * rank, &value, 1, MPI_INT, &status) == MPI_SUCCESS &&
         value == rank + 5);
  MPI_Info_free(&hints);
  close_and_delete(&file);
}

/* A function of the program gets no values from behind the end of the file. */
static int num_values;
static int four_bytes(MPI_Datatype type, MPI_Aint* extent, void* state) {
  (void)type, (void)state;
  *extent = 4;
  return MPI_SUCCESS;
}
static int copy_values(void* memory, MPI_Datatype type, int count, void* in_file, MPI_Offset position,
                       void* state) {
  (void)type, (void)position, (void)state;
  memcpy(memory, in_file, 4 * (size_t)count);
  num_values += count;
  return MPI_SUCCESS;
}
static void check_conversion(void) {
  MPI_File file = open_new(MPI_MODE_RDWR, MPI_INFO_NULL);
  MPI_Status status;
  int values[100] = {0}, count = -1;
  EXPECT(MPI_Register_datarep("counted", copy_values, MPI_CONVERSION_FN_NULL, four_bytes, NULL) ==
         MPI_SUCCESS);
  EXPECT(MPI_File_set_size(file, 12) == MPI_SUCCESS);
  EXPECT(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "counted", MPI_INFO_NULL) == MPI_SUCCESS);
  EXPECT(MPI_File_read_at(file, 0, values, 100, MPI_INT, &status) == MPI_SUCCESS);
  EXPECT(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 3 && num_values == 3);
  close_and_delete(&file);
}

/* The values of each type are in the file as MPI_Pack_external writes them. */
static void check_external32(MPI_Datatype type) {
  MPI_File file;
  MPI_Status status;
  MPI_Aint lower = 0, extent = 0, packed_bytes = 0, at = 0;
  unsigned char values[64] = {0}, read[64] = {0}, packed[64] = {0}, in_file[64] = {1};
  MPI_Type_get_extent(type, &lower, &extent);
  EXPECT(2 * extent <= (MPI_Aint)sizeof values);
  values[0] = 3;
  values[extent] = 4;
  EXPECT(MPI_Pack_external_size("external32", 2, type, &packed_bytes) == MPI_SUCCESS);
  EXPECT(packed_bytes <= (MPI_Aint)sizeof packed);
  EXPECT(MPI_Pack_external("external32", values, 2, type, packed, sizeof packed, &at) == MPI_SUCCESS);
  file = open_new(MPI_MODE_RDWR, MPI_INFO_NULL);
  EXPECT(MPI_File_set_view(file, rank * packed_bytes, type, type, "external32", MPI_INFO_NULL) ==
         MPI_SUCCESS);
  EXPECT(MPI_File_write_at(file, 0, values, 2, type, &status) == MPI_SUCCESS);
  EXPECT(MPI_File_read_at(file, 0, read, 2, type, &status) == MPI_SUCCESS);
  EXPECT(memcmp(read, values, sizeof values) == 0);
  EXPECT(MPI_File_set_view(file, rank * packed_bytes, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) ==
         MPI_SUCCESS);
  EXPECT(MPI_File_read_at(file, 0, in_file, (int)packed_bytes, MPI_BYTE, &status) == MPI_SUCCESS);
  EXPECT(memcmp(in_file, packed, (size_t)packed_bytes) == 0);
  close_and_delete(&file);
}
static void check_all_types(void) {
  const MPI_Datatype types[] = {MPI_CHAR,
                                MPI_SIGNED_CHAR,
                                MPI_UNSIGNED_CHAR,
                                MPI_BYTE,
                                MPI_WCHAR,
                                MPI_SHORT,
                                MPI_UNSIGNED_SHORT,
                                MPI_INT,
                                MPI_UNSIGNED,
                                MPI_LONG,
                                MPI_UNSIGNED_LONG,
                                MPI_LONG_LONG,
                                MPI_UNSIGNED_LONG_LONG,
                                MPI_FLOAT,
                                MPI_DOUBLE,
                                MPI_LONG_DOUBLE,
                                MPI_C_BOOL,
                                MPI_INT8_T,
                                MPI_INT16_T,
                                MPI_INT32_T,
                                MPI_INT64_T,
                                MPI_UINT8_T,
                                MPI_UINT16_T,
                                MPI_UINT32_T,
                                MPI_UINT64_T,
                                MPI_AINT,
                                MPI_COUNT,
                                MPI_OFFSET,
                                MPI_C_FLOAT_COMPLEX,
                                MPI_C_DOUBLE_COMPLEX,
                                MPI_C_LONG_DOUBLE_COMPLEX,
                                MPI_FLOAT_INT,
                                MPI_DOUBLE_INT,
                                MPI_LONG_INT,
                                MPI_2INT,
                                MPI_SHORT_INT,
                                MPI_LONG_DOUBLE_INT};
  size_t i;
  for (i = 0; i < sizeof types / sizeof *types; ++i) check_external32(types[i]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_one_wrong("enable");
  check_one_wrong("disable");
  check_one_wrong("automatic");
  check_one_wrong_later("enable");
  check_one_wrong_later("disable");
  check_without_locks();
  check_different();
  check_modes();
  check_memory();
  check_conversion();
  check_all_types();
  if (rank == 0) printf("faults of files of %d ranks: as expected\n", size);
  MPI_Finalize();
  return 0;
}
