#include "runtime/exec/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/assert.hpp"
#include "model/base/system/cpu_time.hpp"
#include "runtime/device/float16.hpp"
#include "runtime/exec/losses.hpp"

namespace stratplan {
namespace {

/// All kernels run on one stream, which keeps them in program order on any device.
constexpr Stream compute_stream = Stream::Compute;

constexpr std::array streams{Stream::Compute, Stream::Halo, Stream::Gradient};

}  // namespace

StepNumbers TrainingSettings::numbers_at(std::int64_t step, double rate) const {
  const auto updates = static_cast<double>(step + 1);
  return {step, rate * learning_rate_at(step), 1 - std::pow(beta1, updates),
          1 - std::pow(beta2, updates)};
}

Executor::Executor(const Network& network, const Program& program, Backend& backend,
                   Communicator& communicator, DataSource& data, const TrainingSettings& settings,
                   FlightRecorder recorder)
    : network_(network),
      program_(program),
      backend_(backend),
      communicator_(communicator),
      data_(data),
      settings_(settings),
      recorder_(std::move(recorder)) {
  SP_ASSERT(program.rank == communicator.rank() && program.ranks == communicator.size(),
            "the program of rank {} of {} runs on rank {} of {}", program.rank, program.ranks,
            communicator.rank(), communicator.size());
  memory_.arena = program.arena;
  memory_.persistent = program.persistent;
  arena_ = allocate(memory_.arena);
  persistent_ = allocate(memory_.persistent);
  fill(persistent_, memory_.persistent, 0);
  told_ = allocate_host(step_numbers());
  now_ = allocate(step_numbers());
  for (const Op& op : program.ops) prepared_.push_back(prepare(op));
  for (const auto& [kernel, prepared] : kernels_)
    memory_.workspace = std::max(memory_.workspace, prepared->workspace());
  workspace_ = allocate(memory_.workspace);
  for (std::size_t i = 0; i < program.ops.size(); ++i)
    spans_.push_back({static_cast<int>(i), {}, {}});
  begins_.assign(program.ops.size(), Backend::none);
  ends_ = begins_;
  std::vector<std::vector<Stream>> awaited = awaited_streams(program);
  for (std::size_t i = 0; i < awaited.size(); ++i) prepared_[i].awaits = std::move(awaited[i]);
  if (program.concurrent_streams)
    for (const Stream stream : streams)
      under_way_[static_cast<std::size_t>(stream)].reserve(program.ops.size());
  communicator.overlap(program.concurrent_streams);
}

Executor::DeviceMemory Executor::allocate(Bytes bytes) {
  return DeviceMemory(bytes.value > 0 ? backend_.allocate(bytes) : nullptr, {&backend_});
}
Executor::HostMemory Executor::allocate_host(Bytes bytes) {
  return HostMemory(backend_.allocate_host(bytes), {&backend_});
}

std::byte* Executor::address(BufferId id) const {
  const Buffer& buffer = program_.buffer(id);
  if (buffer.inside >= 0) return address(buffer.inside) + buffer.offset.value;
  return static_cast<std::byte*>(buffer.persistent ? persistent_.get() : arena_.get()) +
         buffer.offset.value;
}

Executor::Prepared Executor::prepare(const Op& op) {
  Prepared prepared;
  for (const BufferId read : op.reads) prepared.reads.push_back(address(read));
  for (const BufferId write : op.writes) prepared.writes.push_back(address(write));
  if (const auto* compute = std::get_if<ComputeOp>(&op.body)) {
    prepared.kernel = prepare(compute->kernel);
    prepared.context = context_of(op);
  } else if (const auto* exchange = std::get_if<ExchangeOp>(&op.body)) {
    prepared.parts = parts(*exchange);
  } else if (const auto* collective = std::get_if<CollectiveOp>(&op.body)) {
    prepared.transport = &transport(collective->transport);
    prepared.group = prepared.transport->group(collective->group);
  }
  return prepared;
}

KernelContext Executor::context_of(const Op& op) const {
  const auto& compute = std::get<ComputeOp>(op.body);
  KernelContext context;
  context.seed = settings_.seed;
  context.now = static_cast<const StepNumbers*>(now_.get()) + 1 + compute.parameter_group;
  if (op.layer >= 0) context.layer = network_.layer(op.layer).name;
  context.region = compute.region;
  context.global = compute.global;
  context.momentum = settings_.momentum;
  context.weight_decay = settings_.weight_decay;
  if (const int group = compute.parameter_group; group >= 0)
    context.weight_decay =
        network_.training.groups[static_cast<std::size_t>(group)].weight_decay.value_or(
            settings_.weight_decay);
  context.beta1 = settings_.beta1;
  context.beta2 = settings_.beta2;
  context.epsilon = settings_.epsilon;
  context.trust = settings_.trust;
  context.scale_growth_steps = settings_.loss_scale.growth_steps;
  return context;
}

Bytes Executor::step_numbers() const {
  return {(1 + std::ssize(network_.training.groups)) *
          static_cast<std::int64_t>(sizeof(StepNumbers))};
}

PreparedKernel* Executor::prepare(const Kernel& kernel) {
  const auto [place, fresh] = kernels_.try_emplace(kernel);
  if (fresh) {
    const auto chosen = program_.implementations.find(kernel.key());
    place->second = backend_.prepare(
        kernel, chosen == program_.implementations.end() ? std::string() : chosen->second);
  }
  return place->second.get();
}

/// Groups an exchange's messages by transport. The parts are in the order of TransportId. All ranks
/// need the same order, because each transport may wait for the other ranks.
std::vector<Executor::PartOfExchange> Executor::parts(const ExchangeOp& exchange) const {
  std::map<TransportId, PartOfExchange> parts;
  const auto part = [&](const Message& message) -> PartOfExchange& {
    return parts
        .try_emplace(message.transport, PartOfExchange{&transport(message.transport), {}, {}})
        .first->second;
  };
  const auto parcel = [&](const Message& message) {
    return Communicator::Parcel{message.peer, address(message.buffer), message.bytes};
  };
  for (const Message& message : exchange.sends) part(message).sends.push_back(parcel(message));
  for (const Message& message : exchange.receives)
    part(message).receives.push_back(parcel(message));
  std::vector<PartOfExchange> in_order;
  for (auto& [id, of_transport] : parts) in_order.push_back(std::move(of_transport));
  return in_order;
}

bool Executor::captured(const Op& op) const {
  if (const auto* collective = std::get_if<CollectiveOp>(&op.body))
    return transport(collective->transport).captured();
  const auto by_stream = [&](const Message& message) {
    return transport(message.transport).captured();
  };
  const auto& exchange = std::get<ExchangeOp>(op.body);
  return std::ranges::all_of(exchange.sends, by_stream) &&
         std::ranges::all_of(exchange.receives, by_stream);
}

void Executor::fill(const DeviceMemory& memory, Bytes bytes, int value) {
  if (bytes.value == 0) return;
  const std::vector<unsigned char> piece(
      static_cast<std::size_t>(std::min<std::int64_t>(bytes.value, 1 << 20)),
      static_cast<unsigned char>(value));
  for (Bytes begin{}; begin < bytes; begin += {std::ssize(piece)})
    backend_.upload(compute_stream, static_cast<std::byte*>(memory.get()) + begin.value,
                    piece.data(), std::min(bytes - begin, Bytes{std::ssize(piece)}));
  backend_.synchronize(compute_stream);
}

void Executor::poison() { fill(arena_, memory_.arena, 0xFF); }

/// Uploads the StepNumbers of this iteration, which kernels read.
void Executor::tell(std::int64_t iteration) {
  auto* told = static_cast<StepNumbers*>(told_.get());
  *told = settings_.numbers_at(iteration);
  for (const ParameterGroup& group : network_.training.groups)
    *++told = settings_.numbers_at(iteration, group.learning_rate);
  backend_.upload(compute_stream, now_.get(), told_.get(), step_numbers());
}

void Executor::run(std::int64_t iteration, const AfterOp& after_op) {
  const Seconds start = started_ = steady_time();
  tell(iteration);
  if (replays() && ran_ && !after_op) {
    for (std::size_t segment = 0; segment < segments_.size(); ++segment)
      replay(segment, iteration, start);
  } else {
    if (!replays()) start_ = backend_.record(compute_stream, start_);
    run({0, program_.ops.size()}, iteration, start, after_op);
  }
  ran_ = true;
  for (const Stream stream : streams) finish(stream, start);
  backend_.synchronize(compute_stream);
  if (!replays()) note_spans();
  recorder_.begin({iteration});
}

void Executor::run(const Segment& segment, std::int64_t iteration, Seconds start,
                   const AfterOp& after_op) {
  const bool times = !replays();
  for (std::size_t i = segment.first; i < segment.end; ++i) {
    recorder_.begin({iteration, static_cast<std::int64_t>(i)});
    for (const Stream stream : prepared_[i].awaits) finish(stream, start);
    // An op that waits for no stream begins when the previous op ends.
    if (times && prepared_[i].awaits.empty())
      begins_[i] = i == 0 ? start_ : ends_[i - 1];
    else if (times)
      begins_[i] = backend_.record(compute_stream, begins_[i]);
    execute(program_.ops[i], prepared_[i], iteration);
    if (times) ends_[i] = backend_.record(compute_stream, ends_[i]);
    if (program_.concurrent_streams) follow(i, start);
    if (after_op) {
      finish(program_.ops[i].stream, start);
      backend_.synchronize(compute_stream);
      after_op(i);
    }
  }
}

void Executor::note_spans() {
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    spans_[i].start = backend_.elapsed(start_, begins_[i]);
    if (!program_.concurrent_streams || !communicates(program_.ops[i]))
      spans_[i].end = backend_.elapsed(start_, ends_[i]);
  }
}

