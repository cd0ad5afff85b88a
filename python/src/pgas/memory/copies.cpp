#include "pgas/memory/copies.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/pgas/pgas.h"

#include "base/format.h"
#include "buffers/arrays/array_form.h"
#include "buffers/streams/stream.h"
#include "pgas/memory/copy_end.h"
#include "pgas/memory/copy_reports.h"
#include "pgas/memory/global_operations.h"
#include "pgas/memory/global_pointer.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// Several operations on global memory as one weft.Operation: it is over when the last of them is, and fails with the first error.
class JointOperation {
 public:
  explicit JointOperation(Engine& engine) : engine_(engine), outcome_(std::make_shared<Outcome>()) {}

  // `start` returns a Done. After a failure nothing more is started.
  template <class Start>
  void add(Start start) {
    if (outcome_->status.failed()) return;
    try {
      runtime::OperationState* const state = start().release();
      if (state == nullptr) return;
      in_flight_ = true;
      ++outcome_->open;
      runtime::Operation(state).then([outcome = outcome_](const base::Status& status, std::size_t) {
        --outcome->open;
        outcome->note(status);
      });
    } catch (const base::Error& error) {
      outcome_->note(base::Status(error.code(), error.what()));
    }
  }
  // Keeps an object until all are over, also if the call fails meanwhile. Call it before the part that needs the object starts.
  void keep(Ref keeper) {
    if (keeper) outcome_->keepers.push_back(std::move(keeper));
  }
  // Throws base::Error if one has failed and none is in flight.
  Ref operation(Ref result) && {
    if (!in_flight_) {
      if (outcome_->status.failed()) base::throw_status(outcome_->status);
      return make_finished_operation(std::move(result));
    }
    auto* const state = runtime::OperationState::create(engine_.runtime());
    outcome_->state = state;
    outcome_.reset();
    return make_operation_object(engine_, state, Ref(), std::move(result));
  }

 private:
  // The last of its owners is gone when all operations are over, or were dropped with the job.
  struct Outcome {
    void note(base::Status part) {
      if (part.failed() && status.ok()) status = std::move(part);
    }
    ~Outcome() {
      if (open > 0) note(base::Status(base::StatusCode::kClosed, "the job has ended"));
      if (state != nullptr) state->complete(std::move(status), 0);
    }
    std::vector<Ref> keepers;
    base::Status status;
    std::size_t open = 0;  // operations whose end was not told
    runtime::OperationState* state = nullptr;
  };

  Engine& engine_;
  std::shared_ptr<Outcome> outcome_;
  bool in_flight_ = false;
};

constexpr const char* kCopy = "weft.pgas.copy";
constexpr const char* kStrided = "weft.pgas.copy_strided";
constexpr const char* kIndexed = "weft.pgas.copy_indexed";
constexpr const char* kOnStream = "weft.pgas.copy_on_stream";

bool is_absent(PyObject* argument) { return argument == nullptr || argument == Py_None; }

[[noreturn]] void invalid(const std::string& message) {
  throw base::Error(base::StatusCode::kInvalidArgument, message);
}

