#include "pgas/teams/remote_calls.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "await/coroutine.h"
#include "base/format.h"
#include "codec/decoder.h"
#include "engine/ending.h"
#include "pgas/teams/dist_object.h"
#include "pgas/teams/encoded_calls.h"
#include "support/errors.h"
#include "support/importable.h"

namespace weft::python {

namespace {

using pgas::rpc_detail::ObjectNumber;

constexpr std::uint8_t kMostObjects = 255;

// The distributed objects among the arguments themselves, not inside them. Throws base::Error if PE `target` has no object;
// -1: the target is not known.
std::vector<ObjectNumber> objects_among(PyObject* arguments, PyObject* keywords, int target) {
  std::vector<ObjectNumber> objects;
  const auto visit = [&objects, target](PyObject* value) {
    if (!is_dist_object(value) || objects.size() >= kMostObjects) return;
    const pgas::ObjectName& name = dist_object_name(value);
    if (target >= 0) pgas::rpc_detail::expect_member(name.team(), target);
    objects.push_back(name.where());
  };
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); ++i) visit(PyTuple_GET_ITEM(arguments, i));
  Py_ssize_t at = 0;
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  while (keywords != nullptr && PyDict_Next(keywords, &at, &name, &value) != 0) visit(value);
  return objects;
}

void encode_call(Encoder& encoder, std::string_view key, PyObject* arguments, PyObject* keywords,
                 int target) {
  encoder.name(key);
  const std::vector<ObjectNumber> objects = objects_among(arguments, keywords, target);
  encoder.number(static_cast<std::uint8_t>(objects.size()));
  for (const ObjectNumber& object : objects) encoder.number(object);
  encoder.arguments(std::array{arguments, keywords == nullptr ? Py_None : keywords});
}

class RpcCoroutine final : public Coroutine {
 public:
  RpcCoroutine(Engine& engine, Ref coroutine, const pgas::RpcCall& call, std::string name)
      : Coroutine(engine, std::move(coroutine)), call_(call), name_(std::move(name)) {}

 private:
  void returned(Ref result) override {
    try {
      reply_value(call_, result.get());
    } catch (...) {
      reply_error(call_, name_);
    }
  }
  void raised() override {
    try {
      throw PythonError();
    } catch (...) {
      reply_error(call_, name_);
    }
  }

  pgas::RpcCall call_;
  std::string name_;
};

void run_function(const pgas::RpcCall& call, Decoder& decoder, std::string_view key) {
  const Ref arguments = decoder.value();
  const Ref keywords = decoder.value();
  const bool has_keywords = keywords.get() != Py_None;
  if (PyTuple_Check(arguments.get()) == 0 || (has_keywords && PyDict_Check(keywords.get()) == 0))
    Decoder::corrupt("the arguments of a call");
  const Ref function = import_key(key);
  Ref result =
      checked(PyObject_Call(function.get(), arguments.get(), has_keywords ? keywords.get() : nullptr));
  end_if_forked();
  if (is_coroutine(result.get())) {
    (new RpcCoroutine(Engine::current(), std::move(result), call, std::string(name_in_key(key))))->start();
  } else {
    reply_value(call, result.get());
  }
}

bool invoke_function(pgas::RpcCall& call, Pup& p) {
  std::string key;
  try {
    Decoder decoder(p);
    key = decoder.name();
    const auto num_objects = decoder.number<std::uint8_t>();
    for (int i = 0; i < num_objects; ++i) {
      const auto object = decoder.number<ObjectNumber>();
      if (pgas::rpc_detail::find_object(call.runtime(), object) != nullptr) continue;
      call.missing = object;
      return false;
    }
    run_function(call, decoder, key);
  } catch (...) {
    end_if_forked();
    reply_error(call, name_in_key(key));
  }
  return true;
}

pgas::RpcInfo function_info{"weft::python function", &invoke_function, 0};
const bool function_registered = runtime::Registry<pgas::RpcInfo>::add(&function_info);

void encode_or_say(Encoder& encoder, std::string_view key, PyObject* arguments, PyObject* keywords,
                   int target) {
  try {
    encode_call(encoder, key, arguments, keywords, target);
  } catch (const PythonError&) {
    rethrow_unsendable(base::format("an argument of {}", name_in_key(key)));
  }
}

}  // namespace

Ref call_remotely(Engine& engine, const pgas::Team& team, int rank, PyObject* function, PyObject* arguments,
                  PyObject* keywords) {
  const std::string key = importable_key(function, "Team.rpc takes a function of a module, and");
  Encoder encoder(OutOfBand::kLarge);
  encode_or_say(encoder, key, arguments, keywords, team.pe_of(rank));
  return send_with_result(engine, team, rank, function_info, encoder,
                          base::format("the call of {} on rank {}", name_in_key(key), rank));
}

void call_remotely_ff(const pgas::Team& team, int rank, PyObject* function, PyObject* arguments,
                      PyObject* keywords) {
  const std::string key = importable_key(function, "Team.rpc_ff takes a function of a module, and");
  Encoder encoder(OutOfBand::kLarge);
  encode_or_say(encoder, key, arguments, keywords, team.pe_of(rank));
  static_cast<void>(function_registered);
  send_without_result(team, rank, function_info, encoder);
}

rma::RemoteCompletion pack_remote_call(PyObject* function, PyObject* arguments, const char* what) {
  const std::string key = importable_key(function, what);
  Encoder encoder;
  encode_or_say(encoder, key, arguments, nullptr, -1);
  return {function_info.id, encoder.copy()};
}

}  // namespace weft::python