/// Waits for the communication under way on a stream, and notes the end of the communicating ops.
void Executor::finish(Stream stream, Seconds start) {
  std::vector<std::size_t>& ops = under_way_[static_cast<std::size_t>(stream)];
  if (ops.empty()) return;
  communicator_.synchronize(stream);
  const Seconds end = steady_time() - start;
  for (const std::size_t op : ops) spans_[op].end = end;
  ops.clear();
}

/// Called after each op of a program with concurrent streams. If the op communicates, notes that
/// its communication is under way. Then lets the communication under way on all streams progress.
void Executor::follow(std::size_t index, Seconds start) {
  const Op& op = program_.ops[index];
  if (communicates(op)) under_way_[static_cast<std::size_t>(op.stream)].push_back(index);
  for (const Stream stream : streams)
    if (!under_way_[static_cast<std::size_t>(stream)].empty() && communicator_.poll(stream))
      finish(stream, start);
}

void Executor::execute(const Op& op, Prepared& prepared, std::int64_t iteration) {
  if (prepared.kernel) {
    compute(prepared);
  } else if (std::holds_alternative<LoadOp>(op.body)) {
    const std::span<const std::byte> host = contents(op, iteration);
    if (host.empty()) return;
    const void* from = prepared.staged && data_.fixed() ? prepared.staged.get() : host.data();
    backend_.upload(compute_stream, prepared.writes[0], from, {std::ssize(host)});
    backend_.synchronize(compute_stream);
  } else {
    communicate(op, prepared);
    if (!program_.concurrent_streams) communicator_.synchronize(op.stream);
  }
}

