#include "profile/profile_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/cost/collective_cost.hpp"
#include "model/cost/step_cost.hpp"

namespace stratplan {
namespace {

/// Gathers what steps need; each thing once.
class Needs {
 public:
  void add(const Step& step) {
    if (const auto* compute = std::get_if<ComputeStep>(&step.body))
      kernels_.insert(compute->kernel);
    if (const auto* load = std::get_if<LoadStep>(&step.body)) kernels_.insert(load_kernel(*load));
    if (const auto* collective = std::get_if<CollectiveStep>(&step.body)) {
      Bytes& largest = collectives_[{collective->op, collective->type,
                                     static_cast<int>(collective->group.size())}];
      largest = std::max(largest, collective->bytes());
      sums_gradients_ |= step.track == Track::Gradient;
    }
    if (const auto* exchange = std::get_if<ExchangeStep>(&step.body)) {
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
    // Whoever reduces with a group will reduce, scatter and gather other things with it under another plan.
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
              "programs for {} and for {} ranks", request.ranks, program.ranks);
    request.ranks = program.ranks;
    for (const Step& step : program.steps) needs.add(step);
  }
  const bool known = serves(machine, request.ranks, threads_per_rank);
  request.device = !known;
  needs.request(known ? machine : MachineProfile{}, request);
  return request;
}

// ------------------------------------------------------------------------------------------------------------------ JSON

namespace {

Json to_json(const Kernel& kernel) {
  Json windows = Json::array();
  for (const Window& w : kernel.windows)
    windows.push_back({w.kernel, w.stride, w.dilation, w.pad_before, w.pad_after});
  Json scales = Json::array();
  for (const Scale& s : kernel.scales)
    scales.push_back({s.factor, static_cast<std::int64_t>(s.linear), s.phase});
  const StatisticsSets& sets = kernel.sets;
  return {{"kind", name_of(kernel.kind)},
          {"x", kernel.x.extent},
          {"y", kernel.y.extent},
          {"windows", std::move(windows)},
          {"bias", kernel.bias},
          {"count_padding", kernel.count_padding},
          {"accumulate", kernel.accumulate},
          {"inputs", kernel.inputs},
          {"groups", kernel.groups},
          {"type", name_of(kernel.type)},
          {"scalar", kernel.scalar},
          {"sets",
           {sets.set_samples, sets.first_sample, sets.first_set, sets.sets, sets.batch,
            sets.positions}},
          {"region", kernel.region.extent},
          {"from", kernel.from},
          {"to", kernel.to},
          {"scales", std::move(scales)},
          {"activation", name_of(kernel.activation)},
          {"slope", kernel.slope},
          {"addend", kernel.addend},
          {"scaled", kernel.scaled}};
}

/// The value of an enumeration whose name is at `name` of `json`.
template <class Enum>
Enum named(const Json& json, int count) {
  const auto name = json.get<std::string>();
  for (int i = 0; i < count; ++i)
    if (name == name_of(static_cast<Enum>(i))) return static_cast<Enum>(i);
  throw std::invalid_argument("unknown name \"" + name + "\"");
}

Kernel kernel_from(const Json& json) {
  Kernel kernel;
  kernel.kind = named<KernelKind>(json.at("kind"), kernel_kind_count);
  json.at("x").get_to(kernel.x.extent);
  json.at("y").get_to(kernel.y.extent);
  for (std::size_t i = 0; i < kernel.windows.size(); ++i) {
    const auto w = json.at("windows").at(i).get<std::array<std::int64_t, 5>>();
    kernel.windows[i] = {w[0], w[1], w[2], w[3], w[4]};
  }
  kernel.bias = json.at("bias").get<bool>();
  kernel.count_padding = json.at("count_padding").get<bool>();
  kernel.accumulate = json.at("accumulate").get<bool>();
  kernel.inputs = json.at("inputs").get<int>();
  kernel.groups = json.at("groups").get<std::int64_t>();
  kernel.type = named<DataType>(json.at("type"), 5);
  kernel.scalar = json.at("scalar").get<double>();
  const auto s = json.at("sets").get<std::array<std::int64_t, 6>>();
  kernel.sets = {s[0], s[1], s[2], s[3], s[4], s[5]};
  json.at("region").get_to(kernel.region.extent);
  json.at("from").get_to(kernel.from);
  json.at("to").get_to(kernel.to);
  for (std::size_t i = 0; i < kernel.scales.size(); ++i) {
    const auto scale = json.at("scales").at(i).get<std::array<std::int64_t, 3>>();
    kernel.scales[i] = {scale[0], scale[1] != 0, scale[2]};
  }
  kernel.activation = named<Activation>(json.at("activation"), activation_count);
  kernel.slope = json.at("slope").get<double>();
  kernel.addend = json.at("addend").get<bool>();
  kernel.scaled = json.at("scaled").get<bool>();
  return kernel;
}

Json to_json(const CollectiveRequest& request) {
  return {{"op", name_of(request.op)},
          {"type", name_of(request.type)},
          {"group_size", request.group_size},
          {"largest_bytes", request.largest.value}};
}

CollectiveRequest collective_from(const Json& json) {
  return {named<Collective>(json.at("op"), 3),
          named<DataType>(json.at("type"), 5),
          json.at("group_size").get<int>(),
          {json.at("largest_bytes").get<std::int64_t>()}};
}

/// Reads each element of a list; whatever is wrong with one is reported with its place.
template <class T, class Read>
std::vector<T> list_from(const Json& document, const char* key, const std::string& file,
                         Read read) {
  std::vector<T> list;
  const Json& elements = document.at(key);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    try {
      list.push_back(read(elements[i]));
    } catch (const std::exception& error) {
      throw InputError(file, fmt::format("/{}/{}", key, i), error.what());
    }
  }
  return list;
}

}  // namespace

Json to_json(const ProfileRequest& request) {
  Json collectives = Json::array(), kernels = Json::array();
  for (const CollectiveRequest& collective : request.collectives)
    collectives.push_back(to_json(collective));
  for (const Kernel& kernel : request.kernels) kernels.push_back(to_json(kernel));
  return {{"ranks", request.ranks},
          {"threads_per_rank", request.threads_per_rank},
          {"device", request.device},
          {"hidden", request.hidden},
          {"largest_message_bytes", request.largest_message.value},
          {"collectives", std::move(collectives)},
          {"kernels", std::move(kernels)}};
}

ProfileRequest request_from_json(const Json& document, const std::string& file) {
  ProfileRequest request;
  try {
    request.ranks = document.at("ranks").get<int>();
    request.threads_per_rank = document.at("threads_per_rank").get<int>();
    request.device = document.at("device").get<bool>();
    request.hidden = document.at("hidden").get<bool>();
    request.largest_message = {document.at("largest_message_bytes").get<std::int64_t>()};
    request.collectives =
        list_from<CollectiveRequest>(document, "collectives", file, collective_from);
    request.kernels = list_from<Kernel>(document, "kernels", file, kernel_from);
  } catch (const nlohmann::json::exception& error) {
    throw InputError(file, "", error.what());
  }
  return request;
}

}  // namespace stratplan
