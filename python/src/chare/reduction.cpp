#include "chare/reduction.h"

#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/chare/sections.h"
#include "weft/runtime/reduction.h"
#include "weft/runtime/remote_error.h"

#include "await/future.h"
#include "base/format.h"
#include "buffers/arrays/array_elements.h"
#include "buffers/arrays/arrays.h"
#include "chare/calls/entry_method.h"
#include "chare/collections/combined_section.h"
#include "chare/collections/section.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/result.h"
#include "engine/ending.h"
#include "runtime/collective/reducer_failure.h"
#include "runtime/collective/reductions.h"
#include "support/errors.h"
#include "support/importable.h"

namespace weft::python {

namespace {

using runtime::Reducer;

// An encoded contribution: the key of the custom function, empty for the others, and the value.
struct ReducerChoice {
  Reducer reducer;
  ResultForm form;
  std::string function_key;
};

bool is_absent(PyObject* argument) { return argument == nullptr || argument == Py_None; }

// `value` without a reducer is refused; with neither, nothing is reduced.
ReducerChoice read_reducer(PyObject* value, PyObject* object) {
  if (is_absent(object)) {
    if (is_absent(value)) return {Reducer::kCustom, ResultForm::kNothing, {}};
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("a value ({}) is contributed without a reducer; name one, such as "
                                   "weft.Reducer.sum, or contribute neither",
                                   type_name_of(value)));
  }
  Ref kind = Ref::steal(PyObject_GetAttrString(object, "_kind"));
  Ref key = kind ? Ref::steal(PyObject_GetAttrString(object, "_function_key")) : Ref();
  if (!key || PyLong_Check(kind.get()) == 0) {
    PyErr_Clear();
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("a reducer is one of weft.Reducer's (sum, product, min, max, logical_and, gather, "
                     "...) or weft.Reducer.custom(function), not a {}",
                     type_name_of(object)));
  }
  auto reducer = static_cast<Reducer>(PyLong_AsLong(kind.get()));
  // The runtime would join packed C++ vectors for kConcat; here it gathers, and the lists are joined on
  // arrival.
  if (reducer == Reducer::kConcat) return {Reducer::kGather, ResultForm::kConcat, {}};
  if (reducer == Reducer::kGather) return {Reducer::kGather, ResultForm::kGather, {}};
  return {reducer, ResultForm::kReduced, std::string(text_of(key.get()))};
}

bool merge_numbers(Reducer reducer, PyObject* a, PyObject* b, Ref& merged) {
  bool floats = PyFloat_CheckExact(a) && PyFloat_CheckExact(b);
  bool ints = PyLong_CheckExact(a) && PyLong_CheckExact(b);
  if (!floats && !ints) return false;
  switch (reducer) {
    case Reducer::kSum:
      merged = checked(PyNumber_Add(a, b));
      return true;
    case Reducer::kProduct:
      merged = checked(PyNumber_Multiply(a, b));
      return true;
    default:
      return false;
  }
}

Ref merge_values(Reducer reducer, std::string_view function_key, PyObject* a, PyObject* b) {
  if (reducer == Reducer::kCustom) {
    Ref function = import_key(function_key);
    return checked(PyObject_CallFunctionObjArgs(function.get(), a, b, nullptr));
  }
  Ref merged;
  if (merge_numbers(reducer, a, b, merged)) return merged;
  Ref merge = import_from("weft._chare.reducers", "merge");
  return checked(PyObject_CallFunction(merge.get(), "iOO", static_cast<int>(reducer), a, b));
}

// Arrays are merged without NumPy if they are large. The name of a custom reducer's function precedes the value.
runtime::ElementLayout layout_of_value(Reducer reducer, std::span<const std::byte> packed) {
  constexpr std::size_t kNoName = sizeof(std::uint16_t);
  if (packed.size() < kNoName || packed[0] != std::byte{0} || packed[1] != std::byte{0}) return {};
  runtime::ElementLayout layout = array_layout(reducer, packed.subspan(kNoName));
  layout.first_element += kNoName;
  return layout;
}

