#include "entry/objects.h"

#include <memory>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "entry/handles.h"
#include "models/mpi/rank.h"

namespace weft::mpi {

Error find_object(MPI_Info handle, Info** info) {
  *info = handle == MPI_INFO_ENV ? this_rank().environment.get() : object_of<Info>(handle, ObjectKind::kInfo);
  if (*info != nullptr) return {};
  return {MPI_ERR_INFO,
          handle == MPI_INFO_NULL ? "the info object is MPI_INFO_NULL" : "the handle is no info object"};
}

Error find_optional(MPI_Info handle, Info** info) {
  *info = nullptr;
  return handle == MPI_INFO_NULL ? Error() : find_object(handle, info);
}

Error find_object(MPI_Group handle, Group** group) {
  *group = handle == MPI_GROUP_EMPTY ? this_rank().empty_group.get()
                                     : object_of<Group>(handle, ObjectKind::kGroup);
  if (*group != nullptr) return {};
  return {MPI_ERR_GROUP, handle == MPI_GROUP_NULL ? "the group is MPI_GROUP_NULL" : "the handle is no group"};
}

Error find_object(MPI_Errhandler handle, ErrorHandler** handler) {
  const Rank& rank = this_rank();
  *handler = object_of<ErrorHandler>(handle, ObjectKind::kErrorHandler);
  if (handle == MPI_ERRORS_ARE_FATAL) *handler = rank.errors_are_fatal.get();
  if (handle == MPI_ERRORS_ABORT) *handler = rank.errors_abort.get();
  if (handle == MPI_ERRORS_RETURN) *handler = rank.errors_return.get();
  if (*handler != nullptr) return {};
  return {MPI_ERR_ERRHANDLER, handle == MPI_ERRHANDLER_NULL ? "the error handler is MPI_ERRHANDLER_NULL"
                                                            : "the handle is no error handler"};
}

Error find_handler_for(ObjectKind kind, std::string_view name, MPI_Errhandler handle,
                       ErrorHandler** handler) {
  if (Error error = find_object(handle, handler); !error.ok()) return error;
  if ((*handler)->serves(kind)) return {};
  return {MPI_ERR_ERRHANDLER,
          base::format("the error handler was made for another kind of object than a {}", name)};
}

MPI_Errhandler give_handle(Ref<ErrorHandler> handler) {
  switch (handler->action()) {
    case ErrorHandler::Action::kEndJob:
      return MPI_ERRORS_ARE_FATAL;
    case ErrorHandler::Action::kAbort:
      return MPI_ERRORS_ABORT;
    case ErrorHandler::Action::kReturn:
      return MPI_ERRORS_RETURN;
    case ErrorHandler::Action::kCall:
      break;
  }
  return make_handle<MPI_Errhandler>(std::move(handler));
}

MPI_Group give_group(MembersPointer members, std::shared_ptr<BufferSpace> session_space) {
  if (members->empty()) return MPI_GROUP_EMPTY;
  return make_handle<MPI_Group>(Ref<Group>::adopt(new Group(std::move(members), std::move(session_space))));
}

}  // namespace weft::mpi