void Executor::compute(Prepared& prepared) {
  backend_.enqueue(compute_stream, *prepared.kernel, prepared.reads, prepared.writes,
                   workspace_.get(), prepared.context);
}

/// Returns the data of a LoadOp. The data have the size of the buffer that the op writes.
std::span<const std::byte> Executor::contents(const Op& op, std::int64_t iteration) {
  const std::span<const std::byte> contents = data_.load(std::get<LoadOp>(op.body), iteration);
  const Bytes bytes = program_.buffer(op.writes.at(0)).bytes();
  SP_ASSERT(std::ssize(contents) == bytes.value, "the data have {} bytes, but the buffer has {}",
            contents.size(), bytes.value);
  return contents;
}

void Executor::communicate(const Op& op, const Prepared& prepared) {
  if (const auto* exchange = std::get_if<ExchangeOp>(&op.body))
    for (const auto& [transport, sends, receives] : prepared.parts)
      transport->exchange(op.stream, sends, receives, exchange->tag);
  else
    communicate(std::get<CollectiveOp>(op.body), op.stream, prepared);
}

void Executor::communicate(const CollectiveOp& collective, Stream stream,
                           const Prepared& prepared) {
  switch (collective.op) {
    case Collective::AllReduce: {
      std::byte* data =
          static_cast<std::byte*>(prepared.writes[0]) + collective.begin * size_of(collective.type);
      return prepared.transport->all_reduce(stream, prepared.group, data, collective.count,
                                            collective.type);
    }
    case Collective::ReduceScatter:
      return prepared.transport->reduce_scatter(stream, prepared.group, prepared.reads[0],
                                                prepared.writes[0], collective.counts,
                                                collective.type);
    case Collective::AllGather:
      return prepared.transport->all_gather(stream, prepared.group, prepared.reads[0],
                                            prepared.writes[0], collective.counts, collective.type);
  }
}