// Returns whether it has merged the two, both large arrays of one form.
bool merge_large_arrays(Reducer reducer, std::span<std::byte> accumulated, std::span<const std::byte> more) {
  if (accumulated.size() < runtime::kLargeContributionBytes || accumulated.size() != more.size())
    return false;
  const runtime::ElementLayout layout = layout_of_value(reducer, accumulated);
  if (layout.merge == nullptr || std::memcmp(accumulated.data(), more.data(), layout.first_element) != 0)
    return false;
  std::byte* const into = accumulated.data() + layout.first_element;
  layout.merge(reducer, into, into, more.data() + layout.first_element,
               (accumulated.size() - layout.first_element) / layout.element_bytes);
  return true;
}

std::string name_for_messages(Reducer reducer, const std::string& function_key) {
  return function_key.empty() ? base::format("weft.Reducer.{}", runtime::reducer_name(reducer))
                              : base::format("weft.Reducer.custom({})", function_key);
}

// REQUIRES: both name the same function.
void merge_encoded(Reducer reducer, Decoder& left, Decoder& right, const std::string& function_key,
                   std::vector<std::byte>& merged) {
  Ref a = left.value();
  Ref b = right.value();
  Ref both = merge_values(reducer, function_key, a.get(), b.get());
  Encoder encoder;
  encoder.name(function_key);
  encoder.value(both.get());
  merged = encoder.copy();
  end_if_forked();
}

// An exception takes the place of the merged value. It goes where the result would go: to the callers that await it, or to an entry
// method, which then ends the job.
void combine(runtime::Runtime& runtime, Reducer reducer, std::vector<std::byte>& accumulated,
             std::span<const std::byte> more) {
  if (merge_large_arrays(reducer, accumulated, more)) return;
  std::string function_key;
  std::exception_ptr error;
  try {
    Decoder left{std::span<const std::byte>(accumulated)};
    Decoder right{more};
    function_key = left.name();
    if (right.name() != function_key) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          "contributors to one reduction name different functions in weft.Reducer.custom; each element "
          "must name the same");
    }
    return merge_encoded(reducer, left, right, function_key, accumulated);
  } catch (const base::RemoteError&) {  // an earlier merge has raised it
    error = std::current_exception();
  } catch (...) {
    end_if_forked();
    // SystemExit in a custom reducer ends the job with its code.
    if (PyErr_Occurred() != nullptr && ended_by_exception(Engine::current()))
      throw runtime::AbandonedReduction();
    const std::string place = runtime::place_of_merge(runtime, name_for_messages(reducer, function_key));
    error = runtime::as_remote_error(caught_as_travelling_error(), "in " + place);
  }
  Encoder encoder;
  encoder.name(function_key);
  encoder.raised(error);
  accumulated = encoder.copy();
}

runtime::Combiner combiner{"weft::python value", &combine, 0, &layout_of_value};
const bool registered = runtime::Registry<runtime::Combiner>::add(&combiner);

// The contribution as the reducer takes it, see weft._chare.reducers.
Ref prepare(const ReducerChoice& choice, PyObject* value) {
  const bool is_numeric = choice.form == ResultForm::kReduced && choice.reducer != Reducer::kCustom;
  const bool joins = choice.form == ResultForm::kConcat;
  // Usual contributions are taken as they are, without a call of Python.
  const bool is_plain =
      is_array_of_numbers(value) ||
      (joins ? PyList_CheckExact(value) : PyFloat_CheckExact(value) || PyLong_CheckExact(value));
  if (!(is_numeric || joins) || (is_plain && !runtime::is_logical(choice.reducer))) return Ref::borrow(value);
  static constinit Imported function("weft._chare.reducers", "prepared");
  const auto kind = static_cast<int>(joins ? Reducer::kConcat : choice.reducer);
  return checked(PyObject_CallFunction(function.get(), "iO", kind, value));
}

