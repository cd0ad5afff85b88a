/* Files: modes, errors, views, pointers, representations, atomic accesses. Run on 1 and more ranks. */
#include <string.h>
#include <unistd.h>

#include "../expect.h"

static int rank, size;
static const char* const path = "some_file";

static MPI_File open_new(int mode) {
  MPI_File file;
  EXPECT(MPI_File_open(MPI_COMM_WORLD, path, mode | MPI_MODE_CREATE, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  return file;
}
static void close_and_delete(MPI_File* file) {
  EXPECT(MPI_File_close(file) == MPI_SUCCESS && *file == MPI_FILE_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) EXPECT(MPI_File_delete(path, MPI_INFO_NULL) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
}

static int open_class(const char* name, int mode) {
  MPI_File file = MPI_FILE_NULL;
  const int code = MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file);
  if (code == MPI_SUCCESS) MPI_File_close(&file);
  EXPECT(code == MPI_SUCCESS || file == MPI_FILE_NULL);
  return class_of(code);
}

static void check_opening(void) {
  MPI_File file;
  MPI_Offset bytes = -1, position = -1;
  EXPECT(open_class(path, MPI_MODE_RDONLY) == MPI_ERR_NO_SUCH_FILE);
  EXPECT(open_class("no_folder/file", MPI_MODE_RDWR | MPI_MODE_CREATE) == MPI_ERR_NO_SUCH_FILE);
  EXPECT(open_class(".", MPI_MODE_RDWR) == MPI_ERR_BAD_FILE);
  EXPECT(open_class("", MPI_MODE_RDWR) == MPI_ERR_BAD_FILE);
  EXPECT(open_class(path, MPI_MODE_CREATE) == MPI_ERR_AMODE);
  EXPECT(open_class(path, MPI_MODE_RDWR | MPI_MODE_WRONLY) == MPI_ERR_AMODE);
  EXPECT(open_class(path, MPI_MODE_RDONLY | MPI_MODE_CREATE) == MPI_ERR_AMODE);
  EXPECT(open_class(path, MPI_MODE_RDONLY | MPI_MODE_EXCL) == MPI_ERR_AMODE);
  EXPECT(open_class(path, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL) == MPI_ERR_AMODE);
  EXPECT(open_class(path, MPI_MODE_RDWR | 1 << 20) == MPI_ERR_AMODE);
  if (size > 1)
    EXPECT(open_class(path, rank == 0 ? MPI_MODE_RDWR | MPI_MODE_CREATE : MPI_MODE_RDWR) == MPI_ERR_NOT_SAME);
  EXPECT(class_of(MPI_File_delete("no_such_file", MPI_INFO_NULL)) == MPI_ERR_NO_SUCH_FILE);
  EXPECT(open_class(path, MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL) == MPI_SUCCESS);
  EXPECT(open_class(path, MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL) == MPI_ERR_FILE_EXISTS);

  EXPECT(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  EXPECT(MPI_File_set_size(file, 10) == MPI_SUCCESS && MPI_File_get_size(file, &bytes) == MPI_SUCCESS &&
         bytes == 10);
  EXPECT(class_of(MPI_File_set_size(file, -1)) == MPI_ERR_ARG);
  EXPECT(MPI_File_preallocate(file, 1000) == MPI_SUCCESS);
  EXPECT(MPI_File_get_size(file, &bytes) == MPI_SUCCESS && bytes == 1000);
  EXPECT(MPI_File_sync(file) == MPI_SUCCESS);
  EXPECT(MPI_File_close(&file) == MPI_SUCCESS);
  EXPECT(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_APPEND, MPI_INFO_NULL, &file) ==
         MPI_SUCCESS);
  EXPECT(MPI_File_get_position(file, &position) == MPI_SUCCESS && position == 1000);
  EXPECT(MPI_File_get_position_shared(file, &position) == MPI_SUCCESS && position == 1000);
  close_and_delete(&file);

  file = open_new(MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  EXPECT(MPI_File_close(&file) == MPI_SUCCESS);
  EXPECT(access(path, F_OK) != 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void check_errors(void) {
  MPI_File file = open_new(MPI_MODE_WRONLY), none = MPI_FILE_NULL;
  MPI_Errhandler handler;
  MPI_Request request;
  MPI_Status status;
  MPI_Datatype type;
  MPI_Offset offset;
  const int displacements[] = {2, 0}, twice[] = {0, 0};
  int values[3] = {1, 2, 3};
  EXPECT(MPI_File_get_errhandler(file, &handler) == MPI_SUCCESS && handler == MPI_ERRORS_RETURN);
  EXPECT(class_of(MPI_File_read(file, values, 1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_ERR_ACCESS);
  EXPECT(class_of(MPI_File_write_at(file, -1, values, 1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_File_write(file, values, -1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_ERR_COUNT);
  EXPECT(class_of(MPI_File_write(file, values, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE)) == MPI_ERR_TYPE);
  EXPECT(class_of(MPI_File_write(file, NULL, 1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_ERR_BUFFER);
  EXPECT(class_of(MPI_File_write(none, values, 1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_ERR_FILE);
  EXPECT(class_of(MPI_File_write_at(file, INT64_MAX, values, 1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_File_seek(file, -1, MPI_SEEK_SET)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_File_seek(file, 0, 7)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_File_seek_shared(file, -1, MPI_SEEK_CUR)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_File_get_byte_offset(file, -1, &offset)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_File_write_all_end(file, values, &status)) == MPI_ERR_OTHER);
  EXPECT(MPI_File_write_all_begin(file, values, 0, MPI_INT) == MPI_SUCCESS);
  EXPECT(class_of(MPI_File_write_all_begin(file, values, 0, MPI_INT)) == MPI_ERR_OTHER);
  EXPECT(class_of(MPI_File_write_ordered_end(file, values, &status)) == MPI_ERR_OTHER);
  EXPECT(class_of(MPI_File_close(&file)) == MPI_ERR_OTHER);
  EXPECT(MPI_File_write_all_end(file, values, &status) == MPI_SUCCESS);

  EXPECT(class_of(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "unknown", MPI_INFO_NULL)) ==
         MPI_ERR_UNSUPPORTED_DATAREP);
  EXPECT(class_of(MPI_File_set_view(file, -5, MPI_INT, MPI_INT, "native", MPI_INFO_NULL)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native",
                                    MPI_INFO_NULL)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_INT, "native", MPI_INFO_NULL)) == MPI_ERR_ARG);
  if (size > 1) {
    const MPI_Datatype mine = rank == 1 ? MPI_INT : MPI_DOUBLE;
    EXPECT(class_of(MPI_File_set_view(file, 0, mine, mine, "native", MPI_INFO_NULL)) == MPI_ERR_NOT_SAME);
    /* All get the error of one. */
    EXPECT(class_of(MPI_File_set_view(file, rank == 1 ? -5 : 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL)) ==
           MPI_ERR_ARG);
  }
  MPI_Type_create_indexed_block(2, 1, displacements, MPI_INT, &type);
  EXPECT(class_of(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL)) == MPI_ERR_TYPE);
  MPI_Type_commit(&type);
  EXPECT(class_of(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL)) == MPI_ERR_ARG);
  MPI_Type_free(&type);
  MPI_Type_create_indexed_block(2, 1, twice, MPI_INT, &type);
  MPI_Type_commit(&type);
  EXPECT(class_of(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL)) == MPI_ERR_ARG);
  MPI_Type_free(&type);

  EXPECT(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  EXPECT(class_of(MPI_File_write(file, values, 3, MPI_BYTE, &status)) == MPI_ERR_ARG);
  EXPECT(MPI_File_close(&file) == MPI_SUCCESS);

  /* One process has no right to write; the others write nothing wrong. */
  EXPECT(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  EXPECT(class_of(MPI_File_write_all(file, values, 1, MPI_INT, &status)) == MPI_ERR_READ_ONLY);
  EXPECT(class_of(MPI_File_iwrite(file, values, 1, MPI_INT, &request)) == MPI_ERR_READ_ONLY);
  EXPECT(class_of(MPI_File_set_size(file, 1)) == MPI_ERR_READ_ONLY);
  close_and_delete(&file);
}

static int num_handled;
static void handle(MPI_File* file, int* code, ...) {
  (void)file, (void)code;
  ++num_handled;
}
/* The error of a request belongs to its file. */
static void check_handlers(void) {
  MPI_File file = open_new(MPI_MODE_RDWR);
  MPI_Errhandler handler;
  MPI_Request request;
  long value = -1;
  EXPECT(MPI_File_create_errhandler(handle, &handler) == MPI_SUCCESS);
  EXPECT(MPI_File_set_errhandler(file, handler) == MPI_SUCCESS);
  EXPECT(MPI_Errhandler_free(&handler) == MPI_SUCCESS);
  EXPECT(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL) == MPI_SUCCESS);
  value = 1L << 40; /* does not fit the 4 bytes of external32 */
  EXPECT(MPI_File_iwrite_at(file, rank, &value, 1, MPI_LONG, &request) == MPI_SUCCESS && num_handled == 0);
  EXPECT(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)) == MPI_ERR_CONVERSION && num_handled == 1);
  EXPECT(class_of(MPI_File_seek(file, -1, MPI_SEEK_SET)) == MPI_ERR_ARG && num_handled == 2);
  EXPECT(class_of(MPI_File_write_at_all(file, rank, &value, 1, MPI_LONG, MPI_STATUS_IGNORE)) ==
         MPI_ERR_CONVERSION);
  close_and_delete(&file);
}

/* Values of other sizes in the file, in a filetype with gaps. */
static void check_external32(void) {
  MPI_File file = open_new(MPI_MODE_RDWR);
  MPI_Datatype longs;
  MPI_Aint extent = 0;
  MPI_Status status;
  const long values[4] = {0x01020304, -2, 3, 4};
  long read[6] = {9, 9, 9, 9, 9, 9};
  unsigned char bytes[4];
  int count = -1;
  EXPECT(MPI_Type_vector(2, 1, 2 * size, MPI_LONG, &longs) == MPI_SUCCESS);
  MPI_Type_commit(&longs);
  EXPECT(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL) == MPI_SUCCESS);
  EXPECT(MPI_File_get_type_extent(file, MPI_LONG, &extent) == MPI_SUCCESS && extent == 4);
  EXPECT(MPI_File_get_type_extent(file, longs, &extent) == MPI_SUCCESS && extent == 4 * (2 * size + 1));
  /* Each rank has every second value of its own part. */
  EXPECT(MPI_File_set_view(file, 8 * rank, MPI_LONG, longs, "external32", MPI_INFO_NULL) == MPI_SUCCESS);
  EXPECT(MPI_File_write_at_all(file, 0, values, 2, MPI_LONG, &status) == MPI_SUCCESS);
  EXPECT(MPI_Get_count(&status, MPI_LONG, &count) == MPI_SUCCESS && count == 2);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_File_read_at_all(file, 0, read, 2, MPI_LONG, &status) == MPI_SUCCESS);
  EXPECT(read[0] == values[0] && read[1] == -2 && read[2] == 9);
  EXPECT(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  EXPECT(MPI_File_read_at(file, 8 * rank, bytes, 4, MPI_BYTE, &status) == MPI_SUCCESS);
  EXPECT(bytes[0] == 1 && bytes[1] == 2 && bytes[2] == 3 && bytes[3] == 4);
  EXPECT(MPI_File_read_at(file, 8 * (size + rank), bytes, 4, MPI_BYTE, &status) == MPI_SUCCESS);
  EXPECT(bytes[0] == 0xff && bytes[3] == 0xfe);
  MPI_Type_free(&longs);
  close_and_delete(&file);
}

/* A representation of the program: an int has 5 bytes, of which the first is a mark. */
static int five_bytes(MPI_Datatype type, MPI_Aint* extent, void* state) {
  EXPECT(*(int*)state == 77 && type == MPI_INT);
  *extent = 5;
  return MPI_SUCCESS;
}
static int write_marked(void* memory, MPI_Datatype type, int count, void* in_file, MPI_Offset position,
                        void* state) {
  int i;
  EXPECT(type == MPI_INT && position == 0 && *(int*)state == 77);
  for (i = 0; i < count; ++i) {
    ((char*)in_file)[5 * i] = 'm';
    memcpy((char*)in_file + 5 * i + 1, (int*)memory + i, 4);
  }
  return MPI_SUCCESS;
}
static int read_marked(void* memory, MPI_Datatype type, int count, void* in_file, MPI_Offset position,
                       void* state) {
  int i;
  EXPECT(type == MPI_INT && position == 0 && *(int*)state == 77);
  for (i = 0; i < count; ++i) memcpy((int*)memory + i, (char*)in_file + 5 * i + 1, 4);
  return MPI_SUCCESS;
}
static void check_registered(void) {
  static int state = 77;
  MPI_File file = open_new(MPI_MODE_RDWR);
  MPI_Status status;
  MPI_Offset bytes = 0;
  char name[MPI_MAX_DATAREP_STRING], mark = 0;
  MPI_Datatype etype, filetype;
  MPI_Offset displacement;
  int values[3] = {rank, 10 + rank, 20 + rank}, read[3] = {-1, -1, -1}, count = -1;
  EXPECT(MPI_Register_datarep("marked", read_marked, write_marked, five_bytes, &state) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Register_datarep("marked", read_marked, write_marked, five_bytes, &state)) ==
         MPI_ERR_DUP_DATAREP);
  EXPECT(class_of(MPI_Register_datarep("native", read_marked, write_marked, five_bytes, &state)) ==
         MPI_ERR_DUP_DATAREP);
  EXPECT(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "marked", MPI_INFO_NULL) == MPI_SUCCESS);
  EXPECT(MPI_File_write_ordered(file, values, 3, MPI_INT, &status) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_File_get_size(file, &bytes) == MPI_SUCCESS && bytes == 15 * size);
  EXPECT(MPI_File_seek_shared(file, 0, MPI_SEEK_SET) == MPI_SUCCESS);
  EXPECT(MPI_File_read_ordered(file, read, 3, MPI_INT, &status) == MPI_SUCCESS);
  EXPECT(memcmp(values, read, sizeof values) == 0);
  /* Past the end of the file: one value is there. */
  EXPECT(MPI_File_seek(file, 3 * size - 1, MPI_SEEK_SET) == MPI_SUCCESS);
  EXPECT(MPI_File_read(file, read, 3, MPI_INT, &status) == MPI_SUCCESS);
  EXPECT(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 1 && read[0] == 20 + size - 1);
  EXPECT(MPI_File_get_position(file, &displacement) == MPI_SUCCESS && displacement == 3 * size);
  EXPECT(MPI_File_get_view(file, &displacement, &etype, &filetype, name) == MPI_SUCCESS);
  EXPECT(etype == MPI_INT && filetype == MPI_INT && strcmp(name, "marked") == 0);
  EXPECT(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "internal", MPI_INFO_NULL) == MPI_SUCCESS);
  EXPECT(MPI_File_read_at(file, 5 * rank, &mark, 1, MPI_BYTE, &status) == MPI_SUCCESS && mark == 'm');
  close_and_delete(&file);
}

/* The copies of the filetype lie in each other's gaps: a matrix is read column by column. */
static void check_columns(void) {
  enum { kRows = 5, kColumns = 4 };
  MPI_File file = open_new(MPI_MODE_RDWR);
  MPI_Datatype column, columns;
  MPI_Status status;
  int matrix[kRows * kColumns], read[kRows * kColumns], i;
  for (i = 0; i < kRows * kColumns; ++i) matrix[i] = i;
  if (rank == 0)
    EXPECT(MPI_File_write_at(file, 0, matrix, kRows * kColumns, MPI_INT, &status) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_vector(kRows, 1, kColumns, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, sizeof(int), &columns);
  MPI_Type_commit(&columns);
  EXPECT(MPI_File_set_view(file, 0, MPI_INT, columns, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  EXPECT(MPI_File_read_at_all(file, 0, read, kRows * kColumns, MPI_INT, &status) == MPI_SUCCESS);
  for (i = 0; i < kRows * kColumns; ++i) EXPECT(read[i] == i % kRows * kColumns + i / kRows);
  MPI_Type_free(&column);
  MPI_Type_free(&columns);
  close_and_delete(&file);
}

/* All ranks write the same places, which get the values of one rank each time. */
static void check_atomic(void) {
  enum { kPieces = 200, kRounds = 20 };
  MPI_File file = open_new(MPI_MODE_RDWR);
  MPI_Datatype pieces;
  MPI_Status status;
  int values[kPieces], read[kPieces], i, round, flag = 0;
  MPI_Type_vector(kPieces, 1, 3, MPI_INT, &pieces);
  MPI_Type_commit(&pieces);
  EXPECT(MPI_File_set_view(file, 0, MPI_INT, pieces, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  EXPECT(MPI_File_set_atomicity(file, 1) == MPI_SUCCESS);
  EXPECT(MPI_File_get_atomicity(file, &flag) == MPI_SUCCESS && flag == 1);
  for (round = 0; round < kRounds; ++round) {
    for (i = 0; i < kPieces; ++i) values[i] = 1000 * round + rank;
    if (round % 2 == 0) {
      EXPECT(MPI_File_write_at_all(file, 0, values, kPieces, MPI_INT, &status) == MPI_SUCCESS);
    } else {
      EXPECT(MPI_File_write_at(file, 0, values, kPieces, MPI_INT, &status) == MPI_SUCCESS);
    }
    EXPECT(MPI_File_read_at(file, 0, read, kPieces, MPI_INT, &status) == MPI_SUCCESS);
    for (i = 1; i < kPieces; ++i) EXPECT(read[i] == read[0]);
  }
  MPI_Type_free(&pieces);
  close_and_delete(&file);
}

static void check_sequential(void) {
  MPI_File file = open_new(MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  MPI_Status status;
  MPI_Offset offset;
  int value = rank, seen[64] = {0}, i;
  EXPECT(class_of(MPI_File_write(file, &value, 1, MPI_INT, &status)) == MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(class_of(MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status)) == MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(class_of(MPI_File_seek(file, 0, MPI_SEEK_SET)) == MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(class_of(MPI_File_seek_shared(file, 0, MPI_SEEK_SET)) == MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(class_of(MPI_File_get_position(file, &offset)) == MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPI_File_write_shared(file, &value, 1, MPI_INT, &status) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) ==
         MPI_SUCCESS);
  EXPECT(MPI_File_write_shared(file, &value, 1, MPI_INT, &status) == MPI_SUCCESS);
  EXPECT(MPI_File_close(&file) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  for (i = 0; i < 2 * size; ++i) {
    EXPECT(MPI_File_read_at(file, i * 4, &value, 1, MPI_INT, &status) == MPI_SUCCESS);
    EXPECT(value >= 0 && value < size);
    ++seen[value];
  }
  for (i = 0; i < size; ++i) EXPECT(seen[i] == 2);
  close_and_delete(&file);
}

static void check_objects(void) {
  MPI_File file;
  MPI_Info info;
  MPI_Group group, world;
  MPI_Datatype type, etype, filetype;
  MPI_Offset displacement;
  char value[64], name[MPI_MAX_DATAREP_STRING];
  int flag = 0, length = sizeof value, result = -1, amode = 0;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_nodes", "1000000");
  MPI_Info_set(info, "cb_buffer_size", "12345");
  MPI_Info_set(info, "romio_cb_write", "nonsense");
  MPI_Info_set(info, "striping_unit", "99");
  EXPECT(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file) == MPI_SUCCESS);
  MPI_Info_free(&info);
  EXPECT(MPI_File_get_info(file, &info) == MPI_SUCCESS);
  EXPECT(MPI_Info_get_string(info, "cb_nodes", &length, value, &flag) == MPI_SUCCESS && flag &&
         atoi(value) == size);
  length = sizeof value;
  EXPECT(MPI_Info_get_string(info, "cb_buffer_size", &length, value, &flag) == MPI_SUCCESS &&
         atoi(value) == 12345);
  length = sizeof value;
  EXPECT(MPI_Info_get_string(info, "romio_cb_write", &length, value, &flag) == MPI_SUCCESS &&
         strcmp(value, "automatic") == 0);
  length = sizeof value;
  EXPECT(MPI_Info_get_string(info, "striping_unit", &length, value, &flag) == MPI_SUCCESS && flag);
  MPI_Info_free(&info);
  EXPECT(MPI_File_get_group(file, &group) == MPI_SUCCESS &&
         MPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS);
  EXPECT(MPI_Group_compare(group, world, &result) == MPI_SUCCESS && result == MPI_IDENT);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  EXPECT(MPI_File_get_amode(file, &amode) == MPI_SUCCESS && amode == (MPI_MODE_RDWR | MPI_MODE_CREATE));
  /* The program may free the datatypes of a view, and frees those that it is told. */
  MPI_Type_contiguous(3, MPI_INT, &type);
  MPI_Type_commit(&type);
  EXPECT(MPI_File_set_view(file, 16, MPI_INT, type, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  MPI_Type_free(&type);
  EXPECT(MPI_File_get_view(file, &displacement, &etype, &filetype, name) == MPI_SUCCESS);
  EXPECT(displacement == 16 && etype == MPI_INT && filetype != MPI_INT &&
         MPI_Type_free(&filetype) == MPI_SUCCESS);
  EXPECT(MPI_File_get_view(file, &displacement, &etype, &filetype, name) == MPI_SUCCESS);
  EXPECT(MPI_Type_free(&filetype) == MPI_SUCCESS);
  close_and_delete(&file);
}

/* Several non-blocking collective accesses at a time, completed in another order. */
static void check_outstanding(void) {
  enum { kRequests = 4 };
  MPI_File file = open_new(MPI_MODE_RDWR);
  MPI_Request requests[kRequests];
  MPI_Status statuses[kRequests];
  MPI_Datatype own;
  int values[kRequests], read[kRequests], i;
  MPI_Type_create_resized(MPI_INT, 0, size * (MPI_Aint)sizeof(int), &own);
  MPI_Type_commit(&own);
  EXPECT(MPI_File_set_view(file, rank * (MPI_Offset)sizeof(int), MPI_INT, own, "native", MPI_INFO_NULL) ==
         MPI_SUCCESS);
  for (i = 0; i < kRequests; ++i) {
    values[i] = 100 * rank + i;
    EXPECT(MPI_File_iwrite_all(file, &values[i], 1, MPI_INT, &requests[i]) == MPI_SUCCESS);
  }
  for (i = kRequests - 1; i >= 0; --i) EXPECT(MPI_Wait(&requests[i], &statuses[i]) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  for (i = 0; i < kRequests; ++i)
    EXPECT(MPI_File_iread_at_all(file, i, &read[i], 1, MPI_INT, &requests[i]) == MPI_SUCCESS);
  EXPECT(MPI_Waitall(kRequests, requests, statuses) == MPI_SUCCESS);
  for (i = 0; i < kRequests; ++i) EXPECT(read[i] == values[i]);
  MPI_Type_free(&own);
  close_and_delete(&file);
}

/* An aggregator that fails, and a process that fails before: all get the error. */
static void check_failures(void) {
  MPI_File file;
  MPI_Info hints;
  MPI_Datatype own, longs;
  MPI_Request request;
  MPI_Status status;
  int values[2] = {1, 2};
  long big[2] = {1, 2};
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "romio_cb_write", "enable");
  MPI_Info_set(hints, "cb_nodes", "1");
  MPI_Type_create_resized(MPI_INT, 0, size * (MPI_Aint)sizeof(int), &own);
  MPI_Type_commit(&own);
  EXPECT(MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, hints, &file) == MPI_SUCCESS);
  EXPECT(MPI_File_set_view(file, rank * (MPI_Offset)sizeof(int), MPI_INT, own, "native", MPI_INFO_NULL) ==
         MPI_SUCCESS);
  EXPECT(class_of(MPI_File_write_all(file, values, 2, MPI_INT, &status)) == MPI_ERR_NO_SPACE);
  EXPECT(MPI_File_iwrite_all(file, values, 2, MPI_INT, &request) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Wait(&request, &status)) == MPI_ERR_NO_SPACE);
  EXPECT(class_of(MPI_File_write(file, values, 2, MPI_INT, &status)) == MPI_ERR_NO_SPACE);
  EXPECT(MPI_File_close(&file) == MPI_SUCCESS);

  EXPECT(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, hints, &file) == MPI_SUCCESS);
  EXPECT(MPI_Type_vector(2, 1, size, MPI_LONG, &longs) == MPI_SUCCESS &&
         MPI_Type_commit(&longs) == MPI_SUCCESS);
  EXPECT(MPI_File_set_view(file, 4 * rank, MPI_LONG, longs, "external32", MPI_INFO_NULL) == MPI_SUCCESS);
  if (rank == size - 1) big[1] = 1L << 40;
  EXPECT(class_of(MPI_File_write_all(file, big, 2, MPI_LONG, &status)) == MPI_ERR_CONVERSION);
  big[1] = 2;
  EXPECT(MPI_File_write_at_all(file, 0, big, 2, MPI_LONG, &status) == MPI_SUCCESS);
  MPI_Type_free(&own);
  MPI_Type_free(&longs);
  MPI_Info_free(&hints);
  close_and_delete(&file);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_opening();
  check_errors();
  check_handlers();
  check_external32();
  check_registered();
  check_columns();
  check_atomic();
  check_sequential();
  check_objects();
  check_outstanding();
  check_failures();
  if (argc > 1) (void)open_new(MPI_MODE_RDWR); /* it stays open */
  if (rank == 0) printf("files of %d ranks: as expected\n", size);
  MPI_Finalize();
  return 0;
}
