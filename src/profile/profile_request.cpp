#include "profile/profile_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/cost/collective_cost.hpp"
#include "model/cost/op_cost.hpp"

namespace stratplan {
namespace {

/// Collects the measurements that ops need, each of them once.
class Needs {
 public:
  void add(const Op& op) {
    if (const auto* compute = std::get_if<ComputeOp>(&op.body)) kernels_.insert(compute->kernel);
    if (const auto* load = std::get_if<LoadOp>(&op.body)) kernels_.insert(load_kernel(*load));
    if (const auto* collective = std::get_if<CollectiveOp>(&op.body)) {
      Bytes& largest = collectives_[{collective->op, collective->type,
                                     static_cast<int>(collective->group.size())}];
      largest = std::max(largest, collective->bytes());
      sums_gradients_ |= op.stream == Stream::Gradient;
    }
    if (const auto* exchange = std::get_if<ExchangeOp>(&op.body)) {
      for (const auto* messages : {&exchange->sends, &exchange->receives})
        for (const Message& message : *messages)
          largest_message_ = std::max(largest_message_, message.bytes);
    }
  }

  void request(const MachineProfile& known, ProfileRequest& request) {
    request.hidden = sums_gradients_ && !known.hidden;
    std::set<std::string> keys;
    for (const Kernel& kernel : kernels_) {
      const std::string key = kernel.key();
      if (!known.kernels.contains(key) && keys.insert(key).second)
        request.kernels.push_back(kernel);
    }
    // Other plans reduce, scatter and gather other tensors in groups of the same size, so all usual
    // collectives are requested.
    std::set<int> sizes;
    for (const auto& [key, largest] : collectives_) sizes.insert(std::get<int>(key));
    for (const int size : sizes)
      for (const auto& [op, type] : usual_) collectives_.try_emplace({op, type, size}, Bytes{4});
    for (const auto& [key, largest] : collectives_) {
      const auto& [op, type, size] = key;
      const auto table = known.collectives.find(collective_key(op, type, size));
      if (table == known.collectives.end() || !covers(table->second, largest))
        request.collectives.push_back({op, type, size, largest});
    }
    if (largest_message_.value > 0 &&
        !(covers(known.one_way, largest_message_) && covers(known.both_ways, largest_message_)))
      request.largest_message = largest_message_;
  }

 private:
  static constexpr std::array<std::pair<Collective, DataType>, 4> usual_{
      {{Collective::AllReduce, DataType::F32},
       {Collective::AllReduce, DataType::F64},
       {Collective::ReduceScatter, DataType::F32},
       {Collective::AllGather, DataType::F32}}};
  std::set<Kernel> kernels_;
  std::map<std::tuple<Collective, DataType, int>, Bytes> collectives_;
  Bytes largest_message_{};
  bool sums_gradients_ = false;
};

}  // namespace

bool serves(const MachineProfile& machine, int ranks, int threads_per_rank) {
  return machine.measured_ranks == ranks && machine.threads_per_rank == threads_per_rank;
}

bool covers(const SizeTable& table, Bytes bytes) {
  return !table.points.empty() && (table.points.back().first >= std::min(bytes, largest_measured) ||
                                   table.points.back().second.median >= slow_message);
}

ProfileRequest missing(std::span<const Program> programs, const MachineProfile& machine,
                       int threads_per_rank) {
  ProfileRequest request;
  request.threads_per_rank = threads_per_rank;
  Needs needs;
  for (const Program& program : programs) {
    SP_ASSERT(&program == &programs.front() || program.ranks == request.ranks,
              "the programs are for different numbers of ranks, {} and {}", request.ranks,
              program.ranks);
    request.ranks = program.ranks;
    for (const Op& op : program.ops) needs.add(op);
  }
  const bool known = serves(machine, request.ranks, threads_per_rank);
  request.device = !known;
  needs.request(known ? machine : MachineProfile{}, request);
  return request;
}

// -------------------------------------------------------------------------------------------------
// JSON

namespace {

constexpr int count_of(KernelKind) { return kernel_kind_count; }
constexpr int count_of(PointwiseFunction) { return std::ssize(all_pointwise_functions); }
constexpr int count_of(BinaryFunction) { return std::ssize(all_binary_functions); }
constexpr int count_of(Ends) { return std::ssize(ends_names); }
constexpr int count_of(Reduction) { return std::ssize(reduction_names); }
constexpr int count_of(DepthOrder) { return std::ssize(depth_order_names); }
constexpr int count_of(Rearranges) { return std::ssize(rearranges_names); }
constexpr int count_of(LossFunction) { return std::ssize(all_loss_functions); }
constexpr int count_of(DataType) { return data_type_count; }
constexpr int count_of(Collective) { return collective_count; }

template <class T>
concept Enumeration = std::is_enum_v<T>;
template <class T>
concept Number = std::is_arithmetic_v<T>;

/// Returns a value as JSON. A struct with a list of fields becomes an object, a variant its
/// content, an empty optional null, an enumerator its name, and a quantity its number. All else
/// becomes a list.
template <class Value>
Json json_of(const Value& value) {
  if constexpr (HasFields<Value>) {
    Json object = Json::object();
    visit_fields(value,
                 [&](const char* name, const auto& member) { object[name] = json_of(member); });
    return object;
  } else if constexpr (requires { value.index(); }) {
    return std::visit([](const auto& held) { return json_of(held); }, value);
  } else if constexpr (requires { value.has_value(); }) {
    return value ? json_of(*value) : Json();
  } else if constexpr (Enumeration<Value>) {
    return name_of(value);
  } else if constexpr (Number<Value>) {
    return value;
  } else if constexpr (requires { value.value; }) {
    return value.value;
  } else {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(json_of(element));
    return list;
  }
}

/// Reads the JSON that json_of() writes.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  template <HasFields Value>
  void read(const Json& json, Value& value, const std::string& pointer) const {
    if (!json.is_object()) fail(pointer, "an object", json);
    std::set<std::string> known;
    visit_fields(value, [&](const char* name, auto& member) {
      known.insert(name);
      const auto found = json.find(name);
      if (found == json.end())
        throw InputError(file_, pointer, fmt::format("expected a key \"{}\", found none", name));
      read(*found, member, fmt::format("{}/{}", pointer, name));
      if constexpr (requires { value.attributes = attributes_of(member); })
        value.attributes = attributes_of(member);  // the attributes that follow depend on the kind
    });
    for (const auto& [key, entry] : json.items())
      if (!known.contains(key))
        throw InputError(file_, pointer, fmt::format("unknown key \"{}\"", key));
  }

