#include "pgas/memory/copy_reports.h"

#include <optional>
#include <utility>

#include "weft/base/error.h"

#include "await/future.h"
#include "base/format.h"
#include "buffers/streams/stream.h"
#include "pgas/teams/remote_calls.h"

namespace weft::python {

namespace {

bool is_given(PyObject* argument) { return argument != nullptr && argument != Py_None; }

// The device of an end that is device memory of this PE.
std::optional<memory::Place> device_of_end(Engine& engine, const PythonEnd& end) {
  if (end.is_array()) {
    if (end.end.local.place.is_host()) return std::nullopt;
    return end.end.local.place;
  }
  const rma::GlobalAddress& address = end.end.address;
  if (!engine.pgas().is_local(address) || address.kind() == memory::Kind::kHost) return std::nullopt;
  return engine.pgas().hold(address, 0).memory.place;
}

// The future of the program gets the outcome when the source is free.
runtime::Future<> source_future(Engine& engine, PyObject* object, const char* use) {
  if (!is_future(object)) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("{} takes a weft.Future as `source`, not a {}", use, type_name_of(object)));
  }
  if (!future_state(object)->promise()) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("{} got as `source` a future that is set, or that another copy will set: "
                                   "make one for each copy",
                                   use));
  }
  runtime::Future<> done(engine.runtime());
  done.then([future = Ref::borrow(object)](const runtime::Future<>& ready) {
    PyFutureState& state = *future_state(future.get());
    if (ready.state()->error()) return state.set_error(ready.state()->error());
    state.set_to_copy(Py_None);
  });
  return done;
}

// A function, or a tuple of a function and its arguments.
rma::RemoteCompletion remote_completion(PyObject* object, const char* use) {
  const bool has_arguments = PyTuple_Check(object) != 0 && PyTuple_GET_SIZE(object) > 0;
  PyObject* const function = has_arguments ? PyTuple_GET_ITEM(object, 0) : object;
  const std::string what = base::format("{} takes a function, or (function, arguments...), as `remote`", use);
  if (PyCallable_Check(function) == 0) {
    throw base::Error(base::StatusCode::kInvalidArgument, base::format("{}, not {}", what, readable(object)));
  }
  const Ref arguments = has_arguments ? checked(PyTuple_GetSlice(object, 1, PyTuple_GET_SIZE(object)))
                                      : checked(PyTuple_New(0));
  return pack_remote_call(function, arguments.get(), (what + ", and").c_str());
}

}  // namespace

rma::Completions completions_from(Engine& engine, const CopyReports& reports, const PythonEnd& from,
                                  const PythonEnd& to, const char* use, Ref& stream_keeper) {
  rma::Completions completions;
  completions.source_stream = from.stream;
  completions.target_stream = to.stream;
  if (is_given(reports.stream)) {
    const auto source_place = device_of_end(engine, from);
    const auto target_place = device_of_end(engine, to);
    if (!source_place && !target_place) {
      throw base::Error(base::StatusCode::kInvalidArgument,
                        base::format("{} got a stream, and neither {} nor {} is device memory of this PE; "
                                     "weft.pgas.copy_on_stream() takes memory of other PEs",
                                     use, from.text(), to.text()));
    }
    // If the ends are on different devices, the stream is of the source's device, and the target has none.
    NamedStream named = stream_from(reports.stream, source_place ? *source_place : *target_place, use);
    if (source_place) completions.source_stream = named.handle;
    if (target_place && (!source_place || *source_place == *target_place))
      completions.target_stream = named.handle;
    stream_keeper = std::move(named.keeper);
  }
  if (is_given(reports.remote)) completions.remote = remote_completion(reports.remote, use);
  if (is_given(reports.source)) completions.source = source_future(engine, reports.source, use);
  return completions;
}

}  // namespace weft::python