std::int64_t integer_of(PyObject* number) {
  const Py_ssize_t found = PyNumber_AsSsize_t(number, PyExc_OverflowError);
  if (found == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  return found;
}

std::vector<std::ptrdiff_t> integers_from(PyObject* sequence, const char* use, const char* what) {
  const Ref items = Ref::steal(PySequence_Fast(sequence, "no sequence"));
  if (!items) {
    PyErr_Clear();
    invalid(base::format("{} takes a sequence of ints as {}, not a {}", use, what, type_name_of(sequence)));
  }
  std::vector<std::ptrdiff_t> numbers;
  numbers.reserve(static_cast<std::size_t>(PySequence_Fast_GET_SIZE(items.get())));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    numbers.push_back(integer_of(PySequence_Fast_GET_ITEM(items.get(), i)));
  return numbers;
}

// Refuses elements outside of a segment before the runs are listed, which takes memory for each.
void expect_inside(Engine& engine, const PythonEnd& end) {
  if (end.is_array()) return;
  const std::vector<std::size_t> extents(end.extents.begin(), end.extents.end());
  engine.pgas().expect_strided_inside(end.end.address, end.strides, extents, end.item_bytes);
}

std::vector<rma::Run> runs_inside(Engine& engine, const PythonEnd& from, const PythonEnd& to) {
  expect_inside(engine, from);
  expect_inside(engine, to);
  return runs_between(from, to);
}

// One copy, ready to start.
struct Prepared {
  std::vector<rma::Run> runs;
  PythonEnd from;
  PythonEnd to;
};

rma::Done start(Engine& engine, Prepared& prepared, const CopyReports& reports, const char* use,
                Ref& stream_keeper) {
  rma::Completions completions =
      completions_from(engine, reports, prepared.from, prepared.to, use, stream_keeper);
  return engine.pgas().start_copy(std::move(prepared.runs), prepared.from.end, prepared.to.end,
                                  std::move(completions));
}

Ref keepers_of(const Prepared& prepared, const Ref& stream_keeper) {
  const auto object = [](const Ref& ref) { return ref ? ref.get() : Py_None; };
  return checked(
      PyTuple_Pack(3, object(prepared.from.keeper), object(prepared.to.keeper), object(stream_keeper)));
}

Ref start_one(Engine& engine, Prepared prepared, const CopyReports& reports, Ref result, const char* use) {
  Ref stream_keeper;
  rma::Done done = start(engine, prepared, reports, use, stream_keeper);
  if (done.is_done()) return operation_of(engine, std::move(done), Ref(), std::move(result));
  return operation_of(engine, std::move(done), keepers_of(prepared, stream_keeper), std::move(result));
}

Ref result_for(PyObject* to) { return Ref::borrow(is_global_pointer(to) ? Py_None : to); }

// Copies `extents` elements of both ends; the form of an array must be the same.
Ref copy_counted(Engine& engine, PyObject* from, PyObject* to, PyObject* count, const CopyReports& reports,
                 const char* use) {
  Prepared prepared{{}, end_from(from, Access::kRead, use), end_from(to, Access::kWrite, use)};
  const PythonEnd* const array = prepared.to.is_array()     ? &prepared.to
                                 : prepared.from.is_array() ? &prepared.from
                                                            : nullptr;
  std::vector<std::int64_t> extents = array != nullptr ? array->extents : std::vector<std::int64_t>{1};
  if (!is_absent(count)) {
    const std::int64_t wanted = integer_of(count);
    if (wanted < 0) invalid(base::format("{} got {} elements to copy", use, wanted));
    if (array == nullptr) extents = {wanted};
    if (array != nullptr && array->num_elements() != wanted) {
      invalid(base::format("{} got {} elements to copy and {}; give a part of the array", use, wanted,
                           array->text()));
    }
  }
  if (!prepared.from.is_array()) take_form(prepared.from, extents);
  if (!prepared.to.is_array()) take_form(prepared.to, extents);
  expect_same_form(prepared.from, prepared.to, use);
  prepared.runs = runs_inside(engine, prepared.from, prepared.to);
  return start_one(engine, std::move(prepared), reports, result_for(to), use);
}

PyObject* copy(PyObject*, PyObject* const* values, Py_ssize_t num_values, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments("copy", {"src", "dst", "count", "source", "remote", "stream"}, 2, values,
                              num_values, names);
    return copy_counted(Engine::current(), arguments[0], arguments[1], arguments[2],
                        {arguments[3], arguments[4], arguments[5]}, kCopy)
        .release();
  });
}

// --- Strided

// An end that is an array, or a tuple (pointer, strides in bytes). Its form becomes `extents`.
PythonEnd strided_end(PyObject* object, Access access, const std::vector<std::int64_t>& extents,
                      const char* use) {
  if (PyTuple_Check(object) == 0) return end_from(object, access, use);
  if (PyTuple_GET_SIZE(object) != 2) invalid(base::format("{} takes (pointer, strides) as an end", use));
  PythonEnd end = end_from(PyTuple_GET_ITEM(object, 0), access, use);
  if (end.is_array()) invalid(base::format("{} takes strides of pointers only; an array has its own", use));
  end.strides = integers_from(PyTuple_GET_ITEM(object, 1), use, "strides");
  if (end.strides.size() != extents.size()) {
    invalid(base::format("{} got {} strides and {} extents", use, end.strides.size(), extents.size()));
  }
  end.extents = extents;
  return end;
}