std::vector<std::byte> pack_value(const std::function<std::string()>& who, const ReducerChoice& choice,
                                  PyObject* value) {
  static_cast<void>(registered);
  if (choice.form == ResultForm::kNothing) return {};
  if (value == nullptr) value = Py_None;
  // Before it is sent: the only contribution to a reduction is merged with none.
  const Ref prepared = prepare(choice, value);
  value = prepared.get();
  Encoder encoder;
  if (choice.form == ResultForm::kReduced) encoder.name(choice.function_key);
  try {
    encoder.value(value);
  } catch (const PythonError&) {
    rethrow_unsendable(base::format("the contribution of {}", who()));
  }
  if (encoder.size_bytes() < runtime::kLargeContributionBytes) return encoder.copy();
  std::vector<std::byte> packed =
      runtime::large_contribution_memory(Engine::current().runtime(), encoder.size_bytes());
  encoder.copy_to(packed.data());
  return packed;
}

const runtime::Combiner* combiner_of(const ReducerChoice& choice) {
  if (choice.form == ResultForm::kNothing) return runtime::nothing_combiner();
  return choice.form == ResultForm::kReduced ? &combiner : nullptr;
}

runtime::Target read_target(PyObject* target, ResultForm form) {
  if (is_future(target)) {
    runtime::FutureAddress at = future_state(target)->address();
    runtime::Target result;
    result.handler = runtime::kFutureSetHandler;
    result.pe = at.pe;
    result.prefix = base::pack(runtime::FutureSetHeader{at.id, 0});
    result.prefix.push_back(static_cast<std::byte>(form));
    return result;
  }
  if (auto method = target_of_method(target, static_cast<std::uint8_t>(form))) return *std::move(method);
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format("a target is a weft.Future or an entry method such as proxy[0].method, not a {}",
                   type_name_of(target)));
}

std::function<std::string()> whereabouts(PyChare& chare) {
  return [&chare] { return chare.where(); };
}

}  // namespace

Contribution contribution_of(PyObject* value, PyObject* reducer, std::function<std::string()> who) {
  const ReducerChoice choice = read_reducer(value, reducer);
  return {choice.reducer, choice.form, combiner_of(choice),
          [who = std::move(who), choice, value] { return pack_value(who, choice, value); }};
}

runtime::Target target_without_value(PyObject* target) { return read_target(target, ResultForm::kNothing); }

void contribute_to_target(PyChare& chare, PyObject* value, PyObject* reducer, PyObject* target,
                          PyObject* section) {
  static_cast<void>(Engine::current());  // refuses other threads
  if (!is_absent(section) && !is_section(section) && !is_combined_section(section)) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("section is a weft.Section, such as self.proxy[::2], not a {}", type_name_of(section)));
  }
  ReducerChoice choice = read_reducer(value, reducer);
  runtime::Target to = read_target(target, choice.form);
  std::vector<std::byte> packed = pack_value(whereabouts(chare), choice, value);
  if (!is_absent(section) && is_combined_section(section)) {
    return chare.collection().chares().sections().contribute(chare, *combined_section(section)->members,
                                                             choice.reducer, combiner_of(choice), packed, to);
  }
  if (!is_absent(section)) {
    return chare.collection().chares().sections().contribute(chare, *section_core(section).collection,
                                                             *section_members(section), choice.reducer,
                                                             combiner_of(choice), packed, to);
  }
  chare::Chares& chares = chare.collection().chares();
  if (packed.size() >= runtime::kLargeContributionBytes) {
    chares.contribute_large(chare, choice.reducer, combiner_of(choice), std::move(packed), to);
  } else {
    chares.contribute(chare, choice.reducer, combiner_of(choice), packed, to);
  }
}

Ref contribute_to_all(PyChare& chare, PyObject* value, PyObject* reducer) {
  ReducerChoice choice = read_reducer(value, reducer);
  std::vector<std::byte> packed = pack_value(whereabouts(chare), choice, value);
  auto* state = new PyFutureState(Engine::current());
  Ref future = make_future_object(state);
  state->expect_bare(choice.form);
  chare::Chares& chares = chare.collection().chares();
  if (packed.size() >= runtime::kLargeContributionBytes) {
    chares.contribute_large_to_all(chare, choice.reducer, combiner_of(choice), std::move(packed), state);
  } else {
    chares.contribute_to_all(chare, choice.reducer, combiner_of(choice), packed, state);
  }
  return future;
}

}  // namespace weft::python
