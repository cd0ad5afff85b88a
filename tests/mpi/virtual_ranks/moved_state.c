// What a rank has of MPI and of the C library when it moves. Usage: moved_state WHAT. Every rank has it, and goes to the next PE and
// back. Prints "rank R: moved" or "rank R: refused", and "rank R: wrong ..." if something is lost.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft_mpi.h>
#include <weft_mpi_stream.h>

static int rank;
static char buffer[4096];

static void check(int condition, const char* what) {
  if (!condition) printf("rank %d: wrong %s\n", rank, what);
}

static void on_signal(int number) { (void)number; }

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "buffer") == 0) setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  if (strcmp(what, "setbuf") == 0) setbuf(stdout, buffer);
  if (strcmp(what, "setbuffer") == 0) setbuffer(stdout, buffer, sizeof buffer);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int *largest_tag = NULL, *universe = NULL, *last_code = NULL, flag = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &flag);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &flag);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last_code, &flag);
  const int largest_tag_before = *largest_tag;
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
  if (strcmp(what, "hints") == 0 || strcmp(what, "stream") == 0) {
    MPI_Info info;
    MPI_Info_create(&info);
    if (strcmp(what, "hints") == 0) MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    if (strcmp(what, "stream") == 0) MPI_Info_set(info, "weft_stream", "1");
    MPI_Comm_set_info(MPI_COMM_SELF, info);
    MPI_Info_free(&info);
  }
  if (strcmp(what, "queue") == 0) {
    MPI_Info info;
    MPIX_Stream stream;
    MPI_Comm comm;
    MPI_Info_create(&info);
    MPI_Info_set(info, "type", "emulated");
    MPIX_Stream_create(info, &stream);
    MPI_Info_free(&info);
    MPIX_Stream_comm_create(MPI_COMM_SELF, stream, &comm);
    MPIX_Stream_free(&stream); /* the communicator has it */
  }
  if (strcmp(what, "bsend") == 0) MPI_Comm_attach_buffer(MPI_COMM_SELF, buffer, sizeof buffer);
  if (strcmp(what, "type-name") == 0) MPI_Type_set_name(MPI_INT, "my int");
  if (strcmp(what, "booleans") == 0) {
    int yes = 1, no = 0;
    MPI_Abi_set_fortran_booleans((int)sizeof yes, &yes, &no);
  }
  if (strcmp(what, "signal") == 0) signal(SIGUSR1, &on_signal);
  const int first = Weft_pe();
  int code = MPI_SUCCESS;
  for (int i = 0; i < 2 && code == MPI_SUCCESS; ++i) {
    code = Weft_migrate((Weft_pe() + 1) % 2);
    check((Weft_pe() == first) == (i == 1 || code != MPI_SUCCESS), "PE");
    // Another rank's memory, or nothing, would be there.
    check(*largest_tag == largest_tag_before && *universe == size && *last_code == MPI_ERR_LASTCODE,
          "attributes");
    MPI_Errhandler handler;
    MPI_File_get_errhandler(MPI_FILE_NULL, &handler);
    check(handler == MPI_ERRORS_ARE_FATAL, "error handler of MPI_FILE_NULL");
    if (strcmp(what, "hints") == 0) {
      MPI_Info info;
      char value[8] = "";
      int length = (int)sizeof value;
      flag = 0;
      MPI_Comm_get_info(MPI_COMM_SELF, &info);
      MPI_Info_get_string(info, "mpi_assert_no_any_tag", &length, value, &flag);
      check(flag && strcmp(value, "true") == 0, "hints");
      MPI_Info_free(&info);
    }
    if (strcmp(what, "type-name") == 0) {
      char name[MPI_MAX_OBJECT_NAME];
      int length = 0;
      MPI_Type_get_name(MPI_INT, name, &length);
      check(strcmp(name, "my int") == 0, "name of a datatype");
    }
    if (strcmp(what, "booleans") == 0) {
      int yes = 0, no = 1;
      MPI_Abi_get_fortran_booleans((int)sizeof yes, &yes, &no, &flag);
      check(flag && yes == 1 && no == 0, "booleans");
    }
  }
  printf("rank %d: %s\n", rank, code == MPI_SUCCESS ? "moved" : "refused");
  MPI_Finalize();
  return 0;
}