// A piece is a tuple: (source end, target end, extents), see strided_end().
Prepared strided_piece(Engine& engine, PyObject* piece, const char* use) {
  if (PyTuple_Check(piece) == 0 || PyTuple_GET_SIZE(piece) != 3)
    invalid("a piece of a strided copy is no tuple of three");
  const std::vector<std::int64_t> extents = extents_from(PyTuple_GET_ITEM(piece, 2), use);
  Prepared prepared{{},
                    strided_end(PyTuple_GET_ITEM(piece, 0), Access::kRead, extents, use),
                    strided_end(PyTuple_GET_ITEM(piece, 1), Access::kWrite, extents, use)};
  expect_same_form(prepared.from, prepared.to, use);
  prepared.runs = runs_inside(engine, prepared.from, prepared.to);
  return prepared;
}

// --- Indexed

std::vector<std::ptrdiff_t> index_of(PyObject* indices, const PythonEnd& end, std::int64_t block,
                                     const char* use) {
  std::vector<std::ptrdiff_t> index = integers_from(indices, use, "indices");
  if (!end.is_array()) return index;
  if (!is_contiguous(end)) {
    invalid(base::format("{} got {}, which is not C-contiguous", use, end.text()));
  }
  const std::int64_t num_elements = end.num_elements();
  for (const std::ptrdiff_t at : index) {
    if (at >= 0 && block <= num_elements && at <= num_elements - block) continue;
    throw base::Error(
        base::StatusCode::kOutOfRange,
        base::format("{} got the index {} for blocks of {} elements in {}", use, at, block, end.text()));
  }
  return index;
}

// A piece is a tuple: (source, its indices, target, its indices, block).
Prepared indexed_piece(PyObject* piece, const char* use) {
  if (PyTuple_Check(piece) == 0 || PyTuple_GET_SIZE(piece) != 5)
    invalid("a piece of an indexed copy is no tuple of five");
  const std::int64_t block = integer_of(PyTuple_GET_ITEM(piece, 4));
  if (block < 0) invalid(base::format("{} got blocks of {} elements", use, block));
  Prepared prepared{{},
                    end_from(PyTuple_GET_ITEM(piece, 0), Access::kRead, use),
                    end_from(PyTuple_GET_ITEM(piece, 2), Access::kWrite, use)};
  const auto from_index = index_of(PyTuple_GET_ITEM(piece, 1), prepared.from, block, use);
  const auto to_index = index_of(PyTuple_GET_ITEM(piece, 3), prepared.to, block, use);
  expect_same_type(prepared.from, prepared.to, use);
  prepared.runs =
      rma::runs_of_indices(from_index, to_index, prepared.from.item_bytes, static_cast<std::size_t>(block));
  return prepared;
}

// --- Pieces together

Ref start_all(Engine& engine, std::vector<Prepared> pieces, const CopyReports& reports, Ref result,
              const char* use) {
  if (pieces.size() == 1) return start_one(engine, std::move(pieces[0]), reports, std::move(result), use);
  if (!is_absent(reports.source) || !is_absent(reports.remote) || !is_absent(reports.stream)) {
    throw base::Error(base::StatusCode::kUnsupported,
                      base::format("{} got `source`, `remote` or `stream` for a copy of {} pieces on several "
                                   "PEs; copy the part of each PE by itself",
                                   use, pieces.size()));
  }
  std::vector<rma::CopyPart> parts;
  parts.reserve(pieces.size());
  for (const Prepared& piece : pieces) parts.push_back({piece.runs, piece.from.end, piece.to.end});
  engine.pgas().expect_apart(parts);
  JointOperation joint(engine);
  for (Prepared& piece : pieces) {
    joint.keep(piece.from.keeper);
    joint.keep(piece.to.keeper);
    joint.add([&] {
      Ref no_stream;
      return start(engine, piece, reports, use, no_stream);
    });
  }
  return std::move(joint).operation(std::move(result));
}

