/* <mpi.h> is C of 1990 and C++ alike, and has the layout and the values of the standard. Compiled, not run. */
#include <mpi.h>

#define CHECK(name, condition) typedef char check_##name[(condition) ? 1 : -1]

CHECK(status_size, sizeof(MPI_Status) == 8 * sizeof(int));
CHECK(integers, sizeof(MPI_Count) == 8 && sizeof(MPI_Offset) == 8 && sizeof(MPI_Aint) == sizeof(void*));
CHECK(versions, MPI_VERSION == 5 && MPI_SUBVERSION == 0 && MPI_ABI_VERSION == 1 && MPI_ABI_SUBVERSION == 0);
CHECK(wildcards, MPI_ANY_SOURCE == -1 && MPI_ANY_TAG == -2 && MPI_PROC_NULL == -3 && MPI_ROOT == -4);
CHECK(undefined, MPI_UNDEFINED == -32766);
CHECK(threads, MPI_THREAD_SINGLE < MPI_THREAD_FUNNELED && MPI_THREAD_SERIALIZED < MPI_THREAD_MULTIPLE);
CHECK(last_code, MPI_ERR_LASTCODE == 0x3fff);
CHECK(comparisons, MPI_IDENT == 201 && MPI_UNEQUAL == 204);

/* Programs define functions with the types of the header. */
static int copy(MPI_Comm comm, int key, void* state, void* value, void* result, int* flag) {
  (void)comm, (void)key, (void)state;
  *(void**)result = value;
  *flag = 1;
  return MPI_SUCCESS;
}
static void handle(MPI_Comm* comm, int* code, ...) { (void)comm, (void)code; }

int use_all(void);
int use_all(void) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int ranges[1][3] = {{0, 1, 1}};
  MPI_Group group = MPI_GROUP_EMPTY;
  MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, MPI_BOTTOM);
  PMPI_Comm_create_errhandler(handle, &handler);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Group_range_incl(group, 1, ranges, &group);
  MPI_Pcontrol(1, "any", 2);
  {
    MPI_Fint (*const convert)(MPI_Comm) = MPI_Comm_c2f;
    MPI_Fint status[MPI_F_STATUS_SIZE];
    MPI_Status_c2f(MPI_STATUS_IGNORE, status);
    MPI_Comm_free_keyval(&key);
    (void)MPI_Comm_f2c(convert(MPI_COMM_WORLD));
  }
  return MPI_Send_c(MPI_IN_PLACE, (MPI_Count)1 << 40, MPI_INT, 0, 0, MPI_COMM_WORLD);
}
