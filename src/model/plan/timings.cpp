#include "model/plan/timings.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"

namespace stratplan {
namespace {

std::string label_of(const Op& op, const Program& program) {
  if (const auto* compute = std::get_if<ComputeOp>(&op.body)) return compute->kernel.key();
  if (const auto* load = std::get_if<LoadOp>(&op.body)) return to_string(load->region);
  if (const auto* collective = std::get_if<CollectiveOp>(&op.body))
    return fmt::format("{} {} bytes over {} ranks", name_of(collective->op),
                       collective->bytes().value, collective->group.size());
  Bytes sent{};
  const auto& exchange = std::get<ExchangeOp>(op.body);
  for (const Message& message : exchange.sends) sent += message.bytes;
  return fmt::format("rank {} of {} sends {} bytes", program.rank, program.ranks, sent.value);
}

Json op_to_json(const Op& op, const Program& program, const Network& network) {
  Json document = {{"layer", op.layer >= 0 ? network.layer(op.layer).name : ""}};
  if (op.producer >= 0) document["producer"] = network.layer(op.producer).name;
  document["phase"] = name_of(op.phase);
  document["track"] = name_of(op.stream);
  document["kind"] = kind_of(op);
  document["label"] = label_of(op, program);
  return document;
}

Json ranks_to_json(const Timing& timing, const std::vector<Program>& programs,
                   const Network& network) {
  Json ranks = Json::array();
  for (std::size_t rank = 0; rank < timing.op_medians.size(); ++rank) {
    Json steps = Json::array();
    for (std::size_t s = 0; s < programs[rank].ops.size(); ++s) {
      steps.push_back(op_to_json(programs[rank].ops[s], programs[rank], network));
      steps.back()["median_seconds"] = timing.op_medians[rank][s].value;
      if (timing.op_p10.empty()) continue;
      steps.back()["p10_seconds"] = timing.op_p10[rank][s].value;
      steps.back()["p90_seconds"] = timing.op_p90[rank][s].value;
    }
    ranks.push_back({{"rank", rank}, {"steps", steps}});
  }
  return ranks;
}

Json to_json(const RecordedStep& step) {
  Json ranks = Json::array();
  for (std::size_t rank = 0; rank < step.ranks.size(); ++rank) {
    Json spans = Json::array();
    for (const Span& span : step.ranks[rank])
      spans.push_back(Json::array({span.start.value, span.end.value}));
    ranks.push_back({{"rank", rank},
                     {"clock_error_seconds", step.clock_errors[rank].value},
                     {"spans", std::move(spans)}});
  }
  return {{"iteration", step.iteration}, {"start_seconds", step.start.value}, {"ranks", ranks}};
}

RecordedStep recorded_from(const Json& document) {
  RecordedStep step{document.at("iteration"), {document.at("start_seconds")}, {}, {}};
  for (const Json& rank : document.at("ranks")) {
    step.clock_errors.push_back({rank.at("clock_error_seconds").get<double>()});
    std::vector<Span>& spans = step.ranks.emplace_back();
    for (const Json& span : rank.at("spans"))
      spans.push_back({static_cast<int>(spans.size()), {span.at(0)}, {span.at(1)}});
  }
  return step;
}

Json to_json(const std::vector<RunPart>& parts) {
  Json list = Json::array();
  for (const RunPart& part : parts)
    list.push_back({{"what", name_of(part.what)},
                    {"iteration", part.iteration},
                    {"start_seconds", part.start.value},
                    {"end_seconds", part.end.value}});
  return list;
}

std::vector<RunPart> parts_from(const Json& list) {
  std::vector<RunPart> parts;
  for (const Json& item : list) {
    RunPart& part = parts.emplace_back();
    for (int i = 0; i < run_part_count; ++i)
      if (item.at("what") == name_of(static_cast<RunPart::What>(i)))
        part.what = static_cast<RunPart::What>(i);
    part.iteration = item.at("iteration");
    part.start = {item.at("start_seconds")};
    part.end = {item.at("end_seconds")};
  }
  return parts;
}

/// Infinity and NaN become null, since JSON has neither.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

/// Returns the number `key` of each op of each rank; nothing if an op lacks it.
std::vector<std::vector<Seconds>> ops_from(const Json& ranks, const char* key) {
  std::vector<std::vector<Seconds>> result;
  for (const Json& rank : ranks) {
    result.emplace_back();
    for (const Json& step : rank.at("steps")) {
      if (!step.contains(key)) return {};
      result.back().push_back({step.at(key).get<double>()});
    }
  }
  return result;
}

}  // namespace

Json to_json(const VerificationResult& verification) {
  return {{"passed", verification.passed},
          {"loss_difference", finite(verification.loss_difference)},
          {"gradient_difference", finite(verification.gradient_difference)},
          {"worst_tensor", verification.worst_tensor},
          {"tolerance", verification.tolerance},
          {"turned_decisions", verification.turned}};
}

VerificationResult verification_from(const Json& document) {
  return {number(document.value("loss_difference", Json())),
          number(document.value("gradient_difference", Json())),
          document.value("worst_tensor", ""),
          document.value("tolerance", 0.0),
          document.value("turned_decisions", std::int64_t{0}),
          document.at("passed")};
}

Json to_json(const ReplayCount& replays) {
  return {{"graphs", replays.segments}, {"steps", replays.ops}, {"all_steps", replays.all_ops}};
}

Json step_seconds_to_json(const Timing& timing) {
  Json samples = Json::array();
  for (const Seconds step : timing.steps) samples.push_back(step.value);
  return {{"median", timing.median().value},
          {"p10", timing.quantile(0.1).value},
          {"p90", timing.quantile(0.9).value},
          {"samples", samples}};
}

Json to_json(const Timings& timings, const std::vector<Program>& programs, const Network& network,
             const Provenance& provenance) {
  Json losses = Json::array();
  for (const double loss : timings.timing.losses) losses.push_back(finite(loss));
  Json document = {
      {"schema_version", 1},
      {"provenance", provenance.json()},
      {"plan",
       {{"name", timings.plan_name},
        {"network", timings.network_source},
        {"network_fingerprint", timings.network_fingerprint},
        {"fingerprint", timings.plan_fingerprint},
        {"batch", timings.batch},
        {"precision", name_of(timings.activations)},
        {"ranks", timings.ranks}}},
      {"backend", timings.backend},
      {"machine", {{"name", timings.machine_name}, {"fingerprint", timings.machine_fingerprint}}},
      {"threads_per_rank", timings.threads_per_rank},
      {"seed", timings.seed},
      {"memory_bytes", timings.memory.value},
      {"step_seconds", step_seconds_to_json(timings.timing)},
      {"losses", losses},
      {"ranks", ranks_to_json(timings.timing, programs, network)},
  };
  if (timings.resident.value > 0) document["resident_bytes"] = timings.resident.value;
  if (!timings.data.empty()) document["data"] = timings.data;
  if (timings.replays) document["cuda_graphs"] = to_json(*timings.replays);
  if (timings.timing.launched > 0) document["launched_iterations"] = timings.timing.launched;
  if (!timings.parts.empty()) document["parts"] = to_json(timings.parts);
  if (timings.timing.recorded.iteration >= 0)
    document["recorded_step"] = to_json(timings.timing.recorded);
  if (timings.verification) document["verification"] = to_json(*timings.verification);
  return document;
}

void check_match(const Timings& timings, const std::string& file, const PlanAndNetwork& planned,
                 const std::string& plan_file) {
  const auto require = [&](bool same, const char* pointer, const std::string& what) {
    if (!same) throw InputError(file, pointer, what);
  };
  const Plan& plan = planned.plan;
  require(timings.batch == planned.network.batch, "/plan/batch",
          fmt::format("measured with batch {}, but the plan has batch {}", timings.batch,
                      planned.network.batch));
  require(
      timings.ranks == plan.ranks, "/plan/ranks",
      fmt::format("measured on {} ranks, but the plan has {} ranks", timings.ranks, plan.ranks));
  require(
      timings.network_fingerprint == planned.network.fingerprint(), "/plan/network_fingerprint",
      fmt::format("measured with another network (fingerprint {}) than the plan's (fingerprint {})",
                  timings.network_fingerprint, planned.network.fingerprint()));
  require(timings.plan_fingerprint == fingerprint(plan), "/plan/fingerprint",
          fmt::format("measured with the plan {}, which differs from {}", timings.plan_name,
                      plan_file));
}

Timings read_timings(const std::string& path) {
  const Json document = read_document(path, "timings");
  Timings timings;
  const Json& plan = document.at("plan");
  timings.plan_name = plan.at("name");
  timings.network_source = plan.at("network");
  timings.network_fingerprint = plan.value("network_fingerprint", "");
  timings.plan_fingerprint = plan.value("fingerprint", "");
  timings.batch = plan.at("batch");
  timings.ranks = plan.at("ranks");
  const std::string precision = plan.value("precision", name_of(DataType::F32));
  for (const DataType type : {DataType::F16, DataType::BF16})
    if (precision == name_of(type)) timings.activations = type;
  const Json machine = document.value("machine", Json::object());
  timings.machine_name = machine.value("name", "");
  timings.machine_fingerprint = machine.value("fingerprint", "");
  timings.backend = document.value("backend", "");
  timings.threads_per_rank = document.value("threads_per_rank", 1);
  timings.seed = document.value("seed", std::uint64_t{0});
  timings.data = document.value("data", "");
  timings.memory = {document.value("memory_bytes", std::int64_t{0})};
  timings.resident = {document.value("resident_bytes", std::int64_t{0})};
  for (const Json& sample : document.at("step_seconds").at("samples"))
    timings.timing.steps.push_back({sample.get<double>()});
  if (timings.timing.steps.empty())
    throw InputError(path, "/step_seconds/samples", "expected at least one sample");
  for (const Json& loss : document.at("losses")) timings.timing.losses.push_back(number(loss));
  for (const auto& [key, of_ranks] : {std::pair{"median_seconds", &timings.timing.op_medians},
                                      {"p10_seconds", &timings.timing.op_p10},
                                      {"p90_seconds", &timings.timing.op_p90}})
    *of_ranks = ops_from(document.at("ranks"), key);
  timings.timing.launched = document.value("launched_iterations", 0);
  if (document.contains("cuda_graphs")) {
    const Json& graphs = document.at("cuda_graphs");
    timings.replays = {graphs.at("graphs"), graphs.at("steps"), graphs.at("all_steps")};
  }
  if (document.contains("parts")) timings.parts = parts_from(document.at("parts"));
  if (document.contains("recorded_step"))
    timings.timing.recorded = recorded_from(document.at("recorded_step"));
  if (document.contains("verification"))
    timings.verification = verification_from(document.at("verification"));
  return timings;
}

}  // namespace stratplan