// The errors begin with the last argument, or else with `use`.
template <class Prepare>
PyObject* copy_pieces(PyObject* const* values, Py_ssize_t count, const char* use, Prepare prepare) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments(use, {"pieces", "result", "source", "remote", "stream", "use"}, 2, values,
                              count, nullptr);
    const std::string called = arguments[5] == nullptr ? use : std::string(text_of(arguments[5]));
    Engine& engine = Engine::current();
    const Ref items = checked(PySequence_Fast(arguments[0], "pieces are a list"));
    std::vector<Prepared> pieces;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      pieces.push_back(prepare(engine, PySequence_Fast_GET_ITEM(items.get(), i), called.c_str()));
    return start_all(engine, std::move(pieces), {arguments[2], arguments[3], arguments[4]},
                     Ref::borrow(arguments[1]), called.c_str())
        .release();
  });
}

PyObject* copy_strided_pieces(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return copy_pieces(values, count, kStrided, &strided_piece);
}

PyObject* copy_indexed_pieces(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return copy_pieces(values, count, kIndexed,
                     [](Engine&, PyObject* piece, const char* use) { return indexed_piece(piece, use); });
}

// --- On a stream

PyObject* copy_on_stream(PyObject*, PyObject* const* values, Py_ssize_t num_values, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments("copy_on_stream", {"src", "dst", "count", "stream", "kind"}, 4, values,
                              num_values, names);
    Engine& engine = Engine::current();
    const GlobalPointerObject* const from = global_pointer_from(arguments[0], kOnStream);
    const GlobalPointerObject* const to = global_pointer_from(arguments[1], kOnStream);
    PythonEnd ends[] = {end_from(arguments[0], Access::kRead, kOnStream),
                        end_from(arguments[1], Access::kWrite, kOnStream)};
    expect_same_type(ends[0], ends[1], kOnStream);
    const std::int64_t count = integer_of(arguments[2]);
    if (count < 0) invalid(base::format("{} got {} elements to copy", kOnStream, count));
    const std::size_t size_bytes = make_form(from->dtype, {count}).size_bytes;
    if (is_absent(arguments[3])) invalid(base::format("{} takes a stream", kOnStream));
    PlacedStream named = placed_stream_from(arguments[3], arguments[4], kOnStream);
    rma::Done done =
        engine.pgas().enqueue_copy(from->address, to->address, size_bytes, named.place, named.stream.handle);
    return operation_of(engine, std::move(done), std::move(named.stream.keeper), Ref::borrow(Py_None))
        .release();
  });
}

PyMethodDef functions[] = {
    {"_copy", as_method(&copy), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"_copy_strided_pieces", as_method(&copy_strided_pieces), METH_FASTCALL, nullptr},
    {"_copy_indexed_pieces", as_method(&copy_indexed_pieces), METH_FASTCALL, nullptr},
    {"copy_on_stream", as_method(&copy_on_stream), METH_FASTCALL | METH_KEYWORDS,
     R"(copy_on_stream(src, dst, count, stream, kind=None)
--

Queues a copy on a stream of a device: it runs behind the work that is queued there, and later work waits for it. The CPU takes
no part.

Both segments must have been learned, see GlobalPointer.learn(). At least one is memory of the stream's device kind.

Args:
    src: a GlobalPointer.
    dst: a GlobalPointer of the same type.
    count: the number of elements.
    stream: as weft.stream_done() takes it.
    kind: the device of the stream, such as ``"cuda:1"``, if the stream does not name it.

Returns:
    a weft.Operation of None, which is over when the stream has done the copy.

Raises:
    weft.Error: a segment that this PE has not learned, or that the device does not reach.)"},
    {},
};

}  // namespace

Ref copy_between(Engine& engine, PyObject* from, PyObject* to, const CopyReports& reports, const char* use) {
  return copy_counted(engine, from, to, nullptr, reports, use);
}

void init_copies(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