// ---------------------------------------------------------------- replaying

void Executor::replay_ops() {
  SP_ASSERT(backend_.captures(), "the {} backend cannot capture work", backend_.name());
  segments_ = segments_of(program_, [this](const Op& op) { return captured(op); });
  if (replay_count().segments == 0) segments_.clear();
  work_.resize(segments_.size());
}

void Executor::launch_ops() {
  segments_.clear();
  work_.clear();
}

ReplayCount Executor::replay_count() const {
  ReplayCount count{.all_ops = program_.ops.size()};
  for (const Segment& segment : segments_) {
    if (!segment.replays) continue;
    ++count.segments;
    count.ops += segment.end - segment.first;
  }
  return count;
}

void Executor::replay(std::size_t index, std::int64_t iteration, Seconds start) {
  const Segment& segment = segments_[index];
  if (!segment.replays) return run(segment, iteration, start, {});
  recorder_.begin({iteration, static_cast<std::int64_t>(segment.first)});
  const bool first = !work_[index];
  if (first) capture(index);
  for (const Stream stream : prepared_[segment.first].awaits) finish(stream, start);
  for (std::size_t i = segment.first; i < segment.end; ++i)
    if (prepared_[i].staged && (first || !data_.fixed()))
      std::ranges::copy(contents(program_.ops[i], iteration),
                        static_cast<std::byte*>(prepared_[i].staged.get()));
  backend_.replay(*work_[index]);
  if (!segment.communicates) return;
  communicator_.replayed();
  communicator_.synchronize(compute_stream);
}

void Executor::capture(std::size_t index) {
  const Segment& segment = segments_[index];
  for (std::size_t i = segment.first; i < segment.end; ++i) {
    const Op& op = program_.ops[i];
    if (!std::holds_alternative<LoadOp>(op.body)) continue;
    if (const Bytes bytes = program_.buffer(op.writes.at(0)).bytes(); bytes.value > 0)
      prepared_[i].staged = allocate_host(bytes);
  }
  try {
    work_[index] = backend_.capture([&] { enqueue(segment); });
  } catch (const EnvironmentError& error) {
    throw EnvironmentError(
        fmt::format("ops {} to {} of {} cannot be captured for replay: {}; --cuda-graph off "
                    "launches each op on its own",
                    segment.first + 1, segment.end, program_.ops.size(), error.what()));
  }
}

