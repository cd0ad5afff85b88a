/* Prints the command of MPI_INFO_ENV and its arguments. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  char command[1024] = "", arguments[1024] = "";
  int length = sizeof command, flag;
  MPI_Init(&argc, &argv);
  MPI_Info_get_string(MPI_INFO_ENV, "command", &length, command, &flag);
  length = sizeof arguments;
  MPI_Info_get_string(MPI_INFO_ENV, "argv", &length, arguments, &flag);
  printf("%s %s\n", command, arguments);
  MPI_Finalize();
  return 0;
}