  template <class Value>
  void read(const Json& json, std::optional<Value>& value, const std::string& pointer) const {
    value.reset();
    if (!json.is_null()) read(json, value.emplace(), pointer);
  }

  template <class... Values>
  void read(const Json& json, std::variant<Values...>& value, const std::string& pointer) const {
    std::visit([&](auto& held) { read(json, held, pointer); }, value);
  }

  template <Enumeration Value>
  void read(const Json& json, Value& value, const std::string& pointer) const {
    if (!json.is_string()) fail(pointer, "a name", json);
    const auto name = json.get<std::string>();
    for (int i = 0; i < count_of(Value{}); ++i)
      if (name == name_of(static_cast<Value>(i))) return void(value = static_cast<Value>(i));
    throw InputError(file_, pointer, fmt::format("unknown name \"{}\"", name));
  }

  void read(const Json& json, bool& value, const std::string& pointer) const {
    if (!json.is_boolean()) fail(pointer, "true or false", json);
    value = json.get<bool>();
  }
  void read(const Json& json, double& value, const std::string& pointer) const {
    if (!json.is_number()) fail(pointer, "a number", json);
    value = json.get<double>();
  }
  void read(const Json& json, std::int64_t& value, const std::string& pointer) const {
    if (!json.is_number_integer()) fail(pointer, "an integer", json);
    value = json.get<std::int64_t>();
  }
  void read(const Json& json, int& value, const std::string& pointer) const {
    std::int64_t wide = 0;
    read(json, wide, pointer);
    if (!std::in_range<int>(wide)) fail(pointer, "an integer of 32 bits", json);
    value = static_cast<int>(wide);
  }
  void read(const Json& json, Bytes& value, const std::string& pointer) const {
    read(json, value.value, pointer);
  }

  template <class Element, std::size_t count>
  void read(const Json& json, std::array<Element, count>& value, const std::string& pointer) const {
    if (!json.is_array() || json.size() != count)
      fail(pointer, fmt::format("a list of {}", count), json);
    read_elements(json, value, pointer);
  }
  template <class Element>
  void read(const Json& json, std::vector<Element>& value, const std::string& pointer) const {
    if (!json.is_array()) fail(pointer, "a list", json);
    value.resize(json.size());
    read_elements(json, value, pointer);
  }

 private:
  template <class List>
  void read_elements(const Json& json, List& list, const std::string& pointer) const {
    for (std::size_t i = 0; i < list.size(); ++i)
      read(json[i], list[i], fmt::format("{}/{}", pointer, i));
  }
  [[noreturn]] void fail(const std::string& pointer, const std::string& expected,
                         const Json& found) const {
    throw InputError(file_, pointer,
                     fmt::format("expected {}, found {}", expected, found.type_name()));
  }

  const std::string& file_;
};

}  // namespace

Json to_json(const ProfileRequest& request) { return json_of(request); }

ProfileRequest request_from_json(const Json& document, const std::string& file) {
  ProfileRequest request;
  Reader(file).read(document, request, "");
  return request;
}

}  // namespace stratplan