/// Enqueues a segment's ops while they are captured. Streams wait for each other here, but the host
/// must not wait.
void Executor::enqueue(const Segment& segment) {
  for (std::size_t i = segment.first; i < segment.end; ++i) {
    const Op& op = program_.ops[i];
    Prepared& prepared = prepared_[i];
    for (const Stream stream : prepared.awaits) follow_stream(stream);
    if (prepared.kernel) {
      compute(prepared);
    } else if (communicates(op)) {
      communicate(op, prepared);
      if (!program_.concurrent_streams) follow_stream(op.stream);
    } else if (prepared.staged) {
      backend_.upload(compute_stream, prepared.writes[0], prepared.staged.get(),
                      program_.buffer(op.writes[0]).bytes());
    }
  }
}

/// Makes the compute stream wait for all that is enqueued on `stream` so far.
void Executor::follow_stream(Stream stream) {
  if (stream == compute_stream) return;
  Backend::Event& passed = passed_[static_cast<std::size_t>(stream)];
  backend_.wait(compute_stream, passed = backend_.record(stream, passed));
}

// ---------------------------------------------------------------- numbers in and out

std::span<double> Executor::losses() {
  losses_.assign(program_.losses.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < losses_.size(); ++i)
    if (const BufferId value = program_.losses[i].value; value >= 0) download(value, &losses_[i]);
  return losses_;
}

double Executor::loss() { return weighted_sum(program_, losses()); }

void Executor::set_loss_scaling(const LossScaling& scaling) {
  if (program_.loss_scale >= 0) upload(program_.loss_scale, &scaling);
}

LossScaling Executor::loss_scaling() {
  LossScaling scaling;
  if (program_.loss_scale >= 0) download(program_.loss_scale, &scaling);
  return scaling;
}

void Executor::upload(BufferId buffer, const void* host) {
  upload(buffer, {0}, host, program_.buffer(buffer).bytes());
}

void Executor::upload(BufferId buffer, Bytes begin, const void* host, Bytes bytes) {
  SP_ASSERT(begin + bytes <= program_.buffer(buffer).bytes(),
            "{} bytes at byte {} do not fit into a buffer of {} bytes", bytes.value, begin.value,
            program_.buffer(buffer).bytes().value);
  // A rank's share of a small tensor may be empty. Then neither the host address nor the device
  // address is valid.
  if (bytes.value == 0) return;
  backend_.upload(compute_stream, address(buffer) + begin.value, host, bytes);
  backend_.synchronize(compute_stream);
}

void Executor::download(BufferId buffer, void* host) {
  const Bytes bytes = program_.buffer(buffer).bytes();
  if (bytes.value == 0) return;
  backend_.download(compute_stream, host, address(buffer), bytes);
  backend_.synchronize(compute_stream);
}

std::vector<float> Executor::floats(BufferId buffer) {
  std::vector<float> values;
  download_floats(buffer, values);
  return values;
}

void Executor::download_floats(BufferId buffer, std::vector<float>& values) {
  const Buffer& of = program_.buffer(buffer);
  values.resize(static_cast<std::size_t>(of.region.elements()));
  if (!is_narrow(of.type)) {
    SP_ASSERT(of.type == DataType::F32, "the buffer {} holds {}, not floats", of.name,
              name_of(of.type));
    return download(buffer, values.data());
  }
  stored_.resize(values.size());
  download(buffer, stored_.data());
  widen(of.type, stored_.data(), values.data(), std::ssize(values));
}

void Executor::upload_floats(BufferId buffer, const std::vector<float>& values) {
  const Buffer& of = program_.buffer(buffer);
  if (!is_narrow(of.type)) return upload(buffer, values.data());
  std::vector<std::uint16_t> stored(values.size());
  narrow(of.type, values.data(), stored.data(), std::ssize(values));
  upload(buffer, stored.data());
}

}  // namespace stratplan
