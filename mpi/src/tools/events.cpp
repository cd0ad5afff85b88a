// Events and their sources: there are none, so no index and no handle is right.
#include "tools/tools.h"

namespace weft::mpi {

namespace {

int give_no_events(int* number) {
  return tool_call([&]() -> int {
    if (!is_place(number)) return MPI_T_ERR_INVALID;
    *number = 0;
    return MPI_SUCCESS;
  });
}
int refuse_event(int code) {
  return tool_call([code] { return code; });
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_T_source_get_num(int* num_sources) { return give_no_events(num_sources); }
int MPI_T_source_get_info(int, char*, int*, char*, int*, MPI_T_source_order*, MPI_Count*, MPI_Count*,
                          MPI_Info*) {
  return refuse_event(MPI_T_ERR_INVALID_INDEX);
}
int MPI_T_source_get_timestamp(int, MPI_Count*) { return refuse_event(MPI_T_ERR_INVALID_INDEX); }

int MPI_T_event_get_num(int* num_events) { return give_no_events(num_events); }
int MPI_T_event_get_info(int, char*, int*, int*, MPI_Datatype[], MPI_Aint[], int*, MPI_T_enum*, MPI_Info*,
                         char*, int*, int*) {
  return refuse_event(MPI_T_ERR_INVALID_INDEX);
}
int MPI_T_event_get_index(const char*, int*) { return refuse_event(MPI_T_ERR_INVALID_NAME); }
int MPI_T_event_handle_alloc(int, void*, MPI_Info, MPI_T_event_registration*) {
  return refuse_event(MPI_T_ERR_INVALID_INDEX);
}
int MPI_T_event_handle_set_info(MPI_T_event_registration, MPI_Info) {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}
int MPI_T_event_handle_get_info(MPI_T_event_registration, MPI_Info*) {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}
int MPI_T_event_handle_free(MPI_T_event_registration, void*, MPI_T_event_free_cb_function) {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}
int MPI_T_event_register_callback(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info, void*,
                                  MPI_T_event_cb_function) {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}
int MPI_T_event_callback_set_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info) {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}
int MPI_T_event_callback_get_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info*) {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}
int MPI_T_event_set_dropped_handler(MPI_T_event_registration, MPI_T_event_dropped_cb_function) {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}
int MPI_T_event_read(MPI_T_event_instance, int, void*) { return refuse_event(MPI_T_ERR_INVALID_HANDLE); }
int MPI_T_event_copy(MPI_T_event_instance, void*) { return refuse_event(MPI_T_ERR_INVALID_HANDLE); }
int MPI_T_event_get_timestamp(MPI_T_event_instance, MPI_Count*) {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}
int MPI_T_event_get_source(MPI_T_event_instance, int*) { return refuse_event(MPI_T_ERR_INVALID_HANDLE); }

}  // extern "C"
